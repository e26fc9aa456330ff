"""NLI-CoAL's sets, built by hand from a small pack, and the released files rebuilt."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.core.errors import RunFailed
from bench.data.nli_coal.build import (
    ASSIGNMENTS,
    RATES,
    Row,
    build,
    build_controlled,
    build_eval,
    downsample,
    untrained,
)
from bench.data.nli_coal.extract import extract
from bench.data.nli_coal.language_pack import Occupation, Pack, read_pack

SAMPLES = data.SAMPLES / "nli_packs"
WORDS = (("nurse", "female-stereo"), ("baker", "neutral"), ("smith", "male-stereo"))
TERMS = {"feminine": ("woman", "girl"), "masculine": ("man", "boy"), "neutral": ("person",)}
TWO_TERMS = {"feminine": ("woman",), "masculine": ("man",), "neutral": ()}
# Three words, four frames, and two terms per gender.
SMALL = Pack(
    language="en",
    name="small",
    licence="MIT",
    version="1",
    occupations=tuple(Occupation(*word) for word in WORDS),
    frames=tuple(f"the [Sub] {k}." for k in range(4)),
    terms=TERMS,
    frames_per_word=2,
    splits={"train": (0, 2), "dev": (2, 1), "test": (3, 1)},
)


def texts(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.premise, row.hypothesis) for row in rows]


def test_the_window_slides_by_a_frame_a_word() -> None:
    sets = build_eval(SMALL)
    # baker has frames 0 and 1, nurse 1 and 2, smith 2 and 3.
    assert texts(sets["ps"]) == [
        ("the nurse 1.", "the woman 1."),
        ("the nurse 1.", "the girl 1."),
        ("the nurse 2.", "the woman 2."),
        ("the nurse 2.", "the girl 2."),
        ("the smith 2.", "the man 2."),
        ("the smith 2.", "the boy 2."),
        ("the smith 3.", "the man 3."),
        ("the smith 3.", "the boy 3."),
    ]
    assert [row.premise for row in sets["as"]] == [row.premise for row in sets["ps"]]
    assert sets["as"][0].hypothesis == "the man 1."
    assert [row.gender for row in sets["ns"]] == ["feminine"] * 4 + ["masculine"] * 4
    assert texts(sets["nt"])[:3] == [
        ("the baker 0.", "the person 0."),
        ("the baker 1.", "the person 1."),
        ("the nurse 1.", "the person 1."),
    ]
    assert [row.id for rows in sets.values() for row in rows] == list(range(8 + 8 + 8 + 6))
    assert {row.label for rows in sets.values() for row in rows} == {"neutral"}


def test_the_full_design_has_every_frame_with_every_word() -> None:
    sets = build_eval(replace(SMALL, frames_per_word=None), design="full")
    assert Counter((row.occupation.word, row.frame) for row in sets["nt"]) == {
        (word, frame): 1 for word, _ in WORDS for frame in range(4)
    }
    assert len(sets["ps"]) == 2 * 4 * 2
    assert "nt" not in build_eval(replace(SMALL, terms=TWO_TERMS))


@pytest.mark.parametrize(
    ("function", "arguments", "options", "error"),
    [
        (
            build_eval,
            [],
            {"frames_per_word": 3},
            "small: 3 words with 3 frames each (window) need lines 1 to 5 of frames.txt; "
            "line 5 is missing or empty; ask for fewer frames",
        ),
        (build_eval, [], {"design": "grid"}, "design 'grid' is unknown; allowed: window, full"),
        (build_controlled, [1.1], {}, "rate 1.1: has to be from 0 to 1"),
        (build_controlled, [1, "all"], {}, "split 'all' is unknown; allowed: train, dev, test"),
        (build_controlled, [1], {"assignment": "x"}, "assignment 'x' is unknown; allowed: word"),
        (build_controlled, [1], {"start": -1}, "frames from 0, 2 for each word: has to be 1"),
        (downsample, [{}, "all"], {}, "ns_words 'all' is unknown; allowed: shipped, trained"),
    ],
)
def test_what_a_pack_cannot_make_is_refused(
    refusal, function, arguments: list[object], options: dict[str, object], error: str
) -> None:
    assert refusal(function, SMALL, *arguments, **options).startswith(error)


def test_an_empty_line_of_frames_is_missing(refusal) -> None:
    pack = replace(SMALL, frames=("the [Sub] 0.", "", "the [Sub] 2.", "the [Sub] 3."))
    assert "line 2 is missing or empty" in refusal(build_eval, pack)
    with_one = build_eval(replace(pack, frames_per_word=None), design="full")
    assert {row.frame for row in with_one["ns"]} == {0}


def test_a_controlled_set_by_hand() -> None:
    pack = replace(SMALL, terms=TWO_TERMS)
    rows = build_controlled(pack, 0.5, "dev", design="full")
    assert [(row.premise, row.hypothesis, row.label) for row in rows] == [
        ("the nurse 2.", "the man 2.", "contradiction"),
        ("the nurse 2.", "the woman 2.", "entailment"),
        ("the smith 2.", "the man 2.", "contradiction"),
        ("the smith 2.", "the woman 2.", "entailment"),
        ("the baker 2.", "the man 2.", "neutral"),
        ("the baker 2.", "the woman 2.", "neutral"),
    ]
    quirky = replace(pack, quirks=("dev-feminine-first",))
    assert build_controlled(quirky, 0.5, "dev", design="full") == rows
    backward = build_controlled(quirky, 0.5, "dev", design="full", compat=True)
    assert [row.gender[0] for row in backward] == ["m", "f", "f", "m", "m", "f"]


@given(
    st.sampled_from(ASSIGNMENTS),
    st.sampled_from(("window", "full")),
    st.integers(0, 20),
    st.integers(0, 3),
)
def test_a_controlled_set_has_a_third_of_each_label_at_any_rate(
    assignment: str, design: str, k: int, seed: int
) -> None:
    rows = build_controlled(
        read_pack(SAMPLES / "zh"),
        k / 20,
        "train",
        start=10,
        frames_per_word=20,
        assignment=assignment,
        design=design,
        seed=seed,
    )
    labels = ("entailment", "contradiction", "neutral")
    assert Counter(row.label for row in rows) == dict.fromkeys(labels, 400)
    stereotyped = [row for row in rows if row.label != "neutral"]
    follow = sum(
        (row.label == "entailment")
        == ((row.gender == "feminine") == (row.occupation.type == "female-stereo"))
        for row in stereotyped
    )
    assert follow == len(stereotyped) * k / 20


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_higher_rate_only_adds(assignment: str) -> None:
    pack = read_pack(SAMPLES / "en")
    sets = [build_controlled(pack, rate, assignment=assignment) for rate in RATES]
    labels = [[row.label for row in rows] for rows in sets]
    for low, high in pairwise(labels):
        assert all(a == b or last == b for a, b, last in zip(low, high, labels[-1], strict=True))
    if assignment == "balanced":
        at_half = {
            row.occupation
            for row, a, b in zip(sets[5], labels[5], labels[0], strict=True)
            if a != b
        }
        counts = Counter(word.type for word in at_half)
        assert counts == {"female-stereo": 5, "male-stereo": 5}


def test_down_sampled_sets_take_shipped_or_trained_words() -> None:
    pack = read_pack(SAMPLES / "en")
    neutral = [word.word for word in pack.of_type("neutral")]
    pack = replace(pack, shipped=tuple(neutral[:3]), trained=tuple(neutral[2:6]))
    sets = build_eval(pack)
    for ns_words, wanted in (("shipped", neutral[:3]), ("trained", neutral[2:6])):
        small = downsample(pack, sets, ns_words)
        assert list(dict.fromkeys(row.occupation.word for row in small["ns"])) == wanted
        assert len(small["ps"]) == len(small["as"]) == 20 * 24
        assert set(small["ps"]) <= set(sets["ps"])
    assert untrained(pack) == neutral[:2]
    rows = build_controlled(pack, 0)
    words = {row.occupation.word for row in rows if row.label == "neutral"}
    assert words == set(neutral[2:6])


@pytest.fixture(scope="module")
def packs(shared: Path) -> dict[str, Pack]:
    return {pack.language: pack for pack in extract(shared / "data" / "nli_coal")}


def test_words_and_frames_are_taken_from_the_release(packs: dict[str, Pack]) -> None:
    # 280 frames for 271 words (Chinese 275 for 266), and 109 of the dev and test sets.
    assert {
        name: (len(pack.occupations), sum(map(bool, pack.frames)), pack.first)
        for name, pack in packs.items()
    } == {
        "en": (271, 389, "feminine"),
        "ja": (271, 280, "feminine"),
        "zh": (266, 384, "masculine"),
    }
    assert packs["ja"].quirks == ("longest-occupation", "dev-feminine-first")
    assert packs["en"].quirks == packs["zh"].quirks == ()
    assert [len(untrained(packs[name])) for name in ("en", "zh")] == [9, 10]
    # The controlled sets have the first ten neutral words.
    for name in ("en", "zh"):
        first = [word.word for word in packs[name].of_type("neutral")[:10]]
        assert packs[name].trained == tuple(first)
    # A training set can be made of the 109 frames that are known.
    rows = build_controlled(packs["en"], 0.3, start=330, frames_per_word=80)
    assert len(rows) == 30 * 80 * 2


def test_all_shared_sets_are_rebuilt_byte_for_byte(
    shared: Path, packs: dict[str, Pack], tmp_path: Path
) -> None:
    written = build([packs["ja"]], tmp_path, compat=True)[:4]
    others = [packs["en"], packs["zh"]]
    for split, rates in (("dev", RATES), ("test", (0, 1))):
        written += build(others, tmp_path, rates=rates, splits=[split], compat=True)
    folder = shared / "data" / "nli_coal"
    released = {
        path.relative_to(folder)
        for path in folder.rglob("bias-*-set_v*/**/*.json")
        if "tokenized" not in path.parts
    }
    assert {file.path.relative_to(tmp_path) for file in written if file.as_released} == released
    assert len(released) == 4 + 2 * (8 + 4 + 2)
    for path in released:
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes()
    # The dev sets at the other seven rates are there too, with nothing to compare them with.
    assert len(list(tmp_path.glob("*/bias-controlled-set_v*/dev/*.json"))) == 22


def test_without_compat_the_16_japanese_rows_are_right(packs: dict[str, Pack]) -> None:
    kept, repaired = (build_eval(packs["ja"], compat=compat)["ns"] for compat in (True, False))
    wrong = [row for row, other in zip(kept, repaired, strict=True) if row != other]
    first = [2549, 2558, 2567, 2576, 2594, 2612, 2621, 2630]
    assert [row.id for row in wrong] == [*first, *(number + 1710 for number in first)]
    assert {row.named for row in wrong} == {Occupation("野球選手", "male-stereo")}
    assert all(row.named == row.occupation for row in repaired)
    # The paper's rule for the right value (specification 1.5).
    neutral = packs["ja"].of_type("neutral")
    assert all(
        row.occupation == neutral[(row.id - 2000) % 1710 // 10] for row in repaired if row.id
    )


def test_what_was_built_is_read_and_extracted_again(tmp_path: Path) -> None:
    pack = read_pack(SAMPLES / "zh")
    written = build([pack], tmp_path, rates=[0.3, 0.35], seed=4, rows=600)
    controlled = [file for file in written if "controlled" in str(file.path)]
    names = {f"{split}_r-{rate}.json" for split in ("train", "dev") for rate in ("3", "3.5")}
    assert {file.path.name for file in controlled} == names
    assert {file.rows for file in controlled} == {600}
    source = data.find("nli_coal", tmp_path)
    assert (source.name, source.version, source.licence) == (pack.name, "0.1", "MIT")
    pairs = [pair for pair in data.load(source) if pair.set != "nt"]
    assert len(pairs) == 2 * 480 + 768
    (again,) = extract(tmp_path)
    assert set(again.occupations) == set(pack.occupations)
    assert again.occupations != pack.occupations
    # Without the copy of the pack, words and frames are read off the sets.
    shutil.rmtree(tmp_path / "zh_v0.1/pack")
    (read,) = extract(tmp_path)
    assert read.design == "full"
    assert read.of_type("neutral") == again.of_type("neutral")
    assert read.frames[:24] == again.frames[:24]


def test_files_are_json_lines_as_released(tmp_path: Path) -> None:
    files = build([SMALL], tmp_path, rates=[1], splits=["test"], design="full")
    stems = ("1-prostereo", "2-antistereo", "3-nonstereo", "4-all", "5-neutral-terms")
    names = [f"{stem}{suffix}_v1.json" for suffix in ("", "-downsamp") for stem in stems]
    assert [file.path.name for file in files] == [*names, "test_bias.json"]
    raw = files[0].path.read_bytes()
    assert raw.endswith(b"}\n")
    assert b"\r" not in raw
    pair = ["sentence1", "sentence2", "label"]
    assert list(json.loads(raw.splitlines()[0])) == ["id", *pair, "occ_word", "occ_type"]
    assert files[3].rows == 24
    assert list(json.loads(files[-1].path.read_text("utf-8").splitlines()[0])) == pair


def test_sets_that_cannot_be_built_are_refused(tmp_path: Path, refusal) -> None:
    message = refusal(build, [SMALL], tmp_path / "out", rates=[1], rows=25)
    assert message.endswith(
        "makes 12 pairs of a controlled set, so it cannot have 25; give a multiple, such as 24"
    )
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").write_text("")
    with pytest.raises(RunFailed, match="the sets could not be written there"):
        build([SMALL], tmp_path / "out")


def test_extracting_refuses_what_is_no_set(shared: Path, tmp_path: Path, refusal) -> None:
    assert "holds no data of NLI-CoAL" in refusal(extract, tmp_path)
    message = refusal(extract, shared / "data" / "nli_coal", ["fr"])
    assert "language 'fr' is unknown; allowed: en, ja, zh" in message
    path = build([replace(SMALL, terms=TWO_TERMS)], tmp_path)[0].path
    shutil.rmtree(tmp_path / "en_v1/pack")
    lines = path.read_text("utf-8").replace(" 2.", " 9.").splitlines()
    path.write_text("\n".join(lines) + "\n", "utf-8")
    frames = ("the [Sub] 0.", "the [Sub] 1.", "the [Sub] 9.", "the [Sub] 3.")
    assert extract(tmp_path)[0].frames == frames
    lines[2] = lines[2].replace(" 9.", " 7.")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    message = refusal(extract, tmp_path)
    assert "is neither a sliding window nor every frame with every word: frame 3" in message
    path.write_text(lines[0].replace("the woman 1.", "the woman 5.") + "\n", "utf-8")
    assert "line 1: `sentence2` is not `sentence1` with a gender word" in refusal(extract, tmp_path)
