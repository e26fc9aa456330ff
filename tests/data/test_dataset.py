"""Categories that only a data set's manifest names run, are audited and are shown like others."""

import shutil
import unicodedata

import pandas as pd
import pytest

from bench import data, run
from bench.benchmarks import get
from bench.benchmarks.cbbq.expand import expand
from bench.core.errors import AnotherRun
from bench.data import dataset
from bench.data.fetch import fetch
from bench.figures import style
from bench.metrics.primary import prompt_language_warning, warnings
from bench.run.results import Run
from bench.tasks import prompts
from tests.helpers.recorded import GOOD, own_category

HEAD = 'name = "Ours"\nversion = "3"\nlicence = "CC0-1.0"\nlanguage = "zh"\n'
SPORT = '\n[categories.sport]\nen = "Sports clubs"\nzh = "体育"\n'
CITY = '\n[categories.city_life]\nen = "City life"\nzh = "城市"\ntarget = "NAME2"\n'


@pytest.fixture(autouse=True)
def no_names_of_other_tests():
    dataset._own_names.set({})


def mcbe_folder(folder, manifest=HEAD + SPORT, name="sport"):
    """Write a category of three rows next to a released one."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [GOOD | {"context": f"第{k}次，", "subtype": "甲乙"[k % 2]} for k in range(3)]
    for category in (name, "age"):
        pd.DataFrame(rows).to_csv(folder / f"{category}.csv", index=False)
    if manifest:
        (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def cbbq_folder(folder, manifest=HEAD + CITY):
    return own_category(folder, "city_life", manifest)


def test_a_category_of_mcbe_runs_and_its_run_keeps_its_names(tmp_path):
    folder = mcbe_folder(tmp_path / "data")
    asked = {"judge": "simulated:", "data": folder, "out": tmp_path / "run", "partial": True}
    done = run.evaluate("mcbe", "simulated:bias=0.7", **asked)
    metadata = done.metadata["data"]
    assert [metadata[key] for key in ("name", "version", "licence")] == ["Ours", "3", "CC0-1.0"]
    scores = done.scores()
    assert set(scores.category) == {"sport", "age", "all"}
    assert scores[(scores.category == "sport") & scores.score.notna()].task.nunique() > 3
    shutil.rmtree(folder)
    dataset._own_names.set({})
    Run.open(tmp_path / "run")
    assert style.label("mcbe", "sport") == "Sports clubs (体育)"


def test_a_category_of_cbbq_runs_is_audited_and_is_expanded(tmp_path):
    folder = cbbq_folder(tmp_path / "data")
    done = run.evaluate("cbbq", "simulated:bias=1", data=folder, out=tmp_path / "run")
    scores = done.scores("paper").set_index(["category", "task", "metric"]).score
    assert scores["city_life", "ambiguous", "s_amb"] == 1
    source = data.find("cbbq", folder)
    findings = data.check(source)
    assert not (findings.kind == "refused").any()
    # New categories alone are not compared with the release.
    assert "no such category" in findings.query("kind == 'count'").what.iloc[0]
    expand(source, tmp_path / "out", "csv", "repair")
    expanded = data.find("cbbq", tmp_path / "out")
    assert expanded.labels == source.labels
    assert len(data.load(expanded)) == len(data.load(source))


@pytest.mark.parametrize(
    ("benchmark", "make", "name"),
    [("mcbe", mcbe_folder, "sport"), ("cbbq", cbbq_folder, "city_life")],
)
def test_a_category_is_unknown_without_a_manifest_and_fetched_with_it(
    tmp_path, user, refusal, benchmark, make, name
):
    folder = make(tmp_path / "none", "")
    message = refusal(data.find, benchmark, folder)
    assert f"category '{name}' is unknown" in message
    assert f'[categories.{name}], en = "its English label", zh = "its own label"' in message
    findings = data.check(data.Source(benchmark, folder, "", "", "", ""))
    refused = findings[findings.kind == "refused"].what
    assert any(f"[categories.{name}]" in what for what in refused)
    manifest = HEAD + (SPORT if benchmark == "mcbe" else CITY) + "groups = false\n"
    source = data.find(benchmark, make(tmp_path / "mine", manifest))
    fetched = fetch(benchmark, tmp_path / "mine")
    assert (fetched.labels, fetched.sha256) == (source.labels, source.sha256)
    assert (fetched.name, fetched.version, fetched.licence) == ("Ours", "3", "CC0-1.0")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("name = [1]\n", "key `name`: [1] is not a text"),
        ('language = "jp"\n', "key `language`: 'jp' is not allowed; expected codes of languages"),
        (HEAD + '[categories.sport]\nen = "S"\n', "categories.sport`: a label is missing; expec"),
        (HEAD + SPORT + 'groups = "no"\n', "sport.groups`: 'no' is not true or false"),
        ("name = ", "not TOML"),
    ],
)
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
    place = tmp_path / "set"
    place.mkdir()
    shutil.copy(get("mcbe").metadata.samples / "age.csv", place)
    (place / "dataset.toml").write_text(KOREAN, "utf-8")
    (place / "prompts.toml").write_text(PROMPTS, "utf-8")
    return place


def ask(korean, out, **options):
    """Run the task that the prompts are for."""
    asked = {"tasks": ["bs"], "limit": 2, "data": korean, "out": out, **options}
    return run.evaluate("mcbe", "simulated:bias=0.5", **asked)


def test_a_data_set_is_asked_with_its_own_prompts(korean, tmp_path):
    done = ask(korean, tmp_path / "run")
    assert done.records.prompt.str.startswith("다음 문장을").all()
    assert set(done.records.prompt_version) == {"ours-ko-1"} == {done.metadata["asked"]["prompts"]}
    assert done.metadata["wording"]["language"] == "ko"
    again = run.repeat(done, tmp_path / "again")
    assert again.metadata["asked"] == done.metadata["asked"]
    (korean / "prompts.toml").write_text(PROMPTS.replace("다음", "이"), "utf-8")
    with pytest.raises(AnotherRun, match="wording_hash"):
        ask(korean, tmp_path / "run")


@pytest.mark.parametrize(
    ("choice", "version"),
    [
        ("polite", "ours-ko-1#polite"),
        ("ours", "bench-mcbe-3"),
        ("reworded", "bench-mcbe-3#reworded"),
        ("prompts.toml", "ours-ko-1"),
    ],
)
def test_other_prompts_can_be_chosen(korean, monkeypatch, choice, version):
    monkeypatch.chdir(korean)
    assert prompts.load("mcbe", choice, korean).label == version


def test_fetched_prompts_are_used_only_where_they_are_named(korean):
    manifest = KOREAN + 'wording = "mcbe-official-2a8e8f5"\n'
    (korean / "dataset.toml").write_text(manifest, "utf-8")
    assert prompts.load("mcbe", None, korean).version == "bench-mcbe-3"
    assert prompts.load("mcbe", "official", korean).version == "ours-ko-1"


def test_prompts_in_another_language_than_the_datas_are_reported_once(korean, tmp_path, capsys):
    (korean / "prompts.toml").unlink()
    done = ask(korean, tmp_path / "run")
    warning = prompt_language_warning(done.metadata)
    for text in ("Ours", "Korean", "bench-mcbe-3", "Chinese", "--prompts FILE"):
        assert text in warning
    assert capsys.readouterr().err.count(warning) == 1
    assert warnings([done.metadata, done.metadata]).count(warning) == 1
    # Bare sentences are read without prompts.
    done = ask(korean, tmp_path / "pc", tasks=["pc"])
    assert prompt_language_warning(done.metadata) == ""
