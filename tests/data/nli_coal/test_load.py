"""NLI-CoAL's sets: samples and release, settings, and that a wrong file is refused by its line."""

import json
import shutil
from collections import Counter

import pytest

from bench import data

STEMS = ("1-prostereo", "2-antistereo", "3-nonstereo")
BARE = {
    "sentence1": "the nurse holds a cup.",
    "sentence2": "the woman holds a cup.",
    "label": "neutral",
}
GOOD = {"id": 0, **BARE, "occ_word": "nurse", "occ_type": "female-stereo"}
BOTH = {"feminine", "masculine"}


def write(root, *lines, language="en"):
    """Write `lines` as a PS file, next to a good AS and NS file, and return the PS file."""
    folder = root / f"{language}_v9" / "bias-eval-set_v9" / "all-words"
    folder.mkdir(parents=True)
    for k, stem in enumerate(STEMS[1:], start=1):
        (folder / f"{stem}_v9.json").write_text(json.dumps(GOOD | {"id": 1000 * k}) + "\n", "utf-8")
    path = folder / "1-prostereo_v9.json"
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


def load(folder, *categories, **settings):
    return data.load(data.find("nli_coal", folder), categories, **settings)


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "nli_coal"


def assert_consistent(pair):
    """Sentences are the frame filled, and the gender follows from set and type."""
    assert pair.frame.replace("[Sub]", pair.occupation) == pair.premise
    assert pair.frame.replace("[Sub]", pair.term) == pair.hypothesis
    is_feminine = (pair.occupation_type == "female-stereo") == (pair.set == "ps")
    expected = {"feminine" if is_feminine else "masculine"}
    assert pair.gender in (BOTH if pair.set == "ns" else expected)


# The size of NS, its neutral occupations, frames (of which one English and three Japanese stand
# there twice), and occupations of NS that tell a gender (the Chinese list has no cameraman).
@pytest.mark.parametrize(
    ("language", "size", "neutral", "frames", "definitional"),
    [("en", 3420, 171, 279, 16), ("ja", 3420, 171, 277, 16), ("zh", 3320, 166, 275, 15)],
)
def test_the_released_sets_are_those_of_the_paper(
    folder, language, size, neutral, frames, definitional
):
    pairs = load(folder, language)
    assert [pair.id for pair in pairs] == list(range(2000 + size))
    assert Counter(pair.set for pair in pairs) == {"ps": 1000, "as": 1000, "ns": size}
    kinds = Counter({pair.occupation: pair.occupation_type for pair in pairs}.values())
    assert kinds == {"female-stereo": 13, "male-stereo": 87, "neutral": neutral}
    assert len({pair.frame for pair in pairs}) == frames
    for pair in pairs:
        assert_consistent(pair)
    # NS is one gender throughout, then the same premises with the other one.
    ns, half = pairs[2000:], size // 2
    assert [pair.premise for pair in ns[:half]] == [pair.premise for pair in ns[half:]]
    first = "masculine" if language == "zh" else "feminine"
    assert {pair.gender for pair in ns[:half]} == {first}
    assert {pair.gender for pair in ns[half:]} == BOTH - {first}
    gone = set(pairs) - set(load(folder, language, definitional="leave_out"))
    assert {pair.set for pair in gone} == {"ns"}
    effects = data.read(data.find("nli_coal", folder), [language], definitional="leave_out").effects
    assert [effect.rows for effect in effects if effect.left_out] == [len(gone)]
    assert len(gone) == definitional * 20
    if language != "ja":
        sizes = Counter(pair.set for pair in load(folder, language, set="downsample"))
        assert sizes == {"ps": 200, "as": 200, "ns": 200}


def test_japanese_rows_are_repaired_or_kept_and_tokenized_ones_have_blanks(folder):
    place = folder / "ja_v1.1"  # the folder of one language may be given itself
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
    path = write(tmp_path, BARE, b"", BARE | sentences)
    for stem in STEMS[1:]:
        shutil.copyfile(path, path.with_name(f"{stem}_v9.json"))
    pairs, kept = load(tmp_path), load(tmp_path, anomalies="keep")
    assert [pair.item_id for pair in pairs] == [f"en:{k}" for k in range(6)]
    words = [(pair.occupation, pair.occupation_type) for pair in pairs[::2]]
    assert words == [("nurse", kind) for kind in ("female-stereo", "male-stereo", "neutral")]
    assert (pairs[1].frame, pairs[1].cluster) == ("the [Sub] by a lake runs.", "en:baker")
    assert (kept[1].occupation, kept[1].cluster) == ("", "en:the baker by a lake runs.")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (GOOD | {"label": "entailment"}, ", field `label`: 'entailment' is not allowed; it has to"),
        (GOOD | {"sentence1": "a\nb"}, ", field `sentence1`: 'a\\nb' is not allowed; expected a"),
        (GOOD | {"sentence2": "a craftsman."}, ", field `sentence2`: expected woman or man in "),
        (GOOD | {"id": 5}, ": id 5 occurs more than once"),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_number(tmp_path, refusal, line, error):
    path = write(tmp_path, GOOD | {"id": 5}, b"", line)
    assert refusal(load, tmp_path).startswith(f"{path}, line 3{error}")


def test_other_wrong_files_and_settings_are_refused(tmp_path, refusal):
    path = write(tmp_path / "b", GOOD | {"id": 1000})
    assert "2-antistereo_v9.json, line 1: id 1000 occurs" in refusal(load, tmp_path / "b")
    message = refusal(load, tmp_path / "b", set="downsample")
    assert message.startswith(f"{path.parents[2]}: has no such sets (set=downsample, tokens=plain)")
    write(tmp_path / "c", GOOD, language="zh")
    message = refusal(load, tmp_path / "c", definitional="leave_out")
    assert "definitional=leave_out needs occupation-words/occup_en-zh_v*.tsv" in message
