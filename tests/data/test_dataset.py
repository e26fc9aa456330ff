"""Categories that only a data set's manifest names run, are audited and are shown like others."""

import shutil
import unicodedata

import pandas as pd
import pytest

from bench import data, run
from bench.benchmarks.cbbq.expand import expand
from bench.data import dataset
from bench.data.fetch import fetch
from bench.figures import style
from bench.run.results import Run
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
