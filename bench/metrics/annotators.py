"""Do annotators agree: kappa by category, of one's own annotations or of annotators that are simulated.

Annotations are rows with item_id, rater and rating, each rater rating every item of a category once. Items that are not
independent, such as the questions about one text, have the same `cluster`.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.core.cells import to_number
from bench.core.errors import BadInput
from bench.core.i18n import N_
from bench.data.readers import read_csv
from bench.metrics.agreement import (
    Kappa,
    clustered_kappa,
    cohen_kappa,
    fleiss_kappa,
    severity_level,
)
from bench.metrics.table import ALL

# Lower bounds of what a kappa is called (Landis and Koch, Biometrics, 1977).
BANDS = (
    (0.8, N_("almost perfect")),
    (0.6, N_("substantial")),
    (0.4, N_("moderate")),
    (0.2, N_("fair")),
    (0.0, N_("slight")),
)
COLUMNS = ("item_id", "rater", "rating")
# Clusters that an interval needs: of fewer, the percentiles that Student's t asks for lie beyond the resamples.
LEAST = 5


class SimulatedAnnotators(NamedTuple):
    """Annotators who see the truth at a known rate.

    Attributes:
        reliability: with this probability an annotator gives the right category, else that of another item at random.
        raters: how many there are.
    """

    reliability: float = 0.9
    raters: int = 3
    seed: int = 0

    @property
    def kappa(self) -> float:
        """Their kappa over infinitely many items: two are both right with this probability, and chance does the rest."""
        return self.reliability**2

    def annotate(self, truth: pd.DataFrame) -> pd.DataFrame:
        """Their annotations of items whose right category is known: `category`, `item_id`, `rater`, `rating`.

        Args:
            truth: `category`, `item_id` and `topic`, the right one; a slip takes the topic of an item of the same category.
        """
        dice = np.random.default_rng(self.seed)
        parts = []
        for category, some in truth.groupby("category", sort=False):
            right = some.topic.to_numpy()
            for k in range(self.raters):
                slips = dice.choice(right, len(right))
                given = np.where(dice.random(len(right)) < self.reliability, right, slips)
                parts.append(
                    pd.DataFrame(
                        {
                            "category": category,
                            "item_id": some.item_id.to_numpy(),
                            "rater": f"simulated {k + 1}",
                            "rating": given,
                        }
                    )
                )
        return pd.concat(parts, ignore_index=True)


def read_annotations(path: Path, *, levels: bool = False) -> pd.DataFrame:
    """Annotations of one's own: `category`, `item_id`, `rater`, `rating`.

    Args:
        path: a CSV file with the columns item_id, rater, rating, a row a rating. A column `category` is taken where there is
            one, else what stands before the first colon of `item_id`.
        levels: ratings are McBE's severities from 0 to 10, of which the five levels are compared.

    Raises:
        BadInput: a column or a cell is missing, no rows, or `levels` of what is no number from 0 to 10.
    """
    rows = []
    for place, row in enumerate(read_csv(path, COLUMNS), start=1):
        cells = {name: row[name].strip() for name in COLUMNS}
        for name, cell in cells.items():
            if not cell:
                raise BadInput(f"{path}, row {place}, column `{name}`: is empty")
        if levels:
            value = to_number(cells["rating"])
            if not 0 <= value <= 10:
                raise BadInput(
                    f"{path}, row {place}, column `rating`: {cells['rating']!r} is no severity from 0 to 10"
                )
            cells["rating"] = f"level {int(severity_level(value)) + 1}"
        category = row.get("category", "").strip() or cells["item_id"].partition(":")[0]
        rows.append({"category": category, **cells})
    if not rows:
        raise BadInput(f"{path}: has a header, but no rows")
    return pd.DataFrame(rows)


def kappas(annotations: pd.DataFrame) -> pd.DataFrame:
    """Kappa of each category and of all items: Cohen's of two raters, Fleiss' of more.

    Args:
        annotations: `category`, `item_id`, `rater`, `rating`, and `cluster` where items are not independent. The interval is by
            bootstrap over clusters then; there is none of fewer than 5, and none where raters agree on every item, for
            resamples are all alike.

    Returns:
        `category`, `kappa`, `ci_low`, `ci_high`, `n` (items), `clusters` (where there are some), `raters`, `agreed` (share of items
        that all rate alike), `band` (its name after Landis and Koch), `note`. Over all items it is defined where all have the
        same raters.

    Raises:
        BadInput: a category has one rater, an item that not all of its raters have rated, or one of two clusters.
    """
    parts = [(str(name), some) for name, some in annotations.groupby("category", sort=False)]
    rows = [_row(name, some, _kappa(some)) for name, some in parts]
    if len(parts) > 1:
        same = len({frozenset(some.rater) for _unused, some in parts}) == 1
        note = "categories have other raters, so there is no kappa over all of them"
        nothing = Kappa(
            np.nan, np.nan, np.nan, annotations.item_id.nunique(), annotations.rater.nunique(), note
        )
        rows.insert(0, _row(ALL, annotations, _kappa(annotations) if same else nothing))
    return pd.DataFrame(rows)


def band(kappa: float) -> str:
    """What a kappa is called; "" where there is none."""
    return (
        "" if kappa != kappa else next((name for least, name in BANDS if kappa > least), N_("poor"))
    )


def _kappa(some: pd.DataFrame) -> Kappa:
    # It refuses gaps and doubles, for two raters too.
    found = fleiss_kappa(some)
    if found.raters == 2:
        wide = some.pivot_table(index="item_id", columns="rater", values="rating", aggfunc="first")
        one, other = list(wide.iloc[:, 0]), list(wide.iloc[:, 1])
        if "cluster" not in some:
            return cohen_kappa(one, other)
        found = clustered_kappa(
            one, other, list(some.groupby("item_id").cluster.first()[wide.index])
        )
    return _of_clusters(found, some) if "cluster" in some else found


def _of_clusters(found: Kappa, some: pd.DataFrame) -> Kappa:
    """A kappa without its interval where clusters tell too little of their spread."""
    split = some.groupby("item_id").cluster.nunique()
    if (split > 1).any():
        raise BadInput(
            f"item {split.index[split > 1][0]}: is of {split.max()} clusters; expected one"
        )
    n, note = some.cluster.nunique(), found.note
    if n < LEAST and found.kappa == found.kappa:
        note = f"{n} cluster{'' if n == 1 else 's'} of items: an interval needs {LEAST} at least"
    return found._replace(ci_low=np.nan, ci_high=np.nan, note=note) if note else found


def _row(category: str, some: pd.DataFrame, found: Kappa) -> dict[str, object]:
    alike = some.groupby("item_id").rating.agg(lambda given: (given == given.iloc[0]).all())
    return {
        "category": category,
        "kappa": found.kappa,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "n": found.n,
        **({"clusters": some.cluster.nunique()} if "cluster" in some else {}),
        "raters": found.raters,
        "agreed": float(alike.mean()),
        "band": band(found.kappa),
        "note": found.note,
    }
