"""Makes the README's pictures of a report: `bench report && python tests/pictures.py`.

They are what Chromium shows of the demonstration's index and of one page, at the width of a desk.
"""

import sys
from pathlib import Path

from browser import visit
from PIL import Image

HOME = Path(__file__).parents[1]
TARGET = HOME / ".github" / "pictures"
# Page, picture, and how many pixels of it from the top.
SHOWN = (("index.html", "report.png", 1250), ("cbbq.html", "page.png", 1250))
WIDTH = 1100
# Few colours make a small file, and a page has few.
COLOURS = 128


def main(folder: Path) -> None:
    for page, name, height in SHOWN:
        path = TARGET / name
        # Scroll bars are the machine's, not the page's.
        hide = "document.documentElement.style.overflow = 'hidden'; 1"
        visit(folder / page, hide, WIDTH, height=height, picture=path)
        Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
        print(f"{path.relative_to(HOME)}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME / "reports" / "demo")
