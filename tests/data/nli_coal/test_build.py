"""NLI-CoAL's sets, built by hand from a small pack, and the released files rebuilt."""

import shutil
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

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
from bench.benchmarks.nli_coal.language_pack import PACKS, read_pack
from bench.config import RATES

# Three words, four frames, and two terms per gender.
SMALL = read_pack(Path(__file__).with_name("small"))
TERMS = {"feminine": ("woman",), "masculine": ("man",), "neutral": ()}


def test_the_window_slides_by_a_frame_a_word():
    # The frames are 0 and 1 for periodista, 1 and 2 for recepcionista, 2 and 3 for electricista.
    sets = build_eval(SMALL)
    first = sets["ps"][0]
    assert (first.premise, first.hypothesis) == ("Hoy recepcionista lee 1.", "Hoy mujer lee 1.")
    rows = {k: [(row.occupation.word, row.frame, row.term) for row in v] for k, v in sets.items()}
    assert rows["ps"] == [
        *product(["recepcionista"], (1, 2), ("mujer", "chica")),
        *product(["electricista"], (2, 3), ("hombre", "chico")),
    ]
    assert rows["as"][0] == ("recepcionista", 1, "hombre")
    assert rows["ns"][3:5] == [("periodista", 1, "chica"), ("periodista", 0, "hombre")]
    assert rows["nt"][1:3] == [("periodista", 1, "persona"), ("recepcionista", 1, "persona")]
    assert [row.id for rows in sets.values() for row in rows] == list(range(8 + 8 + 8 + 6))


@given(
    st.sampled_from(ASSIGNMENTS),
    st.sampled_from(("window", "full")),
    st.integers(0, 19),
    st.integers(0, 3),
)
def test_a_controlled_set_has_a_third_of_each_label_and_a_higher_rate_only_adds(
    assignment, design, k, seed
):
    pack = replace(read_pack(PACKS / "zh"), design=design, splits={"train": (10, 20)})
    rows, more, all_rows = (
        build_controlled(pack, rate / 20, seed=seed, assignment=assignment)
        for rate in (k, k + 1, 20)
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
    folder = shared / "data" / "nli_coal"
    packs = {pack.language: pack for pack in extract(folder)}
    assert [len(untrained(packs[name])) for name in ("en", "zh")] == [9, 10]
    written = build([packs["ja"]], tmp_path, compat=True)[:4]
    for split, rates in (("dev", RATES), ("test", (0, 1))):
        options = {"rates": rates, "splits": [split], "compat": True}
        written += build([packs["en"], packs["zh"]], tmp_path, **options)
    sets = (path.relative_to(folder) for path in folder.rglob("bias-*-set_v*/**/*.json"))
    released = {path for path in sets if "tokenized" not in path.parts}
    assert {file.path.relative_to(tmp_path) for file in written if file.as_released} == released
    assert len(released) == 4 + 2 * (8 + 4 + 2)
    for path in released:
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes()


def test_built_sets_are_read_and_extracted_again(tmp_path):
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
    message = refusal(build_eval, replace(SMALL, frames_per_word=3))
    assert message.startswith("small: 3 words with 3 frames each (window) need lines 1 to 5 of fr")
    message = refusal(build_eval, replace(SMALL, frames_per_word=0))
    assert message == "frames from 1, 0 for each word: has to be 1 at least"
    assert "rate 1.1: has to be from 0 to 1" in refusal(build_controlled, SMALL, 1.1)
    message = refusal(build, [SMALL], tmp_path / "out", rates=[1], rows=25)
    assert message.endswith("so it cannot have 25; give a multiple, such as 24")
    assert not (tmp_path / "out").exists()
    assert "holds no data of NLI-CoAL" in refusal(extract, tmp_path)
    path = build([replace(SMALL, language="en", terms=TERMS)], tmp_path / "a")[0].path
    shutil.rmtree(tmp_path / "a/en_v1/pack")
    path.write_text(path.read_text("utf-8").replace(" 2.", " 7.", 2), "utf-8")
    assert "is neither a sliding window nor every" in refusal(extract, tmp_path / "a")
