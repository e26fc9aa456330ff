"""The page of a benchmark's questions: each with its options and the answers of all models."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pandas as pd

from bench.benchmarks import get
from bench.core.cells import rounded
from bench.core.numbers import decimals
from bench.core.text import column, distinct_lines, shortened, truncate
from bench.data import FOUND_SAMPLES, by_id, spread_evenly
from bench.data.dataset import GLOSSES, home
from bench.data.readers import read_json_lines
from bench.figures.style import label
from bench.run.results import Run, all_items, data_conflict, labels
from bench.tasks import VERDICTS
from bench.tasks.request import of_judge

MAX_ITEMS = 300  # on a page
PRINTED_ITEMS = 24  # in a printed page without filters
MAX_REQUESTS = 40  # of an item
MAX_QUESTION_CHARS = 3000
MAX_REPLY_CHARS = 160


class Reply(NamedTuple):
    """A model's reply: the parsed value, its verdict, and the text."""

    value: str
    verdict: str
    text: str


class Question(NamedTuple):
    """One request of an item.

    Attributes:
        name: of its task, and of the request if an item has several.
        unit: of the answer, if it is a number.
        options: possible answers and their verdicts, without the verdict `other`.
        replies: one per model, None for a model without this request.
    """

    name: str
    unit: str
    options: list[tuple[str, str]]
    replies: list[Reply | None]


class Item(NamedTuple):
    """An item with its questions and answers.

    Attributes:
        mark: its anchor on the page.
        prompt: the first prompt of the first model.
        gloss: the item in English; "" if the data have none.
        verdicts: `model|verdict` of each answer, for filters.
        is_disputed: models differ in a verdict.
        fault: of the data; "" if it has none.
        line: the distinctive part of the prompt or the gloss, shortened.
        answers: one per model for the line: its answer, or the number of stereotyped answers, for
            example 2/3.
        is_printed: it is part of a printed page without filters.
    """

    item_id: str
    mark: str
    category: str
    prompt: str
    gloss: str
    questions: list[Question]
    verdicts: list[str]
    is_disputed: bool
    fault: str
    answers: list[Reply | None]
    line: str = ""
    is_printed: bool = False


class Items(NamedTuple):
    """The items of a page, a sample of `total` that prefers items on which models differ.

    Attributes:
        read: the answer mode of each model, for example `letters`.
        categories: the code and name of each.
        left_out: the reasons why we skip some models.
    """

    models: list[str]
    read: list[str]
    categories: list[tuple[str, str]]
    verdicts: list[str]
    items: list[Item]
    total: int
    left_out: list[str]


def read(runs: Sequence[Run]) -> Items:
    """Read the items and answers of runs on one benchmark.

    We skip a run if its items differ from items of the same names in an earlier run.
    """
    by_name: dict[str, Run] = {}
    left_out = []
    for name, run in zip(labels(runs), runs, strict=True):
        if conflict := data_conflict([*by_name.values(), run]):
            left_out.append(conflict)
        else:
            by_name[name] = run
    names, runs, benchmark = [*by_name], [*by_name.values()], runs[0].benchmark
    columns = ["category", "task", "item_id", "request", "response", "parsed", "error", "verdict"]
    columns.append("logprobs")
    first = []
    for run, name in zip(runs, names, strict=True):
        own = run.answers(prompts=False)
        own = own[(own["repeat"] == 0) & ~own.request.str.startswith("thought")]
        first.append(own[columns].assign(model=name))
    rows = pd.concat(first, ignore_index=True)
    by_request = rows[rows.verdict != ""].groupby(["item_id", "task", "request"], sort=False)
    differs = by_request.verdict.nunique().groupby("item_id", sort=False).max() > 1
    every = list(dict.fromkeys(rows.item_id))
    disputed = [name for name in every if differs.get(name, False)]
    others = [name for name in every if not differs.get(name, False)]
    chosen = {disputed[k] for k in spread_evenly(range(len(disputed)), MAX_ITEMS)}
    chosen |= {others[k] for k in spread_evenly(range(len(others)), MAX_ITEMS - len(chosen))}
    glosses = _glosses(runs[0])
    # We read prompts, most of a run's size, only here.
    sample = pd.concat(
        [
            own[own.item_id.isin(chosen)].join(run.records.prompt)
            for run, own in zip(runs, first, strict=True)
        ]
    )
    every_item = all_items(runs)
    items_by_id = by_id(every_item[every_item.item_id.isin(chosen)])
    # Tuples are read many times faster than parts of a frame.
    by_item: dict[str, list[Any]] = {}
    for row in sample.astype(object).itertuples():
        by_item.setdefault(str(row.item_id), []).append(row)
    items = [
        _item(benchmark, items_by_id[name], part, names, glosses, bool(differs.get(name, False)))
        for name, part in by_item.items()
    ]
    order = {name: k for k, name in enumerate(every)}
    items.sort(key=lambda item: order[item.item_id])
    categories = [
        (code, label(benchmark, code)) for code in dict.fromkeys(i.category for i in items)
    ]
    items = [item._replace(line=line) for item, line in zip(items, _lines(items), strict=True)]
    for k in spread_evenly(range(len(items)), PRINTED_ITEMS):
        items[k] = items[k]._replace(is_printed=True)
    known = [verdict for verdict in dict.fromkeys(rows.verdict) if verdict]
    read = [
        " and ".join(dict.fromkeys(run.metadata["read"].values())).replace("text", "reply")
        for run in runs
    ]
    return Items(names, read, categories, sorted(known), items, len(every), left_out)


def differing(page: Items, first: str, second: str) -> str:
    """Return the URL query of filters for questions that only `first` answers stereotyped.

    This is "" if there is no such question.
    """
    columns = [page.models.index(name) for name in (first, second)]
    pairs = {
        tuple(reply.verdict if (reply := question.replies[k]) else "" for k in columns)
        for item in page.items
        for question in item.questions
    }
    stereotyped, *others = VERDICTS[:-1]
    for verdict in others:
        if (stereotyped, verdict) in pairs:
            chosen = {"model": first, "verdict": stereotyped, "model2": second}
            return urlencode(chosen | {"verdict2": verdict, "disputed": "on"})
    return ""


def _glosses(run: Run) -> dict[str, str]:
    """Read the English translations of the items, if their data have any."""
    data = run.metadata["data"]
    if data["language"] == "en":
        return {}
    # On another machine, the samples can be in another folder.
    is_sample = data["found"] == FOUND_SAMPLES
    path = (
        get(run.benchmark).metadata.samples if is_sample else home(Path(data["folder"]))
    ) / GLOSSES
    if not path.is_file():
        return {}
    return {str(line.get("id")): str(line.get("english", "")) for _n, line in read_json_lines(path)}


def _gloss(glosses: Mapping[str, str], item: Any) -> str:
    """Return an item in English: its own line, or the lines of its parts."""
    parts = (getattr(item, name, "") for name in ("cluster", "term", "frame"))
    return glosses.get(item.item_id) or " ".join(glosses[part] for part in parts if part in glosses)


def _lines(items: Sequence[Item]) -> Iterator[str]:
    """Yield a line for each item: its English gloss, or else its part of the prompt."""
    for item, own in zip(items, distinct_lines([item.prompt for item in items]), strict=True):
        yield truncate(item.gloss or own, MAX_REPLY_CHARS)


def _answer(questions: Sequence[Question], model: int) -> Reply | None:
    """Sum up the answers of a model to the questions of an item."""
    given = [(question, reply) for question in questions if (reply := question.replies[model])]
    judged = [(question, reply) for question, reply in given if reply.verdict] or given
    stereotyped = VERDICTS[0]
    can_be = [reply for question, reply in judged if stereotyped in dict(question.options).values()]
    if len(can_be) < 2:
        return judged[0][1] if judged else None
    count = sum(reply.verdict == stereotyped for reply in can_be)
    verdict = stereotyped if count > len(can_be) / 2 else ""
    return Reply(f"{count}/{len(can_be)}", verdict, "")


def _options(benchmark: str, task: str, request: str, item: Any) -> list[tuple[str, str]]:
    values = get(benchmark).values(task, request, item)
    options = dict.fromkeys(values.choices.values()) if isinstance(values.choices, Mapping) else ()
    verdicts = [(value, values.verdict(value)) for value in options]
    return [(value, verdict) for value, verdict in verdicts if verdict not in ("", "other")]


def _item(
    benchmark: str,
    item: Any,
    rows: Sequence[Any],
    models: Sequence[str],
    glosses: Mapping[str, str],
    is_disputed: bool,
) -> Item:
    questions, tasks = [], get(benchmark).tasks
    by_request: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        by_request.setdefault((row.task, row.request), {})[row.model] = row
    for (task, request), given in by_request.items():
        replies = [_reply(given[model]) if model in given else None for model in models]
        options = _options(benchmark, task, request, item)
        unit = "" if of_judge(request) else tasks[task].unit
        name = _name(tasks[task].title, request)
        questions.append(Question(name, unit, options, replies))
    verdicts = [row for row in rows if row.verdict != ""]
    # Prefer a prompt with a verdict; the prompt of a likelihood may be a bare sentence.
    first, *_ = verdicts or [row for row in rows if not of_judge(row.request)]
    return Item(
        item_id=item.item_id,
        mark=re.sub(r"[^\w.-]+", "-", item.item_id),
        category=first.category,
        prompt=shortened(first.prompt, MAX_QUESTION_CHARS),
        gloss=_gloss(glosses, item),
        questions=questions[:MAX_REQUESTS],
        verdicts=sorted({f"{row.model}|{row.verdict}" for row in verdicts}),
        is_disputed=is_disputed,
        fault=get(benchmark).metadata.fault(item),
        answers=[_answer(questions, k) for k in range(len(models))],
    )


def _name(title: str, request: str) -> str:
    if request in ("answer", "label"):
        return title
    if of_judge(request):
        name, _colon, number = request.partition(":")
        request = f"{column(name)} {number}".rstrip()
    return f"{title} {request}"


def _reply(row: Any) -> Reply:
    text = truncate(row.response or row.error, MAX_REPLY_CHARS)
    value = truncate(rounded(row.parsed or "—"), MAX_REPLY_CHARS)
    if isinstance(row.logprobs, Collection) and row.parsed in ascii_uppercase[: len(row.logprobs)]:
        # A choice by letters: show their probabilities instead of the reply.
        shares = zip(ascii_uppercase, row.logprobs, strict=False)
        text = " · ".join(f"{letter} {decimals(math.exp(p), 2)}" for letter, p in shares)
    return Reply(value, str(row.verdict), value if row.response == row.parsed else text)
