"""`bench expand`: the bytes of the release, cleaner files by hand, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench import data
from bench.core.errors import RunFailed
from bench.core.files import DRAFT
from bench.data import cbbq, fetch
from bench.data.cbbq import expand as cbbq_expand
from bench.data.cbbq.expand import expand
from tests.helpers.recorded import command, templates

Bench = Callable[..., tuple[int, str, str]]
Refusal = Callable[..., str]


@pytest.fixture
def bench(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    return lambda *words: command(monkeypatch, capsys, "expand", *words)


def expanded(folder: Path, expansion: str = "compat", out: str = "out", form: str = "both") -> Path:
    """Expand the templates of `folder` into the folder `out` next to it."""
    place = folder.parent / out
    expand(data.find("cbbq", folder), place, form, expansion)
    return place


def load(folder: Path, **settings: str) -> list[cbbq.Question]:
    return data.load(data.find("cbbq", folder), **settings)


def everything(folder: Path) -> list[str]:
    """Name all files in a folder, hidden ones too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def test_the_expanded_files_are_the_released_ones_to_the_byte(
    bench: Bench, shared: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "folder"
    status, printed, err = bench("cbbq", "--data", shared / "data/cbbq", "--out", out)
    assert (status, err) == (0, "")
    lines = (shared / "data/cbbq/blobs.tsv").read_text("utf-8").splitlines()
    ids = {name.removeprefix("data/"): blob for name, blob in (line.split("\t") for line in lines)}
    names = [name for name in everything(out) if name != "dataset.toml"]
    assert len(names) == 40
    assert {name: fetch.git_blob_id(out / name) for name in names} == {
        name: ids[name] for name in names
    }
    *files, total = printed.splitlines()
    assert total == "73,438 questions in 40 files, 40 of which are the released ones to the byte"
    name = "age/ambiguous/ambiguous.csv"
    assert f"{out}/{name}: 7,400 questions, as released (git blob {ids[name]})" in files
    assert "40 of 40 files equal the release" in (out / "dataset.toml").read_text("utf-8")


# A cell that CSV has to quote, and names that are swapped.
ODD = {"NAME1": "[甲]", "source": '一,"二"\n三'}
HEADER = (
    "example_id,question_index,question_polarity,context_condition,category,subcategory,"
    "bias_targeted_groups,source,context,question,ans0,ans1,ans2,label"
)


def small(root: Path) -> Path:
    bare = {"NAME1": "[甲]", "subcategory": "住"}
    place = {"condition": "disambiguous", "category": "religion"}
    return templates(root / "d", ODD, non_neg=[bare], **place)


def test_the_bytes_of_a_small_expansion_by_hand(tmp_path: Path) -> None:
    first, second = "甲和丙来了。丙忘了伞，甲带了两把。", "丙和甲来了。丙忘了伞，甲带了两把。"
    neg = '1,neg,disambiguous,religion,出行,甲地人,"一,""二""\n三"'
    rest = "1,non_neg,disambiguous,religion,住,甲地人,文献"
    lines = [
        f"1,{neg},{first},谁忘了伞？,甲,丙,不知道,1",
        f"2,{neg},{second},谁忘了伞？,甲,丙,不知道,1",
        f"3,{rest},{first},谁带了伞？,甲,丙,不知道,0",
        f"4,{rest},{second},谁带了伞？,甲,丙,不知道,0",
    ]
    out = expanded(small(tmp_path)) / "religion/disambiguous"
    text = "\n".join([f"\ufeff{HEADER}", *lines, ""])
    assert (out / "disambiguous.csv").read_bytes() == text.encode()
    text = (out / "disambiguous.json").read_bytes().decode()
    start = (
        '[{"\ufeffexample_id":"1","question_index":"1","question_polarity":"neg","context_condition":"disambiguous",'
        '"category":"religion","subcategory":"出行","bias_targeted_groups":"甲地人","source":"一,\\"二\\"\\n三",'
        f'"context":"{first}","question":"谁忘了伞？","ans0":"甲","ans1":"丙","ans2":"不知道","label":"1"}},{{"\ufeffexample_id":"2",'
    )
    assert text.startswith(start)
    assert text.endswith('"ans0":"甲","ans1":"丙","ans2":"不知道","label":"0"}]')
    assert "\n" not in text

    # Repaired files keep who fills the slots, and which template it was.
    out = expanded(small(tmp_path), "repair") / "religion/disambiguous"
    own = ["甲,丙,False,neg:1,甲", "甲,丙,True,neg:1,甲"]
    own += [name.replace("neg", "non_neg") for name in own]
    kept = "name1,name2,swapped,template,target_name"
    text = "\n".join([f"\ufeff{HEADER},{kept}", *map(",".join, zip(lines, own, strict=True)), ""])
    assert (out / "disambiguous.csv").read_bytes() == text.encode()
    rows = json.loads((out / "disambiguous.json").read_text("utf-8"))
    assert list(rows[0]) == [*HEADER.split(","), *kept.split(",")], "without a mark"
    assert [row["swapped"] for row in rows] == ["False", "True"] * 2


# The tokens of the release (specification, section 5.3), and which slot was meant.
TOKENS = {
    "{{NAME2}": 2,
    "{{NAME2]}": 2,
    "{{NAME1]}": 1,
    "{{NAME1}": 1,
    "{{NMAE1}}": 1,
    "{NAME1}}": 1,
    "{{NAM1}}": 1,
    "{NAME2}}": 2,
    "NAME2}}": 2,
    "{{NMAE2}}": 2,
}


@pytest.mark.parametrize("token", TOKENS)
def test_a_misspelt_placeholder_is_left_fixed_or_refused(
    tmp_path: Path, refusal: Refusal, token: str
) -> None:
    cells = {"NAME1": "[甲]", "context": f"{{{{NAME{3 - TOKENS[token]}}}}}等{token}。"}
    folder = templates(tmp_path / "d", cells)
    name, other = "甲丙" if TOKENS[token] == 1 else "丙甲"
    for expansion, expected in (
        ("compat", f"{other}等{token}。"),
        ("repair", f"{other}等{name}。"),
    ):
        copy = expanded(folder, expansion, expansion, "csv")
        for items in (load(copy), load(folder, expansion=expansion)):
            assert items[0].context == expected
    message = refusal(expanded, folder, "strict")
    path = folder / "region/ambiguous/templates_generate_neg.csv"
    assert message == (
        f"{path}, row 1, column `context`: {token!r} is no placeholder; "
        "expected {{NAME1}} or {{NAME2}}; `--repair` or `--set expansion=repair` fixes it"
    )
    assert refusal(load, folder, expansion="strict") == message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ans0": "{他{{NAME1}}"}, "column `ans0`: '{' is no placeholder"),
        ({"ans1": "}他{{NAME2}}"}, "column `ans1`: '}' is no placeholder"),
        ({"NAME2": "[丙, 乙]"}, "column `NAME2`: '乙' is in NAME1 too, so that both people are "),
        ({"question_polarity": "non_neg"}, "column `question_polarity`: 'non_neg' in a file of"),
        ({"category": "race"}, "column `category`: 'race' in a file of 'region'"),
    ],
)
def test_faults_of_the_release_are_refused_when_strict_alone(
    tmp_path: Path, refusal: Refusal, change: dict[str, str], said: str
) -> None:
    folder = templates(tmp_path / "d", {}, change)
    kept, fixed = (load(expanded(folder, how, how)) for how in ("compat", "repair"))
    message = refusal(expanded, folder, "strict", "strict")
    place = f"{folder}/region/ambiguous/templates_generate_neg.csv, row 2"
    assert message.startswith(f"{place}, {said}")
    assert not (tmp_path / "strict").exists()
    if "NAME2" in change:  # a pair of one name is left out, and the others keep their numbers
        contexts = {one.item_id: one.context for one in kept}
        assert len(contexts) == len(fixed) + 2
        assert {one.item_id: one.context for one in fixed} == {
            one.item_id: contexts[one.item_id] for one in fixed
        }
        assert all(one.name1 != one.name2 for one in fixed)
    elif "ans0" in change:
        assert (kept[4].ans0, fixed[4].ans0) == ("{他甲", "他甲")


def test_a_file_without_questions_is_an_empty_array(tmp_path: Path) -> None:
    alike = {"NAME1": "[甲]", "NAME2": "[甲]"}
    out = expanded(templates(tmp_path / "d", alike, non_neg=[alike]), "repair")
    assert json.loads((out / "region/ambiguous/ambiguous.json").read_text("utf-8")) == []


def faulty(root: Path) -> Path:
    for category, change in {
        "SES": {"context": "{{NAME1]}和{NAME2}}来了。"},
        "age": {"NAME1": "[ 青 年, 00后 ]", "bias_targeted_groups": "老年人 "},
        "educational_qualification": {"question_polarity": "non_neg", "ans0": "低", "ans1": "高"},
        "disease": {},
        "gender": {"ans1": "{{NAME2}}老师"},
        "nationality": {"NAME1": "[甲国, 甲国]"},
    }.items():
        for condition in cbbq.CONDITIONS:
            templates(root / "d", {}, change, category=category, condition=condition)
    return root / "d"


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("own", [True, False])
def test_an_expanded_folder_gives_the_questions_that_its_templates_do(
    tmp_path: Path, form: str, own: bool
) -> None:
    folder = faulty(tmp_path) if own else data.SAMPLES / "cbbq"
    expand(data.find("cbbq", folder), tmp_path / "out", form, "repair")
    items, found = load(folder, expansion="repair"), load(tmp_path / "out")
    assert len(found) == len(items) > 20
    # What an audit finds is the templates' to say.
    assert [{**asdict(one), "label_audited": 0} for one in found] == [
        {**asdict(one), "label_audited": 0} for one in items
    ]


@pytest.mark.parametrize("error", [OSError("no space left on device"), KeyboardInterrupt()])
def test_an_expansion_that_breaks_off_leaves_complete_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    out = expanded(faulty(tmp_path))
    kept, names = (out / "gender/disambiguous/disambiguous.csv").read_bytes(), everything(out)
    seen = []

    def breaks(path: Path, rows: Any, as_released: bool) -> None:
        with cbbq_expand.atomic_path(path) as draft:
            draft.write_text("half", "utf-8")
            seen.extend(name for name in everything(out) if Path(name).name.startswith(DRAFT))
            raise error

    monkeypatch.setattr(cbbq_expand, "_write", breaks)
    with pytest.raises(RunFailed if isinstance(error, OSError) else KeyboardInterrupt) as caught:
        expanded(tmp_path / "d", "repair")
    assert len(seen) == 1
    assert everything(out) == names, "no draft is left"
    assert (out / "gender/disambiguous/disambiguous.csv").read_bytes() == kept
    message = f"{out}: the questions could not be written there (no space left on device)"
    assert str(caught.value) in ("", message)


# Words of the command, its status, and words of what it prints.
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("cbbq --as xml", 2, "format 'xml' is unknown; allowed: csv, json, both"),
        ("cbbq --strict --repair", 2, "--strict and --repair: are two ways of expanding; give one"),
        ("cbbq --repair --compat", 2, "--repair and --compat: are two ways"),
        ("mcbe", 2, "expand mcbe: has no templates; allowed: cbbq"),
        ("cbqb", 2, "benchmark 'cbqb' is unknown"),
        ("cbbq --data nowhere", 2, "nowhere: no such folder (--data)"),
        ("cbbq --data alone", 2, "alone: holds no templates of CBBQ, so there is nothing to exp"),
        ("cbbq --data wrong", 2, "templates_generate_neg.csv, row 1, column `NAME1`: "),
        ("cbbq --data d --out taken", 1, "taken: the questions could not be written there ("),
    ],
)
def test_what_cannot_be_expanded_is_one_line(
    bench: Bench, tmp_path: Path, words: str, status: int, said: str
) -> None:
    expand(data.find("cbbq", small(tmp_path)), tmp_path / "alone")  # no templates
    templates(tmp_path / "wrong", {"NAME1": "甲"})
    (tmp_path / "taken").write_text("", "utf-8")
    given = words.split()
    ended, printed, err = bench(*given, *([] if "--out" in given else ["--out", "out"]))
    assert (ended, printed) == (status, "")
    assert err.startswith("bench: ")
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_one_form_alone_is_written_and_described(bench: Bench, tmp_path: Path) -> None:
    folder = small(tmp_path)
    for form in ("csv", "json"):
        out = tmp_path / form
        status, printed, _ = bench("cbbq", "--data", folder, "--out", out, "--as", form, "--strict")
        name = f"religion/disambiguous/disambiguous.{form}"
        assert status == 0
        assert everything(out) == ["dataset.toml", name]
        assert printed.splitlines() == [
            f"{out}/{name}: 4 questions, not as released (git blob {fetch.git_blob_id(out / name)})",
            "4 questions in 1 files, 0 of which are the released ones to the byte",
        ]
        found = data.find("cbbq", out)
        assert (found.name, found.licence) == ("CBBQ (local copy)", "CC-BY-SA-4.0")
        note = "expanded from CBBQ (local copy), unknown (strict); 0 of 1 files equal the release"
        assert found.note == note
        assert len(load(out)) == 4
