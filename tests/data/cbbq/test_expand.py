"""`bench expand`: the bytes of the release, cleaner files by hand, and what is refused."""

import csv
import json
from dataclasses import asdict

import pytest

from bench import data
from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq.expand import expand
from bench.benchmarks.cbbq.templates import INSTANCE_COLUMNS
from bench.data import fetch
from tests.helpers.cases import cases
from tests.helpers.recorded import command, templates


@pytest.fixture
def bench(own_folder, monkeypatch, capsys):
    return lambda *words: command(monkeypatch, capsys, "expand", *words)


def expanded(folder, expansion="compat", form="both"):
    """Expand the templates of `folder` into a folder next to it that has the name of the rule."""
    place = folder.parent / expansion
    expand(data.find("cbbq", folder), place, form, expansion)
    return place


def load(folder, **settings):
    return data.load(data.find("cbbq", folder), **settings)


def everything(folder):
    """Name all files in a folder, hidden ones too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def test_the_expanded_files_are_the_released_ones_to_the_byte(bench, shared, tmp_path):
    out = tmp_path / "new" / "folder"
    status, printed, _ = bench("cbbq", "--data", shared / "data/cbbq", "--out", out)
    assert status == 0
    lines = (shared / "data/cbbq/blobs.tsv").read_text("utf-8").splitlines()
    ids = {name.removeprefix("data/"): blob for name, blob in (line.split("\t") for line in lines)}
    names = [name for name in everything(out) if name not in ("dataset.toml", "README.md")]
    assert len(names) == 40
    assert all(fetch.git_blob_id(out / name) == ids[name] for name in names)
    *files, total = printed.splitlines()
    assert total == "73,438 questions in 40 files, 40 of which are the released ones to the byte"
    name = "age/ambiguous/ambiguous.csv"
    assert f"{out}/{name}: 7,400 questions, as released (git blob {ids[name]})" in files
    assert "40 of 40 files equal the release" in (out / "dataset.toml").read_text("utf-8")


HEADER = ",".join(["example_id", *INSTANCE_COLUMNS])


def small(root):
    """Templates with a cell that CSV has to quote, and names that are swapped."""
    odd = {"NAME1": "[甲]", "source": '一,"二"\n三'}
    bare = {"NAME1": "[甲]", "subcategory": "住"}
    place = {"condition": "disambiguous", "category": "religion"}
    return templates(root / "d", odd, non_neg=[bare], **place)


def test_the_bytes_of_a_small_expansion_by_hand(tmp_path):
    first, second = "甲和丙来了。丙忘了伞，甲带了两把。", "丙和甲来了。丙忘了伞，甲带了两把。"
    neg = '1,neg,disambiguous,religion,出行,甲/乙,"一,""二""\n三"'
    rest = "1,non_neg,disambiguous,religion,住,甲/乙,文献"
    lines = [
        f"1,{neg},{first},谁忘了伞？,甲,丙,不知道,1",
        f"2,{neg},{second},谁忘了伞？,甲,丙,不知道,1",
        f"3,{rest},{first},谁带了伞？,甲,丙,不知道,0",
        f"4,{rest},{second},谁带了伞？,甲,丙,不知道,0",
    ]
    note = "expanded from CBBQ (local copy), unknown (compat); 0 of 2 files equal the release"
    assert data.find("cbbq", expanded(small(tmp_path))).note == note
    out = tmp_path / "compat/religion/disambiguous"
    text = "\n".join([f"\ufeff{HEADER}", *lines, ""])
    assert (out / "disambiguous.csv").read_bytes() == text.encode()
    keys, cells = f"\ufeff{HEADER}".split(","), csv.reader("\n".join(lines).splitlines(True))
    rows = [dict(zip(keys, row, strict=True)) for row in cells]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    assert (out / "disambiguous.json").read_bytes() == text.encode()

    # Repaired files keep who fills the slots, and which template it was.
    out = expanded(small(tmp_path), "repair") / "religion/disambiguous"
    own = ["甲,丙,False,neg:1,甲", "甲,丙,True,neg:1,甲"]
    own += [name.replace("neg", "non_neg") for name in own]
    kept = "name1,name2,swapped,template,target_name"
    text = "\n".join([f"\ufeff{HEADER},{kept}", *map(",".join, zip(lines, own, strict=True)), ""])
    assert (out / "disambiguous.csv").read_bytes() == text.encode()
    rows = json.loads((out / "disambiguous.json").read_text("utf-8"))
    assert list(rows[0]) == [*HEADER.split(","), *kept.split(",")], "without a mark"


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
        for condition in cbbq.CONDITIONS:
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
    assert [{**asdict(one), "label_audited": 0} for one in found] == [
        {**asdict(one), "label_audited": 0} for one in items
    ]


# Words of the command, its status, and words of what it prints.
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("cbbq --as xml", 2, "format 'xml' is unknown; allowed: csv, json, both"),
        (
            "cbbq --strict --repair",
            2,
            "--strict, --repair, --compat: are ways of expanding; give one",
        ),
        ("cbbq --data compat", 2, "compat: holds no templates of CBBQ, so there is nothing to exp"),
        ("cbbq --data d --out taken", 1, "cannot be written ("),
    ],
)
def test_what_cannot_be_expanded_is_one_line(bench, tmp_path, words, status, said):
    expanded(small(tmp_path))  # no templates
    (tmp_path / "taken").write_text("", "utf-8")
    given = words.split()
    ended, printed, err = bench(*given, *([] if "--out" in given else ["--out", "out"]))
    assert (ended, printed, err.count("\n")) == (status, "", 1)
    assert said in err
    assert not (tmp_path / "out").exists()
