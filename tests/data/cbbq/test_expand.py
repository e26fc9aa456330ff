"""`bench expand`: the bytes of the release, cleaner files by hand, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench import data
from bench.benchmarks.cbbq.expand import expand
from bench.benchmarks.cbbq.templates import CONDITIONS
from bench.data import fetch
from tests.helpers.cases import cases
from tests.helpers.recorded import command, templates


def expanded(folder, expansion="compat", form="both"):
    """Expand the templates of `folder` into a folder next to it that has the name of the rule."""
    place = folder.parent / expansion
    expand(data.find("cbbq", folder), place, form, expansion)
    return place


def load(folder, **settings):
    return data.load(data.find("cbbq", folder), **settings)


@pytest.fixture
def bench(own_folder, monkeypatch, capsys):
    return lambda *words: command(monkeypatch, capsys, "expand", *words)


def test_the_expanded_files_are_the_released_ones_to_the_byte(bench, shared, tmp_path):
    out = tmp_path / "new" / "folder"
    status, printed, _ = bench("cbbq", "--data", shared / "data/cbbq", "--out", out)
    assert status == 0
    lines = (shared / "data/cbbq/blobs.tsv").read_text("utf-8").splitlines()
    ids = {name.removeprefix("data/"): blob for name, blob in (line.split("\t") for line in lines)}
    paths = [path for path in out.rglob("*.*") if path.name not in ("dataset.toml", "README.md")]
    written = {path.relative_to(out).as_posix(): fetch.git_blob_id(path) for path in paths}
    assert len(written) == 40
    assert written.items() <= ids.items()
    *files, total = printed.splitlines()
    assert total == "73,438 questions in 40 files, 40 of which are the released ones to the byte"
    name = "age/ambiguous/ambiguous.csv"
    assert f"{out}/{name}: 7,400 questions, as released (git blob {ids[name]})" in files
    assert "40 of 40 files equal the release" in (out / "dataset.toml").read_text("utf-8")


def test_an_unknown_expansion_is_refused(refusal, tmp_path):
    source = data.find("cbbq", "samples")
    assert "expansion 'strictt' is unknown" in refusal(expand, source, tmp_path, "both", "strictt")


def small(root):
    """Templates with a cell that CSV has to quote, and names that are swapped."""
    odd = {"NAME1": "[甲]", "source": '一,"二"\n三'}
    bare = {"NAME1": "[甲]", "subcategory": "住"}
    place = {"condition": "disambiguous", "category": "religion"}
    return templates(root / "d", odd, non_neg=[bare], **place)


@pytest.mark.parametrize("name", ["compat.csv", "compat.json", "repair.csv", "repair.json"])
def test_the_bytes_of_a_small_expansion_by_hand(tmp_path, name):
    """Repaired files keep who fills the slots and which template it was, and JSON has no mark."""
    expansion, form = name.split(".")
    out = expanded(small(tmp_path), expansion, form)
    written = out / f"religion/disambiguous/disambiguous.{form}"
    assert written.read_bytes() == (Path(__file__).parent / "expanded" / name).read_bytes()
    note = f"expanded from CBBQ (local copy), unknown ({expansion}); 0 of 1 files equal the release"
    assert data.find("cbbq", out).note == note


# A cell (tokens of the release: specification, section 5.3), what the first question holds, as
# released and repaired, and what strict expansion says.
@cases(__file__, "strict.csv")
def test_faults_of_the_release_are_left_fixed_or_refused(tmp_path, refusal, case):
    folder = templates(tmp_path / "d", {case["column"]: case["cell"]})
    for expansion in ("compat", "repair"):
        for items in (load(expanded(folder, expansion, "csv")), load(folder, expansion=expansion)):
            assert case[expansion] in " ".join(items[0].text)
    message = refusal(expanded, folder, "strict")
    place = f"{folder}/region/ambiguous/templates_generate_neg.csv, row 1"
    assert message.startswith(f"{place}, {case['strict']}")
    assert refusal(load, folder, expansion="strict") == message
    assert not (tmp_path / "strict").exists()


def faulty(root):
    fixed = {"ans0": "低", "ans1": "高", "bias_targeted_groups": "低"}
    for category, change in {
        "age": {"NAME1": "[ 青 年, 00后 ]", "bias_targeted_groups": "青年 "},
        "educational_qualification": {"question_polarity": "non_neg"} | fixed,
        "disease": {"NAME1": "[甲]", "NAME2": "[甲]"} | fixed,
        "gender": {"ans1": "{{NAME2}}老师", "context": "{{NAME1]}和{NAME2}}来了。"},
    }.items():
        for condition in CONDITIONS:
            templates(root / "d", {}, change, category=category, condition=condition)
    return root / "d"


@pytest.mark.parametrize("form", ["csv", "json"])
def test_an_expanded_folder_gives_the_questions_that_its_templates_do(tmp_path, form):
    """Pairs of one name are left out, and the others keep their numbers."""
    folder = faulty(tmp_path)
    items, found = load(folder, expansion="repair"), load(expanded(folder, "repair", form))
    assert {one.item_id for one in items} < {one.item_id for one in load(folder)}
    assert len(found) == len(items) > 20
    # What an audit finds is the templates' to say.
    expected = [replace(one, label_audited=0) for one in items]
    assert [replace(one, label_audited=0) for one in found] == expected


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("--out out --as xml", 2, "format 'xml' is unknown; allowed: csv, json, both"),
        ("--out out --strict --repair", 2, "--strict, --repair, --compat: are ways of expanding"),
        ("--out out --data compat", 2, "compat: holds no templates of CBBQ, so there is nothing"),
        ("--out taken --data d", 1, "cannot be written ("),
    ],
)
def test_what_cannot_be_expanded_is_one_line(bench, tmp_path, words, status, message):
    expanded(small(tmp_path))  # no templates
    (tmp_path / "taken").write_text("", "utf-8")
    ended, printed, err = bench("cbbq", *words.split())
    assert (ended, printed, err.count("\n")) == (status, "", 1)
    assert message in err
    assert not (tmp_path / "out").exists()
