"""A data folder brings its own wording: it is asked in where nobody chooses another, and who reads the numbers is told of a
wording in a language that is not the data's."""

import shutil
from pathlib import Path

import pytest

from bench import data, run
from bench.cli import printing
from bench.core.errors import AnotherRun, BadInput
from bench.core.i18n import use_language
from bench.data import SAMPLES
from bench.data.cbbq.expand import expand
from bench.data.fetch import fetch
from bench.metrics.headline import prompt_language_warning, warnings
from bench.tasks import prompts

MANIFEST = 'name = "Ours"\nversion = "1"\nlicence = "CC0-1.0"\nlanguage = "ko"\n'
PROMPTS = """version = "ours-ko-1"
language = "ko"
[bias_scoring]
prompt = "다음 문장을 0에서 10까지의 숫자로 평가하세요: {sentence}"
[variants.polite.bias_scoring]
prompt = "부탁드립니다. 다음 문장을 숫자로 평가해 주세요: {sentence}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of McBE in Korean, as its manifest says, with a wording of its own."""
    place = tmp_path / "set"
    place.mkdir()
    shutil.copy(SAMPLES / "mcbe" / "age.csv", place)
    (place / "dataset.toml").write_text(MANIFEST, "utf-8")
    (place / "prompts.toml").write_text(PROMPTS, "utf-8")
    return place


def asked(folder: Path, out: Path, **options: object) -> run.Run:
    """A run of the task that the wording words."""
    return run.evaluate(
        "mcbe", "simulated:bias=0.5", tasks=["bs"], limit=2, data=folder, out=out, **options
    )


def test_a_set_is_asked_in_its_own_wording_unless_another_is_chosen(
    folder: Path, tmp_path: Path
) -> None:
    done = asked(folder, tmp_path / "run")
    assert done.records.prompt.str.startswith("다음 문장을").all()
    assert set(done.records.prompt_version) == {"ours-ko-1"} == {done.about["asked"]["prompts"]}
    assert done.about["wording"]["file"] == str(folder / "prompts.toml")
    assert done.about["wording"]["language"] == "ko"
    for choice, version in (
        ("polite", "ours-ko-1#polite"),
        ("ours", "bench-mcbe-3"),
        ("reworded", "bench-mcbe-3#reworded"),
        (str(folder / "prompts.toml"), "ours-ko-1"),
    ):
        assert prompts.load("mcbe", choice, folder).label == version
    with pytest.raises(BadInput, match="the released prompts are missing"):
        prompts.load("mcbe", "official", folder)
    with pytest.raises(BadInput, match="prompt set 'rude' is unknown"):
        prompts.load("mcbe", "rude", folder)


def test_another_wording_in_the_folder_is_another_run(folder: Path, tmp_path: Path) -> None:
    asked(folder, tmp_path / "run")
    (folder / "prompts.toml").write_text(PROMPTS.replace("다음", "이"), "utf-8")
    with pytest.raises(AnotherRun, match="wording_hash"):
        asked(folder, tmp_path / "run")
    assert asked(folder, tmp_path / "new").records.prompt.str.startswith("이 문장을").all()


def test_a_run_in_the_sets_own_wording_is_repeated_in_it(folder: Path, tmp_path: Path) -> None:
    done = asked(folder, tmp_path / "run")
    again = run.repeat(done, tmp_path / "again")
    assert again.about["asked"] == done.about["asked"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version = ", "prompts.toml: not TOML"),
        ('version = "1"\n', "prompts.toml: expected `version"),
        (
            PROMPTS.replace('"ko"', '"Korean"'),
            "prompts.toml, key `language`: 'Korean' is not allowed",
        ),
        (PROMPTS.replace('"ko"', "7"), "prompts.toml, key `language`: 7 is not allowed"),
        (
            PROMPTS.replace("{sentence}", "{text}"),
            r"prompts.toml, table \[bias_scoring\], `prompt`: field 'text'",
        ),
        (
            PROMPTS.replace("bias_scoring", "other"),
            r"prompts.toml: table \[bias_scoring\] is missing",
        ),
    ],
)
def test_a_broken_wording_is_refused_as_one_that_was_given(
    folder: Path, tmp_path: Path, text: str, message: str
) -> None:
    (folder / "prompts.toml").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=message) as own:
        asked(folder, tmp_path / "run")
    with pytest.raises(BadInput) as given:
        asked(SAMPLES / "mcbe", tmp_path / "other", prompts=str(folder / "prompts.toml"))
    assert str(own.value) == str(given.value)


def test_a_folder_in_the_place_of_a_wording_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "prompts.toml").unlink()
    (folder / "prompts.toml").mkdir()
    with pytest.raises(BadInput, match="is a folder, not a file of prompts"):
        asked(folder, tmp_path / "run")


def test_a_fetched_wording_is_asked_in_only_where_it_is_named(folder: Path) -> None:
    manifest = folder / "dataset.toml"
    manifest.write_text(MANIFEST + 'wording = "mcbe-official-2a8e8f5"\n', "utf-8")
    assert prompts.load("mcbe", None, folder).version == "bench-mcbe-3"
    assert prompts.load("mcbe", "official", folder).version == "ours-ko-1"
    text = PROMPTS.replace('language = "ko"\n', "")
    (folder / "prompts.toml").write_text(text, "utf-8")
    assert prompts.load("mcbe", "official", folder).languages == ("zh",)


def test_who_asks_in_a_language_that_is_not_the_datas_is_told_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "prompts.toml").unlink()
    done = asked(folder, tmp_path / "run")
    told = prompt_language_warning(done.about)
    assert told == (
        "The data Ours are in Korean, but the wording bench-mcbe-3, in which models are asked about them, is in Chinese; a file "
        "prompts.toml beside dataset.toml, or --prompts FILE, asks in their own language."
    )
    assert capsys.readouterr().err.count(told) == 1
    assert warnings([done.about, done.about]).count(told) == 1
    asked(folder, tmp_path / "run")
    assert told not in capsys.readouterr().err, "nothing is asked any more"
    with use_language("zh"):
        assert "韩语" in prompt_language_warning(done.about)


@pytest.mark.parametrize("languages", ["zh", "yue, zh", ""])
def test_nothing_is_told_of_a_wording_that_fits(
    folder: Path, tmp_path: Path, languages: str
) -> None:
    (folder / "prompts.toml").unlink()
    (folder / "dataset.toml").write_text(f'name = "Ours"\nlanguage = "{languages}"\n', "utf-8")
    assert prompt_language_warning(asked(folder, tmp_path / "run").about) == ""


def test_nothing_is_told_where_nothing_is_asked_in_words(folder: Path, tmp_path: Path) -> None:
    """Preference computation reads bare sentences."""
    (folder / "prompts.toml").unlink()
    done = run.evaluate(
        "mcbe", "simulated:bias=0.5", tasks=["pc"], limit=2, data=folder, out=tmp_path / "r"
    )
    assert prompt_language_warning(done.about) == ""


def test_an_older_run_says_nothing_of_languages() -> None:
    assert (
        prompt_language_warning({"wording": {"version": "1"}, "data": {"name": "x"}})
        == ""
        == prompt_language_warning({})
    )


def test_our_wordings_say_their_language() -> None:
    found = {name: prompts.load(name).languages for name in ("mcbe", "cbbq", "nli_coal")}
    assert found == {"mcbe": ("zh",), "cbbq": ("zh",), "nli_coal": ("en", "ja", "zh")}
    assert set(found["nli_coal"]) == set(prompts.load("nli_coal").tables)


def test_pairs_in_a_language_without_a_prompt_are_asked_about_in_english_and_that_is_told() -> None:
    ours = prompts.load("nli_coal")
    assert prompts.foreign("nli_coal", ours, "", ["en", "ko"]) == {
        "data": ["ko"],
        "wording": ["en"],
    }
    assert prompts.foreign("nli_coal", ours, "", ["en", "zh"]) == {}


def test_whatever_copies_a_data_folder_copies_its_wording(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = fetch("mcbe", folder, tmp_path / "copy").folder
    assert (copied / "prompts.toml").read_text("utf-8") == PROMPTS
    assert prompts.load("mcbe", None, copied).version == "ours-ko-1"
    assert "the data set is asked with them unless --prompts is given" in capsys.readouterr().err
    archive = shutil.make_archive(str(tmp_path / "set"), "zip", folder.parent, folder.name)
    unpacked = fetch("mcbe", archive, tmp_path / "unpacked").folder
    assert prompts.load("mcbe", None, unpacked).version == "ours-ko-1"

    source = tmp_path / "cbbq"
    shutil.copytree(SAMPLES / "cbbq" / "age", source / "age")
    (source / "dataset.toml").write_text(MANIFEST, "utf-8")
    (source / "prompts.toml").write_text(PROMPTS, "utf-8")
    expand(data.find("cbbq", source), tmp_path / "expanded", "csv")
    assert prompts.load("cbbq", None, tmp_path / "expanded").version == "ours-ko-1"


def test_a_broken_wording_is_not_copied(folder: Path, tmp_path: Path) -> None:
    (folder / "prompts.toml").write_text("version = ", "utf-8")
    with pytest.raises(BadInput, match=r"prompts\.toml: not TOML"):
        fetch("mcbe", folder, tmp_path / "copy")


def test_data_that_come_anew_without_a_wording_keep_the_one_that_was_put_beside_them(
    tmp_path: Path,
) -> None:
    source = tmp_path / "from"
    shutil.copytree(SAMPLES / "mcbe", source)
    target = tmp_path / "to"
    fetch("mcbe", source, target)
    (target / "prompts.toml").write_text(PROMPTS, "utf-8")
    fetch("mcbe", source, target)
    assert prompts.load("mcbe", None, target).version == "ours-ko-1"


def test_what_is_printed_of_a_data_set_names_its_wording(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, count in ((folder, 1), (SAMPLES / "mcbe", 0)):
        source = data.find("mcbe", place)
        told = {**source.describe(), "items": 1, "categories": {"age": 1}, "touched": []}
        printing.data([told], "table")
        assert capsys.readouterr().out.count("  wording  ours-ko-1: ") == count
