"""Looking at figures without a screen: drawing them, and reading what stands in them."""

import warnings

from matplotlib.backends.backend_agg import FigureCanvasAgg


def drawn(fig):
    """Draws a figure; a glyph that no font has, or an axis that cannot be laid out, is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The canvas that a figure has by itself lays nothing out.
        FigureCanvasAgg(fig).draw()
    assert fig.get_label().endswith((".", "。"))
    return fig


def told(axis):
    return [text.get_text() for text in axis.texts]


def ticks(labels):
    return [tick.get_text() for tick in labels]
