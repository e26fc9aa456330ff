"""Write the first scores of a study as a LaTeX table that fits a paper of two columns."""

import pandas as pd

from bench.benchmarks import get
from bench.metrics import primary
from bench.metrics.table import LETTERS_ALONE, PrimaryMetric

# A column of a paper has room for a row of so many characters; more take the width of the page.
MOST_IN_A_COLUMN = 55
PACKAGES = "% needs \\usepackage{booktabs}; Chinese needs XeLaTeX or LuaLaTeX with ctex\n"
BASELINE = "baseline"
NARROW = "\\footnotesize\\setlength{\\tabcolsep}{3pt}"
CAPTION = "Scores with their 95\\,\\% intervals; bold: the best. Baseline: {}."


def paper_table(scores: pd.DataFrame) -> str:
    """Write the first score of each model and variant as LaTeX, with intervals and baselines.

    The best score of a column is bold, among those without a doubt.

    Args:
        scores: rows of `bench.explain` over all categories, of primary measures, with a column
            `variant`.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> scores = bench.explain(bench.score(run)).assign(variant="CBBQ")
        >>> print(paper_table(scores[scores.primary & (scores.category == "all")]))
        % needs ...
        simulated:bias=0.7 & \\bfseries 71 {\\tiny 63--78} \\\\
        ...
    """
    cells: dict[str, dict[str, str]] = {}
    best: dict[str, list[str]] = {}
    answerers: list[str] = []
    for variant, rows in scores.groupby("variant", sort=False):
        rows = rows[rows.title == rows.title.iloc[0]].set_index("model", drop=False)
        line = primary.metric_of(get(rows.benchmark.iloc[0]), rows.iloc[0])
        badness = rows.score[rows.doubt == ""].map(line.badness)
        name = f"{variant}, %" if line.share else str(variant)
        best[name] = list(badness[badness == badness.min()].index)
        cells[name] = {row["model"]: _cell(line, row) for row in rows.to_dict("records")}
        baselines = rows.baseline[rows.baseline_of != LETTERS_ALONE].dropna()
        if len(baselines):
            cells[name][BASELINE] = primary.bare(line, baselines.iloc[0])
            answerers.append(line.baseline)
    table = pd.DataFrame(cells).fillna("--")
    if answerers:  # as the last row
        table = table.loc[[*table.index.drop(BASELINE), BASELINE]]
    shown = table.rename_axis("").reset_index().replace(r"\\[a-z]+|[{}]", "", regex=True)
    widths = [max(map(len, [name, *shown[name]])) for name in shown]
    styler = table.style.format_index(escape="latex").format_index(escape="latex", axis=1)
    for variant, models in best.items():
        styler.map(lambda _: "bfseries:;", subset=(models, variant))
    text: str = styler.to_latex(
        column_format="l" + "r" * len(table.columns),
        hrules=True,
        position="t",
        position_float="centering",
        environment="table" if sum(widths) <= MOST_IN_A_COLUMN else "table*",
        caption=CAPTION.format(primary.listing(list(dict.fromkeys(answerers))) or "none"),
        label="tab:bias",
    )
    return PACKAGES + text.replace("\\centering", f"\\centering{NARROW}", 1)


def _cell(line: PrimaryMetric, row: primary.Row) -> str:
    """Write a score with its interval in small digits."""
    reach = primary.interval(line, row)
    text = primary.bare(line, row["score"]) + (f" {{\\tiny {reach}}}" if reach else "")
    return text.replace("—", "--").replace("–", "--")
