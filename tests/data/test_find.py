"""Find the folder of a benchmark's data, load its categories, and spread a limit over items."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.benchmarks import get
from bench.core.places import copy_files
from tests.helpers.recorded import table


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """Empty folders: the one of --data, that of $BENCH_DATA (not set) and the user's."""
    folders = {name: tmp_path / name for name in ("given", "environment", "user")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setattr("bench.data.user_folder", lambda: folders["user"])
    monkeypatch.delenv("BENCH_DATA", raising=False)
    return folders


def fill(folder, manifest='name = "mine"\nversion = "7"\n'):
    table(folder, {})
    if manifest:
        (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def test_the_folder_given_goes_before_the_environment_the_user_and_the_samples(homes, monkeypatch):
    source = data.find("mcbe")
    assert (source.folder, source.found) == (
        get("mcbe").metadata.samples,
        "samples of this package",
    )
    assert (source.is_sample, source.name) == (True, "McBE samples")
    fill(homes["user"] / "mcbe", manifest="")
    assert data.find("mcbe").is_sample, "prompts or half a fetch have no manifest"
    folder = fill(homes["user"] / "mcbe")
    source = data.find("mcbe")
    assert (source.folder, source.name, source.version) == (folder, "mine", "7")
    assert not source.is_sample
    monkeypatch.setenv("BENCH_DATA", str(homes["environment"]))
    assert data.find("mcbe").folder == folder, "the environment's folder has none"
    folder = fill(homes["environment"] / "mcbe", manifest="")
    source = data.find("mcbe")
    assert (source.folder, source.found, source.version) == (folder, "$BENCH_DATA", "unknown")
    folder = fill(homes["given"])
    source = data.find("mcbe", str(folder))
    assert (source.folder, source.found) == (folder, "--data")
    folder = fill(homes["given"] / "samples")
    monkeypatch.chdir(homes["given"])
    assert data.find("mcbe", "samples").folder == get("mcbe").metadata.samples
    assert data.find("mcbe", "./samples").folder.resolve() == folder
    assert data.find("NLI-CoAL", "samples").benchmark == "nli_coal"


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_a_folder_without_data_is_refused(homes, refusal, benchmark):
    given = homes["given"]
    assert refusal(data.find, benchmark, given).startswith(f"{given}: holds no data of")
    message = refusal(data.find, benchmark, given / "gone")
    assert message.startswith(f"{given / 'gone'}: no such folder")
    assert f"bench fetch {benchmark}" in message


def test_unknown_benchmarks_and_categories_are_refused(homes, refusal, monkeypatch):
    assert "mcbe, cbbq, nli_coal" in refusal(data.find, "bbq")
    assert "folder of data, 'cbbq' is unknown" in refusal(data.find_all, ["mcbe"], {"cbbq": "x"})
    source = data.find("mcbe", table(fill(homes["given"]), {}, category="race"))
    message = refusal(data.load, source, ["sport"])
    assert "category of mcbe 'sport' is unknown; allowed: gender, religion" in message
    message = refusal(data.load, source, ["age", "gender"])
    assert message == f"{source.folder}: has no data of category 'gender'; it has age, race"
    monkeypatch.setenv("BENCH_DATA", str(homes["given"] / "gone"))
    assert "the folder that $BENCH_DATA names does not exist" in refusal(data.find, "mcbe")


@given(st.integers(1, 400), st.none() | st.integers(1, 500))
def test_a_limit_takes_items_in_order_and_evenly_from_the_first_on(n, limit):
    items = data.spread_evenly(range(n), limit)
    assert len(items) == n if limit is None else len(items) == min(n, limit)
    assert items[0] == 0
    steps = [b - a for a, b in zip(items, [*items[1:], n], strict=True)]
    assert min(steps) >= 1
    assert max(steps) - min(steps) <= 1


@pytest.mark.parametrize(
    ("benchmark", "name", "items"), [("cbbq", "rows.csv", 64), ("mcbe", "sport.csv", 2)]
)
def test_a_start_is_data_without_a_fault_whose_single_file_gives_the_same_items(
    tmp_path, benchmark, name, items
):
    copy_files(tmp_path / "start", get(benchmark).metadata.folder / "start")
    folder, file = (data.find(benchmark, tmp_path / "start" / part) for part in ("", name))
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
    copy_files(tmp_path / "cbbq", get("cbbq").metadata.folder / "start")
    lines = (tmp_path / "cbbq" / "rows.csv").read_text("utf-8").splitlines(keepends=True)
    table = tmp_path / "mine.csv"
    table.write_text("".join(lines), "utf-8")
    assert {one.category for one in data.load(data.find("cbbq", table))} == {"sport"}
    table.write_text("".join(change(lines)), "utf-8")
    assert message in refusal(lambda: data.load(data.find("cbbq", table)))
