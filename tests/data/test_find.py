"""Find the folder of a benchmark's data, load its categories, and take a sample of the items."""

import os
import shutil
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.benchmarks import get
from tests.helpers.recorded import table

pytestmark = pytest.mark.usefixtures("user")


def fill(folder, manifest='name = "mine"\nversion = "7"\n'):
    table(folder, {})
    if manifest:
        (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def test_the_folder_given_goes_before_the_environment_the_user_and_the_samples(
    tmp_path, user, monkeypatch
):
    def found(given=None):
        source = data.find("mcbe", given)
        return source.folder.resolve(), source.found, source.name, source.version

    samples = (get("mcbe").metadata.samples, "samples of this package", "McBE samples", "samples-1")
    assert found() == samples
    fill(user / "mcbe", manifest="")
    assert found() == samples, "prompts or half a fetch have no manifest"
    fetched = (fill(user / "mcbe"), "user data folder", "mine", "7")
    assert found() == fetched
    (tmp_path / "environment").mkdir()
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "environment"))
    assert found() == fetched, "the environment's folder has none"
    folder = fill(tmp_path / "environment/mcbe", manifest="")
    assert found() == (folder, "$BENCH_DATA", "McBE (local copy)", "unknown")
    folder = fill(tmp_path / "samples")
    monkeypatch.chdir(tmp_path)
    assert found("./samples") == found(str(folder)) == (folder, "--data", "mine", "7")
    assert found("samples") == samples


def test_data_that_are_edited_without_a_new_size_or_time_are_read_anew(tmp_path):
    shutil.copytree(get("mcbe").metadata.samples, tmp_path / "data")
    source, path = data.find("mcbe", tmp_path / "data"), tmp_path / "data/age.csv"
    before, state = data.load(source, ["age"]), path.stat()
    path.write_bytes(path.read_bytes().replace("老".encode(), "少".encode()))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    after = data.load(source, ["age"])
    assert before != after
    assert "老" in str(before)
    assert "老" not in str(after)


def test_unknown_benchmarks_folders_and_categories_are_refused(tmp_path, refusal, monkeypatch):
    assert "mcbe, cbbq, nli_coal" in refusal(data.find, "bbq")
    assert "`bench fetch mcbe` brings" in refusal(data.find, "mcbe", tmp_path / "gone")
    assert "folder of data, 'cbbq' is unknown" in refusal(data.find_all, ["mcbe"], {"cbbq": "x"})
    source = data.find("mcbe", table(fill(tmp_path / "data"), {}, category="race"))
    message = refusal(data.load, source, ["sport"])
    assert "category of mcbe 'sport' is unknown; allowed: gender, religion" in message
    message = refusal(data.load, source, ["age", "gender"])
    assert message == f"{source.folder}: has no data of category 'gender'; it has age, race"
    part = tmp_path / "cbbq" / "age" / "ambiguous" / "negative.csv"
    part.parent.mkdir(parents=True)
    part.touch()
    message = refusal(data.find, "cbbq", part)
    assert message == f"{part}: is a part of the data in {tmp_path / 'cbbq'}; give that folder"
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "gone"))
    assert "the folder that $BENCH_DATA names does not exist" in refusal(data.find, "mcbe")


@given(st.integers(1, 400), st.none() | st.integers(1, 500))
def test_a_limit_takes_items_in_order_and_evenly_from_the_first_on(n, limit):
    items = data.spread_evenly(range(n), limit)
    assert len(items) == min(n, limit or n)
    assert items[0] == 0
    steps = [b - a for a, b in zip(items, [*items[1:], n], strict=True)]
    assert min(steps) >= 1
    assert max(steps) - min(steps) <= 1


class Item(NamedTuple):
    item_id: str
    cluster: str
    design: tuple[str, ...]


@given(
    st.lists(st.tuples(*map(st.sampled_from, ("pqrstu", "xy", "no"))), min_size=1, max_size=200),
    st.integers(1, 200),
)
def test_a_sample_keeps_shares_and_order_and_lies_in_a_larger_sample(rows, limit):
    items = [Item(str(k), cluster, tuple(design)) for k, (cluster, *design) in enumerate(rows)]
    sample = data.balanced_sample(items, limit)
    assert len(sample) == min(limit, len(items))
    assert sample == [item for item in items if item in sample]
    assert set(sample) <= set(data.balanced_sample(items, limit + 1))
    for level in (lambda item: item.cluster, *(lambda item, k=k: item.design[k] for k in (0, 1))):
        whole, part = Counter(map(level, items)), Counter(map(level, sample))
        for value, n in whole.items():
            assert abs(part[value] - len(sample) * n / len(items)) < 2


@pytest.mark.parametrize("limit", [20, 40, 50, 100])
def test_a_sample_of_released_questions_has_as_many_swapped_names_as_not(shared, limit):
    questions = data.load(data.find("cbbq", shared / "data/cbbq"), ["age", "gender"])
    for category, condition in {(item.category, item.condition) for item in questions}:
        group = [q for q in questions if (q.category, q.condition) == (category, condition)]
        sample = data.balanced_sample(group, limit)
        assert sum(question.swapped for question in sample) == limit / 2
        negative = sum(question.polarity == "neg" for question in group) / len(group)
        assert abs(sum(q.polarity == "neg" for q in sample) - limit * negative) < 1


@pytest.mark.parametrize(
    ("benchmark", "name", "items"), [("cbbq", "rows.csv", 64), ("mcbe", "sport.csv", 2)]
)
def test_a_start_is_data_without_a_fault_whose_single_file_gives_the_same_items(
    bench, tmp_path, benchmark, name, items
):
    assert bench(f"new {benchmark} .")[0] == 0
    folder, file = (data.find(benchmark, tmp_path / part) for part in ("", name))
    assert len(data.load(folder)) == items
    assert data.load(file) == data.load(folder)
    assert file.sha256 == folder.sha256
    assert set(data.check(file).kind) <= ({"count"} if benchmark == "cbbq" else {"count", "odd"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:2], "no row of category sport, ambiguous with question_polarity non"),
        (lambda lines: [one.replace("sport", "all") for one in lines], "row 1, column `category`"),
        # The group stands in no list of names, and nothing says which one is meant.
        (lambda lines: [one.replace("女性", "左撇子") for one in lines], "add target"),
    ],
)
def test_a_table_of_templates_says_what_it_lacks(tmp_path, refusal, change, message):
    start = get("cbbq").metadata.folder / "start/rows.csv"
    lines = start.read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "mine.csv").write_text("".join(change(lines)), "utf-8")
    assert message in refusal(lambda: data.load(data.find("cbbq", tmp_path / "mine.csv")))
