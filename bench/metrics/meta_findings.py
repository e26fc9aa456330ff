"""What a meta-evaluation found, in sentences made by rule."""

from collections.abc import Sequence

import pandas as pd

from bench.metrics.table import ALL

NAMES = {"coal": "CoAL", "fn": "FN"}
LANGUAGES = {"en": "English", "ja": "Japanese", "zh": "Chinese"}
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
            sentences.append(
                f"{NAMES.get(measure, measure)}, {LANGUAGES.get(language, language)}: {_told(some, scores)}."
            )
    return [*sentences, _learned(found.drop_duplicates("key"))]


def _learned(models: pd.DataFrame) -> str:
    n, again, out = len(models), int((models.tries > 1).sum()), int((~models.passed).sum())
    if out == n:
        return f"None of {n} models learned its set, so nothing can be said about any measure."
    lowest = f"{models.train_accuracy[models.passed].min():.4f}"
    if not (again or out):
        return f"All {n} models learned their set at the first try; the lowest train accuracy is {lowest}."
    return (
        f"Of {n} models {again} had to be trained again from another seed; {out} never learned {'its' if out == 1 else 'their'} "
        f"set and {'is' if out == 1 else 'are'} left out. The lowest train accuracy of the others is {lowest}."
    )


def _told(some: pd.DataFrame, scores: pd.DataFrame) -> str:
    if some.empty:
        return "no model learned its set"
    known = some[some.value.notna()]
    if known.empty:
        return f"no correlation exists: {some.reason.iloc[0]} (n = {int(some.n.iloc[0])} models a seed)"
    low, high, worst = known.value.min(), known.value.max(), known.p.max()
    r = f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
    p = "p < .001" if worst < 0.001 else f"p = {worst:.2f}" if len(known) == 1 else f"p up to {worst:.2f}"
    n = " or ".join(str(int(n)) for n in sorted(set(known.n)))
    seeds = f" in each of {len(known)} seeds" if len(known) > 1 else ""
    if len(known) < len(some):
        seeds += f", undefined in {len(some) - len(known)} more, where the score is constant"
    sure = "" if worst < P else ", which could be chance"
    told = f"r = {r} between the rate put in and the score (Pearson, {p}{sure}; n = {n} models{seeds})"
    off = float((scores.score - scores.expected).mean())
    if abs(off) >= OFF:
        told += f"; scores are {abs(off):.2f} {'above' if off > 0 else 'below'} what models of just their set would get, on average"
    return told
