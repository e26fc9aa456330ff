"""Numbers for reading: one rounding in sentences, tables, pictures, terminals and LaTeX."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from bench import show
from bench.cli import printing
from bench.core.export import to_latex
from bench.core.numbers import decimals
from bench.figures.style import cell_texts
from bench.metrics import headline
from bench.metrics.table import Headline

SHARE = Headline("ambiguous", "s_amb", "Ambiguous: share", "", True, True, (0, 1))
POINTS = Headline("ss", "score", "Selection", "", False, False, (0, 100))
SCORES = ((SHARE, 0.475), (POINTS, 84.25))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.475, 2, "0.48"),
        (0.125, 2, "0.13"),
        (2.5, 0, "3"),
        (100 * 0.285, 0, "29"),  # 28.499999999999996
        (0.1 + 0.2 + 0.175, 2, "0.48"),  # 0.47500000000000003
        (0.4749, 2, "0.47"),
        (-0.475, 2, "−0.48"),
        (-0.001, 2, "0.00"),
        (1234567.5, 0, "1,234,568"),
        (np.float64(0.005), 2, "0.01"),
        (math.nan, 2, "—"),
        (-math.inf, 3, "−∞"),
    ],
)
def test_halves_are_rounded_away_from_zero(value: float, digits: int, text: str) -> None:
    assert decimals(value, digits) == text


def test_sentences_tables_pictures_latex_and_the_terminal_round_so(monkeypatch) -> None:
    texts = [headline.number(line, {"score": score}) for line, score in SCORES]
    assert texts == ["48\u00a0%", "84.3"]
    pages: list[str] = []
    monkeypatch.setattr(show, "display", lambda data, **_: pages.append(data["text/html"]))
    frame = pd.DataFrame({"score": [0.0625], "share": [0.0475]})
    show.publish(frame, "scores", percent=["share"])
    assert re.findall("<td[^>]*>([^<]+)<", pages[0]) == ["0.063", "4.8"]
    rows = pd.DataFrame({"category": ["age"], "model": ["a"], "valid_rate": [1.0]})
    values = pd.DataFrame({"a": [0.475]}, index=["age"])
    assert cell_texts(values, rows, "category", 2).tolist() == [["0.48"]]
    assert "0.063" in to_latex(pd.DataFrame({"score": [0.0625]}))
    assert printing._interval(0.0625, 84.125) == "0.063 to 84.13"
