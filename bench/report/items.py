"""The page of a benchmark's questions: each with its options and the answers of all models."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import pandas as pd

from bench.benchmarks.base import Benchmark
from bench.core.cells import rounded
from bench.core.numbers import decimals
from bench.core.text import column, distinct_lines, shortened, truncate
from bench.data import FOUND_SAMPLES, by_id, spread_evenly
from bench.data.manifest import GLOSSES, home
from bench.data.readers import read_json_lines
from bench.figures.style import label
from bench.runs.open import Run, labels
from bench.runs.outcomes import all_items, data_conflict
from bench.tasks import VERDICTS
from bench.tasks.request import of_judge

MAX_ITEMS = 300  # on a page
PRINTED_ITEMS = 24  # in a printed page without filters
MAX_REQUESTS = 40  # of an item
MAX_QUESTION_CHARS = 3000
MAX_REPLY_CHARS = 160
STEREOTYPED = VERDICTS[0]
COLUMNS = ["category", "task", "item_id", "request", "response", "parsed", "error", "verdict"]
COLUMNS.append("logprobs")


class Reply(NamedTuple):
    """A model's reply: the parsed value, its verdict, and the text."""

    value: str
    verdict: str
    text: str = ""


def read(runs: Sequence[Run]) -> dict[str, Any]:
    """Read the items and answers of runs on one benchmark, for the template of their page.

    We skip a run if its items differ from items of the same names in an earlier run.

    Returns:
        The values of the template by name. `items` are a sample of the `total`, which prefers items
        on which models differ; `answer_modes` has one mode per model, for example `letters`;
        `categories` the code and name of each; `tally` the number (`count`) of all items with the
        same `_facts`; `left_out` the reasons why we skip some runs.
    """
    by_name: dict[str, Run] = {}
    left_out = []
    for name, run in zip(labels(runs), runs, strict=True):
        if conflict := data_conflict([*by_name.values(), run]):
            left_out.append(conflict)
        else:
            by_name[name] = run
    answers_of_runs = []
    for name, run in by_name.items():
        answers = run.answers(prompts=False)
        answers = answers[(answers["repeat"] == 0) & ~answers.request.str.startswith("thought")]
        answers_of_runs.append(answers[COLUMNS].assign(model=name))
    rows = pd.concat(answers_of_runs, ignore_index=True)
    verdicts = sorted(set(rows.verdict) - {""})
    facts = _facts(rows, list(by_name), verdicts)
    disputed = spread_evenly(list(facts.index[facts.differs]), MAX_ITEMS)
    others = spread_evenly(list(facts.index[~facts.differs]), MAX_ITEMS - len(disputed))
    chosen = {*disputed, *others}
    # We read prompts, most of a run's size, only here.
    sample = pd.concat(
        answers[answers.item_id.isin(chosen)].join(run.records.prompt)
        for run, answers in zip(by_name.values(), answers_of_runs, strict=True)
    )
    # Tuples are read many times faster than parts of a frame.
    by_item: dict[str, list[Any]] = {name: [] for name in facts.index if name in chosen}
    for row in sample.astype(object).itertuples():
        by_item[str(row.item_id)].append(row)
    every_item = all_items(list(by_name.values()))
    items_by_id = by_id(every_item[every_item.item_id.isin(chosen)])
    benchmark, glosses = runs[0].definition, _glosses(runs[0])
    items = [
        _item(benchmark, items_by_id[name], answers, [*by_name])
        for name, answers in by_item.items()
    ]
    lines = distinct_lines([item["prompt"] for item in items])
    printed = set(spread_evenly(range(len(items)), PRINTED_ITEMS))
    for k, (item, line) in enumerate(zip(items, lines, strict=True)):
        whole_item = items_by_id[item["item_id"]]
        # The data have a translation of the whole item, or one of each of its parts.
        parts = [getattr(whole_item, name, "") for name in ("cluster", "term", "frame")]
        gloss = glosses.get(whole_item.item_id) or " ".join(filter(None, map(glosses.get, parts)))
        line = truncate(gloss or line, MAX_REPLY_CHARS)
        item |= {"gloss": gloss, "line": line, "is_printed": k in printed}
        item |= facts.loc[item["item_id"]].to_dict()
    modes = [dict.fromkeys(run.metadata["answer_mode"].values()) for run in by_name.values()]
    names = runs[0].category_names
    codes = dict.fromkeys(item["category"] for item in items)
    return {
        "models": [*by_name],
        "answer_modes": [" and ".join(mode).replace("text", "reply") for mode in modes],
        "categories": [(code, label(names.get(code, code))) for code in codes],
        "verdicts": verdicts,
        "items": items,
        "tally": facts.value_counts(sort=False).reset_index().to_dict("records"),
        "total": len(facts),
        "left_out": left_out,
    }


def _facts(rows: pd.DataFrame, models: list[str], verdicts: list[str]) -> pd.DataFrame:
    """Return what filters ask of each item: `category`, whether models differ, and its `verdicts`.

    The verdicts are numbers from 1: in `1.2 3.1` the first model has the second verdict, and the
    third model the first one.
    """
    facts = rows.drop_duplicates("item_id").set_index("item_id")[["category"]]
    judged = rows[rows.verdict != ""]
    by_request = judged.groupby(["item_id", "task", "request"]).verdict.nunique()
    differs = by_request.groupby("item_id").max() > 1
    model = judged.model.map({name: f"{k}." for k, name in enumerate(models, start=1)})
    verdict = judged.verdict.map({name: f"{k}" for k, name in enumerate(verdicts, start=1)})
    pairs = judged[["item_id"]].assign(pair=model + verdict).drop_duplicates().sort_values("pair")
    facts["differs"] = differs.reindex(facts.index, fill_value=False)
    of_items = pairs.groupby("item_id").pair.agg(" ".join)
    return facts.assign(verdicts=of_items.reindex(facts.index, fill_value=""))


def _glosses(run: Run) -> dict[str, str]:
    """Read the English translations of the items, if their data have any."""
    data = run.metadata["data"]
    # On another machine, the samples can be in another folder.
    is_sample = data["found"] == FOUND_SAMPLES
    samples = run.definition.metadata.samples
    path = (samples if is_sample else home(Path(data["folder"]))) / GLOSSES
    if data["language"] == "en" or not path.is_file():
        return {}
    return {str(line.get("id")): str(line.get("english", "")) for _n, line in read_json_lines(path)}


def _item(
    benchmark: Benchmark, item: Any, rows: Sequence[Any], models: Sequence[str]
) -> dict[str, Any]:
    """Return the values that the page shows of an item.

    Among them are `mark` (its anchor), `fault` (of the data), `answers` (one per model, for the
    line), and `questions`, one per request. A question has `options` (its possible answers and
    their verdicts, without the verdict `other`) and a reply per model; None if it was not asked.
    """
    by_request: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        by_request.setdefault((row.task, row.request), {})[row.model] = row
    questions = []
    for (task, request), rows_of_models in by_request.items():
        values = benchmark.values(task, request, item)
        choices = values.choices.values() if isinstance(values.choices, Mapping) else ()
        verdicts = {value: values.verdict(value) for value in choices}
        question = {
            "name": _name(benchmark.tasks[task].title, request),
            "unit": "" if of_judge(request) else benchmark.tasks[task].unit,
            "options": [pair for pair in verdicts.items() if pair[1] not in ("", "other")],
            "replies": [
                _reply(rows_of_models[model]) if model in rows_of_models else None
                for model in models
            ],
        }
        questions.append(question)
    judged = [row for row in rows if row.verdict != ""]
    # Prefer a prompt with a verdict; the prompt of a likelihood may be a bare sentence.
    first, *_ = judged or [row for row in rows if not of_judge(row.request)]
    return {
        "item_id": item.item_id,
        "mark": re.sub(r"[^\w.-]+", "-", item.item_id),
        "category": first.category,
        "prompt": shortened(first.prompt, MAX_QUESTION_CHARS),
        "questions": questions[:MAX_REQUESTS],
        "fault": benchmark.metadata.fault(item),
        "answers": [_answer(questions, k) for k in range(len(models))],
    }


def _answer(questions: Sequence[dict[str, Any]], model: int) -> Reply | None:
    """Sum up the answers of a model to an item: its answer, or the stereotyped ones, as in 2/3."""
    answered = [question for question in questions if question["replies"][model]]
    judged = [question for question in answered if question["replies"][model].verdict] or answered
    replies = [question["replies"][model] for question in judged]
    can_be = [
        reply
        for question, reply in zip(judged, replies, strict=True)
        if STEREOTYPED in dict(question["options"]).values()
    ]
    if len(can_be) < 2:
        return replies[0] if replies else None
    count = sum(reply.verdict == STEREOTYPED for reply in can_be)
    return Reply(f"{count}/{len(can_be)}", STEREOTYPED if count > len(can_be) / 2 else "")


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
