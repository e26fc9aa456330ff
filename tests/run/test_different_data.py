"""Runs on two data sets whose items have the same names: where answers would be joined."""

import pytest

import bench
from bench.core.errors import BadInput
from bench.run import all_items, evaluate
from bench.run.results import common_answers
from tests.helpers.recorded import templates

NAMES = ("simulated:bias=0.3", "simulated:bias=0.9")


def asked(root, *scenes):
    """Runs of two models, each on a data set with a template for each scene."""
    runs = []
    for k, (name, own) in enumerate(zip(NAMES, scenes, strict=True)):
        rows = [{"context": f"{scene}来了{{{{NAME1}}}}和{{{{NAME2}}}}。"} for scene in own]
        folder = templates(root / f"data{k}", *rows, non_neg=rows)
        runs.append(evaluate("cbbq", name, data=folder, out=root / f"run{k}"))
    return runs


@pytest.fixture(scope="module")
def others(tmp_path_factory):
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
def test_answers_to_different_items_of_one_name_are_not_joined(others, join):
    with pytest.raises(BadInput, match="were asked different data, CBBQ") as caught:
        join(others)
    # Of 2 polarities x 2 templates x 2 pairs of names x 2 orders, the second templates differ.
    assert "8 of 16 items of the same name are not the same" in str(caught.value)
    for run in others:
        assert f"SHA-256 {run.metadata['data']['sha256'][:8]}" in str(caught.value)


def test_runs_on_two_data_sets_are_compared_on_the_items_that_both_have(tmp_path):
    runs = []
    for name, categories in zip(NAMES, (["region"], ["region", "race"]), strict=True):
        folder = tmp_path / f"data{len(runs)}"
        for category in categories:
            templates(folder, category=category)
        runs.append(evaluate("cbbq", name, data=folder, out=tmp_path / f"run{len(runs)}"))
    assert runs[0].metadata["data"]["sha256"] != runs[1].metadata["data"]["sha256"]
    # Both polarities of one template, for 2 pairs of names in 2 orders.
    pairs = bench.differences(bench.score(*runs), bench.outcomes(*runs))
    assert set(pairs.n) == {8}
    assert len(all_items(runs)) == 16
