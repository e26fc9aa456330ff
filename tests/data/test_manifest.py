"""Categories that only a data set's manifest names run, are checked and are shown like others."""

import re
import shutil
import unicodedata

import pytest

from bench import data, run
from bench.benchmarks import get
from bench.core.errors import AnotherRun
from bench.data.fetch import fetch
from bench.data.manifest import category_name_error, is_label
from bench.runs.notes import prompt_language_warning, warnings
from bench.runs.open import Run
from bench.tasks import prompts
from tests.helpers.cases import json_lines
from tests.helpers.recorded import cell, own_category, table

HEAD = 'name = "Ours"\nversion = "3"\nlicence = "CC0-1.0"\nlanguage = "zh"\n'
SPORT = '\n[categories.sport]\nen = "Sports clubs"\nzh = "体育"\n'
CITY = '\n[categories.city_life]\nen = "City life"\nzh = "城市"\ntarget = "NAME2"\n'


def mcbe_folder(folder, manifest=HEAD + SPORT, name="sport"):
    """Write a category of three rows next to a released one."""
    rows = [{"context": f"第{k}次，", "subtype": "甲乙"[k % 2]} for k in range(3)]
    for category in (name, "age"):
        table(folder, *rows, category=category)
    (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def cbbq_folder(folder):
    return own_category(folder, "city_life", HEAD + CITY)


def test_a_category_of_mcbe_runs_and_its_run_keeps_its_names(tmp_path):
    folder = mcbe_folder(tmp_path / "data")
    asked = {"judge": "simulated:", "data": folder, "out": tmp_path / "run", "partial": True}
    scores = run.evaluate("mcbe", "simulated:bias=0.7", **asked).scores()
    assert set(scores.category) == {"sport", "age", "all"}
    assert scores[(scores.category == "sport") & scores.score.notna()].task.nunique() > 3
    shutil.rmtree(folder)
    assert Run.open(tmp_path / "run").category_names["sport"] == "Sports clubs (体育)"
    names = run.score(tmp_path / "run").set_index("category").category_name
    assert set(names["sport"]) == {"Sports clubs (体育)"}


def test_a_manifest_beside_the_folder_data_names_what_is_in_it(tmp_path, user):
    folder = mcbe_folder(tmp_path / "set/data")
    (folder / "dataset.toml").rename(tmp_path / "set/dataset.toml")
    labels = data.find("mcbe", folder).labels
    assert labels == {"sport": {"en": "Sports clubs", "zh": "体育"}}
    fetched = fetch(get("mcbe"), tmp_path / "set")
    assert (fetched.name, fetched.labels) == ("Ours", labels)


def test_a_category_of_cbbq_runs_and_is_checked(tmp_path):
    folder = cbbq_folder(tmp_path / "data")
    options = {"data": folder, "out": tmp_path / "run"}
    scores = run.evaluate("cbbq", "simulated:bias=1", **options).scores("paper")
    assert cell(scores, "s_amb", category="city_life", task="ambiguous").score == 1
    findings = data.check(data.find("cbbq", folder))
    assert "refused" not in set(findings.kind)
    # New categories alone are not compared with the release.
    assert not findings.what.str.contains("release").any()


@pytest.mark.parametrize(
    ("benchmark", "write", "name"),
    [("mcbe", mcbe_folder, "sport"), ("cbbq", cbbq_folder, "city_life")],
)
def test_a_category_is_fetched_with_its_manifest_and_unknown_without_it(
    tmp_path, user, refusal, benchmark, write, name
):
    folder = write(tmp_path / "data")
    source, fetched = data.find(benchmark, folder), fetch(get(benchmark), folder)
    assert (fetched.labels, fetched.sha256) == (source.labels, source.sha256)
    assert (fetched.name, fetched.version, fetched.licence) == ("Ours", "3", "CC0-1.0")
    (folder / "dataset.toml").unlink()
    line = f'[categories.{name}], en = "its English label", zh = "its own label"'
    message = refusal(data.find, benchmark, folder)
    assert f"category '{name}' is unknown" in message
    assert line in message
    findings = data.check(source)
    assert any(line in what for what in findings[findings.kind == "refused"].what)


@pytest.mark.parametrize(("manifest", "said"), json_lines(__file__, "wrong_manifests.jsonl"))
def test_a_wrong_manifest_is_refused_with_its_key(tmp_path, refusal, manifest, said):
    folder = mcbe_folder(tmp_path, manifest)
    message = refusal(data.find, "mcbe", folder)
    assert message.startswith(str(folder / "dataset.toml"))
    assert said in message


@pytest.mark.parametrize(("name", "form"), [("género", "NFC"), ("género", "NFD"), ("धर्म", "NFD")])
def test_a_file_name_is_composed(tmp_path, name, form):
    manifest = f'{HEAD}[categories."{name}"]\nen = "A"\nzh = "甲"\n'
    folder = mcbe_folder(tmp_path, manifest, unicodedata.normalize(form, name))
    for place in (folder, folder / f"{unicodedata.normalize(form, name)}.csv"):
        items = data.load(data.find("mcbe", place))
        assert name in {item.category for item in items}


KOREAN = 'name = "Ours"\nversion = "1"\nlicence = "CC0-1.0"\nlanguage = "ko"\n'
PROMPTS = """version = "ours-ko-1"
language = "ko"
[bias_scoring]
prompt = "다음 문장을 0에서 10까지의 숫자로 평가하세요: {sentence}"
[variants.polite.bias_scoring]
prompt = "부탁드립니다. 다음 문장을 숫자로 평가해 주세요: {sentence}"
"""


@pytest.fixture
def korean(tmp_path):
    """A data set of McBE in Korean with prompts for one task."""
    folder = mcbe_folder(tmp_path / "set", KOREAN, "race")
    (folder / "prompts.toml").write_text(PROMPTS, "utf-8")
    return folder


def ask(korean, out, **options):
    """Run the task of the prompts."""
    options = {"tasks": ["bs"], "limit": 2, "data": korean, **options}
    return run.evaluate("mcbe", "simulated:bias=0.5", out=out, **options)


def test_a_data_set_is_asked_with_its_own_prompts(korean, tmp_path):
    done = ask(korean, tmp_path / "run")
    assert done.records.prompt.str.startswith("다음 문장을").all()
    assert set(done.records.prompt_version) == {"ours-ko-1"} == {done.metadata["asked"]["prompts"]}
    assert done.metadata["prompts"]["language"] == "ko"
    again = run.repeat(done, tmp_path / "again")
    assert again.metadata["asked"] == done.metadata["asked"]
    (korean / "prompts.toml").write_text(PROMPTS.replace("다음", "이"), "utf-8")
    with pytest.raises(AnotherRun, match="the content of --prompts was"):
        ask(korean, tmp_path / "run")


FETCHED = 'wording = "mcbe-official-2a8e8f5"\n'


@pytest.mark.parametrize(
    ("line", "choice", "version"),
    [
        ("", "polite", "ours-ko-1#polite"),
        ("", "ours", "bench-mcbe-3"),
        ("", "reworded", "bench-mcbe-3#reworded"),
        ("", "prompts.toml", "ours-ko-1"),
        # Fetched prompts are used only if they are named.
        (FETCHED, None, "bench-mcbe-3"),
        (FETCHED, "official", "ours-ko-1"),
    ],
)
def test_other_prompts_can_be_chosen(korean, monkeypatch, line, choice, version):
    (korean / "dataset.toml").write_text(KOREAN + line, "utf-8")
    monkeypatch.chdir(korean)
    assert prompts.load(get("mcbe"), choice, korean).label == version


def test_prompts_in_another_language_than_the_datas_are_reported_once(korean, tmp_path, capsys):
    (korean / "prompts.toml").unlink()
    done = ask(korean, tmp_path / "run")
    warning = prompt_language_warning(done.metadata)
    assert re.search("Ours.*Korean.*bench-mcbe-3.*Chinese.*--prompts FILE", warning)
    assert capsys.readouterr().err.count(warning) == 1
    assert warnings([done, done]).count(warning) == 1
    # Bare sentences are read without prompts.
    done = ask(korean, tmp_path / "pc", tasks=["pc"])
    assert prompt_language_warning(done.metadata) == ""


@pytest.mark.parametrize(("length", "is_allowed"), [(1, True), (60, True), (61, False)])
def test_a_label_has_at_most_60_characters(length, is_allowed):
    assert is_label("x" * length) is is_allowed


@pytest.mark.parametrize(("length", "is_allowed"), [(1, True), (40, True), (41, False)])
def test_the_name_of_a_category_has_at_most_40_characters(length, is_allowed):
    assert (category_name_error("x" * length) == "") is is_allowed
