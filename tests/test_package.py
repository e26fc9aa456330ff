"""What the package says about itself: its version, its authors, and the papers that it rests on."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import bench
from bench import cli
from bench.benchmarks import module, names
from bench.report.downloads import TITLE

HOME = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((HOME / "CITATION.cff").read_text("utf-8"))
    return content


def test_the_version_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.app(["--version"], standalone_mode=False) in (None, 0)
    assert capsys.readouterr().out == f"{bench.__version__}\n"


def test_the_citation_names_the_papers_of_the_benchmarks(citation: dict[str, Any]) -> None:
    cited = [
        (
            tuple(
                f"{author['given-names']} {author['family-names']}" for author in paper["authors"]
            ),
            paper["title"],
            paper["collection-title"],
            paper["year"],
            paper["url"],
        )
        for paper in citation["references"]
    ]
    papers = [module("data", name).PAPER for name in names()]
    assert sorted(cited) == sorted(
        (paper.authors, paper.title, paper.venue, paper.year, paper.url) for paper in papers
    )


def test_the_citation_has_the_title_of_reports(citation: dict[str, Any]) -> None:
    assert citation["title"] == TITLE
