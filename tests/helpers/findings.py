"""Read the findings of score tables."""

from bench.metrics.primary import findings


def most_biased(scores, benchmark):
    """Return the model of the first finding; the first of all if no primary metric was asked."""
    best = findings(scores, benchmark)
    return str((best if len(best) else scores).model.iloc[0])
