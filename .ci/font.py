"""Make the package's own font: the characters that it needs, of Noto Sans CJK SC.

    apt-get install fonts-noto-cjk
    python .ci/font.py [NotoSansCJK-Regular.ttc]

Run it where a category, a sample or a Chinese phrase brings a character that the font lacks
(tests/figures/test_font.py says so).
"""

import sys
from pathlib import Path

from fontTools import subset

HOME = Path(__file__).parents[1]
SOURCE = "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"
SIMPLIFIED_CHINESE = 2  # its place in the collection
TARGET = HOME / "bench/figures/font/BiasWorkbenchCJK-Regular.otf"
# The licence asks for another name than the original's where that is reserved.
NAMES = {
    1: "Bias Workbench CJK",
    2: "Regular",
    3: "Bias Workbench CJK, of Noto Sans CJK SC 2.004",
    4: "Bias Workbench CJK",
    6: "BiasWorkbenchCJK-Regular",
}
KEPT = [0, *NAMES, 5, 13, 14]  # copyright, version, licence and its address
# Word clouds draw with one font, so it has Latin letters too.
LATIN = [*range(0x20, 0x7F), *range(0xA0, 0x180), *map(ord, "–—‘’“”…")]
# Data of one's own may be in Japanese, or be called Korean in Korean.
OTHERS = [*range(0x3041, 0x3097), *range(0x30A1, 0x3100), *map(ord, "한국어日本語简體繁體中文")]
FIRST_WIDE = "\u2e80"  # East Asian characters begin here


def characters() -> set[str]:
    """Collect the East Asian characters in the package's samples, names and prompts.

    `released_characters.txt` has those of names in the releases of CBBQ (of ten categories) and
    NLI-CoAL. What readers of replies and scorers know is not drawn.
    """
    texts = {"py", "toml", "csv", "tsv", "json", "txt"}
    not_drawn = {*(HOME / "bench/tasks").glob("*.*"), *(HOME / "bench/scorers").rglob("*.*")}
    files = [*(HOME / "bench").rglob("*"), *(HOME / "notebooks/curation/packs").rglob("*")]
    files.append(HOME / ".ci/released_characters.txt")
    files = (path for path in files if path.suffix[1:] in texts and path not in not_drawn)
    every = set().union(*(path.read_text("utf-8") for path in files))
    return {char for char in every if char >= FIRST_WIDE and char != "\ufeff"}


def main() -> None:
    """Write the font."""
    options = subset.Options(
        font_number=SIMPLIFIED_CHINESE, hinting=False, layout_features=[], name_IDs=KEPT
    )
    options.drop_tables += ["BASE", "VORG", "vhea", "vmtx"]
    font = subset.load_font(sys.argv[1] if len(sys.argv) > 1 else SOURCE, options)
    font.recalcTimestamp = False
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[*LATIN, *OTHERS, *map(ord, characters())])
    subsetter.subset(font)
    for number, name in NAMES.items():
        font["name"].setName(name, number, 3, 1, 0x409)
    top = font["CFF "].cff
    top.fontNames = [NAMES[6]]
    top.topDictIndex[0].FullName = top.topDictIndex[0].FamilyName = NAMES[1]
    font.save(TARGET)


if __name__ == "__main__":
    main()
