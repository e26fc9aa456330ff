"""The look of pictures, the forest plot, and the pictures that the papers print.

`theme` sets seaborn's look with fonts that can show Chinese, and `colours` gives a model the same
colour in all pictures. The paper's pictures are in `cbbq`, `mcbe` and `nli_coal`.
"""

from bench.figures import cbbq, mcbe, nli_coal
from bench.figures.forest import GIVEN, forest, interval_ends
from bench.figures.style import colours, label
from bench.figures.style import style as theme

__all__ = [
    "GIVEN",
    "cbbq",
    "colours",
    "forest",
    "interval_ends",
    "label",
    "mcbe",
    "nli_coal",
    "theme",
]
