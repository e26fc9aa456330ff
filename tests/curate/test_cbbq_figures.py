"""The picture of how near new CBBQ templates are to what is there: with few and many templates and sets, and with long names."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from bench.core.i18n import use_language
from bench.figures import curate_cbbq as pictures
from tests.helpers.drawing import drawn, ticks

SETS = [
    "this set",
    "CBBQ samples",
    *(f"A data set of a group with quite a long name, part {k}" for k in range(10)),
]
USUAL = pd.DataFrame(
    {
        "condition": ["ambiguous", "disambiguous"] * 20,
        "rouge_l": np.linspace(0.3, 0.5, 40),
        "set": SETS[1],
    }
)


def compared(templates, sets, name="a-template-with-a-rather-long-name-{:03}", most=1.0):
    dice = np.random.default_rng(0)
    rows = [
        (
            f"{name.format(k)}:{condition}",
            condition,
            one,
            most * dice.uniform(0.1, 0.9),
            f"age:{condition}:neg:{k}",
        )
        for condition in ("ambiguous", "disambiguous")
        for k in range(templates)
        for one in sets
    ]
    found = pd.DataFrame(rows, columns=["item_id", "condition", "set", "rouge_l", "nearest"])
    return found.assign(too_near=found.rouge_l >= 0.8).sort_values("rouge_l", ascending=False)


def boxes(fig):
    """Where the texts of a figure stand."""
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    shown = [text for text in fig.findobj(Text) if text.get_text().strip() and text.get_visible()]
    # Panels share the names of rows, and the second one's are not drawn.
    hidden = {id(text) for ax in fig.axes[1:] for text in ax.get_yticklabels()}
    return [
        (text.get_text(), text.get_window_extent(canvas.get_renderer()))
        for text in shown
        if id(text) not in hidden
    ]


@pytest.mark.parametrize(("templates", "sets"), [(1, 1), (2, 2), (30, 3), (30, 12)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_overlaps_and_nothing_is_cut_off(templates, sets, language):
    with use_language(language):
        fig = pictures.novelty(compared(templates, SETS[:sets]), USUAL)
    if language == "en":
        drawn(fig)
    found = boxes(fig)
    width, height = fig.bbox.width, fig.bbox.height
    for text, box in found:
        assert box.x0 > -1, text
        assert box.x1 < width + 1, text
        assert box.y0 > -1, text
        assert box.y1 < height + 1, text
    for (one, first), (other, second) in itertools.combinations(found, 2):
        # Lines of a font are higher than its letters.
        inner = (second.x0 + 1, second.x1 - 1, second.y0 + 3, second.y1 - 3)
        apart = (
            first.x1 - 1 < inner[0]
            or first.x0 + 1 > inner[1]
            or first.y1 - 3 < inner[2]
            or first.y0 + 3 > inner[3]
        )
        assert apart, (one, other)


def test_of_many_templates_the_nearest_are_drawn_under_names_that_differ():
    for name in (
        "a-template-with-a-rather-long-name-{:03}",
        "template-{:03}-with-what-tells-it-apart-inside",
    ):
        fig = pictures.novelty(compared(30, SETS[:2], name), USUAL)
        names = ticks(fig.axes[0].get_yticklabels())
        assert len(set(names)) == len(names) == pictures.MOST
        assert "Drawn are the 25 nearest of 30 templates." in fig.get_label()


def test_a_title_says_how_near_the_nearest_is():
    far, near = compared(3, SETS[:1], "t{}", most=0.5), compared(3, SETS[:1], "t{}")
    first = far.iloc[0]
    assert (
        pictures.novelty(far, USUAL)
        .get_label()
        .startswith(f"No new context is a near-duplicate: the nearest shares {first.rouge_l:.2f}. ")
    )
    one = near.assign(too_near=[True] + [False] * 5)
    assert (
        pictures.novelty(one, USUAL)
        .get_label()
        .startswith(f"{near.item_id.iloc[0]} is a near-duplicate. ")
    )
    two = near.assign(too_near=[True] * 2 + [False] * 4)
    label = pictures.novelty(two, USUAL.iloc[:0]).get_label()
    assert label.startswith("2 comparisons reach 0.8, a near-duplicate. ")
    assert "band" not in label
    assert pictures.novelty(near.iloc[:0], USUAL) is None


def test_it_speaks_chinese():
    with use_language("zh"):
        fig = pictures.novelty(compared(3, SETS[:2], "t{}"), USUAL)
        texts = [fig.get_label(), *(text.get_text() for text in fig.findobj(Text))]
    for text in texts:
        rest = re.sub(r"“[^”]*”|ROUGE-L|\b[a-z]+\d?:[a-z]+(:neg:\d)?", "", text)
        assert not re.search("[A-Za-z]{2}", rest), text
