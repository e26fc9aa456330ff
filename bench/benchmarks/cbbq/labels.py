"""Check that the facts of a disambiguous template go against its stereotype, as its label says."""

import re

from bench.benchmarks.cbbq.targets import patient_slot, stereotyped_option, target_of
from bench.benchmarks.cbbq.templates import PLACEHOLDER, SLOTS, Template

LEFT_OUT = -1  # the label of a question with facts that do not go against the stereotype
CONTRAST = re.compile(r"但|不过|却|相反|相比|而(?!且)")  # between two people who are compared
CLAUSE_END = re.compile(r"[，。；！？,;!?]|\.(?=\s|$)")  # a full stop may stand in a number
BIASED = "has the stereotyped answer for its label, "
SUPPORT = "has facts that support the stereotype, because they "
Label = tuple[int, str]


def check_label(template: Template, text: str, patients: set[int | None]) -> list[Label]:
    """Find the correct label for both orders of names, with the reason if the label changes.

    Args:
        text: the context of the template.
        patients: the slots of the patient in all templates with this context.

    Returns:
        For each order: the label, or `LEFT_OUT` if no label is right, and the reason or "".
    """
    released = (template.label, "")
    target = target_of(template)
    category = template.category
    if template.condition == "ambiguous" or target is None:
        return [released, released]
    biased = stereotyped_option(target, template.polarity)
    slots = PLACEHOLDER.findall(text)
    between = PLACEHOLDER.split(text)[::2]
    facts = slots[2:]  # the first two slots introduce the people
    again = [between[k] for k in range(3, len(slots)) if slots[k] == slots[k - 1]]
    names_one = len(set(facts)) == 1 or any(map(CONTRAST.search, again))
    owner = int(facts[0]) - 1 if {0, 1} <= patients and facts else 0  # whom the facts are about
    reason = BIASED + "though its facts are to go against it" if template.label == biased else ""
    if len(slots) == 2 and not any(map(str.strip, CLAUSE_END.split(between[2])[1:])):
        reason = "has no facts beyond the introduction of the two people"
    elif len(facts) > 1 and names_one:
        reason = "has a fact that names the wrong one of the two people"
    elif category == "disease" and patient_slot(template) == 1 - owner:
        reason = SUPPORT + "stay with a slot whose name is another's"
    elif category == "educational_qualification" and facts:  # its facts are swapped too
        right = (1 - biased, BIASED + "and facts against it") if reason else released
        return [right, (LEFT_OUT, SUPPORT + "are swapped with the names")]
    well_spelt = all(match[0] in SLOTS for match in PLACEHOLDER.finditer(text))
    if reason or not facts or category == "disease" or (well_spelt and len(set(slots[:2])) == 2):
        return [(LEFT_OUT, reason) if reason else released] * 2
    reason = "has facts that are swapped in part or in whole, because a placeholder before them is "
    return [released, (LEFT_OUT, reason + "misspelt or missing")]
