"""Check the labels of disambiguous templates against their facts, and find whom they are about.

By design the facts go against the stereotype, so that the right answer is the one that does not
follow it. Three things break this in the release: facts that stay with a slot while the names
change places between templates or halves, placeholders that are misspelt or name the wrong person,
and labels that are the stereotyped answer.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.core.errors import BadInput
from bench.data.cbbq.targets import unknown_target
from bench.data.cbbq.templates import PLACEHOLDER, SLOTS, Template, repaired

# The label of a question whose facts do not go against the stereotype.
LEFT_OUT = -1
# Why a released label cannot be trusted; each completes "a question ...".
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

# What says that somebody does not have an illness.
NEGATION = re.compile(r"[未没不无非]")
# What comes between two people who are set against each other.
CONTRAST = re.compile(r"但|不过|却|相反|相比|而(?!且)")
# A full stop may stand in a number.
CLAUSE_END = re.compile(r"[，。；！？,;!?]|\.(?=\s|$)")


class LabelCheck(NamedTuple):
    """What the audit says about the label of a question.

    Attributes:
        label: the right one, or `LEFT_OUT`.
        reason: completes a sentence that begins with "a question"; "" where the released label
            is right.
    """

    label: int
    reason: str = ""


class Mentions(NamedTuple):
    """The placeholders of a context, well spelt or not.

    Attributes:
        slots: which slot each means, 1 or 2.
        sound: which are well spelt.
        between: the texts around them, one more than there are placeholders.
    """

    slots: tuple[str, ...]
    sound: tuple[bool, ...]
    between: tuple[str, ...]

    @property
    def facts(self) -> tuple[str, ...]:
        """The slots that the facts mention: all but the first two, which introduce people."""
        return self.slots[2:]


def mentions(text: str) -> Mentions:
    """Find the placeholders in `text`, in order."""
    found = list(PLACEHOLDER.finditer(text))
    return Mentions(
        tuple(match[1] for match in found),
        tuple(match[0] in SLOTS for match in found),
        # Every other piece of the split is the number of a slot.
        tuple(PLACEHOLDER.split(text)[::2]),
    )


def check_labels(
    templates: Sequence[Template], expansion: str = "compat"
) -> list[tuple[LabelCheck, LabelCheck]]:
    """Check the label of each template: of its unswapped questions, and of the swapped ones.

    Args:
        templates: all of one category and condition, in both polarities.
        expansion: as in `templates.expand`; misspelt placeholders that are repaired break nothing.
    """
    texts = [
        repaired(one.cells["context"]) if expansion == "repair" else one.cells["context"]
        for one in templates
    ]
    owners = _owners(templates, texts)
    return [
        _check(one, text, owners.get(text.strip(), 0))
        for one, text in zip(templates, texts, strict=True)
    ]


def required_target(template: Template) -> int:
    """Return the option of a template that names the stereotyped group.

    Raises:
        BadInput: nothing tells it.
    """
    if template.target is None:
        group = template.cells["bias_targeted_groups"]
        raise BadInput(unknown_target(template.place, group, template.category))
    return template.target


def target_slot(template: Template) -> int:
    """Find the list of names, 0 or 1, that holds the people whom the stereotype is about.

    This is the slot of the target option, where options are names. In educational qualification the
    second list has the lower tier; in disease it is the list that names an illness. In gender it is
    always the second one, as in the figure of the paper, which shows the names of that list.
    """
    category = template.category
    if category == "educational_qualification":
        return 1
    if category == "disease":
        return patient_slot(template) or 0
    if category == "gender":
        return 1
    return required_target(template)


def patient_slot(template: Template) -> int | None:
    """Find the list of names, 0 or 1, that has the illness of the group and the first option.

    None if both have it, or neither.
    """
    cells = template.cells
    known = _pairs(cells["bias_targeted_groups"]) | _pairs(cells["ans0"])
    ill = [
        sum(bool(_pairs(name) & known) for name in names if not NEGATION.search(name))
        for names in template.names
    ]
    return None if ill[0] == ill[1] else int(ill[1] > ill[0])


def _pairs(text: str) -> set[str]:
    """List the pairs of neighbouring characters, the nearest to words without a word list."""
    return {"".join(two) for two in pairwise(text)}


def _owners(templates: Sequence[Template], texts: Sequence[str]) -> dict[str, int]:
    """Map each context of disease to the slot, 0 or 1, for which its facts were written.

    That is the first slot. Only if a context is used with the patient in either slot, it is the one
    that the facts mention first.
    """
    used: dict[str, set[int | None]] = defaultdict(set)
    for one, text in zip(templates, texts, strict=True):
        if one.category == "disease":
            used[text.strip()].add(patient_slot(one))
    return {
        text: int(mentions(text).facts[0]) - 1 if {0, 1} <= slots and mentions(text).facts else 0
        for text, slots in used.items()
    }


def _check(template: Template, text: str, owner: int) -> tuple[LabelCheck, LabelCheck]:
    released, target = LabelCheck(template.label), template.target
    if template.condition == "ambiguous" or target is None:
        return released, released
    found = mentions(text)
    reason = _unusable(found)
    if not reason and template.category == "disease" and patient_slot(template) == 1 - owner:
        reason = SUPPORTED
    if reason:
        return LabelCheck(LEFT_OUT, reason), LabelCheck(LEFT_OUT, reason)
    biased = target if template.polarity == "neg" else 1 - target
    if template.category == "educational_qualification" and found.facts:
        # The options are fixed words and the second half swaps the facts too, so that one label
        # cannot be right in both.
        unswapped = LabelCheck(1 - biased, CORRECTED) if template.label == biased else released
        return unswapped, LabelCheck(LEFT_OUT, SWAPPED_FACTS)
    if template.label == biased:
        return LabelCheck(LEFT_OUT, BIASED_LABEL), LabelCheck(LEFT_OUT, BIASED_LABEL)
    broken = template.category != "disease" and _swap_breaks(found)  # disease has no second half
    return released, LabelCheck(LEFT_OUT, BROKEN_SWAP) if broken else released


def _unusable(found: Mentions) -> str:
    """Say what is wrong with the facts, whoever is mentioned first, or return ""."""
    if len(found.slots) == 2 and not any(
        clause.strip() for clause in CLAUSE_END.split(found.between[2])[1:]
    ):
        return NO_FACTS
    facts = found.facts
    if len(facts) > 1 and len(set(facts)) == 1:
        return WRONG_NAME
    again = [k for k in range(3, len(found.slots)) if found.slots[k] == found.slots[k - 1]]
    return WRONG_NAME if any(CONTRAST.search(found.between[k]) for k in again) else ""


def _swap_breaks(found: Mentions) -> bool:
    """Tell whether swapping the first well-spelt placeholders swaps not just the introduction.

    It does no harm to facts that mention no slot.
    """
    return bool(found.facts) and (not all(found.sound) or len(set(found.slots[:2])) < 2)
