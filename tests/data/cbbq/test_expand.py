"""`bench expand`: the bytes of the release, cleaner files by hand, and what is refused."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from bench import data
from bench.core.errors import RunFailed
from bench.core.files import DRAFT
from bench.data import cbbq, fetch
from bench.data.cbbq import expand as cbbq_expand
from bench.data.cbbq.expand import expand
from tests.helpers.recorded import command, templates

Bench = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bench(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    return lambda *words: command(monkeypatch, capsys, *words)


def expanded(folder: Path, expansion: str = "compat", out: str = "out", form: str = "both") -> Path:
    """Expand the templates of `folder` into the folder `out` next to it."""
    place = folder.parent / out
    expand(data.find("cbbq", folder), place, form, expansion)
    return place


def everything(folder: Path) -> list[str]:
    """Name all files in a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_expanded_files_are_the_released_ones_to_the_byte(
    bench: Bench, shared: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "folder"
    status, printed, err = bench("expand", "cbbq", "--data", shared / "data/cbbq", "--out", out)
    assert (status, err) == (0, "")
    ids = dict(
        line.split("\t")
        for line in (shared / "data/cbbq/blobs.tsv").read_text("utf-8").splitlines()
    )
    found = {}
    for path in out.rglob("*.[cj]s*"):
        raw = path.read_bytes()
        found[f"data/{path.relative_to(out).as_posix()}"] = hashlib.sha1(
            b"blob %d\0" % len(raw) + raw
        ).hexdigest()
    assert len(found) == 40
    assert found == {name: ids[name] for name in found}
    assert everything(out) == sorted(
        [*(name.removeprefix("data/") for name in found), "dataset.toml"]
    )
    lines = printed.splitlines()
    assert (
        lines[-1] == "73,438 questions in 40 files, 40 of which are the released ones to the byte"
    )
    blob = ids["data/age/ambiguous/ambiguous.csv"]
    first = f"{out}/age/ambiguous/ambiguous.csv: 7,400 questions, as released (git blob {blob})"
    assert first in lines
    assert "40 of 40 files equal the release" in (out / "dataset.toml").read_text("utf-8")


# A cell that CSV has to quote, and names that are swapped.
ODD = {"NAME1": "[甲]", "source": '一,"二"\n三'}
BARE = {"NAME1": "[甲]", "subcategory": "住"}
HEADER = (
    "example_id,question_index,question_polarity,context_condition,category,subcategory,"
    "bias_targeted_groups,source,context,question,ans0,ans1,ans2,label"
)


def small(root: Path) -> Path:
    return templates(root / "d", ODD, non_neg=[BARE], condition="disambiguous", category="religion")


def test_the_bytes_of_a_small_expansion_by_hand(tmp_path: Path) -> None:
    out = expanded(small(tmp_path)) / "religion/disambiguous"
    first, second = "甲和丙来了。丙忘了伞，甲带了两把。", "丙和甲来了。丙忘了伞，甲带了两把。"
    neg = '1,neg,disambiguous,religion,出行,甲地人,"一,""二""\n三"'
    rest = "1,non_neg,disambiguous,religion,住,甲地人,文献"
    lines = [
        HEADER,
        f"1,{neg},{first},谁忘了伞？,甲,丙,不知道,1",
        f"2,{neg},{second},谁忘了伞？,甲,丙,不知道,1",
        f"3,{rest},{first},谁带了伞？,甲,丙,不知道,0",
        f"4,{rest},{second},谁带了伞？,甲,丙,不知道,0",
    ]
    assert (out / "disambiguous.csv").read_bytes() == ("\ufeff" + "\n".join(lines) + "\n").encode()
    text = (out / "disambiguous.json").read_bytes().decode()
    start = (
        '[{"\ufeffexample_id":"1","question_index":"1","question_polarity":"neg","context_condition":"disambiguous",'
        '"category":"religion","subcategory":"出行","bias_targeted_groups":"甲地人","source":"一,\\"二\\"\\n三",'
        f'"context":"{first}","question":"谁忘了伞？","ans0":"甲","ans1":"丙","ans2":"不知道","label":"1"}},{{"\ufeffexample_id":"2",'
    )
    assert text.startswith(start)
    assert text.endswith('"ans0":"甲","ans1":"丙","ans2":"不知道","label":"0"}]')
    assert "\n" not in text


def test_repaired_files_keep_who_fills_the_slots_and_which_template_it_was(tmp_path: Path) -> None:
    out = expanded(small(tmp_path), "repair") / "religion/disambiguous"
    lines = (out / "disambiguous.csv").read_bytes().decode().split("\n")
    assert lines[0] == f"\ufeff{HEADER},name1,name2,swapped,template,target_name"
    assert [line.rpartition("不知道,")[2] for line in lines if "不知道" in line] == [
        "1,甲,丙,False,neg:1,甲",
        "1,甲,丙,True,neg:1,甲",
        "0,甲,丙,False,non_neg:1,甲",
        "0,甲,丙,True,non_neg:1,甲",
    ]
    rows = json.loads((out / "disambiguous.json").read_text("utf-8"))
    assert [(row["example_id"], row["swapped"]) for row in rows] == [
        ("1", "False"),
        ("2", "True"),
        ("3", "False"),
        ("4", "True"),
    ]
    assert list(rows[0]) == [
        *HEADER.split(","),
        "name1",
        "name2",
        "swapped",
        "template",
        "target_name",
    ], "without a mark"


# The tokens of the release (specification, section 5.3), in a sentence, and what was meant.
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
def test_a_misspelt_placeholder_is_left_mended_or_refused(
    tmp_path: Path, refusal, token: str
) -> None:
    slot = TOKENS[token]
    text = f"{{{{NAME{3 - slot}}}}}等{token}。"
    cells = {"NAME1": "[甲]", "context": text}
    folder = templates(tmp_path / "d", {"NAME1": "[甲]"}, cells, non_neg=[{"NAME1": "[甲]"}])
    name, other = ("甲", "丙") if slot == 1 else ("丙", "甲")
    for expansion, wanted in (
        ("compat", [f"{other}等{token}。", f"{name}等{token}。"]),
        ("repair", [f"{other}等{name}。", f"{name}等{other}。"]),
    ):
        rows = data.load(data.find("cbbq", expanded(folder, expansion, expansion, "csv")))
        assert [row.context for row in rows][2:4] == wanted
        assert [row.context for row in data.load(data.find("cbbq", folder), expansion=expansion)][
            2:4
        ] == wanted
    message = refusal(expanded, folder, "strict")
    path = folder / "region/ambiguous/templates_generate_neg.csv"
    assert message == (
        f"{path}, row 2, column `context`: {token!r} is no placeholder; "
        "expected {{NAME1}} or {{NAME2}}; `--repair` or `--set expansion=repair` fixes it"
    )
    assert refusal(data.load, data.find("cbbq", folder), expansion="strict") == message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("brace", ["{", "}"])
@pytest.mark.parametrize("column", ["context", "ans0", "ans1"])
def test_a_stray_brace_is_left_mended_or_refused(
    tmp_path: Path, refusal, brace: str, column: str
) -> None:
    plain = {
        "context": "{{NAME1}}等{{NAME2}}，与他人。",
        "ans0": "与他的{{NAME1}}",
        "ans1": "与他的{{NAME2}}",
    }
    cells = {**plain, column: plain[column].replace("与", f"与{brace}")}
    folder = templates(tmp_path / "d", cells)
    wanted = {"context": "甲等丙，与他人。", "ans0": "与他的甲", "ans1": "与他的丙"}
    for expansion, mark in (("compat", brace), ("repair", "")):
        first = data.load(data.find("cbbq", expanded(folder, expansion, expansion)))[0]
        for name, text in wanted.items():
            assert getattr(first, name) == (
                text.replace("与", f"与{mark}") if name == column else text
            )
    assert f"row 1, column `{column}`: {brace!r} is no placeholder" in refusal(
        expanded, folder, "strict"
    )


def test_a_sound_release_is_expanded_strictly(bench: Bench, tmp_path: Path) -> None:
    status, printed, _ = bench(
        "expand", "cbbq", "--data", data.SAMPLES / "cbbq", "--out", tmp_path / "o", "--strict"
    )
    assert status == 0
    last = "2,160 questions in 56 files, 0 of which are the released ones to the byte"
    assert printed.splitlines()[-1] == last
    # Known by its bytes, not by its name.
    assert printed.splitlines()[0].endswith(
        "SES/ambiguous/ambiguous.csv: 80 questions, not as released (git blob "
        + fetch.git_blob_id(tmp_path / "o/SES/ambiguous/ambiguous.csv")
        + ")"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"NAME2": "[丙, 乙]"},
            "column `NAME2`: '乙' is in NAME1 too, so that both people are called alike",
        ),
        (
            {"question_polarity": "non_neg"},
            "column `question_polarity`: 'non_neg' in a file of 'neg'",
        ),
        ({"category": "race"}, "column `category`: 'race' in a file of 'region'"),
    ],
)
def test_what_the_release_should_not_have_is_refused_when_strict_alone(
    tmp_path: Path, refusal, change: dict[str, str], said: str
) -> None:
    folder = templates(tmp_path / "d", {}, change)
    expanded(folder)
    message = refusal(expanded, folder, "strict", "strict")
    assert message.startswith(
        f"{folder}/region/ambiguous/templates_generate_neg.csv, row 2, {said}"
    )
    assert not (tmp_path / "strict").exists()


def test_a_pair_of_one_name_is_kept_as_released_passed_over_when_repaired_and_refused_when_strict(
    tmp_path: Path, refusal
) -> None:
    folder = templates(tmp_path / "d", {"NAME2": "[乙, 丙]"})
    # 甲 and 乙 with 乙 and 丙: 乙 with 乙 is one pair, of two questions.
    kept, mended = (
        data.load(data.find("cbbq", expanded(folder, how, how))) for how in ("compat", "repair")
    )
    assert len(kept) == 8 + 4
    assert [(one.name1, one.name2) for one in mended if one.template == "neg:1"] == [
        (a, b) for a, b in (("甲", "乙"), ("甲", "丙"), ("乙", "丙")) for _ in range(2)
    ]
    assert "'乙' is in NAME1 too" in refusal(expanded, folder, "strict")


def test_a_question_keeps_its_number_whatever_is_left_out_before_it(tmp_path: Path) -> None:
    source = data.find("cbbq", templates(tmp_path / "d", {"NAME2": "[乙, 丙]"}))
    released = {one.item_id: one.context for one in data.load(source)}
    mended = {one.item_id: one.context for one in data.load(source, expansion="repair")}
    assert len(released) == len(mended) + 2
    assert {name: released[name] for name in mended} == mended


def test_a_file_without_questions_is_an_empty_array(tmp_path: Path) -> None:
    alike = {"NAME1": "[甲]", "NAME2": "[甲]"}
    out = expanded(templates(tmp_path / "d", alike, non_neg=[alike]), "repair")
    assert json.loads((out / "region/ambiguous/ambiguous.json").read_text("utf-8")) == []


FAULTY = {
    "SES": {"context": "{{NAME1]}和{NAME2}}来了。"},
    "age": {"NAME1": "[ 青 年, 00后 ]", "bias_targeted_groups": "老年人 "},
    "gender": {},
    "disease": {},
    "nationality": {"NAME1": "[甲国, 甲国]"},
}


def faulty(root: Path) -> Path:
    for category, change in FAULTY.items():
        for condition in ("ambiguous", "disambiguous"):
            templates(root / "d", {}, change, category=category, condition=condition)
    return root / "d"


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("own", [True, False])
def test_an_expanded_folder_gives_the_questions_that_its_templates_do(
    tmp_path: Path, form: str, own: bool
) -> None:
    folder = faulty(tmp_path) if own else data.SAMPLES / "cbbq"
    out = tmp_path / "out"
    expand(data.find("cbbq", folder), out, form, "repair")
    wanted = data.load(data.find("cbbq", folder), expansion="repair")
    found = data.load(data.find("cbbq", out))
    assert len(found) == len(wanted) > 100 * (not own)
    for one, other in zip(found, wanted, strict=True):
        # Which slot is the target's, and what an audit finds, is the template's to say.
        of_template = {"target_name": "", "label_audited": 0}
        assert asdict(one) | of_template == asdict(other) | of_template


@pytest.mark.parametrize("category", ["educational_qualification", "gender"])
def test_an_expanded_folder_has_its_templates_polarity_and_names(
    tmp_path: Path, category: str
) -> None:
    cells = (
        {"ans0": "学历低的人", "ans1": "学历高的人"}
        if category == "educational_qualification"
        else {"ans1": "{{NAME2}}老师"}
    )
    folder = templates(
        tmp_path / "d", cells, non_neg=[{**cells, "question_polarity": "neg"}], category=category
    )
    wanted = data.load(data.find("cbbq", folder), expansion="repair")
    found = data.load(data.find("cbbq", expanded(folder, "repair")))
    assert [(one.polarity, one.target_name) for one in found] == [
        (one.polarity, one.target_name) for one in wanted
    ]


def test_a_wrong_template_anywhere_leaves_nothing_behind(bench: Bench, tmp_path: Path) -> None:
    folder = faulty(tmp_path)
    templates(folder, {}, {"NAME1": "甲"}, {}, category="religion")
    status, printed, err = bench("expand", "cbbq", "--data", folder, "--out", tmp_path / "out")
    assert (status, printed) == (2, "")
    assert err.startswith(
        f"bench: {folder}/religion/ambiguous/templates_generate_neg.csv, row 2, column `NAME1`: "
    )
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("error", [OSError("no space left on device"), KeyboardInterrupt()])
def test_an_expansion_that_breaks_off_leaves_whole_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    folder, whole = faulty(tmp_path), cbbq_expand.fillings
    before = expanded(folder, out="out")
    kept = (before / "gender/disambiguous/disambiguous.csv").read_bytes()
    seen = []

    def breaks(template, expansion):
        yield from whole(template, expansion)
        if (template.category, template.condition, template.name) == (
            "gender",
            "disambiguous",
            "neg:2",
        ):
            # What was made so far is being written beside the file's place.
            seen.extend(name for name in everything(before) if Path(name).name.startswith(DRAFT))
            raise error

    monkeypatch.setattr(cbbq_expand, "fillings", breaks)
    names = everything(before)
    with pytest.raises(RunFailed if isinstance(error, OSError) else KeyboardInterrupt) as caught:
        expanded(folder, "repair")
    assert len(seen) == 2
    assert everything(before) == names, "no draft is left"
    assert (before / "gender/disambiguous/disambiguous.csv").read_bytes() == kept
    assert b"name1" in (before / "gender/ambiguous/ambiguous.csv").read_bytes(), "was done before"
    if isinstance(error, OSError):
        assert (
            str(caught.value)
            == f"{before}: the questions could not be written there (no space left on device)"
        )


def test_a_folder_that_cannot_be_written_is_one_line_and_status_1(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("", "utf-8")
    status, printed, err = bench(
        "expand", "cbbq", "--data", small(tmp_path), "--out", tmp_path / "taken"
    )
    assert (status, printed) == (1, "")
    assert err.startswith(
        f"bench: {tmp_path / 'taken'}: the questions could not be written there ("
    )
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cbbq", "--as", "xml"), "format 'xml' is unknown; allowed: csv, json, both"),
        (
            ("cbbq", "--strict", "--repair"),
            "--strict and --repair: are two ways of expanding; give one",
        ),
        (("cbbq", "--repair", "--compat"), "--repair and --compat: are two ways"),
        (("mcbe",), "expand mcbe: has no templates; allowed: cbbq"),
        (("cbqb",), "benchmark 'cbqb' is unknown"),
        (("cbbq", "--data", "nowhere"), "nowhere: no such folder (--data)"),
        (
            ("cbbq", "--data", "alone"),
            "alone: holds no templates of CBBQ, so there is nothing to expand; expected CATEGORY/",
        ),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(
    bench: Bench, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    expand(
        data.find("cbbq", small(tmp_path)), tmp_path / "alone"
    )  # expanded files without templates
    status, printed, err = bench("expand", *words, "--out", tmp_path / "out")
    assert (status, printed) == (2, "")
    assert err.startswith("bench: ")
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_one_form_alone_is_written(bench: Bench, tmp_path: Path) -> None:
    folder = small(tmp_path)
    for form in ("csv", "json"):
        bench("expand", "cbbq", "--data", folder, "--out", tmp_path / form, "--as", form)
        assert everything(tmp_path / form) == [
            "dataset.toml",
            f"religion/disambiguous/disambiguous.{form}",
        ]
        found = data.find("cbbq", tmp_path / form)
        assert (found.name, found.licence) == ("CBBQ (local copy)", "CC-BY-SA-4.0")
        assert (
            found.note
            == "expanded from CBBQ (local copy), unknown (compat); 0 of 1 files equal the release"
        )
        assert len(cbbq.load(tmp_path / form, ["religion"])) == 4
