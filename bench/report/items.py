"""The page of a benchmark's questions: each with its options, and what every model answered."""

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

# Items on a page, and those of them that are printed unasked; requests of an item, characters of a
# question and of a reply.
MOST, PRINTED, REQUESTS, SHOWN, BRIEF = 300, 24, 40, 3000, 160


class Reply(NamedTuple):
    """What a model answered: the value that was read, its verdict, and the reply."""

    value: str
    verdict: str
    text: str


class Question(NamedTuple):
    """One request of an item.

    Attributes:
        name: of its task, and of the request where an item has several.
        unit: of the answer, if it is a number.
        options: answers that a model can give and their verdicts, without those that say little.
        replies: that of each model, None if it was not asked.
    """

    name: str
    unit: str
    options: list[tuple[str, str]]
    replies: list[Reply | None]


class Item(NamedTuple):
    """An item as it was asked.

    Attributes:
        mark: its anchor on the page.
        prompt: what the first model was asked first.
        gloss: the item in English; "" if the data have none.
        verdicts: `model|verdict` of each answer, for filters.
        is_disputed: models differ in a verdict.
        fault: of the data; "" if it has none.
        line: what of the prompt or the gloss is not the same in all items, shortened.
        answers: of each model, for a line: its answer, or how many of several follow the
            stereotype.
        is_printed: it is one of those that are printed unasked.
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
    """The items of a page: some of `total`, those first on which models differ.

    Attributes:
        read: how the choices of each model were read, such as `letters`.
        categories: the code and name of each.
        left_out: why the answers of some models are not there.
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

    Runs with other items of the same names than the runs before them are left out.
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
    chosen = {disputed[k] for k in spread_evenly(range(len(disputed)), MOST)}
    chosen |= {others[k] for k in spread_evenly(range(len(others)), MOST - len(chosen))}
    glosses = _glosses(runs[0])
    # Prompts are most of a run's size, and few are shown.
    shown = pd.concat(
        [
            own[own.item_id.isin(chosen)].join(run.records.prompt)
            for run, own in zip(runs, first, strict=True)
        ]
    )
    parts = shown.groupby("item_id", sort=False)
    every_item = all_items(runs)
    asked = by_id(every_item[every_item.item_id.isin(chosen)])
    items = [
        _item(benchmark, asked[name], part, names, glosses, bool(differs.get(name, False)))
        for name, part in parts
    ]
    order = {name: k for k, name in enumerate(every)}
    items.sort(key=lambda item: order[item.item_id])
    categories = [
        (code, label(benchmark, code)) for code in dict.fromkeys(i.category for i in items)
    ]
    items = [item._replace(line=line) for item, line in zip(items, _lines(items), strict=True)]
    for k in spread_evenly(range(len(items)), PRINTED):
        items[k] = items[k]._replace(is_printed=True)
    known = [verdict for verdict in dict.fromkeys(rows.verdict) if verdict]
    read = [
        " and ".join(dict.fromkeys(run.about["read"].values())).replace("text", "reply")
        for run in runs
    ]
    return Items(names, read, categories, sorted(known), items, len(every), left_out)


def differing(shown: Items, first: str, second: str) -> str:
    """Return filters for the questions that one model answers with the stereotype, another not.

    Returns:
        the end of the page's address, "" if there is no such question.
    """
    columns = [shown.models.index(name) for name in (first, second)]
    pairs = {
        tuple(reply.verdict if (reply := question.replies[k]) else "" for k in columns)
        for item in shown.items
        for question in item.questions
    }
    stereotyped, *others = VERDICTS[:-1]
    for verdict in others:
        if (stereotyped, verdict) in pairs:
            chosen = {"model": first, "verdict": stereotyped, "model2": second}
            return urlencode(chosen | {"verdict2": verdict, "disputed": "on"})
    return ""


def _glosses(run: Run) -> dict[str, str]:
    """Read what the items say in English, if their data have that, and readers need it."""
    data = run.about["data"]
    if data["language"] == "en":
        return {}
    # The run can come from another machine, where the samples lay elsewhere.
    is_sample = data["found"] == FOUND_SAMPLES
    path = (
        get(run.benchmark).metadata.samples if is_sample else home(Path(data["folder"]))
    ) / GLOSSES
    if not path.is_file():
        return {}
    return {str(line.get("id")): str(line.get("english", "")) for _n, line in read_json_lines(path)}


def _gloss(glosses: Mapping[str, str], item: Any) -> str:
    """Return what an item says in English: its own line, or those of the parts it is made of."""
    parts = (getattr(item, name, "") for name in ("cluster", "term", "frame"))
    return glosses.get(item.item_id) or " ".join(glosses[part] for part in parts if part in glosses)


def _lines(items: Sequence[Item]) -> Iterator[str]:
    """Yield a line for each item: its English gloss, or else its part of the prompt."""
    for item, own in zip(items, distinct_lines([item.prompt for item in items]), strict=True):
        yield truncate(item.gloss or own, BRIEF)


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
    rows: pd.DataFrame,
    models: Sequence[str],
    glosses: Mapping[str, str],
    is_disputed: bool,
) -> Item:
    questions, tasks = [], get(benchmark).tasks
    for (task, request), part in rows.groupby(["task", "request"], sort=False):
        given = {row.model: row for row in part.itertuples()}
        replies = [_reply(given[model]) if model in given else None for model in models]
        options = _options(benchmark, str(task), str(request), item)
        unit = "" if of_judge(str(request)) else tasks[str(task)].unit
        name = _name(tasks[str(task)].title, str(request))
        questions.append(Question(name, unit, options, replies))
    verdicts = rows[rows.verdict != ""]
    # A prompt with a verdict has all that the item says; a likelihood's may be a bare sentence.
    asked = rows[~rows.request.map(of_judge).astype(bool)]
    first = (verdicts if len(verdicts) else asked).iloc[0]
    return Item(
        item_id=item.item_id,
        mark=re.sub(r"[^\w.-]+", "-", item.item_id),
        category=str(first.category),
        prompt=shortened(first.prompt, SHOWN),
        gloss=_gloss(glosses, item),
        questions=questions[:REQUESTS],
        verdicts=sorted(
            {f"{m}|{v}" for m, v in zip(verdicts.model, verdicts.verdict, strict=True)}
        ),
        is_disputed=is_disputed,
        fault=get(benchmark).fault(item),
        answers=[_answer(questions, k) for k in range(len(models))],
    )


def _name(title: str, request: str) -> str:
    """Name a request of a task; the only one of an item has the task's name."""
    if request in ("answer", "label"):
        return title
    if of_judge(request):
        asked, _colon, number = request.partition(":")
        request = f"{column(asked)} {number}".rstrip()
    return f"{title} {request}"


def _reply(row: Any) -> Reply:
    text = truncate(row.response or row.error, BRIEF)
    value = truncate(rounded(row.parsed or "—"), BRIEF)
    if isinstance(row.logprobs, Collection) and row.parsed in ascii_uppercase[: len(row.logprobs)]:
        # A choice by its letters' probabilities; the most likely one stands for the reply.
        shares = zip(ascii_uppercase, row.logprobs, strict=False)
        text = " · ".join(f"{letter} {decimals(math.exp(p), 2)}" for letter, p in shares)
    return Reply(value, str(row.verdict), value if row.response == row.parsed else text)
