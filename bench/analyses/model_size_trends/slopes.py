"""The change of a score with each doubling of size, tested over models and over items.

The line is that of least squares over the base 2 logarithm of the size. Two questions are kept
apart:

- Does the score change with size? The models are the sample: how far they lie from the line says
  how far another training of the same sizes would move it. The slope is tested by its residual
  standard error, with models - 2 degrees of freedom. Two models always lie on a line.
- Do these models differ? The items are the sample: the slope is computed in every resample of the
  items, which all sizes share. That says what other items of the same kind would show of the same
  models, and nothing of others: models that differ by the luck of their training differ on any
  items.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bench.analyses.model_size_trends.series import Series, Sized, format_size
from bench.core.errors import BadInput
from bench.metrics.bootstrap import LEVEL, Place, Sample
from bench.metrics.significance import POWER, Comparison, compare_resamples, holm
from bench.metrics.table import ALL, join_notes

PLACE = ["category", "task", "metric"]
# Distances from a line, and differences of scores, that are smaller are of computing.
NOISE = 1e-9
UNDEFINED = Comparison(
    np.nan, np.nan, np.nan, np.nan, 0, np.nan, "fewer than two sizes have a number"
)


def slopes(sizes: Sequence[float] | np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the change with each doubling of size, of each column of `values`.

    Args:
        sizes: at least two different ones.
        values: float64 [sizes, n].

    Raises:
        BadInput: fewer than two sizes, one that is not positive, or another number of values.
    """
    x = _doublings(sizes)
    if values.ndim != 2 or len(values) != len(x):
        raise BadInput(f"values: shape {values.shape} for {len(x)} sizes; expected a row per size")
    x -= x.mean()
    per_doubling: np.ndarray = x @ values / (x @ x)
    return per_doubling


def over_models(sizes: Sequence[float] | np.ndarray, values: np.ndarray) -> Comparison:
    """Test the slope by how far the models lie from the line.

    Args:
        values: float64 [sizes], one per model.
    """
    x, n = _doublings(sizes), len(values)
    slope = float(slopes(sizes, values[:, None])[0]) + 0.0
    if n < 3:
        return Comparison(slope, np.nan, np.nan, np.nan, n, np.nan, "two sizes make no trend")
    x -= x.mean()
    residuals = values - values.mean() - slope * x
    freedom = n - 2
    error = float(np.sqrt((residuals**2).sum() / freedom / (x @ x)))
    if error < NOISE and abs(slope) < NOISE:
        return Comparison(slope, np.nan, np.nan, 1.0, n, np.nan, "")
    p = 2 * float(stdtr(freedom, -abs(slope) / max(error, NOISE)))
    arm = float(stdtrit(freedom, (1 + LEVEL) / 2)) * error
    detectable = arm + float(stdtrit(freedom, POWER)) * error
    return Comparison(slope, slope - arm, slope + arm, p, n, detectable, "", error, freedom)


def band(
    sizes: Sequence[float] | np.ndarray, values: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the line at sizes `at`, and the ends of its 95 % interval by resamples of items.

    Args:
        values: float64 [sizes, 1 + draws], observed first.
    """
    x = _doublings(sizes)
    lines = values.mean(0) + np.outer(np.log2(at) - x.mean(), slopes(sizes, values))
    drawn = lines[:, 1:][:, ~np.isnan(lines[:, 1:]).any(0)]
    if drawn.shape[1] < values.shape[1] / 2:
        nothing = np.full(len(at), np.nan)
        return lines[:, 0], nothing, nothing
    low, high = np.percentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=1)
    return lines[:, 0], low, high


def trends(series: Series) -> pd.DataFrame:
    """Return the change of each score with size, one row per series, category, task and metric.

    Returns:
        How many `sizes`, from which to which (`span`); `per_doubling` with its interval and `p`
        over models; `p_holm`, adjusted for the other series and scores where it is over all
        categories, else for the other categories of the same series and score; `detectable`;
        `items_low`, `items_high`, `p_items` over items; `note`.
    """
    rows = []
    for name, models in series.items():
        for place in _places(models):
            defined = _defined(models, place)
            over, items, lost = UNDEFINED, UNDEFINED, ""
            if len(defined) > 1:
                sizes = [one.billions for one in defined]
                values = np.array([one.replicates[place] for one in defined])
                over = over_models(sizes, values[:, 0])
                items = compare_resamples(slopes(sizes, values), _rests_on(defined, place))
                missing = [one.model for one in models if one not in defined]
                lost = f"no number for {', '.join(missing)}" if missing else ""
            text = join_notes(over.note or items.note, lost, _mixed(models, place))
            about = (name, *place, len(defined), _span(defined))
            rows.append((*about, *_numbers(over), items.ci_low, items.ci_high, items.p, text))
    columns = ["series", *PLACE, "sizes", "span", "per_doubling", "ci_low", "ci_high", "p"]
    columns += ["detectable", "items_low", "items_high", "p_items", "note"]
    return _with_holm(pd.DataFrame(rows, columns=columns))


def gains(series: Series) -> pd.DataFrame:
    """Return the change per doubling between each size and the next, as `trends` does.

    Returns:
        `gain`, with its interval and `p` over items: whether these two models differ; from which
        size to which (`step`), and how many `doublings` that is.
    """
    rows = []
    for name, models in series.items():
        for place in _places(models):
            for one, other in pairwise(_defined(models, place)):
                step = float(np.log2(other.billions / one.billions))
                gain = (other.replicates[place] - one.replicates[place]) / step
                compared = compare_resamples(gain, _rests_on([one, other], place))
                text = join_notes(compared.note, _mixed([one, other], place))
                rows.append((name, *place, _span([one, other]), step, *_numbers(compared), text))
    columns = ["series", *PLACE, "step", "doublings", "gain", "ci_low", "ci_high", "p"]
    return _with_holm(pd.DataFrame(rows, columns=[*columns, "detectable", "note"]))


def _numbers(compared: Comparison) -> tuple[float, ...]:
    ends = (compared.ci_low, compared.ci_high)
    return compared.difference, *ends, compared.p, compared.detectable


def _with_holm(rows: pd.DataFrame) -> pd.DataFrame:
    """Add `p_holm`: aggregates among themselves, categories among those of their score."""
    scores = rows.series + "\n" + rows.task + "\n" + rows.metric
    groups = rows.groupby(scores.where(rows.category != ALL, ALL))
    rows.insert(list(rows).index("p") + 1, "p_holm", np.nan)
    for index in groups.groups.values():
        rows.loc[index, "p_holm"] = holm(rows.p[index].to_numpy(dtype=float))
    return rows


def _doublings(sizes: Sequence[float] | np.ndarray) -> np.ndarray:
    values = np.asarray(sizes, dtype=np.float64)
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise BadInput(f"sizes {values.tolist()}: expected billions of parameters, above 0")
    if len(set(values)) < 2:
        raise BadInput(f"sizes {values.tolist()}: a trend needs at least two different ones")
    return np.log2(values)


def _places(models: Sequence[Sized]) -> list[Place]:
    return sorted({place for one in models for place in one.replicates})


def _defined(models: Sequence[Sized], place: Place) -> list[Sized]:
    return [
        one for one in models if place in one.replicates and not np.isnan(one.replicates[place][0])
    ]


def _mixed(models: Sequence[Sized], place: Place) -> str:
    """Name the categories that have a number at some sizes only: means over all are not alike."""
    category, task, metric = place
    if category != ALL:
        return ""
    names = dict.fromkeys(
        own[0] for one in models for own in one.replicates if own[1:] == place[1:]
    )
    counts = {name: len(_defined(models, (name, task, metric))) for name in names if name != ALL}
    some = [name for name, count in counts.items() if 0 < count < len(models)]
    if not some:
        return ""
    return (
        f"{', '.join(some)}: without a number at some sizes, so the means are of other categories"
    )


def _rests_on(models: Sequence[Sized], place: Place) -> Sample:
    return min(one.replicates.samples[place] for one in models)


def _span(models: Sequence[Sized]) -> str:
    if not models:
        return ""
    return f"{format_size(models[0].billions)} to {format_size(models[-1].billions)}"
