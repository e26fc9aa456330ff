"""The look of pictures, and the forest plot.

`theme` sets seaborn's look with fonts that can show Chinese, and `colours` gives a model the same
colour in all pictures.
"""

from bench.figures.forest import GIVEN, forest, interval_ends
from bench.figures.style import colours, label
from bench.figures.style import style as theme

__all__ = ["GIVEN", "colours", "forest", "interval_ends", "label", "theme"]
