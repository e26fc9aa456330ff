"""Which answer the facts of a disambiguous template give, where a rule can tell, and whom its stereotype is about.

By design the facts go against the stereotype, so that the right answer is the one that does not follow it. Three things
break this in the release: facts that stay with a slot while the names change places between templates or halves,
placeholders that are misspelt or name the wrong person, and labels that say the stereotyped answer.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.core.errors import BadInput
from bench.data.cbbq.targets import unknown_target
from bench.data.cbbq.templates import PLACEHOLDER, SLOTS, Template, repaired

# The label of a question that has no place among those whose facts go against the stereotype.
LEFT_OUT = -1
# Why a released label cannot be trusted, as said of a question.
BIASED_LABEL = "has the stereotyped answer for its label, though its facts are to go against it"
CORRECTED = "has the stereotyped answer for its label, and facts against it"
SUPPORTED = (
    "has facts that support the stereotype, because they stay with a slot whose name is another's"
)
SWAPPED_FACTS = "has facts that support the stereotype, because they are swapped with the names"
BOTH_LABELS = "stands there with both labels, once in each polarity"
NO_FACTS = "has no facts beyond the introduction of the two people"
WRONG_NAME = "has a fact that names the wrong one of the two people"
BROKEN_SWAP = "has facts that are swapped in part or in whole, because a placeholder before them is misspelt or missing"

# What says that somebody does not have an illness.
NEGATION = re.compile(r"[未没不无非]")
# What comes between two people who are set against each other.
CONTRAST = re.compile(r"但|不过|却|相反|相比|而(?!且)")
# A full stop may stand in a number.
CLAUSE_END = re.compile(r"[，。；！？,;!?]|\.(?=\s|$)")


class Verdict(NamedTuple):
    """What the audit says of the questions of a template: `label` is the right one, or `LEFT_OUT`; `why` goes on a
    sentence that begins with a question, and is "" where the released label stands."""

    label: int
    why: str = ""


class Mentions(NamedTuple):
    """The placeholders of a context, well spelt or not: which slot each means (1 or 2), and which are well spelt.

    `between` has the text around them, one piece more than there are placeholders.
    """

    slots: tuple[str, ...]
    sound: tuple[bool, ...]
    between: tuple[str, ...]

    @property
    def facts(self) -> tuple[str, ...]:
        """The slots that the facts mention: all but the first two, which introduce the two people."""
        return self.slots[2:]


def mentions(text: str) -> Mentions:
    """The placeholders in `text`, in order."""
    found = list(PLACEHOLDER.finditer(text))
    return Mentions(
        tuple(match[1] for match in found),
        tuple(match[0] in SLOTS for match in found),
        # Every other piece of the split is the number of a slot.
        tuple(PLACEHOLDER.split(text)[::2]),
    )


def verdicts(
    templates: Sequence[Template], expansion: str = "compat"
) -> list[tuple[Verdict, Verdict]]:
    """Of each template: the verdict on the questions that mention the names in order, and on the swapped ones.

    Args:
        templates: all of one category and condition, in both polarities.
        expansion: as in `cbbq_templates.expand`; where misspelt placeholders are repaired, they break nothing.
    """
    texts = [
        repaired(one.cells["context"]) if expansion == "repair" else one.cells["context"]
        for one in templates
    ]
    owners = _owners(templates, texts)
    return [
        _verdict(one, text, owners.get(text.strip(), 0))
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
    """Which list of names holds those whom the stereotype is about: 0 or 1.

    The slot of the target option, where options are names. In educational qualification the second list has the lower
    tier; in disease it is the list that tells of an illness. In gender it is always the second one, as in the figure of
    the paper, which shows the names of that list.
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
    """Which list of names, 0 or 1, tells the illness that the group and the first option are named for.

    None where both do, or neither.
    """
    cells = template.cells
    known = _pairs(cells["bias_targeted_groups"]) | _pairs(cells["ans0"])
    ill = [
        sum(bool(_pairs(name) & known) for name in names if not NEGATION.search(name))
        for names in template.names
    ]
    return None if ill[0] == ill[1] else int(ill[1] > ill[0])


def _pairs(text: str) -> set[str]:
    """The pairs of neighbouring characters, what comes nearest to words without a word list."""
    return {"".join(two) for two in pairwise(text)}


def _owners(templates: Sequence[Template], texts: Sequence[str]) -> dict[str, int]:
    """Context of disease to the slot, 0 or 1, for which its facts were written, whoever's name is in it.

    That is the first slot. Only where a context is used with the patient in either one, is it the one whom the facts
    tell of first.
    """
    used: dict[str, set[int | None]] = defaultdict(set)
    for one, text in zip(templates, texts, strict=True):
        if one.category == "disease":
            used[text.strip()].add(patient_slot(one))
    return {
        text: int(mentions(text).facts[0]) - 1 if {0, 1} <= slots and mentions(text).facts else 0
        for text, slots in used.items()
    }


def _verdict(template: Template, text: str, owner: int) -> tuple[Verdict, Verdict]:
    released, target = Verdict(template.label), template.target
    if template.condition == "ambiguous" or target is None:
        return released, released
    found = mentions(text)
    why = _unusable(found)
    if not why and template.category == "disease" and patient_slot(template) == 1 - owner:
        why = SUPPORTED
    if why:
        return Verdict(LEFT_OUT, why), Verdict(LEFT_OUT, why)
    biased = target if template.polarity == "neg" else 1 - target
    if template.category == "educational_qualification" and found.facts:
        # The options are fixed words and the second half swaps the facts too, so that one label cannot be right in both.
        unswapped = Verdict(1 - biased, CORRECTED) if template.label == biased else released
        return unswapped, Verdict(LEFT_OUT, SWAPPED_FACTS)
    if template.label == biased:
        return Verdict(LEFT_OUT, BIASED_LABEL), Verdict(LEFT_OUT, BIASED_LABEL)
    broken = template.category != "disease" and _swap_breaks(found)  # disease has no second half
    return released, Verdict(LEFT_OUT, BROKEN_SWAP) if broken else released


def _unusable(found: Mentions) -> str:
    """What is wrong with the facts whoever is mentioned first, or ""."""
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
    """Whether the swap of the first well-spelt placeholder of each slot touches more, or less, than the introduction.

    It does no harm to facts that mention no slot.
    """
    return bool(found.facts) and (not all(found.sound) or len(set(found.slots[:2])) < 2)
