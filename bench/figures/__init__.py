"""Pictures by seaborn: one function per picture, from frames to a figure, without torch or models.

What every benchmark has is here; what one benchmark or analysis has is in its module. A figure's
label (`get_label()`) says in a sentence what it shows, for those who cannot see it.
"""

from bench.figures import cbbq, mcbe, nli_coal
from bench.figures.overview import scores_by_model
from bench.figures.scores import (
    by_category,
    categories_by_model,
    intervals,
    score_and_validity,
)
from bench.figures.style import colours
from bench.figures.style import style as theme

__all__ = [
    "by_category",
    "categories_by_model",
    "cbbq",
    "colours",
    "intervals",
    "mcbe",
    "nli_coal",
    "score_and_validity",
    "scores_by_model",
    "theme",
]
