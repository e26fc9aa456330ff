"""Runs on two data sets whose items have the same names: where answers would be joined."""

from collections.abc import Callable
from pathlib import Path

import pytest

import bench
from bench.core.errors import BadInput
from bench.report import items
from bench.run import Run, all_items, evaluate
from bench.run.human_marks import write_sheet
from bench.run.results import common_answers, data_conflict
from tests.helpers.recorded import table, templates

NAMES = ("simulated:bias=0.3", "simulated:bias=0.9")


def asked(root: Path, *scenes: list[str]) -> list[Run]:
    """Runs of two models, each on a data set with a template for each scene."""
    runs = []
    for k, (name, own) in enumerate(zip(NAMES, scenes, strict=True)):
        rows = [{"context": f"{scene}来了{{{{NAME1}}}}和{{{{NAME2}}}}。"} for scene in own]
        folder = templates(root / f"data{k}", *rows, non_neg=rows)
        runs.append(evaluate("cbbq", name, data=folder, out=root / f"run{k}"))
    return runs


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return asked(tmp_path_factory.mktemp("others"), ["一", "二"], ["一", "三"])


@pytest.mark.parametrize(
    "join",
    [
        common_answers,
        lambda runs: bench.items(*runs),
        lambda runs: bench.outcomes(*runs),
        all_items,
    ],
)
def test_answers_to_different_items_of_one_name_are_not_joined(
    others: list[Run], join: Callable[[list[Run]], object]
) -> None:
    with pytest.raises(BadInput, match="were asked different data, CBBQ") as caught:
        join(others)
    # Of 2 polarities x 2 templates x 2 pairs of names x 2 orders, the second templates differ.
    assert "8 of 16 items of the same name are not the same" in str(caught.value)
    for run in others:
        assert f"SHA-256 {run.about['data']['sha256'][:8]}" in str(caught.value)


def test_a_page_of_questions_shows_the_answers_to_the_first_runs_items(others: list[Run]) -> None:
    shown = items.read(others)
    assert shown.models == [NAMES[0]]
    assert shown.left_out == [data_conflict(others)]


def test_a_sheet_of_analyses_has_one_reference_for_each_item(tmp_path: Path) -> None:
    runs = []
    for k in (1, 2):
        folder = table(tmp_path / f"data{k}", {"explanation": f"解释{k}。"})
        options = {"data": folder, "tasks": ["ba"], "judge": "simulated:"}
        runs.append(evaluate("mcbe", f"simulated:bias=0.{k}", out=tmp_path / f"run{k}", **options))
    with pytest.raises(BadInput, match="different data"):
        write_sheet(runs, tmp_path / "sheet.csv")


def test_runs_on_two_data_sets_are_compared_on_the_items_that_both_have(tmp_path: Path) -> None:
    runs = []
    for name, categories in zip(NAMES, (["region"], ["region", "race"]), strict=True):
        folder = tmp_path / f"data{len(runs)}"
        for category in categories:
            templates(folder, category=category)
        runs.append(evaluate("cbbq", name, data=folder, out=tmp_path / f"run{len(runs)}"))
    assert runs[0].about["data"]["sha256"] != runs[1].about["data"]["sha256"]
    # Both polarities of one template, for 2 pairs of names in 2 orders.
    pairs = bench.differences(bench.score(*runs), bench.outcomes(*runs))
    assert set(pairs.n) == {8}
    assert len(all_items(runs)) == 16
