"""NLI-CoAL's tasks: the label of a premise and a hypothesis, in three sets and for neutral terms.

An NLI classifier gets the bare pair. We ask a language model in words, and read its choice in its
reply (`text`), or from the probabilities of the label words (`letters`). We sum the
log-probabilities of a word's tokens, which gives the word's probability. A mean would favour long
words, because their later pieces follow from the first ("ent-ail-ment"). A masked model sees the
other pieces of a word, so that it favours long words all the same; take its labels with care.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.benchmarks.base import Task, Values
from bench.benchmarks.nli_coal.items import Pair
from bench.core.errors import BadInput, expected
from bench.tasks.choices import NAMES, named
from bench.tasks.nli_labels import LABELS
from bench.tasks.prompts import INSTEAD, PromptSet
from bench.tasks.replies import final
from bench.tasks.request import AnswerMode, Key, Request

TASKS = {
    name: Task(title, request_types=("classify",), applies_to={"set": name}, choices=LABELS)
    for name, title in (
        ("ps", "pro-stereotypical set"),
        ("as", "anti-stereotypical set"),
        ("ns", "non-stereotypical set"),
        ("nt", "neutral terms, in data that have them"),
    )
}
# The label of a model that follows the stereotype; in NS and NT there is no stereotype.
BIASED = {"ps": "entailment", "as": "contradiction", "ns": "neutral", "nt": "neutral"}
# The nouns for a label in prompts, and all words for it in replies.
WORDS = {
    "entailment": ("entailment", "蕴含", "蕴涵", "含意"),
    "contradiction": ("contradiction", "矛盾"),
    "neutral": ("neutral", "中立", "中性"),
}
NAMED = {word: label for label in LABELS for word in (*WORDS[label], *NAMES[label])}
# Our prompts, with a table for each language of the release.
PROMPTS = Path(__file__).with_name("prompts.toml")
# "Neither" as an answer, not as a denial of the following words.
_NEITHER = re.compile(
    r"\bneither\b(?: of (?:them|these|those|the two))?(?=[^\w]*(?:$|\n|[.,;:!]))", re.IGNORECASE
)


def requests(
    items: Sequence[Pair],
    prompts: PromptSet,
    task: str,
    answer_mode: AnswerMode,
    settings: Mapping[str, str],
    seed: int,
) -> Iterator[Request]:
    """Make one request for each pair.

    Raises:
        BadInput: the prompt set has no prompt for a language, or unknown label words.
    """
    key = Key(answers=LABELS, biased=BIASED[task], correct="neutral")
    for pair in items:
        ask = partial(
            Request, pair.category, task, pair.item_id, "label", answer_mode.request_type, key=key
        )
        if answer_mode.request_type == "classify":
            version = "none: the bare pair"
            yield ask(pair.premise, prompt_version=version, hypothesis=pair.hypothesis)
            continue
        # We ask in English if our prompt set lacks the language.
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


def values(task: str, request: str, item: Any) -> Values:
    """Return the labels, and their verdicts."""
    verdicts = {BIASED[task]: "stereotyped", "neutral": "right"}
    return Values({name: name for name in LABELS}, verdicts)


def _label_words(prompts: PromptSet, language: str) -> tuple[str, ...]:
    """Return the label words of a prompt: `labels` of its table, or the names of the labels."""
    words = prompts.table(language).get("labels", LABELS)
    where = f"{prompts.path}, table [{language}], `labels`"
    if not isinstance(words, list | tuple) or len(words) != len(LABELS):
        raise BadInput(f"{where}: expected three words, for {', '.join(LABELS)}")
    for word, label in zip(words, LABELS, strict=True):
        if word not in WORDS[label]:
            raise BadInput(f"{where}: " + expected(str(word), WORDS[label], f"word for {label}"))
    return tuple(words)
