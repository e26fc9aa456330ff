"""Pictures have every name: by a font that has it, or by a number whose key stands beside."""

import io
import runpy
from pathlib import Path

import pandas as pd
import pytest
import seaborn as sns
from matplotlib import font_manager
from matplotlib.figure import Figure

from bench.figures import style
from tests.helpers.drawing import drawn

HOME = Path(__file__).parents[2]
MIXED = "性别 (gender) 日本語 100 % – “好”，ア ½ ممرضة אחות"


@pytest.fixture
def no_fonts(monkeypatch):
    """A machine without fonts, but those of matplotlib."""
    bundled = [font for font in font_manager.fontManager.ttflist if "mpl-data" in font.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", bundled)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    monkeypatch.setattr(style, "FONT_PACKAGES", ())


def test_it_has_every_character_of_the_package():
    needed = runpy.run_path(str(HOME / ".ci/font.py"))["characters"]()
    style.fonts()
    missing = sorted(needed - style.characters(style.OWN_FONT))
    assert not missing, f"the font lacks {''.join(missing)}: run .ci/font.py and commit the font"


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("no_fonts")
@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_a_machine_without_fonts_draws_chinese_and_exports_it_as_text(caplog, weight):
    assert style.fonts() == [style.LATIN_FONT, style.OWN_FONT]
    assert style.can_show(MIXED)
    style.style()
    fig, file = Figure(), io.BytesIO()
    fig.suptitle(MIXED, fontweight=weight)
    fig.set_label("A title.")
    drawn(fig).savefig(file, format="svg")
    assert MIXED in file.getvalue().decode()
    assert not caplog.records


@pytest.mark.parametrize(
    ("file", "column"),
    [("ja_v1.1/{}/occup_en-ja_v1.1.tsv", "Ja"), ("zh_v1.0/{}/occup_en-zh_v1.0.tsv", "Zh")],
)
@pytest.mark.usefixtures("no_fonts")
def test_a_machine_without_fonts_draws_the_released_occupations(shared, file, column):
    path = shared / "data/nli_coal" / file.format("occupation-words")
    names = pd.read_csv(path, sep="\t")[column]
    assert [name for name in names if not style.can_show(name)] == []


@pytest.mark.usefixtures("no_fonts")
def test_only_names_that_no_font_has_become_numbers_with_their_key():
    style.style()
    fig = Figure(layout="constrained")
    ax = fig.subplots()
    sns.barplot(x=[1, 2, 3], y=["护士", "พยาบาล", "नर्स"], ax=ax)
    ax.set_title("พยาบาล")
    fig.set_label("A title.")
    assert style.number_unknown(fig) == "1: พยาบาล, 2: नर्स"
    drawn(fig)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["护士", "1", "2"]
    assert ax.get_title("left") == "1"


def test_fonts_that_are_newer_than_the_list_of_matplotlib_are_used(no_fonts, monkeypatch, tmp_path):
    new = tmp_path / "new.otf"
    new.write_bytes(style.OWN_FONT_FILE.read_bytes())
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(new), str(tmp_path / "no")])
    style.fonts()
    assert str(new) in {font.fname for font in font_manager.fontManager.ttflist}
