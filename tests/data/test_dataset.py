"""A data folder with a manifest brings categories of its own, which run in every room as the release's do."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data, run
from bench.core.errors import BadInput
from bench.core.i18n import use_language
from bench.data import SAMPLES, dataset
from bench.data import dataset as naming
from bench.data.cbbq.expand import expand
from bench.data.cbbq.labels import NO_FACTS, _unusable, mentions
from bench.data.fetch import fetch
from bench.data.mcbe import CATEGORIES, audit
from bench.figures import scores as pictures
from bench.figures import style
from bench.metrics.headline import category_name_warnings
from bench.run.results import Run
from tests.helpers.recorded import GOOD

HEAD = 'name = "Ours"\nversion = "3"\nlicence = "CC0-1.0"\nlanguage = "zh"\n'
SPORT = '\n[categories.sport]\nen = "Sports clubs"\nzh = "体育"\n'
CITY = '\n[categories.city_life]\nen = "City life"\nzh = "城市"\ntarget = "NAME2"\n'


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No category is known by what another test opened."""
    monkeypatch.setattr(naming, "_own_names", {})


def mcbe_folder(folder: Path, told: str = HEAD + SPORT, name: str = "sport", rows: int = 3) -> Path:
    """A folder with a category of its own beside a released one."""
    folder.mkdir(parents=True, exist_ok=True)
    for category in (name, "age"):
        with (folder / f"{category}.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(GOOD))
            writer.writeheader()
            writer.writerows(
                GOOD | {"context": f"第{k}次，", "subtype": "甲乙"[k % 2]} for k in range(rows)
            )
    if told:
        (folder / "dataset.toml").write_text(told, "utf-8")
    return folder


def cbbq_folder(folder: Path, told: str = HEAD + CITY) -> Path:
    """The samples' category age under another name."""
    for path in sorted((SAMPLES / "cbbq" / "age").glob("*/*.csv")):
        place = folder / "city_life" / path.parent.name / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8")
        for condition in ("ambiguous", "disambiguous"):
            text = text.replace(f"{condition},age,", f"{condition},city_life,")
        place.write_text(text, "utf-8")
    if told:
        (folder / "dataset.toml").write_text(told, "utf-8")
    return folder


def test_a_category_of_mcbe_runs_and_its_run_keeps_its_names(tmp_path: Path) -> None:
    folder = mcbe_folder(tmp_path / "data")
    asked = run.evaluate(
        "mcbe",
        "simulated:bias=0.7",
        judge="simulated:",
        data=folder,
        out=tmp_path / "run",
        partial=True,
    )
    told = asked.about["data"]
    assert (told["name"], told["version"], told["licence"], told["language"]) == (
        "Ours",
        "3",
        "CC0-1.0",
        "zh",
    )
    assert told["labels"] == {"sport": {"en": "Sports clubs", "zh": "体育"}}
    scores = asked.scores()
    assert set(scores.category) == {"sport", "age", "all"}
    assert scores[(scores.category == "sport") & scores.score.notna()].task.nunique() > 3
    # A stored run needs no data folder to be drawn.
    shutil.rmtree(folder)
    naming._own_names.clear()
    again = Run.open(tmp_path / "run")
    shown = "体育 (Sports clubs)"
    assert style.label("mcbe", "sport") == shown
    (fig,) = [fig for name, fig in pictures.by_category(again.scores().assign(model="m"), "mcbe")][
        :1
    ]
    assert shown in [text.get_text() for text in fig.axes[0].get_yticklabels()]


def test_a_category_of_cbbq_runs_is_checked_and_is_expanded(tmp_path: Path) -> None:
    folder = cbbq_folder(tmp_path / "data")
    asked = run.evaluate("cbbq", "simulated:bias=1", data=folder, out=tmp_path / "run")
    scores = asked.scores("paper").set_index(["category", "task", "metric"]).score
    assert scores["city_life", "ambiguous", "s_amb"] == 1
    assert style.label("cbbq", "city_life") == "城市 (City life)"
    source = data.find("cbbq", folder)
    found = data.check(source)
    assert not (found.kind == "refused").any()
    assert any(
        what.startswith("category city_life:") and what.endswith("no such category")
        for what in found.what
    )
    expand(source, tmp_path / "out", "csv", "repair")
    expanded = data.find("cbbq", tmp_path / "out")
    assert expanded.labels == source.labels
    assert len(data.load(expanded)) == len(data.load(source))


@pytest.mark.parametrize(
    ("benchmark", "make", "name"),
    [("mcbe", mcbe_folder, "sport"), ("cbbq", cbbq_folder, "city_life")],
)
def test_a_category_that_nobody_knows_is_refused_with_the_lines_to_write(
    tmp_path: Path, refusal, benchmark, make, name
) -> None:
    folder = make(tmp_path, "")
    message = refusal(data.find, benchmark, folder)
    assert f"category '{name}' is unknown" in message
    assert f'[categories.{name}], en = "its English label", zh = "its own label"' in message
    assert str(folder / "dataset.toml") in message
    found = (
        audit.check(folder)
        if benchmark == "mcbe"
        else data.check(data.Source("cbbq", folder, "", "", "", ""))
    )
    assert any(f"[categories.{name}]" in what for what in found[found.kind == "refused"].what)


def test_files_of_mcbe_s_columns_elsewhere_and_other_files_are_no_category(tmp_path: Path) -> None:
    folder = mcbe_folder(tmp_path, HEAD, name="race")
    mcbe_folder(folder / "csv_files", "")
    mcbe_folder(folder / "older", "")
    (folder / "ratings.csv").write_text("person,item,value\nA,race:1,4\n", "utf-8")
    assert {item.category for item in data.load(data.find("mcbe", folder))} == {"race", "age"}


def test_the_folder_s_categories_can_be_chosen_and_others_are_refused(
    tmp_path: Path, refusal
) -> None:
    source = data.find("mcbe", mcbe_folder(tmp_path))
    assert [item.item_id for item in data.load(source, ["sport"])] == [
        "sport:1",
        "sport:2",
        "sport:3",
    ]
    assert "allowed: gender, religion" in refusal(data.load, source, ["music"])
    assert "sport" in refusal(data.load, source, ["music"])


def test_a_category_without_groups_is_asked_as_worldview_is(tmp_path: Path) -> None:
    with_groups = data.find("mcbe", mcbe_folder(tmp_path / "a")).sha256
    folder = mcbe_folder(tmp_path / "b", HEAD + SPORT + "groups = false\n")
    assert data.find("mcbe", folder).sha256 != with_groups
    path = folder / "sport.csv"
    path.write_text(path.read_text("utf-8").replace("[PLH]", ""), "utf-8")
    asked = run.evaluate("mcbe", "simulated:", data=folder, out=tmp_path / "run", partial=True)
    assert not (asked.records.category[asked.records.task == "ss"] == "sport").any()
    assert {(one["category"], one["why"]) for one in asked.about["unfit"]} >= {
        ("sport", "sport compares ways of living, not groups")
    }


@pytest.mark.parametrize(("benchmark", "make"), [("mcbe", mcbe_folder), ("cbbq", cbbq_folder)])
def test_what_was_curated_is_fetched_with_its_categories(
    tmp_path: Path, user: Path, benchmark, make
) -> None:
    told = HEAD + (SPORT if benchmark == "mcbe" else CITY) + "groups = false\n"
    source = data.find(benchmark, make(tmp_path / "mine", told))
    fetched = fetch(benchmark, tmp_path / "mine")
    assert (fetched.labels, fetched.language, fetched.sha256) == (
        source.labels,
        "zh",
        source.sha256,
    )
    assert (fetched.name, fetched.version, fetched.licence) == ("Ours", "3", "CC0-1.0")
    assert len(data.load(data.find(benchmark))) == len(data.load(source))


def test_the_hash_of_data_without_own_words_is_that_of_before(tmp_path: Path) -> None:
    bare = mcbe_folder(tmp_path / "a", "", name="race")
    told = mcbe_folder(
        tmp_path / "b", HEAD + '\n[categories.race]\nen = "Race"\nzh = "种族"\n', name="race"
    )
    assert data.find("mcbe", bare).sha256 == data.find("mcbe", told).sha256


def test_a_released_category_may_be_called_otherwise_in_another_language(tmp_path: Path) -> None:
    told = 'name = "한국"\nversion = "1"\nlicence = "MIT"\nlanguage = "ko"\n[categories.age]\nen = "Age"\nko = "나이"\n'
    data.find("mcbe", mcbe_folder(tmp_path, told, name="race"))
    assert (naming.native_name("mcbe", "age"), naming.english_name("mcbe", "age")) == (
        "나이",
        "Age",
    )
    assert naming.native_name("mcbe", "race") == "种族"
    assert naming.native_name("cbbq", "age") == "年龄"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("language = 7\n", "key `language`: 7 is not allowed"),
        (
            'language = "Chinese"\n',
            "key `language`: 'Chinese' is not allowed; expected codes of languages such as zh",
        ),
        ('language = "jp"\n', "key `language`: 'jp'"),
        (
            '[categories.sport]\nen = "S"\nzh = "体"\n',
            "key `language` is missing beside [categories]",
        ),
        (HEAD + "categories = 3\n", "key `categories`: 3 is not allowed"),
        (
            HEAD + 'categories = { sport = "体育" }\n',
            "key `categories.sport`: '体育' is not allowed; expected a table with en =",
        ),
        (HEAD + '[categories."../x"]\nen = "S"\nzh = "体"\n', "'../x' cannot be a category's name"),
        (HEAD + '[categories."a b"]\nen = "S"\nzh = "体"\n', "'a b' cannot be a category's name"),
        (HEAD + '[categories."a\\u0000b"]\nen = "S"\nzh = "体"\n', "cannot be a category's name"),
        (HEAD + f'[categories.{"a" * 41}]\nen = "S"\nzh = "体"\n', "cannot be a category's name"),
        (
            HEAD + '[categories.all]\nen = "S"\nzh = "体"\n',
            "'all' cannot be a category's name: all and test mean something else",
        ),
        (
            HEAD + '[categories.sport]\nen = "S"\n',
            'key `categories.sport`: a label is missing; expected en = "its label", zh = "its label"',
        ),
        (HEAD + '[categories.sport]\nzh = "体育"\n', "key `categories.sport`: a label is missing"),
        (
            HEAD + '[categories.sport]\nen = "S"\nzh = ""\n',
            "key `categories.sport.zh`: '' is not allowed",
        ),
        (
            HEAD + '[categories.sport]\nen = "$S$"\nzh = "体"\n',
            "key `categories.sport.en`: '$S$' is not allowed",
        ),
        (HEAD + '[categories.sport]\nen = "a\\u001b[2J"\nzh = "体"\n', "is not allowed"),
        (
            HEAD + SPORT + 'groups = "no"\n',
            "key `categories.sport.groups`: 'no' is not allowed; expected true, false",
        ),
        (HEAD + SPORT + 'licence = "MIT"\n', "key `categories.sport`: 'licence' is not allowed"),
    ],
)
def test_a_wrong_manifest_is_refused_with_its_key(
    tmp_path: Path, refusal, told: str, said: str
) -> None:
    folder = mcbe_folder(tmp_path, told)
    message = refusal(data.find, "mcbe", folder)
    assert message.startswith(str(folder / "dataset.toml"))
    assert said in message
    found = audit.check(folder)
    assert "dataset.toml" in set(found[found.kind == "refused"].file)


def test_a_run_of_before_and_a_hostile_one_are_opened(tmp_path: Path) -> None:
    asked = run.evaluate(
        "mcbe", "simulated:", data=mcbe_folder(tmp_path / "d"), out=tmp_path / "run", tasks=["ss"]
    )
    path = asked.folder / "run.json"
    about = json.loads(path.read_text("utf-8"))
    old = {key: value for key, value in about["data"].items() if key not in ("labels", "language")}
    naming._own_names.clear()
    for told in (
        old,
        old | {"labels": 3},
        old | {"labels": {"sport": 3, "x": {"en": "$x$"}, "y": {"en": ["z"]}}},
    ):
        path.write_text(json.dumps(about | {"data": told}), "utf-8")
        assert len(Run.open(asked.folder).scores())
        assert style.label("mcbe", "sport") == "sport"


@given(st.text(max_size=60))
def test_a_name_is_a_name_of_a_file_or_is_refused(name: str) -> None:
    if dataset.category_name_error(name):
        with pytest.raises(BadInput):
            dataset._category(Path("dataset.toml"), name, {"en": "a", "zh": "b"}, ("zh",))
    else:
        assert Path(name).parts == (name,)
        assert name.isprintable()
        assert not set(name) & set(":,|/\\. \"'")


def test_all_names_of_the_releases_would_be_taken() -> None:
    assert not any(dataset.category_name_error(name) for name in CATEGORIES)


def test_labels_are_shown_where_a_font_has_them() -> None:
    naming.remember_names(
        "mcbe", {"language": "ar", "labels": {"sport": {"en": "Sport", "ar": "رياضة"}}}
    )
    naming.remember_names(
        "mcbe", {"language": "es", "labels": {"city": {"en": "City", "es": "Peñón"}}}
    )
    assert style.label("mcbe", "sport") == "Sport"
    assert style.label("mcbe", "city") == "Peñón (City)"


def test_two_sets_that_call_a_category_differently_are_told_apart(tmp_path: Path) -> None:
    """The last that was opened gives the name, and a page that shows both says so."""
    one = data.find("mcbe", mcbe_folder(tmp_path / "one"))
    told = HEAD.replace('"Ours"', '"Theirs"') + SPORT.replace("Sports clubs", "Sport")
    other = data.find("mcbe", mcbe_folder(tmp_path / "other", told))
    sets = [("mcbe", source.describe()) for source in (one, other)]
    (found,) = naming.differing_names(sets)
    assert found == (
        "mcbe",
        "sport",
        ("Ours", "Theirs"),
        (("体育", "Sports clubs"), ("体育", "Sport")),
    )
    assert category_name_warnings(sets) == [
        "Category sport of McBE is called Sports clubs (体育) in the data Ours, and Sport (体育) in the data Theirs; "
        "here it is called Sport (体育)."
    ]
    assert naming.english_name("mcbe", "sport") == "Sport"
    assert (
        category_name_warnings([sets[0], sets[0]])
        == []
        == category_name_warnings([sets[0], ("cbbq", sets[1][1])])
    )


def test_a_released_category_that_a_set_calls_otherwise_is_told_beside_the_release(
    tmp_path: Path,
) -> None:
    labels = "".join(f'[categories."{name}"]\nen = "{name}"\nko = "범주"\n' for name in CATEGORIES)
    theirs = data.find("mcbe", mcbe_folder(tmp_path, HEAD.replace('"zh"', '"ko"') + labels, "age"))
    sets = [("mcbe", source.describe()) for source in (data.find("mcbe", SAMPLES / "mcbe"), theirs)]
    told = category_name_warnings(sets)
    assert len(told) == 4
    assert told[0].startswith("Category gender of McBE is called gender (性别) in the data ")
    assert told[-1] == f"So are {len(CATEGORIES) - 3} more categories."
    with use_language("zh"):
        assert "性别（gender）" in category_name_warnings(sets)[0]


def test_a_set_of_new_categories_alone_is_not_held_against_the_release(tmp_path: Path) -> None:
    """It lacks none of the release's categories, and its numbers stand alone."""
    folder = mcbe_folder(tmp_path / "mcbe")
    assert "the release has" in " ".join(data.check(data.find("mcbe", folder)).what)
    (folder / "age.csv").unlink()
    told = data.check(data.find("mcbe", folder)).what.tolist()
    assert "3 rows found" in told
    assert not any("the release" in what or "no file that is read" in what for what in told)

    told = (
        data.check(data.find("cbbq", cbbq_folder(tmp_path / "cbbq")))
        .query("kind == 'count'")
        .what.tolist()
    )
    assert [what.partition(":")[0] for what in told] == ["category city_life", "all categories"]
    assert not any("the release has " in what and "no such category" not in what for what in told)


def test_a_question_ends_with_the_sign_of_its_language(tmp_path: Path) -> None:
    folder = cbbq_folder(tmp_path)
    path = folder / "city_life" / "ambiguous" / "templates_generate_neg.csv"
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    rows[0]["question"], rows[1]["question"], rows[2]["question"] = (
        "누가 지쳤습니까?",
        "谁累了?",
        "Who was it",
    )
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = data.check(data.find("cbbq", folder)).query("fault == 'question_mark'")
    assert found[["row", "what"]].to_numpy().tolist() == [
        [2, "ends in an ASCII `?`"],
        [3, "does not end in `？`"],
    ]


def test_a_sentence_that_names_nobody_is_a_fact_in_other_languages_too() -> None:
    """A full stop ends a clause as 。 does; one in a number ends none."""
    start = "A {{NAME1}} and a {{NAME2}} came to the counter"
    for facts, why in (
        (". It was the older of the two.", ""),
        (" with 1.5 kg", NO_FACTS),
        (".", NO_FACTS),
    ):
        assert _unusable(mentions(start + facts)) == why
