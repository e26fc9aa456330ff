"""Read the findings of score tables."""

from bench.metrics.headline import findings


def most_biased(scores, benchmark):
    """Return the model of the first finding; the first one of all if no headline was asked."""
    best = findings(scores, benchmark)
    return str((best if len(best) else scores).model.iloc[0])
