"""NLI-CoAL's tasks: the label of a premise and a hypothesis, in three sets and for neutral terms.

An NLI classifier is shown the bare pair. A language model is asked in words; its choice is read in
its reply (`text`), or from the probabilities of the label words (`letters`). The log-probabilities
of a word's tokens are summed, which gives the word's probability; a mean is no probability and
favours long words, whose later pieces follow from the first ("ent-ail-ment"). A masked model sees
the other pieces of a word, so that it favours long words all the same; take its labels with care.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.benchmarks.nli_coal.items import Pair
from bench.core.errors import BadInput, expected
from bench.tasks import reading
from bench.tasks.choices import NAMES, named
from bench.tasks.nli_labels import LABELS
from bench.tasks.prompts import INSTEAD, PromptSet
from bench.tasks.replies import final
from bench.tasks.request import Key, Request, Setting, Way

TASKS = {
    "ps": "pro-stereotypical set",
    "as": "anti-stereotypical set",
    "ns": "non-stereotypical set",
    "nt": "neutral terms, in data that have them",
}
SETTINGS: dict[str, Setting] = {}
# The label of a model that follows the stereotype; in NS and NT there is no stereotype.
BIASED = {"ps": "entailment", "as": "contradiction", "ns": "neutral", "nt": "neutral"}
# The nouns for a label in prompts, and all words for it in replies.
WORDS = {
    "entailment": ("entailment", "蕴含", "蕴涵", "含意"),
    "contradiction": ("contradiction", "矛盾"),
    "neutral": ("neutral", "中立", "中性"),
}
NAMED = {word: label for label in LABELS for word in (*WORDS[label], *NAMES[label])}
# "Neither" alone or of the two; "neither ..." denies what follows.
# Our prompts, which have a table for each language of the release.
PROMPTS = Path(__file__).with_name("prompts.toml")
_NEITHER = re.compile(
    r"\bneither\b(?: of (?:them|these|those|the two))?(?=[^\w]*(?:$|\n|[.,;:!]))", re.IGNORECASE
)


def verbs(task: str, read: str | None) -> tuple[str, ...]:
    """Return the verbs that can answer a task: a classifier's, then those of a language model."""
    return ("classify", *reading(read))


def judged(task: str, settings: Mapping[str, str]) -> str:
    """Return an empty text: no task needs a judge."""
    return ""


def concerns(pair: Pair, task: str) -> bool:
    """Whether a pair is in a task's set."""
    return pair.set == task


def unfit(pair: Pair, task: str) -> str:
    """Return an empty text: every pair can be asked."""
    return ""


def requests(
    items: Sequence[Pair],
    prompts: PromptSet,
    task: str,
    way: Way,
    settings: Mapping[str, str],
    seed: int,
) -> Iterator[Request]:
    """Make one request for each pair of a task's set.

    Raises:
        BadInput: the prompt set has no prompt for a language, or unknown label words.
    """
    key = Key(answers=LABELS, biased=BIASED[task], correct="neutral")
    for pair in items:
        if not concerns(pair, task):
            continue
        ask = partial(Request, pair.category, task, pair.item_id, "label", way.verb, key=key)
        if way.verb == "classify":
            version = "none: the bare pair"
            yield ask(pair.premise, prompt_version=version, hypothesis=pair.hypothesis)
            continue
        # English, if our prompt set lacks the language.
        is_lacking = prompts.path == PROMPTS and pair.category not in prompts.tables
        language = INSTEAD if is_lacking else pair.category
        template = prompts.prompt(language, ("premise", "hypothesis"))
        prompt = template.format(premise=pair.premise, hypothesis=pair.hypothesis)
        yield ask(prompt, prompt_version=prompts.label, options=_label_words(prompts, language))


def parse(task: str, request: str, response: str, item: Any) -> str:
    """Read the label that a reply chooses; neutral if it denies both others, empty if none."""
    choice = named(_NEITHER.sub("neutral", final(response)), NAMED)
    if choice.value or choice.denied != {"entailment", "contradiction"}:
        return choice.value
    return "neutral"


def readable_values(task: str, request: str, item: Any) -> Mapping[str, str] | range:
    """Return the labels."""
    return {name: name for name in LABELS}


def _label_words(prompts: PromptSet, language: str) -> tuple[str, ...]:
    """Return the label words of a language's prompt: `labels` of its table, or the names."""
    words = prompts.table(language).get("labels", LABELS)
    where = f"{prompts.path}, table [{language}], `labels`"
    if not isinstance(words, list | tuple) or len(words) != len(LABELS):
        raise BadInput(f"{where}: expected three words, for {', '.join(LABELS)}")
    for word, label in zip(words, LABELS, strict=True):
        if word not in WORDS[label]:
            raise BadInput(f"{where}: " + expected(str(word), WORDS[label], f"word for {label}"))
    return tuple(words)


def verdict_of(task: str, request: str, parsed: str, item: Any) -> str:
    """Return what a label says, one of `bench.tasks.VERDICTS`."""
    if not parsed:
        return "unreadable"
    if parsed == "neutral":
        return "right"
    return "stereotyped" if parsed == BIASED[task] else "other"
