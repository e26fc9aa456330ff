"""What a notebook shows: tables, pictures and examples with the judge's grades, all as text."""

import re
import shutil
import subprocess

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import bench
from bench import show
from bench.core.numbers import decimals
from bench.run import evaluate_all

PLANTED = "<img src=x onerror=alert(1)>"


@pytest.fixture
def shown(monkeypatch):
    """Everything that is displayed: a text or the contents by type, and the metadata of it."""
    pieces = []

    def display(piece, metadata=None, **_):
        pieces.append((getattr(piece, "data", piece), metadata))

    monkeypatch.setattr(show, "display", display)
    return pieces


@pytest.mark.parametrize(
    ("models", "sentences"),
    [
        (
            ["simulated:bias=0.1", "simulated:bias=0.9"],
            ["simulated:bias=0.9 answered", "simulated:bias=0.9 followed", "1 of 1 pairs"],
        ),
        (["simulated:bias=0.9", "simulated:answer=A"], ["says nothing of the bias of simulated:a"]),
    ],
)
def test_findings_are_sentences_of_the_most_biased_model(tmp_path, capsys, models, sentences):
    given = {"data": "samples", "limit": 10, "categories": ["age", "gender"]}
    runs = [bench.evaluate("cbbq", name, out=tmp_path / name, **given) for name in models]
    outcomes = bench.outcomes(*runs).query("task == 'ambiguous'")
    differences = bench.compare(outcomes, "stereotyped", of="parsed", mean_over="category")
    show.findings(bench.explain(bench.score(*runs)), differences)
    printed = capsys.readouterr().out
    for sentence in sentences:
        assert sentence in printed
    show.findings(bench.explain(bench.score(*runs).query("metric == 'unknown'")))
    assert "too few for its first scores" in capsys.readouterr().out


def test_a_published_table_has_per_cent_and_marks_its_categories(shown, tmp_path):
    frame = pd.DataFrame({"category": ["SES", "all"], "share": [0.125, np.nan], "note": ["", ""]})
    bench.publish(frame, "shares", into=tmp_path, percent=["share"])
    page = shown[0][0]["text/html"]
    assert "share, %" in page
    assert ">12.5</td>" in page
    assert page.count("data-category='SES'") == page.count("data-category=") == 1
    assert "note" not in page, "an empty column is not shown"
    assert pd.read_csv(tmp_path / "shares.csv").share[0] == 0.125


def test_a_table_has_heads_in_words_and_an_interval_in_one_column(shown, tmp_path):
    row = {"metric": "s_amb", "unit": "%", "score": 0.125, "ci_low": 0.1, "ci_high": 0.2}
    row |= {"valid_rate": 0.5, "p_adjusted": 0.2, "run": "x", "first_in": 2}
    frame = pd.DataFrame([row])
    bench.publish(frame, "scores", into=tmp_path, heads={"run": "", "first_in": "ranked first in"})
    heads = re.findall(r"<th [^>]*>([^<]*)</th>", shown[0][0]["text/html"])
    numbers = ["score, %", "95 % interval", "readable, %", "adjusted p"]
    assert heads == ["metric", *numbers, "ranked first in"]
    cells = re.findall(r"<td [^>]*>([^<]*)</td>", shown[0][0]["text/html"])
    assert cells == ["stereotyped (ambiguous)", "12.5", "10.0 to 20.0", "50.0", "0.200", "2"]
    assert list(pd.read_csv(tmp_path / "scores.csv")) == list(frame), "the file has all columns"
    assert "& 12.5 & 10.0 to 20.0 &" in (tmp_path / "scores.tex").read_text("utf-8")


def test_a_table_has_thousands_and_blanks_for_counts_that_are_missing(shown):
    counts = pd.Series([14800, None], dtype="Int64")
    bench.publish(pd.DataFrame({"category": ["age", "race"], "questions": counts}), "sizes")
    ((data, _metadata),) = shown
    html = data["text/html"]
    assert "14,800" in html
    assert "NA" not in html


def test_a_published_frame_is_escaped_named_and_saved_in_full(shown, tmp_path):
    frame = pd.DataFrame({"p": [1e-9] * 30, PLANTED: ["<b>"] * 30}, pd.Index([1] * 30, name="n"))
    bench.publish(frame, "ranks", "Mean <i>ranks</i>", into=tmp_path / "tables")
    ((data, metadata),) = shown
    assert metadata == {"caption": "Mean <i>ranks</i>"}
    assert not re.search("<b>|<img|<i>", data["text/html"])
    for text in ("Mean &lt;i&gt;ranks", "&lt; 0.001", "10 more rows"):
        assert text in data["text/html"]
    saved = pd.read_csv(tmp_path / "tables/ranks.csv")
    assert (list(saved.columns[:2]), len(saved)) == (["n", "p"], 30)
    assert {path.suffix for path in (tmp_path / "tables").iterdir()} == {".csv", ".parquet", ".tex"}


def test_an_empty_frame_is_saved_and_said_to_be_empty(shown, tmp_path):
    bench.publish(pd.DataFrame(columns=["a"]), "doubles", "Duplicates", into=tmp_path)
    assert "Duplicates: none." in shown[0][0]
    assert (tmp_path / "doubles.csv").read_text("utf-8-sig").strip() == "a"


def test_a_published_picture_has_its_caption_as_text_and_is_closed(shown, tmp_path):
    before = plt.get_fignums()
    bench.publish(plt.figure().subplots(), "line", "A line", into=tmp_path)
    assert shown[0][1]["image/png"]["alt"] == "A line"
    assert "A line" in shown[1][0]
    assert {path.name for path in tmp_path.iterdir()} == {"line.png", "line.svg", "line.pdf"}
    assert plt.get_fignums() == before


PAPER = r"""
\documentclass[twocolumn]{article}
\usepackage[letterpaper,margin=0.8in]{geometry}
\usepackage{booktabs, graphicx, longtable}
\begin{document}
\input{table}
\end{document}
"""


def compile_latex(folder):
    """Compile a table in a paper of two columns; return what LaTeX prints."""
    (folder / "paper.tex").write_text(PAPER, "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-2000:]
    return result.stdout


def first_scores(tmp_path, models, benchmarks=("mcbe", "cbbq", "nli_coal")):
    """Return the primary scores over all of some models, named `model 1` and so on."""
    tables = []
    for name in benchmarks:
        runs = evaluate_all(name, models, tmp_path, options={"data": "samples", "limit": 4})
        scores = bench.explain(bench.score(*runs))
        scores = scores[scores.primary & (scores.category == "all")]
        tables.append(scores.assign(variant=bench.benchmarks.get(name).metadata.title))
    return pd.concat(tables)


MODELS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2", "simulated:answer=A"]


def test_a_table_for_a_paper_has_the_first_scores_and_the_best_in_bold(tmp_path):
    scores = first_scores(tmp_path, MODELS)
    scores["model"] = scores.model.map(dict(zip(MODELS, ["50 % & more_$", "b", "c"], strict=True)))
    lines = show.paper_table(scores).splitlines()
    rows = [line.rstrip("\\ ").split(" & ") for line in lines if line.endswith(r"\\")]
    assert rows[0] == ["", "McBE", r"CBBQ, \%", "NLI-CoAL"]
    assert [row[0] for row in rows[1:]] == [r"50 \% \& more\_\$", "b", "c", "baseline"]
    assert [cell.startswith(r"\bfseries") for cell in rows[1][1:]] == [True] * 3
    assert not any(cell.startswith(r"\bfseries") for row in rows[2:] for cell in row)
    first = scores[scores.variant == "NLI-CoAL"].iloc[0]
    score, low, high = (decimals(first[name], 2) for name in ("score", "ci_low", "ci_high"))
    expected = f"{score} {{\\tiny {low}--{high}}}"
    assert rows[1][3] == rf"\bfseries {expected}"
    assert rows[4][1:] == ["--", "33", "0.44"]
    assert r"\label{tab:bias}" in "".join(lines)


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
@pytest.mark.parametrize("names", [["Qwen2.5-7B", "GLM-4-9B", "A_1 & 50%"], ["a" * 40, "b", "c"]])
def test_a_table_for_a_paper_compiles_and_fits(tmp_path, names):
    scores = first_scores(tmp_path, MODELS)
    scores["model"] = scores.model.map(dict(zip(MODELS, names, strict=True)))
    (tmp_path / "table.tex").write_text(show.paper_table(scores), "utf-8")
    assert "Overfull" not in compile_latex(tmp_path)


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_every_saved_table_compiles(tmp_path):
    frame = pd.DataFrame({"a_b": ["50 % & more", "#1 {x} ~^$\\", "[a]"], "n, %": [1.0, np.nan, 2]})
    bench.publish(frame.assign(wide="−1 ≈ 2, " * 20), "table", into=tmp_path)
    assert "Overfull" not in compile_latex(tmp_path)


def test_a_small_p_is_below_a_thousandth_and_no_number_has_an_exponent(shown, tmp_path):
    frame = pd.DataFrame({"estimate": [0.00004, 12.345], "p": [2e-9, 0.0314]})
    bench.publish(frame, "tests", into=tmp_path)
    page, table = shown[0][0]["text/html"], (tmp_path / "tests.tex").read_text("utf-8")
    assert [text in page for text in ("0.000040", "12.35", "&lt; 0.001", "0.031")] == [True] * 4
    assert [text in table for text in ("$<$ 0.001", "0.031")] == [True] * 2
    assert "e-" not in page + table.replace("\\begin", "")
