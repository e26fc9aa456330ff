"""Does size matter: how a score changes with each doubling of a model's parameters, within a series of models.

The line is that of least squares over the base 2 logarithm of the size, so its slope is a change a
doubling. Two questions are kept apart:

- Does the score change with size? The models are the sample: how far they lie from the line says how
  far another training of the same sizes would move it. The slope is tested by its residual standard
  error, with two degrees of freedom less than there are models. Two models always lie on a line.
- Do these models differ? The items are the sample: the slope is computed in every resample of the
  items, which all sizes share. That says what other items of the same kind would show of the same
  models, and nothing of others: models that differ by the luck of their training differ on any items.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bench.core.errors import BadInput
from bench.metrics.bootstrap import LEVEL, Replicates, Sample
from bench.metrics.significance import POWER, Comparison, compare_resamples, holm
from bench.metrics.table import ALL, Card, Headline, join_notes

CARDS = (
    Card(
        "per_doubling",
        "change of a score with each doubling of the parameters",
        "slope of least squares over log2(parameters)",
        "ours; after Lan et al., Findings of ACL 2025, section 5.2, and Huang and Xiong, LREC-COLING 2024, section 5.6, who look at the scores in order of size",
        "any",
        "above 0 where a higher score is better, below 0 where it is worse",
    ),
    Card(
        "ci_low, ci_high, p",
        "of a slope: its interval and test over models, by their distances from the line",
        "t with models - 2 degrees of freedom",
        "least squares",
        "any; 0 to 1",
        "-",
    ),
    Card(
        "items_low, items_high, p_items",
        "of a slope: its interval and test over items, for these very models",
        "resamples, with units - strata degrees of freedom",
        "Efron and Tibshirani, 1993, chapter 13",
        "any; 0 to 1",
        "-",
    ),
    Card(
        "gain",
        "the same between one size and the next; its interval and p are over items: do these two models differ",
        "(larger - smaller) / log2(ratio of parameters)",
        "ours",
        "any",
        "as per_doubling",
    ),
    Card(
        "detectable",
        "the slope or gain that such data would show in four of five samples",
        "(t_.975 + t_.80) x standard error",
        "ours",
        "0 or more",
        "smaller is a sharper look",
    ),
)
# What tells an answer by position in a task, by benchmark: beside a score, it shows whether the score can be chance.
POSITION = {
    ("mcbe", "ss"): "position_bias",
    ("cbbq", "ambiguous"): "first_option",
    ("cbbq", "disambiguous"): "first_option",
}
PLACE = ["category", "task", "metric"]
UNDEFINED = Comparison(
    np.nan, np.nan, np.nan, np.nan, 0, np.nan, "fewer than two sizes have a number"
)
TWO = "two sizes make no trend"
# Distances from a line that are smaller are of computing.
NOISE = 1e-9


class Sized(NamedTuple):
    """A model of a series: its size in billions of parameters, where that is from, and its scores."""

    model: str
    billions: float
    size_from: str
    replicates: Replicates


Series = Mapping[str, Sequence[Sized]]


def slopes(billions: Sequence[float] | np.ndarray, values: np.ndarray) -> np.ndarray:
    """The change a doubling of size, of each column of `values`: float64 [n].

    Args:
        billions: sizes, at least two different ones.
        values: float64 [sizes, n].

    Raises:
        BadInput: fewer than two sizes, one that is not positive, or as many rows of values as there are not sizes.
    """
    x = _doublings(billions)
    if values.ndim != 2 or len(values) != len(x):
        raise BadInput(f"values: shape {values.shape} for {len(x)} sizes; expected a row a size")
    x -= x.mean()
    found: np.ndarray = x @ values / (x @ x)
    return found


def over_models(billions: Sequence[float] | np.ndarray, values: np.ndarray) -> Comparison:
    """Test the slope by how far the models lie from the line.

    Args:
        values: float64 [sizes], one a model.
    """
    x, n = _doublings(billions), len(values)
    slope = float(slopes(billions, values[:, None])[0]) + 0.0
    if n < 3:
        return Comparison(slope, np.nan, np.nan, np.nan, n, np.nan, TWO)
    x -= x.mean()
    apart = values - values.mean() - slope * x
    freedom = n - 2
    error = float(np.sqrt((apart**2).sum() / freedom / (x @ x)))
    if error < NOISE and abs(slope) < NOISE:
        return Comparison(slope, np.nan, np.nan, 1.0, n, np.nan, "")
    p = 2 * float(stdtr(freedom, -abs(slope) / max(error, NOISE)))
    arm = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    shown = arm + float(stdtrit(freedom, POWER)) * error
    return Comparison(slope, slope - arm, slope + arm, p, n, shown, "", error, freedom)


def band(
    billions: Sequence[float] | np.ndarray, values: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The line at sizes `at`: as observed, and the ends of its 95 % interval by resamples of items.

    Args:
        values: float64 [sizes, 1 + draws], observed first.
    """
    x = _doublings(billions)
    lines = values.mean(0) + np.outer(np.log2(at) - x.mean(), slopes(billions, values))
    drawn = lines[:, 1:][:, ~np.isnan(lines[:, 1:]).any(0)]
    if drawn.shape[1] < values.shape[1] / 2:
        nothing = np.full(len(at), np.nan)
        return lines[:, 0], nothing, nothing
    low, high = np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=1)
    return lines[:, 0], low, high


def trends(series: Series) -> pd.DataFrame:
    """The change of each score with size, a row a series, category, task and metric.

    Returns:
        How many `sizes`, from which to which (`span`); `per_doubling` with its interval and `p` over
        models; `p_holm`, adjusted for the other series and scores where it is over all categories, else for the other categories of
        the same series and score; `detectable`; `items_low`, `items_high`, `p_items` over items; `note`.
    """
    rows = []
    for name, models in series.items():
        for place in _places(models):
            some = _defined(models, place)
            values = np.array([one.replicates[place] for one in some])
            found = of_items = UNDEFINED
            if len(some) > 1:
                billions = [one.billions for one in some]
                found = over_models(billions, values[:, 0])
                of_items = compare_resamples(slopes(billions, values), _rests_on(some, place))
            row = {
                "series": name,
                **dict(zip(PLACE, place, strict=True)),
                **_told(found, "per_doubling"),
            }
            row |= {
                "items_low": of_items.ci_low,
                "items_high": of_items.ci_high,
                "p_items": of_items.p,
            }
            gone = [one.model for one in models if one not in some]
            missing = f"no number for {', '.join(gone)}" if gone and len(some) > 1 else ""
            row["note"] = join_notes(found.note or of_items.note, missing, _composed(models, place))
            row |= {"sizes": len(some), "span": _span(some)}
            rows.append(row)
    return _adjusted(
        rows, "per_doubling", ["sizes", "span"], ["items_low", "items_high", "p_items"]
    )


def gains(series: Series) -> pd.DataFrame:
    """What each step from one size to the next brings, a doubling: a row a series, category, task, metric and step.

    Returns:
        As `trends`, with `gain` in place of the slope and its interval and `p` over items: whether these
        two models differ; from which size to which (`step`), and how many `doublings` that is.
    """
    rows = []
    for name, models in series.items():
        for place in _places(models):
            for one, other in pairwise(_defined(models, place)):
                step = float(np.log2(other.billions / one.billions))
                gain = (other.replicates[place] - one.replicates[place]) / step
                found = compare_resamples(gain, _rests_on([one, other], place))
                row = {
                    "series": name,
                    **dict(zip(PLACE, place, strict=True)),
                    **_told(found, "gain"),
                }
                row |= {"step": _span([one, other]), "doublings": step}
                rows.append(row | {"note": join_notes(found.note, _composed([one, other], place))})
    return _adjusted(rows, "gain", ["step", "doublings"])


def ordered(models: Iterable[Sized], name: str) -> list[Sized]:
    """The models of series `name` by size.

    Raises:
        BadInput: two are of one size, so that no line over sizes goes through both.
    """
    found = sorted(models, key=lambda one: one.billions)
    for one, other in pairwise(found):
        if one.billions == other.billions:
            raise BadInput(
                f"series {name!r}: {one.model} and {other.model} are both of {one.billions:g} billion parameters; put them into two series"
            )
    return found


def headline_places(headlines: Sequence[Headline], series: Series) -> list[Headline]:
    """The headlines of a benchmark for which a series has a number over all categories."""
    asked = {place for models in series.values() for one in models for place in one.replicates}
    return [one for one in headlines if (ALL, one.task, one.metric) in asked]


def size(billions: float) -> str:
    """A size as people write it: 7B, 0.5B, 360M, 93K."""
    if billions >= 0.45:
        return f"{billions:.3g}B"
    return f"{billions * 1e3:.3g}M" if billions >= 1e-3 else f"{billions * 1e6:.3g}K"


def _span(models: Sequence[Sized]) -> str:
    return f"{size(models[0].billions)} to {size(models[-1].billions)}" if models else ""


def _doublings(billions: Sequence[float] | np.ndarray) -> np.ndarray:
    sizes = np.asarray(billions, dtype=np.float64)
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise BadInput(f"sizes {list(map(float, sizes))}: expected billions of parameters, above 0")
    if len(set(sizes)) < 2:
        raise BadInput(
            f"sizes {list(map(float, sizes))}: a trend needs two different ones at least"
        )
    return np.log2(sizes)


def _places(models: Sequence[Sized]) -> list[tuple[str, str, str]]:
    """What any of the models has a score for, by name."""
    return sorted({place for one in models for place in one.replicates})


def _defined(models: Sequence[Sized], place: tuple[str, str, str]) -> list[Sized]:
    return [
        one for one in models if place in one.replicates and not np.isnan(one.replicates[place][0])
    ]


def _composed(models: Sequence[Sized], place: tuple[str, str, str]) -> str:
    """A mean over categories that are not the same at every size is no trend of one thing: say which are missing where."""
    category, task, metric = place
    if category != ALL:
        return ""
    every = dict.fromkeys(
        c for one in models for c, t, m in one.replicates if (t, m) == (task, metric)
    )
    have = {c: len(_defined(models, (c, task, metric))) for c in every if c != ALL}
    some = [c for c, many in have.items() if 0 < many < len(models)]
    return (
        f"{', '.join(some)}: without a number at some sizes, so the means are of other categories"
        if some
        else ""
    )


def _rests_on(models: Sequence[Sized], place: tuple[str, str, str]) -> Sample:
    return min(one.replicates.samples[place] for one in models)


def _told(found: Comparison, name: str) -> dict[str, float]:
    return {
        name: found.difference,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "p": found.p,
        "detectable": found.detectable,
    }


def _adjusted(
    rows: list[dict[str, object]], value: str, more: list[str], last: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows with `p_holm`: aggregates adjusted among themselves, categories among those of their series and score."""
    columns = [
        "series",
        *PLACE,
        *more,
        value,
        "ci_low",
        "ci_high",
        "p",
        "detectable",
        *last,
        "note",
    ]
    table = pd.DataFrame(rows, columns=columns)
    table.insert(columns.index("p") + 1, "p_holm", np.nan)
    categories = (
        table[table.category != ALL].groupby(["series", "task", "metric"], sort=False).groups
    )
    for some in (table.index[table.category == ALL], *categories.values()):
        if len(some):
            table.loc[some, "p_holm"] = holm(table.p[some].to_numpy(dtype=float))
    return table
