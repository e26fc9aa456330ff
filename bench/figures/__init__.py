"""The look of pictures, and the forest plot.

`theme` sets seaborn's look with fonts that can show Chinese; `colours` and `markers` give a model
the same colour and mark in all pictures.
"""

from bench.figures.forest import GIVEN, forest, interval_ends
from bench.figures.style import WIDTH, colours, label, markers
from bench.figures.style import style as theme

__all__ = [
    "GIVEN",
    "WIDTH",
    "colours",
    "forest",
    "interval_ends",
    "label",
    "markers",
    "theme",
]
