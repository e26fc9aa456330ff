"""Find the folder of a benchmark's data, load its categories, and spread a limit over items."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.benchmarks import get
from bench.data.start import copy_start
from tests.helpers.recorded import table


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Empty folders: the one of --data, that of $BENCH_DATA (not set) and the user's."""
    folders = {name: tmp_path / name for name in ("given", "environment", "user")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setattr("bench.data.user_folder", lambda: folders["user"])
    monkeypatch.delenv("BENCH_DATA", raising=False)
    return folders


def fill(folder: Path, manifest: str = 'name = "mine"\nversion = "7"\n') -> Path:
    table(folder, {})
    if manifest:
        (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def test_the_folder_given_goes_before_the_environment_the_user_and_the_samples(
    homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_what_is_not_there_is_refused(
    homes: dict[str, Path], refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "mcbe, cbbq, nli_coal" in refusal(data.find, "bbq")
    gone = homes["given"] / "gone"
    for benchmark in ("mcbe", "cbbq", "nli_coal"):
        message = refusal(data.find, benchmark, homes["given"])
        assert message.startswith(f"{homes['given']}: holds no data of")
        message = refusal(data.find, benchmark, gone)
        assert message.startswith(f"{gone}: no such folder")
        assert f"bench fetch {benchmark}" in message
    monkeypatch.setenv("BENCH_DATA", str(gone))
    message = refusal(data.find, "mcbe")
    assert message == f"{gone}: the folder that $BENCH_DATA names does not exist"
    source = data.find("mcbe", table(fill(homes["given"]), {}, category="race"))
    message = refusal(data.load, source, ["sport"])
    assert "category of mcbe 'sport' is unknown; allowed: gender, religion" in message
    message = refusal(data.load, source, ["age", "gender"])
    assert message == f"{source.folder}: has no data of category 'gender'; it has age, race"


def test_a_folder_of_a_benchmark_that_is_not_shown_is_refused(homes, refusal) -> None:
    assert list(data.find_all(["McBE", "mcbe"], "samples")) == ["mcbe"]
    assert list(data.find_all()) == ["mcbe", "cbbq", "nli_coal"]
    assert "folder of data, 'cbbq' is unknown" in refusal(data.find_all, ["mcbe"], {"cbbq": "x"})


def test_a_copy_of_the_samples_has_their_hash_and_items(homes: dict[str, Path]) -> None:
    source = data.find(
        "cbbq", shutil.copytree(get("cbbq").metadata.samples, homes["given"] / "cbbq")
    )
    assert (source.is_sample, source.sha256) == (False, data.find("cbbq").sha256)
    items = data.load(source, ["gender", "gender"])
    frame = data.frame(items)
    assert frame.item_id.tolist()[:2] == ["gender:ambiguous:1", "gender:ambiguous:2"]
    assert frame.cluster.tolist()[:9] == ["gender:ambiguous:neg:1"] * 8 + ["gender:ambiguous:neg:2"]
    assert frame.question.tolist() == [item.question for item in items]
    assert data.frame([]).empty


@given(st.integers(1, 400), st.none() | st.integers(1, 500))
def test_a_limit_takes_items_in_order_and_evenly_from_the_first_on(
    n: int, limit: int | None
) -> None:
    items = data.spread_evenly(range(n), limit)
    assert len(items) == n if limit is None else len(items) == min(n, limit)
    assert items[0] == 0
    steps = [b - a for a, b in zip(items, [*items[1:], n], strict=True)]
    assert min(steps) >= 1
    assert max(steps) - min(steps) <= 1


def test_a_start_is_data_without_a_fault_whose_single_file_gives_the_same_items(
    tmp_path: Path, refusal
) -> None:
    copy_start("cbbq", tmp_path / "cbbq")
    copy_start("mcbe", tmp_path / "mcbe")
    for benchmark, name, items in (("cbbq", "rows.csv", 64), ("mcbe", "sport.csv", 2)):
        folder = data.find(benchmark, tmp_path / benchmark)
        file = data.find(benchmark, tmp_path / benchmark / name)
        assert len(data.load(folder)) == items
        assert data.load(file) == data.load(folder)
        assert file.sha256 == folder.sha256
        kinds = set(data.check(file).kind)
        assert kinds <= ({"count"} if benchmark == "cbbq" else {"count", "odd"})
    questions = data.load(data.find("cbbq", tmp_path / "cbbq"))
    assert {(one.target, one.target_name[0]) for one in questions} == {(1, "女")}
    message = refusal(copy_start, "nli_coal", tmp_path / "nli")
    assert "allowed: cbbq, mcbe" in message
    assert "curate_nli.ipynb" in message


def test_a_table_of_templates_needs_no_manifest_and_says_what_it_lacks(
    tmp_path: Path, refusal
) -> None:
    copy_start("cbbq", tmp_path / "cbbq")
    text = (tmp_path / "cbbq" / "rows.csv").read_text("utf-8")
    table = tmp_path / "mine.csv"

    def found(text: str) -> str:
        table.write_text(text, "utf-8")
        return refusal(lambda: data.load(data.find("cbbq", table)))

    table.write_text(text, "utf-8")
    assert {one.category for one in data.load(data.find("cbbq", table))} == {"sport"}
    header, first, *_ = text.splitlines(keepends=True)
    assert "no row of category sport, ambiguous with question_polarity non_neg" in found(
        header + first
    )
    assert "row 1, column `category`: 'all'" in found(text.replace("sport", "all"))
    # The group stands in no list of names, and nothing says which one is meant.
    assert "add target" in found(text.replace("女性", "左撇子"))
    part = get("cbbq").metadata.samples / "age" / "ambiguous" / "templates_generate_neg.csv"
    assert "give that folder" in refusal(data.find, "cbbq", part)
