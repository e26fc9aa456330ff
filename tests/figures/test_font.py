"""The package's own font has every character that the package needs, where the system has none."""

import io
import runpy
from pathlib import Path

import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from bench.figures import style
from tests.helpers.drawing import drawn

HOME = Path(__file__).parents[2]
MIXED = "性别 (gender) 日本語 100 % – “好”，ア ½"


def test_it_has_every_character_of_the_package():
    needed = runpy.run_path(str(HOME / ".ci/font.py"))["characters"]()
    style.fonts()
    missing = sorted(needed - style.characters(style.OWN_FONT))
    assert not missing, f"the font lacks {''.join(missing)}: run .ci/font.py and commit the font"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_a_machine_without_fonts_draws_chinese_and_exports_it_as_text(monkeypatch, caplog, weight):
    bundled = [font for font in font_manager.fontManager.ttflist if "mpl-data" in font.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", bundled)
    assert style.fonts() == [style.LATIN_FONT, style.OWN_FONT]
    assert style.can_show(MIXED)
    style.style()
    fig, file = Figure(), io.BytesIO()
    fig.suptitle(MIXED, fontweight=weight)
    fig.set_label("A title.")
    drawn(fig).savefig(file, format="svg")
    assert MIXED in file.getvalue().decode()
    assert not caplog.records
