"""Put scores beside the numbers that papers print.

rows = printed.beside(scores, printed.numbers("Table 3"), paper={"my-bert": "BERT base"})
printed.grid(rows, ["category", "model"], ["task", "metric"])
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from bench.core.numbers import decimals
from bench.core.text import read_mapping


def numbers(source: str = "") -> pd.DataFrame:
    """Read the numbers that the papers print.

    Args:
        source: a part of their source, for example `Table 12`; default: all.

    Examples:
        >>> table = numbers("Table 2")
        >>> table[table.category == "en"][["model", "metric", "score"]]
                 model  metric  score
        201  BERT base  r_coal  0.999
        202  BERT base    r_fn -0.263
    """
    table = pd.read_csv(Path(__file__).with_name("published.csv"))
    return table[table.source.str.contains(rf"{source}\b", regex=True)]


def beside(
    scores: pd.DataFrame,
    table: pd.DataFrame,
    paper: Mapping[str, Any] | str = "",
    on: Sequence[str] = (),
) -> pd.DataFrame:
    """Merge scores with printed numbers.

    A model matches by its name in `paper`; else by its name in tables or on the Hub, if this is
    the model's or the checkpoint's name in the printed numbers.

    Args:
        scores: rows with `model`, `benchmark`, `category`, `task`, `metric` and `score`; with
            `ci_low` and `ci_high`, and with `asked_as` of `bench.models`, if they are known.
        table: printed numbers, with the same columns.
        paper: the name in the paper of some models, by their name in tables.
        on: further columns that have to be equal, for example `prompts`.

    Returns:
        The scores of the models that the table has, in the order of the table, with `printed`, the
        name in the paper (`as_model`), and whether the two are different models (`differs`).

    Examples:
        >>> own = numbers("Table 12").assign(model="mine", score=40.0).query("task == 'sc'")[:1]
        >>> rows = beside(own, numbers("Table 12"), {"mine": "Llama2-7B-hf"}, on=["setting"])
        >>> rows[["model", "as_model", "category", "score", "printed"]]
          model      as_model category  score  printed
        0  mine  Llama2-7B-hf     race   40.0    34.83
    """
    names = read_mapping(paper, name="paper")
    asked = scores.reindex(columns=["model", "asked_as"], fill_value="").drop_duplicates()
    table = table.assign(checkpoint=table.checkpoint.astype(object).fillna(""))
    models = table[["model", "checkpoint"]].drop_duplicates().dropna(subset="model")
    # Two owners can have a checkpoint of one name.
    short = models.checkpoint.str.rpartition("/")[2]
    is_alone = models.checkpoint.groupby(short).transform("nunique") == 1
    models["ending"] = short.where(is_alone, models.checkpoint)
    pairs = []
    for model, asked_as in asked.itertuples(index=False):
        name = names.get(model, names.get(asked_as, ""))
        path = _checkpoint(asked_as)
        keys = {name} if name else {model, path.name, f"{path.parent.name}/{path.name}"}
        keys = set(map(str.casefold, keys)) - {""}
        for as_model, checkpoint, ending in models.itertuples(index=False):
            if keys & {as_model.casefold(), ending.casefold()}:
                paper_name = checkpoint or as_model
                is_same = path.name in ("", _checkpoint(paper_name).name)
                differs = "" if is_same else f"{asked_as}; the paper's is {paper_name}"
                pairs.append((model, as_model, checkpoint, differs))
    matched = pd.DataFrame(pairs, columns=["model", "as_model", "checkpoint", "differs"])
    table = table.rename(columns={"model": "as_model", "score": "printed"})
    columns = ["model", "benchmark", "category", "task", "metric", *on]
    values = scores.reindex(columns=[*columns, "score", "ci_low", "ci_high"])
    return table.merge(matched).merge(values, on=columns)


def _checkpoint(spec: str) -> PurePosixPath:
    """Return the path of a checkpoint without its backend, host or commit, in small letters."""
    path = spec.partition("@")[0].rpartition(":")[2]
    return PurePosixPath(path.replace("\\", "/").casefold())


def grid(
    rows: pd.DataFrame, index: Sequence[str], columns: Sequence[str], digits: int = 2
) -> pd.DataFrame:
    """Lay out scores and printed numbers as in the paper's table, both in each cell.

    A cell is `own = printed` if both are equal in the printed digits, `own ≈ printed` if the
    printed number is in the score's interval, and else `own ≠ printed`.

    Args:
        rows: of `beside`.
        index: columns whose values begin the lines of the table; with `model`, a last column
            `differs` names models that are not the paper's.
        columns: columns whose values head the columns of the table.
        digits: decimals of the printed numbers.

    Examples:
        >>> table = numbers("Table 12").query("category == 'race' and setting.str.contains('new')")
        >>> rows = beside(table.assign(score=table.score.replace(35.25, 36)), table)
        >>> grid(rows, ["model"], ["task"])[["model", "sc"]]
                              model             sc
        0              Llama2-7B-hf  36.00 ≠ 35.25
        1  Mistral-7B-Instruct-v0.3  34.84 = 34.84
        2          DeepSeek-V3-0324  43.66 = 43.66
    """
    if rows.empty:
        return pd.DataFrame(columns=[*index])
    score = rows.score.map(lambda value: decimals(value, digits))
    printed = rows.printed.map(lambda value: decimals(value, digits))
    is_inside = rows.printed.between(rows.ci_low, rows.ci_high)
    sign = np.select([score == printed, is_inside], ["=", "≈"], "≠")
    rows = rows.assign(cell=score + " " + sign + " " + printed)
    rows["head"] = rows[list(columns)].astype(str).agg(" ".join, axis=1)
    table = rows.pivot_table("cell", list(index), "head", aggfunc="first", sort=False)
    table = table.fillna("").rename_axis(columns=None)
    if "model" in index:
        table["differs"] = rows.groupby(list(index), sort=False).differs.first()
    return table.reset_index()
