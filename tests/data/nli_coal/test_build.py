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


def small(**changed: object) -> Pack:
    """Make a pack of three words, four frames, and two terms per gender."""
    pack = Pack(
        "en",
        "small",
        "MIT",
        "1",
        tuple(Occupation(*one) for one in WORDS),
        tuple(f"the [Sub] {k}." for k in range(4)),
        TERMS,
        frames_per_word=2,
        splits={"train": (0, 2), "dev": (2, 1), "test": (3, 1)},
    )
    return replace(pack, **changed)  # type: ignore[arg-type]


def texts(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.premise, row.hypothesis) for row in rows]


def test_the_window_slides_by_a_frame_a_word() -> None:
    sets = build_eval(small())
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
    sets = build_eval(small(frames_per_word=None), design="full")
    assert Counter((row.occupation.word, row.frame) for row in sets["nt"]) == {
        (word, frame): 1 for word, _ in WORDS for frame in range(4)
    }
    assert len(sets["ps"]) == 2 * 4 * 2
    assert "nt" not in build_eval(small(terms={**TERMS, "neutral": ()}))


def test_too_few_frames_are_refused(refusal) -> None:
    said = refusal(build_eval, small(), frames_per_word=3)
    assert said.startswith(
        "small: 3 words with 3 frames each (window) need lines 1 to 5 of frames.txt; "
        "line 5 is not there"
    )
    gap = small(frames=("the [Sub] 0.", "", "the [Sub] 2.", "the [Sub] 3."))
    assert "line 2 is not there, it has an empty line there" in refusal(build_eval, gap)
    assert "design 'grid' is unknown; allowed: window, full" in refusal(
        build_eval, small(), design="grid"
    )
    assert "rate 1.1: has to be from 0 to 1" in refusal(build_controlled, small(), 1.1)
    assert "split 'all' is unknown" in refusal(build_controlled, small(), 1, "all")
    assert "need lines 301 to 829" in refusal(
        build_controlled,
        replace(read_pack(SAMPLES / "en"), splits={"train": (300, 500)}, design="window"),
        1,
    )


def test_a_controlled_set_by_hand() -> None:
    pack = small(terms={"feminine": ("woman",), "masculine": ("man",), "neutral": ()})
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
    backward = [
        row.gender for row in build_controlled(quirky, 0.5, "dev", design="full", compat=True)
    ]
    assert backward == ["masculine", "feminine", "feminine", "masculine", "masculine", "feminine"]


@given(
    st.sampled_from(ASSIGNMENTS),
    st.sampled_from(("window", "full")),
    st.integers(0, 20),
    st.integers(0, 3),
)
def test_a_controlled_set_has_a_third_of_each_label_at_any_rate(
    assignment: str, design: str, k: int, seed: int
) -> None:
    pack = read_pack(SAMPLES / "zh")
    rows = build_controlled(
        pack,
        k / 20,
        "train",
        start=10,
        frames_per_word=20,
        assignment=assignment,
        design=design,
        seed=seed,
    )
    assert Counter(row.label for row in rows) == dict.fromkeys(
        ("entailment", "contradiction", "neutral"), 400
    )
    stereotyped = [row for row in rows if row.label != "neutral"]
    pro = [
        (row.gender == "feminine") == (row.occupation.type == "female-stereo")
        for row in stereotyped
    ]
    follow = sum(
        (row.label == "entailment") == yes for row, yes in zip(stereotyped, pro, strict=True)
    )
    assert follow == len(stereotyped) * k / 20


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_higher_rate_only_adds(assignment: str) -> None:
    pack = read_pack(SAMPLES / "en")
    sets = [build_controlled(pack, rate, assignment=assignment) for rate in RATES]
    labels = [[row.label for row in rows] for rows in sets]
    for low, high in pairwise(labels):
        assert all(a == b or last == b for a, b, last in zip(low, high, labels[-1], strict=True))
    assert sets == [build_controlled(pack, rate, assignment=assignment) for rate in RATES]


def test_balanced_takes_women_s_and_men_s_words_in_turn() -> None:
    rows = build_controlled(read_pack(SAMPLES / "en"), 0.5, assignment="balanced")
    biased = {
        row.occupation
        for row in rows
        if row.gender == "feminine"
        and row.label
        == ("entailment" if row.occupation.type == "female-stereo" else "contradiction")
    }
    assert Counter(one.type for one in biased) == {"female-stereo": 5, "male-stereo": 5}


def test_down_sampled_sets_take_shipped_or_trained_words() -> None:
    pack = read_pack(SAMPLES / "en")
    neutral = [one.word for one in pack.of_type("neutral")]
    pack = replace(pack, shipped=tuple(neutral[:3]), trained=tuple(neutral[2:6]))
    sets = build_eval(pack)
    for ns_words, wanted in (("shipped", neutral[:3]), ("trained", neutral[2:6])):
        some = downsample(pack, sets, ns_words, words=2)
        assert list(dict.fromkeys(row.occupation.word for row in some["ns"])) == wanted
        assert len(some["ps"]) == len(some["as"]) == 4 * 24
        assert set(some["ps"]) <= set(sets["ps"])
    assert untrained(pack) == neutral[:2]
    assert {
        row.occupation.word for row in build_controlled(pack, 0) if row.label == "neutral"
    } == set(neutral[2:6])


@pytest.fixture(scope="module")
def packs(shared: Path) -> dict[str, Pack]:
    return {pack.language: pack for pack in extract(shared / "data" / "nli_coal")}


def test_words_and_frames_are_taken_from_the_release(packs: dict[str, Pack]) -> None:
    sizes = {
        name: (len(pack.occupations), sum(map(bool, pack.frames)), pack.first)
        for name, pack in packs.items()
    }
    # 280 frames for 271 words (Chinese 275 for 266), and 109 of the dev and test sets.
    assert sizes == {
        "en": (271, 389, "feminine"),
        "ja": (271, 280, "feminine"),
        "zh": (266, 384, "masculine"),
    }
    assert packs["ja"].quirks == ("longest-occupation", "dev-feminine-first")
    assert packs["en"].quirks == packs["zh"].quirks == ()
    assert [len(untrained(packs[name])) for name in ("en", "zh")] == [9, 10]
    # The controlled sets have the first ten neutral words.
    for name in ("en", "zh"):
        assert packs[name].trained == tuple(one.word for one in packs[name].of_type("neutral")[:10])


def test_all_shared_sets_are_rebuilt_byte_for_byte(
    shared: Path, packs: dict[str, Pack], tmp_path: Path
) -> None:
    written = build([packs["ja"]], tmp_path, compat=True)[:4]
    for split, rates in (("dev", RATES), ("test", (0, 1))):
        written += build(
            [packs["en"], packs["zh"]], tmp_path, rates=rates, splits=[split], compat=True
        )
    equal = {one.path for one in written if one.blob == one.released}
    here = {path.relative_to(tmp_path) for path in equal}
    folder = shared / "data" / "nli_coal"
    there = {
        path.relative_to(folder)
        for path in folder.rglob("bias-*-set_v*/**/*.json")
        if "tokenized" not in path.parts
    }
    assert here == there
    assert len(there) == 4 + 2 * (8 + 4 + 2)
    for path in there:
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes()
    # The dev sets at the other seven rates are there too, with nothing to compare them with.
    assert len(list(tmp_path.glob("*/bias-controlled-set_v*/dev/*.json"))) == 22


def test_without_compat_the_16_japanese_rows_are_right(
    shared: Path, packs: dict[str, Pack]
) -> None:
    kept, mended = (build_eval(packs["ja"], compat=compat)["ns"] for compat in (True, False))
    wrong = [a.id for a, b in zip(kept, mended, strict=True) if a != b]
    first = [2549, 2558, 2567, 2576, 2594, 2612, 2621, 2630]
    assert wrong == [*first, *(number + 1710 for number in first)]
    assert {kept[number - 2000].named for number in wrong if number} == {
        Occupation("野球選手", "male-stereo")
    }
    assert all(row.named == row.occupation for row in mended)
    # The paper's rule for the right value (specification 1.5).
    neutral = packs["ja"].of_type("neutral")
    assert all(row.occupation == neutral[(row.id - 2000) % 1710 // 10] for row in mended if row.id)


def test_a_training_set_can_be_made_of_the_109_frames_that_are_known(
    packs: dict[str, Pack],
) -> None:
    rows = build_controlled(packs["en"], 0.3, start=330, frames_per_word=80)
    assert len(rows) == 30 * 80 * 2


def test_what_was_built_is_read_and_extracted_again(tmp_path: Path) -> None:
    pack = read_pack(SAMPLES / "zh")
    written = build([pack], tmp_path, rates=[0.3, 0.35], seed=4)
    assert {one.path.name for one in written if "controlled" in str(one.path)} == {
        f"{split}_r-{rate}.json" for split in ("train", "dev") for rate in ("3", "3.5")
    }
    source = data.find("nli_coal", tmp_path)
    assert (source.name, source.version, source.licence) == (pack.name, "0.1", "MIT")
    pairs = [pair for pair in data.load(source) if pair.set != "nt"]
    assert len(pairs) == 2 * 480 + 768
    (again,) = extract(tmp_path)
    assert set(again.occupations) == set(pack.occupations) != again.occupations
    assert again.occupations != pack.occupations
    # Without the copy of the pack, words and frames are read off the sets.
    for path in (tmp_path / "zh_v0.1/pack").iterdir():
        path.unlink()
    (tmp_path / "zh_v0.1/pack").rmdir()
    (read,) = extract(tmp_path)
    assert read.design == "full"
    assert read.of_type("neutral") == again.of_type("neutral")
    assert read.frames[:24] == again.frames[:24]


def test_files_are_json_lines_as_released(tmp_path: Path) -> None:
    files = build([small()], tmp_path, rates=[1], splits=["test"], design="full")
    stems = ("1-prostereo", "2-antistereo", "3-nonstereo", "4-all", "5-neutral-terms")
    names = [file.path.name for file in files]
    assert names[:5] == [f"{stem}_v1.json" for stem in stems]
    assert names[5:10] == [f"{stem}-downsamp_v1.json" for stem in stems]
    assert names[10:] == ["test_bias.json"]
    raw = files[0].path.read_bytes()
    assert raw.endswith(b"}\n")
    assert b"\r" not in raw
    pair = ["sentence1", "sentence2", "label"]
    assert list(json.loads(raw.splitlines()[0])) == ["id", *pair, "occ_word", "occ_type"]
    assert files[3].rows == 24
    assert list(json.loads(files[-1].path.read_text("utf-8").splitlines()[0])) == pair


def test_extracting_refuses_what_is_no_set(shared: Path, tmp_path: Path, refusal) -> None:
    assert "holds no data of NLI-CoAL" in refusal(extract, tmp_path)
    assert "language 'fr' is unknown; allowed: en, ja, zh" in refusal(
        extract, shared / "data" / "nli_coal", ["fr"]
    )
    pack = small(terms={"feminine": ("woman",), "masculine": ("man",), "neutral": ()})
    path = build([pack], tmp_path)[0].path
    shutil.rmtree(tmp_path / "en_v1/pack")
    lines = path.read_text("utf-8").replace(" 2.", " 9.").splitlines()
    path.write_text("\n".join(lines) + "\n", "utf-8")
    assert extract(tmp_path)[0].frames == (
        "the [Sub] 0.",
        "the [Sub] 1.",
        "the [Sub] 9.",
        "the [Sub] 3.",
    )
    lines[2] = lines[2].replace(" 9.", " 7.")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    assert "is neither a sliding window nor every frame with every word: frame 3" in refusal(
        extract, tmp_path
    )
    path.write_text(lines[0].replace("the woman 1.", "the woman 5.") + "\n", "utf-8")
    assert "line 1: `sentence2` is not `sentence1` with a gender word" in refusal(extract, tmp_path)
