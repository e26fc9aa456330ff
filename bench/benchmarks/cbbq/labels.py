"""Check the labels of disambiguous templates against their facts, and find the stereotyped people.

By design the facts go against the stereotype, so that the right answer does not follow it. Three
faults of the release break this: facts that stay with a slot while the names change places between
templates or halves, placeholders that are misspelt or name the wrong person, and labels that are
the stereotyped answer.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.benchmarks.cbbq.templates import PLACEHOLDER, SLOTS, Template, repaired, unknown_target

# The label of a question with facts that do not go against the stereotype.
LEFT_OUT = -1
# The reasons why a released label is wrong; each completes "a question ...".
BIASED_LABEL = "has the stereotyped answer for its label, though its facts are to go against it"
CORRECTED = "has the stereotyped answer for its label, and facts against it"
SUPPORTED = (
    "has facts that support the stereotype, because they stay with a slot whose name is another's"
)
SWAPPED_FACTS = "has facts that support the stereotype, because they are swapped with the names"
BOTH_LABELS = "occurs with both labels, once in each polarity"
NO_FACTS = "has no facts beyond the introduction of the two people"
WRONG_NAME = "has a fact that names the wrong one of the two people"
BROKEN_SWAP = (
    "has facts that are swapped in part or in whole, because a placeholder before them is misspelt "
    "or missing"
)

# The first list of names of three templates of the release with the first option as target.
TRANSGENDER = ("变性女生", "变性女孩")
# Characters that deny an illness.
NEGATION = re.compile(r"[未没不无非]")
# Words between two people who are set against each other.
CONTRAST = re.compile(r"但|不过|却|相反|相比|而(?!且)")
# A full stop may stand in a number.
CLAUSE_END = re.compile(r"[，。；！？,;!?]|\.(?=\s|$)")


class LabelCheck(NamedTuple):
    """The right label of a question, or `LEFT_OUT`, and the reason if it is another label."""

    label: int
    reason: str = ""


def check_labels(
    templates: Sequence[Template], expansion: str = "compat"
) -> list[tuple[LabelCheck, LabelCheck]]:
    """Check the label of each template: of its unswapped questions, and of the swapped ones.

    Args:
        templates: all of one category and condition, in both polarities.
        expansion: as in `templates.filled`; repaired placeholders break nothing.
    """
    texts = [
        repaired(template.cells["context"]) if expansion == "repair" else template.cells["context"]
        for template in templates
    ]
    # The slots that have the patient in templates with this context.
    patients: dict[str, set[int | None]] = defaultdict(set)
    for template, text in zip(templates, texts, strict=True):
        if template.category == "disease":
            patients[text.strip()].add(patient_slot(template))
    return [
        _check(template, text, patients[text.strip()])
        for template, text in zip(templates, texts, strict=True)
    ]


def _check(
    template: Template, text: str, patients: set[int | None]
) -> tuple[LabelCheck, LabelCheck]:
    released, target, category = LabelCheck(template.label), template.target, template.category
    if template.condition == "ambiguous" or target is None:
        return released, released
    slots = [match[1] for match in PLACEHOLDER.finditer(text)]
    facts = slots[2:]  # all but the first two, which introduce people
    between = PLACEHOLDER.split(text)[::2]
    again = [k for k in range(3, len(slots)) if slots[k] == slots[k - 1]]
    biased = target if template.polarity == "neg" else 1 - target
    reason = ""
    if len(slots) == 2 and not any(part.strip() for part in CLAUSE_END.split(between[2])[1:]):
        reason = NO_FACTS
    elif len(facts) > 1 and (
        len(set(facts)) == 1 or any(CONTRAST.search(between[k]) for k in again)
    ):
        reason = WRONG_NAME
    elif category == "disease":
        # The facts are about the first slot, unless a context is used with the patient in either
        # slot: then they are about the slot that they mention first.
        owner = int(facts[0]) - 1 if {0, 1} <= patients and facts else 0
        reason = SUPPORTED if patient_slot(template) == 1 - owner else ""
    if not reason and category == "educational_qualification" and facts:
        # The options are fixed words, and the second half swaps the facts too. So one label cannot
        # be right in both halves.
        unswapped = LabelCheck(1 - biased, CORRECTED) if template.label == biased else released
        return unswapped, LabelCheck(LEFT_OUT, SWAPPED_FACTS)
    if not reason and template.label == biased:
        reason = BIASED_LABEL
    if reason:
        return LabelCheck(LEFT_OUT, reason), LabelCheck(LEFT_OUT, reason)
    # The release swaps the first well-spelt placeholders. This does no harm to facts that mention
    # no slot, and disease has no second half.
    sound = all(match[0] in SLOTS for match in PLACEHOLDER.finditer(text))
    broken = facts and category != "disease" and not (sound and len(set(slots[:2])) == 2)
    return released, LabelCheck(LEFT_OUT, BROKEN_SWAP) if broken else released


def required_target(template: Template) -> int:
    """Return the option of a template that names the stereotyped group.

    Raises:
        BadInput: neither option names it.
    """
    if template.target is None:
        raise unknown_target(template.place, template.group, template.category)
    return template.target


def target_slot(template: Template) -> int:
    """Find the list of names, 0 or 1, of the stereotyped people.

    This is the slot of the target option if options are names. If they are fixed words, it is the
    second list in educational qualification, because this has the lower tier, and the list that
    names an illness in disease. For the release's transgender names we take the second list, as in
    the figure of the paper.
    """
    target = required_target(template)
    if template.category == "gender" and template.names[0] == TRANSGENDER:
        return 1
    if PLACEHOLDER.search(template.cells[f"ans{target}"]):
        return target
    if template.category == "educational_qualification":
        return 1
    if template.category == "disease":
        return patient_slot(template) or 0
    return target


def patient_slot(template: Template) -> int | None:
    """Find the list of names, 0 or 1, that has the illness of the group and the first option.

    None if both have it, or neither.
    """
    known = _pairs(template.group) | _pairs(template.cells["ans0"])
    ill = [
        sum(bool(_pairs(name) & known) for name in names if not NEGATION.search(name))
        for names in template.names
    ]
    return None if ill[0] == ill[1] else int(ill[1] > ill[0])


def _pairs(text: str) -> set[str]:
    """List the pairs of neighbouring characters. We take these for words."""
    return set(map("".join, pairwise(text)))
