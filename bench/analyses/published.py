"""Numbers that papers print, and the scores of runs of the same models next to them.

A published number rests on other items, prompts, decoding and answer modes than a run of yours, so
we show both settings next to the difference.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bench.benchmarks import resolve
from bench.core.errors import BadInput
from bench.data.readers import as_path, check_header, read_lines
from bench.metrics.frames import Table
from bench.run.results import Run, labels

PATH = Path(__file__).parent / "published.csv"
PLACE = ["category", "task", "metric"]
COLUMNS = ["benchmark", "series", "model", "checkpoint", "billions", *PLACE]
COLUMNS += ["score", "setting", "source", "caution"]
COMPARED = ["model", "published_model", *PLACE, "score", "ci_low", "ci_high", "published"]
COMPARED += ["difference", "n", "own_setting", "published_setting", "source", "caution"]


def published(benchmark: str, path: str | Path = "") -> pd.DataFrame:
    """Read the published numbers of a benchmark.

    Args:
        path: your own CSV file with the columns of ours, default: ours. Lines that begin with #
            are comments.

    Returns:
        One row per number, in the columns of `COLUMNS` without `benchmark`. `series` names models
        that differ only in size, `billions` is their number of parameters (NaN if the paper does
        not give it), `checkpoint` the model on the Hub, `setting` the setting of the paper, and
        `caution` a reason for doubt.

    Raises:
        BadInput: the file is no such table.
    """
    path = as_path(path or PATH)
    text = "".join(f"{line}\n" for _number, line in read_lines(path) if not line.startswith("#"))
    try:
        rows = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except ValueError as error:
        raise BadInput(f"{path}: cannot be read as CSV ({error})") from None
    check_header(path, [str(name) for name in rows], COLUMNS)
    table = Table(rows, str(path), first=1)
    table.check_filled("score")
    rows = rows.assign(score=table.numbers("score"), billions=table.numbers("billions"))
    for row, name in enumerate(rows.benchmark):
        try:
            rows.loc[row, "benchmark"] = resolve(name)
        except BadInput as error:
            raise BadInput(f"{table.place(row, 'benchmark')}: {error}") from None
    own = rows[rows.benchmark == resolve(benchmark)]
    return own.drop(columns="benchmark").reset_index(drop=True)


def compare_with_published(
    runs: Sequence[Run], scores: pd.DataFrame, path: str | Path = ""
) -> pd.DataFrame:
    """Join the scores of runs with published numbers of the same models.

    A run matches a published model if its name, or the last part of its Hub id or path, begins with
    the name of the model's checkpoint. For example, we compare `Qwen2.5-7B-Instruct` with
    `Qwen2.5-7B`. If several models match, we take the longest name.

    Args:
        runs: of one benchmark.
        scores: their score table, of `bench.run.table`.
        path: your own file of published numbers; see `published`.

    Returns:
        One row per number that both have, in the columns of `COMPARED`; `difference` is the run's
        score less the published one.
    """
    of_paper = published(runs[0].benchmark, path).rename(
        columns={"model": "published_model", "score": "published", "setting": "published_setting"}
    )
    ids = of_paper.checkpoint.where(of_paper.checkpoint != "", of_paper.published_model)
    published_names = [_plain(name) for name in ids]
    own, parts = scores[scores.preset == scores.preset.iloc[0]], []
    for run, label in zip(runs, labels(runs), strict=True):
        names = [_plain(name) for name in (run.label, run.model)]
        shared = np.array([_in_common(name, names) for name in published_names])
        same_model = (shared > 0) & (shared == shared.max(initial=0))
        options, source = run.metadata["asked"], run.metadata["data"]
        repeats = options["repeats"]
        setting = (
            f"{source['name']} {source['version']}; prompts {options['prompts']}; {repeats} "
            f"{'repeat' if repeats == 1 else 'repeats'}; preset {own.preset.iloc[0]}"
        )
        part = own[own.model == label].merge(of_paper[same_model], on=PLACE)
        parts.append(part.assign(own_setting=setting))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(difference=table.score - table.published)[COMPARED]


def _plain(name: str) -> str:
    """Return a model's name, Hub id or path, as names are compared."""
    plain = name.partition("@")[0].lower().replace("_", "-").replace("\\", "/")
    return plain.removeprefix("openai:")


def _in_common(published: str, own: Sequence[str]) -> int:
    """Count the letters of a published name, with its owner if there, that begin one of ours."""
    names = (published, published.rpartition("/")[2])
    found = (
        len(name)
        for name in filter(None, names)
        if any(re.search(rf"(^|/){re.escape(name)}(?![a-z0-9])[^/]*$", given) for given in own)
    )
    return max(found, default=0)
