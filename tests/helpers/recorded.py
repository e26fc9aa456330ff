"""Recorded answers, small data folders and cells of a score table, for McBE and CBBQ."""

import json
import sys
from itertools import permutations
from pathlib import Path

import pandas as pd

from bench import cli, records
from bench.benchmarks import get
from bench.metrics.verdicts import parsed
from bench.scorers.simulated import Simulated
from tests.helpers import cases

# A row of a McBE file, and one of a CBBQ template file, in which nothing is wrong or odd.
GOOD = cases.table(__file__, "mcbe.csv").iloc[0].to_dict()
TEMPLATE = cases.table(__file__, "cbbq.csv").iloc[0].to_dict()


def folder(root, *lists, category="age"):
    """A data folder with a row for each list of words."""
    return table(root, *[{"words": "，".join(words)} for words in lists], category=category)


def table(root, *rows, category="age"):
    """A data folder with `rows`, each in place of the cells of a plain one."""
    plain = {**GOOD, "context": "开会，", "sentence": "[PLH]先说。", "subtype": "x", "score": 1}
    root.mkdir(parents=True, exist_ok=True)
    pd.DataFrame([{**plain, **row} for row in rows]).to_csv(root / f"{category}.csv", index=False)
    return root


# Facts against the stereotype that it is NAME1 who forgot.
FACTS = "{{NAME1}}和{{NAME2}}来了。{{NAME2}}忘了伞，{{NAME1}}带了两把。"


def templates(root, *neg, non_neg=({},), category="region", condition="ambiguous"):
    """Add the template files of a category and context to a folder; rows change a plain one."""
    plain = {**TEMPLATE, "category": category, "context_condition": condition}
    # The same prompt in both polarities would be a fault.
    for polarity, name, question, label, rows in (
        ("neg", "neg", "谁忘了伞？", "1", neg or ({},)),
        ("non_neg", "nonneg", "谁带了伞？", "0", non_neg),
    ):
        plain |= {"question_polarity": polarity, "question": question}
        if condition == "disambiguous":
            plain |= {"context": FACTS, "label": label}
        path = root / category / condition / f"templates_generate_{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        every = [{**plain, "question_index": str(k), **row} for k, row in enumerate(rows, 1)]
        pd.DataFrame(every, columns=list(TEMPLATE)).to_csv(path, index=False, encoding="utf-8-sig")
    return root


def own_category(folder, name, manifest, category="age", **cells):
    """Write a category of CBBQ's samples under a name of its own, with some cells changed."""
    for path in sorted((get("cbbq").metadata.samples / category).glob("*/*.csv")):
        place = folder / name / path.parent.name / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        rows = pd.read_csv(path, dtype=str).assign(category=name, **cells)
        rows.to_csv(place, index=False, encoding="utf-8-sig")
    if manifest:
        (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def command(monkeypatch, capsys, *words):
    """Run `bench` with `words`: exit status, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["bench", *map(str, words)])
    status = cli.main()
    out, err = capsys.readouterr()
    return status, out, err


def watch(monkeypatch, before):
    """Call `before` with the requests that a simulated respondent gets, and let it answer then."""
    answer = Simulated.answer
    monkeypatch.setattr(Simulated, "answer", lambda self, r: before(r) or answer(self, r))


def replay(path, answers):
    """A file of recorded answers, by (task, item, request), and the repeat where there are some."""
    names = ("task", "item_id", "request", "repeat")
    lines = [
        json.dumps({**dict(zip(names, key, strict=False)), "response": said})
        for key, said in answers.items()
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return f"replay:{path}"


def strict_order(item, words):
    """The answers in which an earlier word always wins over a later one."""
    return {
        ("ss", item, f"{a}|{b}"): "A" if words.index(a) < words.index(b) else "B"
        for a, b in permutations(words, 2)
    }


def said(task, item, answers, repeat=0):
    """Rows of records, by request; None is a request that was refused."""
    return [
        {
            "task": task,
            "item_id": item,
            "category": item.partition(":")[0],
            "repeat": repeat,
            "request": name,
            "response": text or "",
            "error": "refused by the content filter" if text is None else "",
            "logprobs": None,
        }
        for name, text in answers.items()
    ]


def scored(benchmark, records, items, preset="robust"):
    """The score table of records: their replies are parsed first."""
    benchmark = get(benchmark)
    records = records.assign(parsed=parsed(benchmark, records, items))
    return benchmark.scoring(records, items, preset).table()


def cell(scores, metric="score", preset=None, **where):
    """The one row of a score table that is meant, of category `all` if none is given."""
    wanted = {"category": "all", "metric": metric, **where}
    wanted |= {"preset": preset} if preset else {}
    rows = scores[(scores[[*wanted]] == pd.Series(wanted)).all(axis=1)]
    assert len(rows) == 1, rows
    return rows.iloc[0]


def columns(folder):
    """All records but the time that they took."""
    return records.read(Path(folder)).drop(columns="seconds")
