"""Make the README's pictures: `bench report && python -m tests.benchmarks.readme_pictures`.

They are what Chromium shows of the demo report's index and questions, and two of its pictures.
"""

import sys
from pathlib import Path

from PIL import Image

from bench.core import export
from tests.slow.helpers.browser import visit

HOME = Path(__file__).parents[2]
TARGET = HOME / ".github" / "pictures"
# Page, picture, and the part of the page that it begins with.
SHOWN = (("index.html", "report.png", "body"), ("answers-cbbq-Q.html", "answers.png", "article"))
WIDTH, HEIGHT = 1200, 1250
# Pictures as the report keeps them.
KEPT = (("cbbq-Q/categories.png", "categories.png"), ("mcbe/list_lengths.png", "mcbe.png"))


def main(folder: Path) -> None:
    for page, name, part in SHOWN:
        path = TARGET / name
        # Scroll bars are the machine's, not the page's.
        hidden = "document.documentElement.style.overflow = 'hidden'"
        script = f"{hidden}; document.querySelector('{part}').scrollIntoView()"
        visit(folder / page, script, WIDTH, height=HEIGHT, picture=path)
        # A third of the size. Of Pillow's ways this one keeps models' colours apart.
        fine = Image.open(path).convert("RGB")
        few = fine.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
        print(f"{path.relative_to(HOME)}: {path.stat().st_size // 1024} kB")
    for kept, name in KEPT:
        (TARGET / name).write_bytes(export.quantize_png((folder / "tables" / kept).read_bytes()))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME / "reports" / "demo")
