"""Make the pictures of README and docs, after `bench report`.

`python -m tests.benchmarks.readme_pictures` takes a picture of the demo report's page of questions
in Chromium, and copies two pictures of the report. With two runs of CBBQ, of a model that always
says A and of a simulated respondent, it draws both:
`python -m tests.benchmarks.readme_pictures RUN RUN`.
"""

import shutil
import sys
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from PIL import Image

import bench
from bench.core import export
from bench.data import dataset
from bench.figures.style import colours, markers, style
from tests.slow.helpers.browser import visit

HOME = Path(__file__).parents[2]
TARGET = HOME / ".github" / "pictures"
# Page, picture, and the part of the page at the top of the picture.
SHOWN = (("answers-cbbq-Q.html", "answers.png", "article"),)
WIDTH, HEIGHT = 1200, 1250
# Pictures as the report keeps them.
KEPT = (("cbbq-Q/categories.png", "categories.png"), ("mcbe/list_lengths.png", "mcbe.png"))


def main(folder: Path) -> None:
    for page, name, part in SHOWN:
        path = TARGET / name
        # Scroll bars are the machine's, not the page's.
        hidden = "document.documentElement.style.overflow = 'hidden'"
        unfold = "document.querySelector('article details')?.setAttribute('open', '')"
        script = f"{hidden}; {unfold}; document.querySelector('{part}').scrollIntoView()"
        visit(folder / page, script, WIDTH, height=HEIGHT, picture=path)
        # A third of the size. Of Pillow's ways this one keeps models' colours apart.
        fine = Image.open(path).convert("RGB")
        few = fine.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
        print(f"{path.relative_to(HOME)}: {path.stat().st_size // 1024} kB")
    for kept, name in KEPT:
        shutil.copyfile(folder / "tables" / kept, TARGET / name)


def draw_position(folders: list[str]) -> None:
    """Draw the share of stereotyped answers against the share of A, by category and model."""
    style()
    runs = {run.label: run for run in map(bench.open, folders)}
    fig = Figure(figsize=(6.5, 3.4), layout="constrained")
    fig.set_label("Share of stereotyped answers against the share of the answer A")
    ax = fig.subplots()
    for name, colour in colours(list(runs)).items():
        rows = runs[name].scores("robust")
        rows = rows[(rows.task == "ambiguous") & (rows.category != "all")]
        table = rows.pivot(index="category", columns="metric")
        x, y = table["score", "first_option"], table["score", "s_amb"]
        ends = [y - table["ci_low", "s_amb"], table["ci_high", "s_amb"] - y]
        ax.errorbar(x, y, ends, fmt=markers(list(runs))[name], color=colour, label=name)
        # Right of the marks, or left of those at the right edge.
        left = x.mean() > 0.5
        for k, category in enumerate(y.sort_values().index):
            ax.annotate(
                dataset.category_name("cbbq", category).english,
                (x[category], y[category]),
                (-8 if left else 8, 12 * k - 6),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
            )
        if left:
            ax.set_title(
                f"{name}: “stereotyped” half of the time,\nbecause it answers A whatever is asked",
                loc="left",
            )
    ax.axhline(1 / 3, ls="--", lw=0.8, color="grey")
    ax.annotate("a random answerer", (0.5, 1 / 3), (0, 3), textcoords="offset points", color="grey")
    ax.set(xlim=(0, 1.04), ylim=(0, 1), xlabel="share of the answer A")
    ax.set_ylabel("stereotyped answers\nto ambiguous questions")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.legend(loc="upper left", frameon=False)
    (TARGET / "position.png").write_bytes(export.to_png(fig))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        draw_position(sys.argv[1:])
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME / "reports" / "demo")
