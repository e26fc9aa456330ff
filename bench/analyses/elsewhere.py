"""Scores measured elsewhere, in the columns of a score table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bench.benchmarks import get, names
from bench.core.errors import BadInput, expected, quoted
from bench.core.progress import say
from bench.metrics.table import ALL
from bench.metrics.user_tables import Frame, Table, as_numbers, is_overall
from bench.runs.models import family, size_in

# The columns that have a default: for `benchmark` it is the name of the file.
DEFAULTS = {"benchmark": "", "family": "", "category": ALL, "task": ALL, "metric": "score"}
DEFAULTS |= {"title": "", "worse": "", "unit": "points", "doubt": ""}
# The columns with a fixed set of words.
WORDS = {"worse": ("higher", "lower"), "unit": ("%", "points")}
# Columns that are no categories if each category has a column.
OTHERS = {
    "model",
    "score",
    "estimate",
    "note",
    "primary",
    "prompts",
    "repeat",
    "preset",
    "billions",
}
OTHERS |= {"year", "tokens", "parameters", "params", "size", "rank", "seed", "n"}


def read_scores(
    scores: Frame,
    *needed: str,
    benchmarks: Sequence[str] = (),
    models: Sequence[str] = (),
) -> pd.DataFrame:
    """Read scores measured elsewhere, in the columns that notebooks use.

    Args:
        scores: a file or a frame with a row per score: `model` and `score`, and as many of the
            columns below as it has; we keep others, for example `billions` or `topic`. Or with a
            row per model and, in place of `score`, a column of numbers for each category.
        needed: other columns that it has to have and that tell scores apart, for example `prompts`.
        benchmarks, models: only these; all if empty. If the table has no column
            `benchmark`, its scores are of the one that is named here.

    Returns:
        One row per score, with these columns:

        - `benchmark`: by default the name of the file;
        - `family` (of models), and `billions` of parameters: by default, a model's name without its
          size, and this size; the family of a name without a size is the file;
        - `category` and `task`: by default `all`, as are other names of an average such as Total;
        - `metric`: by default `score`; `title`: by default the task and the metric, over
          all tasks the metric;
        - `worse`: `higher` or `lower`, the side of more bias. By default it is the side in the
          benchmark, or, if the table names none, of this task and metric in any; else empty;
        - `unit`: `%` for shares from 0 to 1, by default `points`;
        - `primary`, `doubt` and `note`: see `bench.explain`; by default true and empty.

        We take the mean over a column `repeat`. If a metric has several tasks and no score over
        all of them, we add their mean in each category, as in McBE's paper; if a model has no score
        over all categories, we add the mean of those. Such a mean is NaN if a model lacks a task or
        a category that others have.

    Raises:
        BadInput: the table lacks a column; a score is no number, or is empty without a note; a word
            in `worse` or `unit` is unknown; two rows are of the same score; or a filter names
            something that is not there.

    Examples:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "mine.csv")
        >>> _ = file.write_text("model,task,metric,score\\nQwen-7B,ss,score,77.82\\n")
        >>> read_scores(file)[["model", "family", "billions", "category", "worse", "score"]]
             model family  billions category  worse  score
        0  Qwen-7B   Qwen       7.0      all  lower  77.82
    """
    table = Table(scores, "scores")
    # Names of known columns may have capital letters.
    known = {*DEFAULTS, *OTHERS} - {*table.rows}
    renamed = {name: str(name).lower() for name in table.rows if str(name).lower() in known}
    table = Table(table.original.rename(columns=renamed), table.name, table.row_numbers)
    table = _wide_as_long(table, needed)
    has_benchmark = "benchmark" in table.rows
    name = Path(scores).stem if isinstance(scores, str | Path) else "scores"
    if len(benchmarks) == 1 and not has_benchmark:
        name = benchmarks[0]
    rows = table.rows = _described(table, name, needed)
    keys = list(dict.fromkeys(["benchmark", "title", "model", "category", *needed]))
    repeats = ["repeat"] if "repeat" in rows and "repeat" not in keys else []
    table.check_unique(
        [*keys, *repeats], "keep one of these scores, or number repeats in a column `repeat`"
    )
    filters = {"model": models}
    if has_benchmark:
        filters["benchmark"] = [_benchmark(benchmark) for benchmark in benchmarks]
    for column, wanted in filters.items():
        for value in wanted:
            if value not in set(rows[column]):
                raise BadInput(f"{table.name}: {expected(value, rows[column].unique(), column)}")
        rows = rows[rows[column].isin(wanted)] if wanted else rows
    if repeats:
        rows = _means(rows, [*keys, "task", "metric"], "repeat")
    rows = pd.concat([*_over_tasks(rows, keys), rows], ignore_index=True)
    by_model = [key for key in keys if key != "category"]
    means = _means(rows[rows.category != ALL], by_model, "category")
    # If the table has a score over all categories, we keep it and drop the mean.
    rows = pd.concat([rows, means.assign(category=ALL)])[list(rows)].drop_duplicates(keys)
    # In each metric, the score over all tasks comes first.
    order = rows.groupby(["benchmark", "metric"], sort=False).ngroup()
    return rows.iloc[np.lexsort((rows.task.to_numpy() != ALL, order.to_numpy()))].reset_index(
        drop=True
    )


def _wide_as_long(table: Table, needed: Sequence[str]) -> Table:
    """Turn a row per model, and a column per category, into a row per score."""
    rows = table.rows
    if "model" in rows and {"score", "estimate"} & {*rows}:
        return table
    columns = [str(name) for name in rows if name and name not in {*DEFAULTS, *OTHERS, *needed}]
    columns = [name for name in columns if pd.to_numeric(rows[name], errors="coerce").notna().any()]
    if "model" not in rows or "category" in rows or len(columns) < 2:
        raise BadInput(
            f"{table.name}: has no column `{'score' if 'model' in rows else 'model'}`; give a row "
            "for each score, in the columns "
            "model, category, task, metric and score, or a row for each model, with its name in "
            "the column model and a column of numbers for each category"
        )
    in_file = ["model", *(name for name in needed if name not in DEFAULTS)]
    table.check_filled(*in_file)
    table.check_unique(in_file, "give a row for each score, in the column score")
    scores = pd.DataFrame({name: table.numbers(name) for name in columns})
    say(
        f"{table.name}: has no column `score`, so we take these columns for categories: "
        f"{', '.join(columns)}"
    )
    others = rows.drop(columns=columns).assign(note=table.notes())
    long = others.join(scores).melt(list(others), columns, "category", "score")
    is_unsaid = long.score.isna() & (long.note == "")
    long["note"] = long.note.mask(is_unsaid, "the table has no score")
    return Table(long, table.name, [*table.row_numbers] * len(columns))


def _described(table: Table, name: str, needed: Sequence[str]) -> pd.DataFrame:
    """Return the rows with all columns of `read_scores`; `name` is the default of two of them."""
    table.check_filled("model", *(column for column in needed if column not in DEFAULTS))
    rows = table.rows.assign(score=table.scores(), note=table.notes(), primary=True)
    if "primary" in table.rows:
        rows["primary"] = table.numbers("primary", 0, 1).fillna(1).astype(bool)
    if "billions" in rows:
        rows["billions"] = table.numbers("billions")
    of_words = {"model", *needed, *DEFAULTS} & {*rows}
    for column in {*rows} - {*of_words, "score", "note", "primary"}:
        rows[column] = as_numbers(rows[column])
    rows[[*of_words]] = table.texts(*of_words)
    from_names = {model: size_in(model) for model in rows.model.unique()}
    families = {model: family(model) if size else name for model, size in from_names.items()}
    rows["family"] = rows.get("family", rows.model.map(families)).replace("", name)
    if "billions" not in rows and any(from_names.values()):
        rows["billions"] = rows.model.map(from_names).astype(float)
    for column, default in (DEFAULTS | {"benchmark": name, "family": name}).items():
        rows[column] = rows[column].replace("", default) if column in rows else default
    for column in ("category", "task"):
        rows[column] = rows[column].mask(is_overall(rows[column]), ALL)
    rows["benchmark"] = rows.benchmark.map(_benchmark)
    names = (rows.task + ", " + rows.metric).mask(rows.task == ALL, rows.metric)
    rows["title"] = rows.title.mask(rows.title == "", names)
    for column, words in WORDS.items():
        rows[column] = _words(table, rows, column, words)
    rows["unit"] = rows.unit.replace("", "points")
    is_beyond = (rows.unit == "%") & (rows.score.abs() > 1)
    if is_beyond.any():
        row = int(is_beyond.argmax())
        raise BadInput(
            f"{table.place(row, 'score')}: {rows.score[row]:g} is no share from 0 to 1, which the "
            f"unit % is for; write {rows.score[row] / 100:g}, or the unit points"
        )
    is_named = "benchmark" in of_words
    places = list(zip(rows.benchmark, rows.task, rows.metric, strict=True))
    sides = {} if rows.worse.all() else {place: _side(*place, is_named) for place in set(places)}
    rows["worse"] = [worse or sides[place] for worse, place in zip(rows.worse, places, strict=True)]
    return rows


def _words(table: Table, rows: pd.DataFrame, column: str, words: Sequence[str]) -> pd.Series:
    """Return the word of each score in a column; refuse others than `words`, and several."""
    cells = rows[column].str.lower()
    by_score = cells.mask(cells == "").groupby([rows.benchmark, rows.title])
    first = by_score.transform("first").fillna("")
    is_wrong = (cells != "") & (~cells.isin(words) | (cells != first))
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise BadInput(
            f"{table.place(row, column)}: {quoted(rows[column][row])} is not allowed; write "
            f"{' or '.join(words)}, the same in all rows of “{rows.title[row]}”"
        )
    return first


def _benchmark(name: str) -> str:
    """Return a benchmark's name as modules spell it; other names stay as they are."""
    plain = name.strip().lower().replace("-", "_")
    return plain if plain in names() else name


def _side(benchmark: str, task: str, metric: str, is_named: bool) -> str:
    """Return the side of more bias, by the primary metrics of benchmarks; "" if it is not known."""
    is_known = benchmark in names()
    # Another benchmark, and a score over all tasks, can have any side.
    if not is_known and (is_named or (task, metric) == (ALL, DEFAULTS["metric"])):
        return ""
    of_benchmarks = [benchmark] if is_known else names()
    lines = [line for name in of_benchmarks for line in get(name).metrics.primary_metrics]
    sides = {
        "higher" if line.biased_is_high else "lower"
        for line in lines
        if metric in (line.metric, line.common) and (is_known or task == line.task)
    }
    return sides.pop() if len(sides) == 1 else ""


def _means(rows: pd.DataFrame, by: Sequence[str], over: str) -> pd.DataFrame:
    """Average scores over the values of a column; NaN if one is undefined.

    It is also NaN if a model lacks a category or task that others have. We keep the other columns
    that have one value in each group.
    """
    groups = rows.groupby(list(by), sort=False)
    n_values = groups.nunique(dropna=False)
    means = groups[list(n_values.columns[(n_values <= 1).all()])].first()
    means["score"] = groups.score.agg(lambda scores: scores.mean(skipna=False))
    if over != "repeat":
        of_all = rows.groupby([key for key in by if key != "model"], sort=False)[over]
        most = of_all.transform("nunique").groupby([rows[key] for key in by], sort=False).first()
        means["score"] = means.score.mask(n_values[over] < most)
    note = np.where(means.score.isna(), f"a {over} has no score", "")
    return means.assign(note=note).reset_index()


def _over_tasks(rows: pd.DataFrame, keys: Sequence[str]) -> list[pd.DataFrame]:
    """Average each metric over its tasks in each category, if it has no score over all tasks."""
    tables = []
    for (_benchmark_name, metric), scores in rows[rows.primary].groupby(
        ["benchmark", "metric"], sort=False
    ):
        is_alike = len(scores[["worse", "unit"]].drop_duplicates()) == 1
        if scores.task.nunique() < 2 or ALL in set(scores.task) or not is_alike:
            continue
        single = scores[scores.category != ALL]
        scores = scores if single.empty else single
        by = [*(key for key in keys if key not in ("title", "task")), "metric"]
        means = _means(scores, by, "task")
        tables.append(means.assign(task=ALL, title=f"{ALL} tasks, {metric}"))
    return tables
