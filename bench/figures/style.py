"""The look of all pictures: fonts that can show Chinese, sizes, colours, labels."""

import csv
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import seaborn as sns
from matplotlib import font_manager
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

# The font of matplotlib, with the letters of most alphabets.
LATIN_FONT = "DejaVu Sans"
# Our font: the Chinese and Japanese of the samples, names and words (made by .ci/font.py).
OWN_FONT = "Bias Workbench CJK"
OWN_FONT_FILE = Path(__file__).parent / "font/BiasWorkbenchCJK-Regular.otf"
# Packages with fonts, which the extra `fonts` installs.
FONT_PACKAGES = ("noto_cjk_sans_otc", "pylopdf_fonts_th", "pylopdf_fonts_hi")
# The families of each script, in order of preference; the last script is Chinese and Japanese.
SCRIPT_FONTS = (
    (LATIN_FONT,),  # Arabic and Hebrew too
    ("Noto Sans Thai", "Leelawadee UI", "Thonburi", "Garuda"),
    ("Noto Sans Devanagari", "Nirmala UI", "Kohinoor Devanagari", "Lohit Devanagari"),
    (OWN_FONT,),
    (
        "Noto Sans CJK SC",
        "Noto Sans SC",
        "Source Han Sans SC",
        "Source Han Sans CN",
        "WenQuanYi Micro Hei",
        "WenQuanYi Zen Hei",
        "PingFang SC",
        "Hiragino Sans GB",
        "Heiti SC",
        "Microsoft YaHei",
        "SimHei",
        "Noto Serif CJK SC",
        "Noto Sans CJK JP",
    ),
)
WIDTH = 9.3  # inches: the width of a page, 900 pixels
DPI = 150
# The number of colours that the colour-blind can distinguish. Further models get darker colours and
# other marks.
COLOURS = 10
DARKER = 0.55
MARKS = "osD^vP"
# The models of a study, in JSON, for its notebooks; and its reference models.
ENVIRONMENT, REFERENCES = "BENCH_MODELS", "BENCH_REFERENCES"
# The beginnings of the names of references, without a study.
REFERENCE_KINDS = ("simulated:", "tiny:")
INK, FAINT = "#222222", "#8a8a8a"


def fonts() -> list[str]:
    """Return the font families of pictures: each has characters that the ones before lack."""
    # If matplotlib has made its list of fonts anew, ours is not in it.
    if all(font.name != OWN_FONT for font in reversed(font_manager.fontManager.ttflist)):
        _add_fonts()
    installed = {font.name for font in font_manager.fontManager.ttflist}
    families = []
    for names in SCRIPT_FONTS:
        families += [name for name in names if name in installed][:1]
    return families


def _add_fonts() -> None:
    """Add our font, fonts of packages, and fonts that are newer than matplotlib's list."""
    manager = font_manager.fontManager
    files = {font.fname for font in manager.ttflist}
    for file in set(font_manager.findSystemFonts()) - files:
        with suppress(OSError, RuntimeError):  # matplotlib cannot read all kinds of fonts
            manager.addfont(file)
    paths = [OWN_FONT_FILE]
    for package in FONT_PACKAGES:
        spec = find_spec(package)
        if spec and spec.origin:
            paths += Path(spec.origin).parent.glob("NotoSans*.tt?")
    for path in paths:
        count = len(manager.ttflist)
        manager.addfont(path)
        # We add the same file as the bold font, or matplotlib would warn that there is none.
        manager.ttflist += [replace(font, weight=700) for font in manager.ttflist[count:]]


def style() -> None:
    """Set the look of all pictures, and fonts that can show Chinese."""
    sns.set_theme(style="whitegrid", context="notebook", font_scale=0.92)
    families = fonts()
    mpl.rcParams.update(
        {
            # Each family has characters that the ones before lack; the first is `LATIN_FONT`.
            "font.family": ["sans-serif", *families[1:]],
            "font.sans-serif": families,
            "figure.dpi": DPI,
            "savefig.dpi": DPI,
            "svg.fonttype": "none",
            # Dollars in the name of a model are no formula.
            "text.parse_math": False,
            "axes.titlelocation": "left",
            # A fixed height: matplotlib would measure all ticks for each title. Axes write numbers
            # in full, for a factor would be at the same height. Above ticks, set titles with `pad`.
            "axes.titley": 1.0,
            "axes.formatter.limits": (-9, 9),
            "axes.formatter.useoffset": False,
            "axes.titleweight": "bold",
            "axes.titlesize": "small",
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": FAINT,
            "grid.color": "#e6e6e6",
        }
    )


def label(name: str) -> str:
    """Write a category, topic or group in English, with its Chinese in brackets.

    The Chinese is left out if the fonts cannot show it; alone it stays if we have no English.

    Examples:
        >>> label("age (年龄)")
        'age (年龄)'
        >>> label("女生")
        'female student (女生)'
    """
    if name in _english():
        name = f"{_english()[name]} ({name})"
    english, _, native = name.rpartition(" (")
    return name if not english or can_show(native) else english


@cache
def _english() -> dict[str, str]:
    """Return the English of topics and groups of the samples and the releases."""
    with Path(__file__).with_name("english.csv").open(encoding="utf-8") as file:
        return {row["chinese"]: row["english"] for row in csv.DictReader(file)}


def can_show(text: str) -> bool:
    """Return whether the fonts have each character of a text."""
    available = [characters(name) for name in fonts()]
    return all(char.isspace() or any(char in font for font in available) for char in text)


def number_unknown(fig: Figure) -> str:
    """Write numbers in place of the texts that the fonts cannot show, and return their key.

    Returns:
        For example `1: ..., 2: ...`, for the caption; empty if the fonts can show all.
    """
    numbers: dict[str, int] = {}

    def shown(text: str) -> str:
        return text if can_show(text) else str(numbers.setdefault(text, len(numbers) + 1))

    for axis in [axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]:
        texts = [label.get_text() for label in axis.get_ticklabels()]
        if not all(map(can_show, texts)):
            axis.set_ticks(axis.get_ticklocs(), list(map(shown, texts)))
    for text in fig.findobj(Text):
        text.set_text(shown(text.get_text()))
    return ", ".join(f"{number}: {text}" for text, number in numbers.items())


@cache
def characters(font: str) -> frozenset[str]:
    """Return the characters that a font has."""
    return frozenset(map(chr, font_manager.get_font(font_manager.findfont(font)).get_charmap()))


@contextmanager
def use_models(models: Sequence[str], references: Sequence[str] = ()) -> Iterator[None]:
    """Give models the same colours and marks in all pictures of a block.

    This holds in this process and in processes that are started in the block.

    Args:
        references: the reference models, such as simulated respondents.
    """
    values = {ENVIRONMENT: models, REFERENCES: references}
    before = {name: os.environ.get(name, "") for name in values}
    os.environ.update({name: json.dumps(list(names)) for name, names in values.items()})
    try:
        yield
    finally:
        os.environ.update(before)


def _places(models: Sequence[str]) -> dict[str, int]:
    """Number models, those of `use_models` first, so that the numbers do not depend on the page."""
    study_models = json.loads(os.environ.get(ENVIRONMENT) or "[]")
    order = {model: k for k, model in enumerate(dict.fromkeys([*study_models, *models]))}
    return {model: order[model] for model in models}


def colours(models: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """Return a colour per model, the same in every picture of these models.

    References for real models, such as simulated respondents, are grey.

    Examples:
        >>> {model: len(colour) for model, colour in colours(["a", "b"]).items()}
        {'a': 3, 'b': 3}
    """
    shades = sns.color_palette("colorblind", COLOURS)
    palette = {
        model: tuple(part * (DARKER if k // COLOURS % 2 else 1) for part in shades[k % COLOURS])
        for model, k in _places(models).items()
    }
    return palette | dict.fromkeys(_references(models), to_rgb(FAINT))


def _references(models: Sequence[str]) -> set[str]:
    """Return the reference models, such as simulated respondents; none if all models are."""
    in_study = json.loads(os.environ.get(ENVIRONMENT) or "[]")
    every = {*in_study, *models}
    references = {model for model in every if model.startswith(REFERENCE_KINDS)}
    references |= {*json.loads(os.environ.get(REFERENCES) or "[]")}
    return references & {*models} if every - references else set()


def markers(models: Sequence[str]) -> dict[str, str]:
    """Return a mark per model; thirty models differ in colour or mark."""
    return {model: MARKS[(k + k // COLOURS) % len(MARKS)] for model, k in _places(models).items()}
