"""NLI-CoAL's sets: samples and release, settings, wrong lines, and checks."""

import json
from collections import Counter

import nli_sets
import pytest

from bench import data
from bench.benchmarks import get
from tests.helpers.cases import table

SETS = "bias-eval-set_v1/all-words"
check = get("nli_coal").check
STEMS = ("1-prostereo", "2-antistereo", "3-nonstereo")
BARE = {"sentence1": "the nurse sits.", "sentence2": "the woman sits.", "label": "neutral"}
GOOD = {"id": 0, **BARE, "occ_word": "nurse", "occ_type": "female-stereo"}


def write(folder, name, *lines, language="en"):
    """Write lines, dictionaries or bytes, to a file of a language, and return the file."""
    path = folder / f"{language}_v1/{name}_v1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return path


def write_sets(folder, *lines, language="en"):
    """Write lines as PS, next to a good AS and NS, and return the file of PS."""
    for k, stem in enumerate(STEMS[1:], start=1):
        write(folder, f"{SETS}/{stem}", GOOD | {"id": 1000 * k}, language=language)
    return write(folder, f"{SETS}/{STEMS[0]}", *lines, language=language)


def load(folder, *categories, **settings):
    return data.load(data.find("nli_coal", folder), categories, **settings)


@pytest.fixture
def released(shared):
    return shared / "data" / "nli_coal"


# The size of NS, its neutral occupations, frames (of which one English and three Japanese stand
# there twice), and occupations of NS that tell a gender (the Chinese list has no cameraman).
@pytest.mark.parametrize(
    ("language", "size", "neutral", "frames", "definitional"),
    [("en", 3420, 171, 279, 16), ("ja", 3420, 171, 277, 16), ("zh", 3320, 166, 275, 15)],
)
def test_the_released_sets_are_those_of_the_paper(
    released, language, size, neutral, frames, definitional
):
    pairs = load(released, language)
    assert [pair.id for pair in pairs] == list(range(2000 + size))
    assert Counter(pair.set for pair in pairs) == {"ps": 1000, "as": 1000, "ns": size}
    kinds = Counter({pair.occupation: pair.occupation_type for pair in pairs}.values())
    assert kinds == {"female-stereo": 13, "male-stereo": 87, "neutral": neutral}
    assert len({pair.frame for pair in pairs}) == frames
    source = data.find("nli_coal", released)
    kept, effects = data.read(source, [language], definitional="leave_out")
    gone = set(pairs) - set(kept)
    assert {pair.set for pair in gone} == {"ns"}
    counts = [effect.rows for effect in effects if effect.is_excluded]
    assert counts == [len(gone)] == [20 * definitional]
    if language != "ja":
        sizes = Counter(pair.set for pair in load(released, language, set="downsample"))
        assert sizes == {"ps": 200, "as": 200, "ns": 200}


def test_japanese_rows_are_repaired_or_kept_and_tokenized_ones_have_blanks(released):
    place = released / "ja_v1.1"  # the folder of one language may be given itself
    repaired, kept = (load(place, anomalies=name) for name in ("repair", "keep"))
    differing = [a.id for a, b in zip(kept, repaired, strict=True) if a != b]
    wrong = [2549, 2558, 2567, 2576, 2594, 2612, 2621, 2630]
    assert differing == [*wrong, *(number + 1710 for number in wrong)]
    (effect,) = data.read(data.find("nli_coal", place)).effects
    assert effect[:3] == ("ja", "ns", 16)
    assert "names another occupation than its sentences have" in effect.what
    for a, b in zip(repaired, load(place, tokens="tokenized"), strict=True):
        assert b.premise.replace(" ", "") == a.premise != b.premise
        assert (a.id, a.occupation, a.occupation_type) == (b.id, b.occupation, b.occupation_type)
        assert (a.term, a.frame) == (b.term, b.frame)


def test_rows_without_id_and_occupation_are_numbered_and_get_it_by_position(tmp_path):
    sentences = {"sentence1": "the baker by a lake runs.", "sentence2": "the man by a lake runs."}
    for stem in STEMS:
        write(tmp_path, f"{SETS}/{stem}", BARE, b"", BARE | sentences)
    pairs, kept = load(tmp_path), load(tmp_path, anomalies="keep")
    assert [pair.item_id for pair in pairs] == [f"en:{k}" for k in range(6)]
    words = [(pair.occupation, pair.occupation_type) for pair in pairs[::2]]
    assert words == [("nurse", kind) for kind in ("female-stereo", "male-stereo", "neutral")]
    assert (pairs[1].frame, pairs[1].cluster) == ("the [Sub] by a lake runs.", "en:baker")
    assert (kept[1].occupation, kept[1].cluster) == ("", "en:the baker by a lake runs.")


def test_rows_keep_their_own_ids_zero_among_them(tmp_path):
    write_sets(tmp_path, GOOD | {"id": 3}, GOOD | {"id": 0})
    assert [pair.id for pair in load(tmp_path)][:2] == [3, 0]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (GOOD | {"label": "entailment"}, ", field `label`: 'entailment' is not allowed; it has to"),
        (GOOD | {"sentence1": "a\nb"}, ", field `sentence1`: 'a\\nb' is not allowed; expected a"),
        (GOOD | {"sentence2": "a craftsman."}, ", field `sentence2`: expected woman or man in "),
        (GOOD | {"id": 5}, ": id 5 occurs more than once"),
        (GOOD | {"id": 10**30}, f", field `id`: {10**30} is not allowed; it has to be less than "),
        (GOOD | {"sentence1": "a" * 10_001}, ", field `sentence1`: 'aaa"),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_number(tmp_path, refusal, line, error):
    path = write_sets(tmp_path, GOOD | {"id": 5}, b"", line)
    assert refusal(load, tmp_path).startswith(f"{path}, line 3{error}")


def test_other_wrong_files_and_settings_are_refused(tmp_path, refusal):
    path = write_sets(tmp_path / "b", GOOD | {"id": 1000})
    assert "2-antistereo_v1.json, line 1: id 1000 occurs" in refusal(load, tmp_path / "b")
    message = refusal(load, tmp_path / "b", set="downsample")
    assert message.startswith(f"{path.parents[2]}: has no such sets (set=downsample, tokens=plain)")
    write_sets(tmp_path / "c", GOOD, language="zh")
    message = refusal(load, tmp_path / "c", definitional="leave_out")
    assert "definitional=leave_out needs occupation-words/occup_en-zh_v*.tsv" in message


# Checks


def test_the_release_is_counted_and_only_its_japanese_rows_name_another_occupation(released):
    findings = check(released)
    assert findings[findings.kind == "count"].what.str.endswith("as the release has").sum() == 3
    counts = Counter(zip(findings.fault, findings.file.str[:2], strict=True))
    # The tokenized file has the 16 rows too.
    assert counts["wrong_occupation", "ja"] == 32
    assert set(findings[findings.kind != "count"].fault) == {"wrong_occupation"}


def test_the_samples_and_built_sets_have_nothing_odd(tmp_path):
    assert set(data.check(data.find("nli_coal", "samples")).kind) == {"count"}
    nli_sets.write_sets([nli_sets.read_pack(nli_sets.PACKS / "zh")], tmp_path, rates=[0.3])
    assert set(check(tmp_path).kind) == {"count"}


def test_odd_rows_are_named_with_their_line(tmp_path):
    cases = table(__file__, "odd_rows.csv").astype({"line": int})
    for name, rows in cases.groupby("file"):
        # Line 0 is for a fault of the file; an empty cell is a field that the line has not.
        lines = rows[rows.line > 0].drop(columns=["file", "line", "faults"]).to_dict("records")
        fields = [{name: cell for name, cell in line.items() if cell} for line in lines]
        write(tmp_path, name, *(line | {"id": int(line["id"])} for line in fields))
    found = check(tmp_path)
    found = found[(found.kind != "count") & found.file.str.endswith(".json")]
    faults = cases.assign(fault=cases.faults.str.split()).explode("fault").dropna(subset="fault")
    files = "en_v1/" + faults.file + "_v1.json"
    assert {*zip(found.file, found.row, found.fault, strict=True)} == {
        *zip(files, faults.line, faults.fault, strict=True)
    }
