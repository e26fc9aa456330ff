"""Which folder holds a benchmark's data, which categories it has, and how a limit is spread over items."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bench.data
from bench import data

HEADER = "context,sentence,words,subtype,explanation,score\n"
ROW = "开会时，,[PLH]先发言。,甲，乙,职场,说明。,4.5\n"


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Three folders that may hold data: the one of --data, that of $BENCH_DATA and the user's; all without any."""
    found = {name: tmp_path / name for name in ("given", "environment", "user")}
    for folder in found.values():
        folder.mkdir()
    monkeypatch.setattr(bench.data, "user_folder", lambda: found["user"])
    monkeypatch.delenv("BENCH_DATA", raising=False)
    return found


def fill(
    folder: Path, manifest: str | None = 'name = "mine"\nversion = "7"\n', category: str = "age"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{category}.csv").write_text(HEADER + ROW, "utf-8")
    if manifest is not None:
        (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def test_without_any_other_data_the_samples_are_taken(homes: dict[str, Path]) -> None:
    source = data.find("mcbe")
    assert (source.folder, source.found) == (data.SAMPLES / "mcbe", "samples of this package")
    assert source.is_sample
    assert source.name == "McBE samples"


def test_the_user_s_folder_goes_before_the_samples(homes: dict[str, Path]) -> None:
    folder = fill(homes["user"] / "mcbe")
    source = data.find("mcbe")
    assert (source.folder, source.name, source.version) == (folder, "mine", "7")
    assert not source.is_sample
    assert data.find("cbbq").is_sample


def test_a_user_s_folder_without_its_manifest_is_a_half_made_fetch_and_not_taken(
    homes: dict[str, Path],
) -> None:
    fill(homes["user"] / "mcbe", manifest=None)
    assert data.find("mcbe").is_sample


def test_the_environment_s_folder_goes_before_the_user_s(
    homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(homes["user"] / "mcbe")
    folder = fill(homes["environment"] / "mcbe", manifest=None)
    monkeypatch.setenv("BENCH_DATA", str(homes["environment"]))
    source = data.find("mcbe")
    assert (source.folder, source.found, source.version) == (folder, "$BENCH_DATA", "unknown")


def test_a_benchmark_that_the_environment_s_folder_lacks_is_looked_for_further_on(
    homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(homes["environment"]))
    assert data.find("mcbe").is_sample
    folder = fill(homes["user"] / "mcbe")
    assert data.find("mcbe").folder == folder


def test_the_folder_given_goes_before_all_others(
    homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(homes["environment"] / "mcbe")
    fill(homes["user"] / "mcbe")
    folder = fill(homes["given"])
    monkeypatch.setenv("BENCH_DATA", str(homes["environment"]))
    source = data.find("mcbe", str(folder))
    assert (source.folder, source.found) == (folder, "--data")


def test_samples_are_the_package_s_own_whatever_is_installed(
    homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(homes["user"] / "mcbe")
    fill(homes["environment"] / "mcbe")
    monkeypatch.setenv("BENCH_DATA", str(homes["environment"]))
    folder = fill(homes["given"] / "samples")
    monkeypatch.chdir(homes["given"])
    assert data.find("mcbe", "samples").folder == data.SAMPLES / "mcbe"
    assert data.find("mcbe", "./samples").folder.resolve() == folder
    assert data.find("mcbe", Path("samples")).folder.resolve() == folder


def test_an_environment_s_folder_that_does_not_exist_is_refused(
    homes: dict[str, Path], monkeypatch: pytest.MonkeyPatch, refusal
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(homes["environment"] / "gone"))
    message = refusal(data.find, "mcbe")
    assert message.startswith(str(homes["environment"] / "gone"))
    assert "$BENCH_DATA" in message


def test_a_folder_that_does_not_exist_is_refused(homes: dict[str, Path], refusal) -> None:
    message = refusal(data.find, "mcbe", homes["given"] / "gone")
    assert message.startswith(f"{homes['given'] / 'gone'}: no such folder")
    assert "bench fetch mcbe" in message


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_a_folder_without_the_benchmark_s_files_is_refused_and_told_what_is_expected(
    homes: dict[str, Path], refusal, benchmark: str
) -> None:
    (homes["given"] / "notes.txt").write_text("x", "utf-8")
    message = refusal(data.find, benchmark, homes["given"])
    assert message.startswith(f"{homes['given']}: holds no data of")
    assert "expected" in message


def test_a_manifest_that_is_no_toml_is_refused(homes: dict[str, Path], refusal) -> None:
    folder = fill(homes["given"], manifest="name = ")
    assert refusal(data.find, "mcbe", folder).startswith(f"{folder / 'dataset.toml'}: not TOML")


def test_a_benchmark_may_be_written_with_a_hyphen_and_an_unknown_one_is_refused(
    homes: dict[str, Path], refusal
) -> None:
    assert data.find("NLI-CoAL").benchmark == "nli_coal"
    assert "mcbe, cbbq, nli_coal" in refusal(data.find, "bbq")


def test_an_unknown_category_is_refused_with_those_that_are_known(
    homes: dict[str, Path], refusal
) -> None:
    message = refusal(data.load, data.find("mcbe"), ["gender", "sport"])
    assert "category of mcbe 'sport' is unknown; allowed: gender, religion" in message


def test_a_category_that_the_folder_lacks_is_refused_with_those_that_it_has(
    homes: dict[str, Path], refusal
) -> None:
    folder = fill(fill(homes["given"]), category="race")
    message = refusal(data.load, data.find("mcbe", folder), ["age", "gender"])
    assert message == f"{folder}: has no data of category 'gender'; it has age, race"


def test_a_category_named_twice_is_loaded_once(homes: dict[str, Path]) -> None:
    folder = fill(homes["given"])
    assert [item.item_id for item in data.load(data.find("mcbe", folder), ["age", "age"])] == [
        "age:1"
    ]


def test_a_copy_of_the_samples_elsewhere_is_no_sample_but_has_their_hash(
    homes: dict[str, Path],
) -> None:
    copy = Path(shutil.copytree(data.SAMPLES / "cbbq", homes["given"] / "cbbq"))
    source = data.find("cbbq", copy)
    assert not source.is_sample
    assert source.sha256 == data.find("cbbq").sha256
    assert source.describe()["folder"] == str(copy)


def test_a_frame_of_items_has_their_names_and_what_was_sampled(homes: dict[str, Path]) -> None:
    items = data.load(data.find("cbbq"), ["gender"])
    frame = data.frame(items)
    assert frame.item_id.tolist()[:2] == ["gender:ambiguous:1", "gender:ambiguous:2"]
    assert frame.cluster.tolist()[:9] == ["gender:ambiguous:neg:1"] * 8 + ["gender:ambiguous:neg:2"]
    assert frame.question.tolist() == [item.question for item in items]


@given(st.integers(1, 400), st.one_of(st.none(), st.integers(1, 500)))
def test_a_limit_takes_items_in_order_and_evenly_from_the_first_on(
    n: int, limit: int | None
) -> None:
    taken = data.spread_evenly(range(n), limit)
    assert len(taken) == n if limit is None else len(taken) == min(n, limit)
    assert taken[0] == 0
    # Evenly: the steps, that to the end included, differ by one at most.
    steps = [b - a for a, b in zip(taken, [*taken[1:], n], strict=True)]
    assert min(steps) >= 1
    assert max(steps) - min(steps) <= 1
