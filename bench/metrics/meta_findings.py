"""What a meta-evaluation found, in sentences made by rule."""

from collections.abc import Sequence

import pandas as pd

from bench.core import i18n
from bench.data import dataset
from bench.metrics.headline import range_text
from bench.metrics.table import ALL

NAMES = {"coal": "CoAL", "fn": "FN"}
LANGUAGES = {"en": i18n.N_("English"), "ja": i18n.N_("Japanese"), "zh": i18n.N_("Chinese")}
# From this distance on, scores are said to be off.
OFF = 0.02
# A p above this is called no sign of a relation; below it, the sign is told with its p.
P = 0.05


def findings(
    found: pd.DataFrame, correlated: pd.DataFrame, measures: Sequence[str] = ("coal", "fn")
) -> list[str]:
    """A sentence a language and measure, and one about the models that the numbers rest on.

    Args:
        found, correlated: results of `bench.analyses.meta.evaluate` and `bench.analyses.meta.correlations`.
    """
    sentences = []
    table = correlated[(correlated.coefficient == "pearson") & (correlated.seed != ALL)]
    for language in dict.fromkeys(found.language):
        for measure in measures:
            some = table[(table.language == language) & (table.measure == measure)]
            scores = found[(found.language == language) & (found.measure == measure) & found.passed]
            of = i18n._(
                "{title}, {measure}",
                title=NAMES.get(measure, measure),
                measure=i18n._(
                    LANGUAGES.get(language) or dataset.english_name("nli_coal", language)
                ),
            )
            told = i18n._("{text}.", text=_told(some, scores))
            sentences.append(i18n._("{title}: {sentence}", title=of, sentence=told))
    return [*sentences, _learned(found.drop_duplicates("key"))]


def _learned(models: pd.DataFrame) -> str:
    n, again, out = len(models), int((models.tries > 1).sum()), int((~models.passed).sum())
    if out == n:
        return i18n._(
            "None of {n} models learned its set, so nothing can be said about any measure.", n=n
        )
    lowest = f"{models.train_accuracy[models.passed].min():.4f}"
    if not (again or out):
        return i18n._(
            "All {n} models learned their set at the first try; the lowest train accuracy is {lowest}.",
            n=n,
            lowest=lowest,
        )
    of = {"n": n, "again": again, "out": out}
    return i18n.sentences(
        [
            i18n._(
                "Of {n} models {again} had to be trained again from another seed; {out} never learned its set and is left out.",
                **of,
            )
            if out == 1
            else i18n._(
                "Of {n} models {again} had to be trained again from another seed; {out} never learned their set and are left out.",
                **of,
            ),
            i18n._("The lowest train accuracy of the others is {lowest}.", lowest=lowest),
        ]
    )


def _told(some: pd.DataFrame, scores: pd.DataFrame) -> str:
    if some.empty:
        return i18n._("no model learned its set")
    known = some[some.value.notna()]
    if known.empty:
        return i18n._(
            "no correlation exists: {why} (n = {n} models a seed)",
            why=i18n.note(some.reason.iloc[0]),
            n=int(some.n.iloc[0]),
        )
    low, high, worst = known.value.min(), known.value.max(), known.p.max()
    p = "p < .001" if worst < 0.001 else f"p = {worst:.2f}"
    if worst >= 0.001 and len(known) > 1:
        p = i18n._("p up to {p}", p=f"{worst:.2f}")
    n = i18n._(" or ").join(str(int(n)) for n in sorted(set(known.n)))
    seeds = (
        i18n._("{n} models in each of {seeds} seeds", n=n, seeds=len(known))
        if len(known) > 1
        else i18n._("{n} models", n=n)
    )
    if len(known) < len(some):
        seeds += i18n._(
            ", undefined in {n} more, where the score is constant", n=len(some) - len(known)
        )
    sure = "" if worst < P else i18n._(", which could be chance")
    told = i18n._(
        "r = {r} between the rate put in and the score (Pearson, {p}{sure}; n = {seeds})",
        r=range_text(f"{low:.3f}", f"{high:.3f}"),
        p=p,
        sure=sure,
        seeds=seeds,
    )
    off = float((scores.score - scores.expected).mean())
    if off >= OFF:
        told += i18n._(
            "; scores are {off} above what models of just their set would get, on average",
            off=f"{off:.2f}",
        )
    elif off <= -OFF:
        told += i18n._(
            "; scores are {off} below what models of just their set would get, on average",
            off=f"{-off:.2f}",
        )
    return told
