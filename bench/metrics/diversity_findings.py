"""Say how far annotators agree."""

import pandas as pd

from bench.core.i18n import _, note
from bench.metrics.agreement import band
from bench.metrics.table import ALL


def of_kappas(kappas: pd.DataFrame, who: str) -> str:
    """Say how far annotators agree over all items.

    Args:
        kappas: as `bench.metrics.agreement.kappas` returns them.
        who: the annotators, in a sentence.
    """
    overall = kappas[kappas.category == ALL]
    row = (overall if len(overall) else kappas).iloc[0]
    if pd.isna(row.kappa):
        return _(
            "The agreement of {who} over all items has no kappa: {why}.",
            who=who,
            why=note(row.note),
        )
    interval = note(row.note)
    if not pd.isna(row.ci_low):
        interval = _(
            "95\u00a0% interval {low} to {high}", low=f"{row.ci_low:.2f}", high=f"{row.ci_high:.2f}"
        )
    return _(
        "Over all items {who} agree with kappa {kappa} ({interval}): {band} by Landis and Koch (n "
        "= {n} items, {raters} raters; chance alone gives 0).",
        who=who,
        kappa=f"{row.kappa:.2f}",
        interval=interval,
        band=_(band(row.kappa)),
        n=f"{int(row.n):,}",
        raters=int(row.raters),
    )
