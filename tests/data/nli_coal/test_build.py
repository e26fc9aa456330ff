"""NLI-CoAL's sets, built by hand from a small pack, and the released files rebuilt."""

import shutil
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.benchmarks.nli_coal.build import (
    ASSIGNMENTS,
    build,
    build_controlled,
    build_eval,
    untrained,
)
from bench.benchmarks.nli_coal.extract import extract
from bench.benchmarks.nli_coal.language_pack import PACKS, Occupation, Pack, read_pack
from bench.config import RATES

WORDS = (("nurse", "female-stereo"), ("baker", "neutral"), ("smith", "male-stereo"))
# Three words, four frames, and two terms per gender.
SMALL = Pack(
    language="en",
    name="small",
    licence="MIT",
    version="1",
    occupations=tuple(Occupation(*word) for word in WORDS),
    frames=tuple(f"the [Sub] {k}." for k in range(4)),
    terms={"feminine": ("woman", "girl"), "masculine": ("man", "boy"), "neutral": ("person",)},
    frames_per_word=2,
    splits={"train": (0, 2), "dev": (2, 1), "test": (3, 1)},
)
ONE_TERM = replace(SMALL, terms={"feminine": ("woman",), "masculine": ("man",), "neutral": ()})


def test_the_window_slides_by_a_frame_a_word():
    # baker has frames 0 and 1, nurse 1 and 2, smith 2 and 3.
    sets = build_eval(SMALL)
    assert [(row.premise, row.hypothesis) for row in sets["ps"]] == [
        *((f"the nurse {k}.", f"the {term} {k}.") for k in (1, 2) for term in ("woman", "girl")),
        *((f"the smith {k}.", f"the {term} {k}.") for k in (2, 3) for term in ("man", "boy")),
    ]
    assert (sets["as"][0].premise, sets["as"][0].hypothesis) == ("the nurse 1.", "the man 1.")
    assert [row.gender for row in sets["ns"]] == ["feminine"] * 4 + ["masculine"] * 4
    neutral = [(row.premise, row.hypothesis) for row in sets["nt"]]
    assert neutral[1:3] == [("the baker 1.", "the person 1."), ("the nurse 1.", "the person 1.")]
    assert [row.id for rows in sets.values() for row in rows] == list(range(8 + 8 + 8 + 6))
    assert {row.label for rows in sets.values() for row in rows} == {"neutral"}


designs = st.sampled_from(("window", "full"))


@given(st.sampled_from(ASSIGNMENTS), designs, st.integers(0, 19), st.integers(0, 3))
def test_a_controlled_set_has_a_third_of_each_label_and_a_higher_rate_only_adds(
    assignment, design, k, seed
):
    options = {"start": 10, "frames_per_word": 20, "assignment": assignment, "design": design}
    pack = read_pack(PACKS / "zh")
    rows, more, all_rows = (
        build_controlled(pack, rate / 20, seed=seed, **options) for rate in (k, k + 1, 20)
    )
    labels = ("entailment", "contradiction", "neutral")
    assert Counter(row.label for row in rows) == dict.fromkeys(labels, 400)
    stereotyped = [row for row in rows if row.label != "neutral"]
    follow = [
        (row.label == "entailment")
        == ((row.gender == "feminine") == (row.occupation.type == "female-stereo"))
        for row in stereotyped
    ]
    assert sum(follow) == len(stereotyped) * k / 20
    assert all(
        low.label == high.label or high.label == last.label
        for low, high, last in zip(rows, more, all_rows, strict=True)
    )


def test_all_shared_sets_are_rebuilt_byte_for_byte(shared, tmp_path):
    packs = {pack.language: pack for pack in extract(shared / "data" / "nli_coal")}
    assert [len(untrained(packs[name])) for name in ("en", "zh")] == [9, 10]
    written = build([packs["ja"]], tmp_path, compat=True)[:4]
    others = [packs["en"], packs["zh"]]
    for split, rates in (("dev", RATES), ("test", (0, 1))):
        written += build(others, tmp_path, rates=rates, splits=[split], compat=True)
    folder = shared / "data" / "nli_coal"
    sets = (path.relative_to(folder) for path in folder.rglob("bias-*-set_v*/**/*.json"))
    released = {path for path in sets if "tokenized" not in path.parts}
    assert {file.path.relative_to(tmp_path) for file in written if file.as_released} == released
    assert len(released) == 4 + 2 * (8 + 4 + 2)
    for path in released:
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes()


def test_what_was_built_is_read_and_extracted_again(tmp_path):
    pack = read_pack(PACKS / "zh")
    written = build([pack], tmp_path, rates=[0.3, 0.35], seed=4, rows=600)
    rows = {file.path.name: file.rows for file in written if "controlled" in str(file.path)}
    names = [f"{split}_r-{rate}.json" for split in ("train", "dev") for rate in ("3", "3.5")]
    assert rows == dict.fromkeys(names, 600)
    pairs = data.load(data.find("nli_coal", tmp_path))
    assert len([pair for pair in pairs if pair.set != "nt"]) == 2 * 480 + 768
    (again,) = extract(tmp_path)
    assert set(again.occupations) == set(pack.occupations)
    assert again.occupations != pack.occupations
    # Without the copy of the pack, words and frames are read off the sets.
    shutil.rmtree(tmp_path / "zh_v0.1/pack")
    (read,) = extract(tmp_path)
    assert (read.design, read.of_type("neutral")) == ("full", again.of_type("neutral"))


def test_sets_that_cannot_be_built_or_extracted_are_refused(tmp_path, refusal):
    message = refusal(build_eval, SMALL, frames_per_word=3)
    assert message.startswith("small: 3 words with 3 frames each (window) need lines 1 to 5 of fr")
    assert "rate 1.1: has to be from 0 to 1" in refusal(build_controlled, SMALL, 1.1)
    message = refusal(build, [SMALL], tmp_path / "out", rates=[1], rows=25)
    assert message.endswith("so it cannot have 25; give a multiple, such as 24")
    assert not (tmp_path / "out").exists()
    assert "holds no data of NLI-CoAL" in refusal(extract, tmp_path)
    path = build([ONE_TERM], tmp_path / "a")[0].path
    shutil.rmtree(tmp_path / "a/en_v1/pack")
    text = path.read_text("utf-8")
    path.write_text(text.replace(" 2.", " 7.", 2), "utf-8")
    assert "is neither a sliding window nor every" in refusal(extract, tmp_path / "a")
