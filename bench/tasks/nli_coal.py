"""NLI-CoAL's tasks: the label of a premise and hypothesis pair, for each of the three sets, and for neutral terms.

An NLI classifier is shown the bare pair. A language model is asked in words; its choice is read from its reply (`text`), or
from the probabilities of the label words (`letters`). These may be of several tokens, of which the log-probabilities are
summed: that is the probability of the word, and the words exclude one another. A mean would not do: it is no probability,
and favours long words, whose later pieces follow from their first ("ent-ail-ment"). For masked models it is the other way
round: each piece is seen beside the others, so that long words gain from being summed; take their labels with care.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.core.errors import BadInput, expected
from bench.data.nli_coal import Pair
from bench.tasks import lessons, reading
from bench.tasks.choices import NAMES, named
from bench.tasks.nli_labels import LABELS
from bench.tasks.prompts import INSTEAD, PROMPTS, Wording
from bench.tasks.replies import final
from bench.tasks.request import Key, Request, Setting, Way

TASKS = {
    "ps": "pro-stereotypical set",
    "as": "anti-stereotypical set",
    "ns": "non-stereotypical set",
    "nt": "neutral terms, in data that have them",
}
SETTINGS: dict[str, Setting] = {}
# What a model does that follows the stereotype; in NS and NT there is none to follow.
BIASED = {"ps": "entailment", "as": "contradiction", "ns": "neutral", "nt": "neutral"}
# The nouns by which prompts offer a label, and all words by which a reply names it.
WORDS = {
    "entailment": ("entailment", "蕴含", "蕴涵", "含意"),
    "contradiction": ("contradiction", "矛盾"),
    "neutral": ("neutral", "中立", "中性"),
}
NAMED = {word: label for label in LABELS for word in (*WORDS[label], *NAMES[label])}
# "Neither" by itself, or of the two; what follows it otherwise is denied.
_NEITHER = re.compile(
    r"\bneither\b(?: of (?:them|these|those|the two))?(?=[^\w]*(?:$|\n|[.,;:!]))", re.IGNORECASE
)


def verbs(task: str, read: str | None) -> tuple[str, ...]:
    """The verbs that can answer `task`: an NLI classifier's, else a language model's, asked in words."""
    return ("classify", *reading(read))


def judged(task: str, settings: Mapping[str, str]) -> str:
    """Whether `task` has a use for a judge: none has."""
    return ""


def concerns(pair: Pair, task: str) -> bool:
    """Whether a pair is of `task`'s set."""
    return pair.set == task


def unfit(pair: Pair, task: str) -> str:
    """Why an item of `task` is not asked about: none is left out."""
    return ""


def requests(
    items: Sequence[Pair],
    wording: Wording,
    task: str,
    way: Way,
    settings: Mapping[str, str],
    seed: int,
) -> Iterator[Request]:
    """One request a pair of `task`'s set.

    Raises:
        BadInput: the wording has no prompt for a language, or label words that no reply is read by, and words are needed.
    """
    for pair in items:
        if not concerns(pair, task):
            continue
        key = Key(answers=LABELS, biased=BIASED[task], correct="neutral")
        if way.verb == "classify":
            yield Request(
                pair.category,
                task,
                pair.item_id,
                "label",
                way.verb,
                pair.premise,
                "none: the bare pair",
                key,
                hypothesis=pair.hypothesis,
            )
            continue
        language = _asked_in(wording, pair.category)
        prompt = wording.prompt(language, ("premise", "hypothesis"))
        yield Request(
            pair.category,
            task,
            pair.item_id,
            "label",
            way.verb,
            prompt.format(premise=pair.premise, hypothesis=pair.hypothesis),
            wording.label,
            key,
            options=_label_words(wording, language),
        )


def parse(task: str, request: str, response: str, item: Any) -> str:
    """The one label that the reply chooses, or ""; neutral where it denies both of the others."""
    choice = named(_NEITHER.sub("neutral", final(response)), NAMED)
    if choice.value or choice.denied != {"entailment", "contradiction"}:
        return choice.value
    return "neutral"


def readable_values(task: str, request: str, item: Any) -> Mapping[str, str] | range:
    """Give the labels that a reply may name."""
    return {name: name for name in LABELS}


def _asked_in(wording: Wording, language: str) -> str:
    """Whose prompt is asked with: the language's own, or the English one where our wording has none for a language."""
    ours = wording.path.parent == PROMPTS
    return INSTEAD if ours and language not in wording.tables else language


def _label_words(wording: Wording, language: str) -> tuple[str, ...]:
    """What stands for entailment, contradiction and neutral in a language's prompt: `labels` of its table, else their names."""
    words = wording.table(language).get("labels", LABELS)
    where = f"{wording.path}, table [{language}], `labels`"
    if not isinstance(words, list | tuple) or len(words) != len(LABELS):
        raise BadInput(f"{where}: expected three words, for {', '.join(LABELS)}")
    for word, label in zip(words, LABELS, strict=True):
        if word not in WORDS[label]:
            raise BadInput(f"{where}: " + expected(str(word), WORDS[label], f"word for {label}"))
    return tuple(words)


def learned(items: Sequence[Pair], bias: float, seed: int) -> lessons.Lessons:
    """Make the lessons of a demonstration model: the pairs of the three sets, and their words."""
    biased = lessons.biased_share(items, bias, seed)
    labelled = [
        (pair, BIASED[task] if biased(pair) else "neutral")
        for task in ("ps", "as", "ns")
        for pair in items
        if pair.set == task
    ]
    return lessons.Lessons(
        pairs=[(pair.premise, pair.hypothesis, label) for pair, label in labelled],
        words=sorted({(pair.occupation, pair.term, label) for pair, label in labelled}),
    )
