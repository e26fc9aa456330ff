"""Finished sets of McBE items: of one project or of several, data like any other, and never written over."""

import shutil

import pandas as pd
import pytest

from bench import data
from bench.core.errors import BadInput
from bench.curate import mcbe, mcbe_findings, mcbe_rounds, mcbe_simulated, mcbe_write, sheets
from bench.curate.mcbe_rounds import DISCUSSION, SEVERITY, SUBCATEGORY
from bench.tasks import prompts as wording
from bench.tasks.prompts import PROMPTS
from tests.helpers.curating_mcbe import worked

# Simulated people work through all rounds.
pytestmark = pytest.mark.slow

LEFT_OUT = {
    (SUBCATEGORY, "an", "d02", "objection"): "不通顺",
    (DISCUSSION, "panel", "d02", "decision"): "leave out",
    (DISCUSSION, "panel", "d02", "reason"): "不通顺",
}


def changed(path, old, new):
    """Change a text of a file, which it has."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project that went all the way; one draft was left out."""
    return worked(mcbe.copied(tmp_path_factory.mktemp("one") / "diet"), LEFT_OUT)


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """Another batch of the same category: other people, and one draft less."""
    place = tmp_path_factory.mktemp("two") / "more"
    mcbe.copied(place)
    changed(place / mcbe.MANIFEST, '"an", "bai", "chen", "ding", "fan"', '"v", "w", "x", "y", "z"')
    lines = (place / mcbe.DRAFTS).read_text("utf-8").splitlines()
    (place / mcbe.DRAFTS).write_text("\n".join([*lines[:1], *lines[2:]]) + "\n", "utf-8")
    return worked(mcbe.opened(place))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another category of the same set."""
    place = tmp_path_factory.mktemp("three") / "taste"
    mcbe.copied(place)
    changed(place / mcbe.MANIFEST, "[categories.diet]", "[categories.taste]")
    changed(place / mcbe.MANIFEST, 'en = "Diet"', 'en = "Taste"')
    return worked(mcbe.opened(place))


def test_the_finished_set_is_data_like_any_other_and_is_never_written_over(finished, tmp_path):
    folder = mcbe_write.finish(finished, out=tmp_path / "out")
    source = data.find("mcbe", folder)
    items = data.load(source)
    assert (source.name, source.version, source.labels["diet"]) == (
        "McBE example: diet",
        "1",
        {"en": "Diet", "zh": "饮食"},
    )
    assert len(items) == 11
    assert {one.subtype for one in items} == set(finished.project.subcategories)
    assert items[0].item_id == "diet:1"
    names = dict(zip(provenance_of(folder).draft, provenance_of(folder).item_id, strict=True))
    # d02 was left out, so the rows behind it move up.
    assert (names["d01"], names["d02"], names["d03"]) == ("diet:1", "", "diet:2")
    assert mcbe_write.finish(finished, out=tmp_path / "out") == folder
    (folder / "diet.csv").write_text("x", "utf-8")
    with pytest.raises(BadInput, match="nothing is written over"):
        mcbe_write.finish(finished, out=tmp_path / "out")


def provenance_of(folder):
    return pd.read_json(folder / "provenance.jsonl", lines=True, dtype=str)


def test_the_set_can_be_asked(finished, tmp_path):
    from bench.run import evaluate

    folder = mcbe_write.finish(finished, out=tmp_path / "out")
    run = evaluate(
        "mcbe", "simulated:bias=0.7,seed=1", data=folder, tasks=["pc", "ss"], out=tmp_path / "run"
    )
    scores = run.scores()
    assert set(scores.category) == {"diet", "all"}
    assert scores[(scores.task == "ss") & (scores.metric == "score")].valid_rate.min() == 1


def test_projects_of_a_set_lie_side_by_side_and_batches_one_behind_the_other(
    finished, batch, other, tmp_path
):
    folder = mcbe_write.finish(finished, batch, other, out=tmp_path / "set")
    source = data.find("mcbe", folder)
    items = data.load(source)
    counts = {one: sum(item.category == one for item in items) for one in ("diet", "taste")}
    assert counts == {"diet": 22, "taste": 12}
    assert set(source.labels) == {"diet", "taste"}
    log = provenance_of(folder)
    assert set(log.project) == {"diet", "more", "taste"}
    names = {(row.project, row.draft): row.item_id for row in log.itertuples()}
    # Eleven of the first project, then the second's; its first draft is d02.
    assert (names["diet", "d12"], names["more", "d02"], names["taste", "d02"]) == (
        "diet:11",
        "diet:12",
        "taste:2",
    )
    texts = {item.item_id: item.sentence for item in items}
    drafts = batch.project.drafts.set_index("draft").sentence
    assert texts["diet:12"] == drafts["d02"]


def test_a_set_brings_the_wording_that_its_project_has(finished, tmp_path):
    place = tmp_path / "p"
    shutil.copytree(finished.project.folder, place)
    ours = PROMPTS / "mcbe.toml"
    changed_text = ours.read_text("utf-8").replace('version = "bench-mcbe-3"', 'version = "mine-1"')
    (place / "prompts.toml").write_text(changed_text, "utf-8")
    folder = mcbe_write.finish(mcbe_rounds.look(mcbe.opened(place)), out=tmp_path / "set")
    assert wording.load("mcbe", data=folder).version == "mine-1"


def test_agreement_over_projects_counts_each_item_once(finished, batch, other):
    found = mcbe_findings.agreement(finished, batch, other)
    kappas = found[(found.of == "subcategory") & (found.measure == "Fleiss' kappa")].set_index(
        "category"
    )
    assert kappas.n.to_dict() == {"all": 35, "diet": 23, "taste": 12}
    # Nobody errs.
    assert kappas.value["diet"] == pytest.approx(1)


def test_projects_that_say_different_things_of_the_set_are_refused(finished, other, tmp_path):
    place = tmp_path / "p"
    shutil.copytree(other.project.folder, place)
    changed(place / mcbe.MANIFEST, 'version = "1"', 'version = "2"')
    with pytest.raises(BadInput, match="key `version`: differs from that of"):
        mcbe_write.finish(finished, mcbe_rounds.look(mcbe.opened(place)), out=tmp_path / "set")
    with pytest.raises(BadInput, match="is given twice"):
        mcbe_write.finish(finished, finished, out=tmp_path / "set")
    begun = mcbe_rounds.look(mcbe.copied(tmp_path / "begun"))
    with pytest.raises(
        BadInput, match="begun: is not done; it waits for sheet 1-subcategory to be sent"
    ):
        mcbe_write.finish(finished, begun, out=tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_one_of_the_people_who_gives_up_is_replaced_in_the_project_file(tmp_path):
    project = mcbe.copied(tmp_path / "p")
    people = mcbe_simulated.Annotators(mcbe_simulated.truth(), reliability=1, objects=0)
    found = mcbe_rounds.advance(project)
    sheet = found.sent[SUBCATEGORY].sheet
    for person in sheet.people[:4]:
        people.fill_one(found, sheet, person)
    assert mcbe_rounds.advance(project).waits == "12 answers of sheet 1-subcategory"
    changed(tmp_path / "p" / mcbe.MANIFEST, '"ding", "fan"]', '"ding", "new"]')
    project = mcbe.opened(tmp_path / "p")
    found = mcbe_rounds.advance(project)
    assert found.sent[SUBCATEGORY].sheet.people[-1] == "new"
    assert (project.sheets / SUBCATEGORY / "new.xlsx").exists()
    people.fill_one(found, found.sent[SUBCATEGORY].sheet, "new")
    assert SEVERITY in mcbe_rounds.advance(project).sent
    assert sheets.opened(project.sheets, SUBCATEGORY).former == ["fan"]


def test_a_model_that_fails_loses_no_merged_explanation(tmp_path, monkeypatch):
    project = mcbe.copied(tmp_path / "p")
    people = mcbe_simulated.Annotators(mcbe_simulated.truth(), reliability=1, objects=0)
    found = mcbe_rounds.advance(project)
    while people.fill(found):
        found = mcbe_rounds.advance(project)
    asked = []

    def write(prompts):
        if asked:
            raise KeyboardInterrupt
        asked.extend(prompts)
        return [f"合并 {k}" for k, _ in enumerate(prompts)]

    monkeypatch.setattr(mcbe_rounds, "BATCH", 5)
    with pytest.raises(KeyboardInterrupt):
        mcbe_rounds.advance(project, write, "m")
    again = []
    mcbe_rounds.advance(
        project, lambda prompts: [again.append(one) or "合并" for one in prompts], "m"
    )
    assert (len(asked), len(again)) == (5, 7)
    assert not {*asked} & {*again}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version = "bench-curate-mcbe-1"', "", r"expected `version = "),
        ("{explanations}", "{others}", r"table \[merge\], `prompt`: expected the fields"),
        ('severity = "偏', 'serious = "偏', r"table \[asked\]: the text `severity` is missing"),
        ("[quality]", "[questions]", r"table \[quality\]: expected questions"),
    ],
)
def test_a_wording_of_ones_own_has_all_texts(tmp_path, old, new, message):
    mcbe.copied(tmp_path / "p")
    own = tmp_path / "p" / "wording.toml"
    own.write_text(mcbe.WORDING.read_text("utf-8"), "utf-8")
    assert mcbe.opened(tmp_path / "p").wording["version"] == "bench-curate-mcbe-1"
    changed(own, old, new)
    with pytest.raises(BadInput, match=message):
        mcbe.opened(tmp_path / "p")
