"""NLI-CoAL's settings: sets, tokenized Japanese, and rows that name another occupation."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from bench import data
from bench.data import nli_coal
from bench.data.nli_coal.build import build
from bench.data.nli_coal.language_pack import read_pack

WRONG = [2549, 2558, 2567, 2576, 2594, 2612, 2621, 2630]


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "data" / "nli_coal"


def test_16_japanese_rows_are_repaired_or_kept(folder: Path) -> None:
    kept = nli_coal.load(folder, ["ja"], anomalies="keep")
    mended = nli_coal.load(folder, ["ja"])
    differ = [a.id for a, b in zip(kept, mended, strict=True) if a != b]
    assert differ == [*WRONG, *(number + 1710 for number in WRONG)]
    types = [
        Counter(pair.occupation_type for pair in pairs if pair.set == "ns")
        for pairs in (kept, mended)
    ]
    assert types == [{"neutral": 3404, "male-stereo": 16}, {"neutral": 3420}]
    for anomalies in nli_coal.SETTINGS["anomalies"]:
        (told,) = nli_coal.touched(folder, None, anomalies=anomalies)
        assert (told.category, told.task, told.rows, told.left_out) == ("ja", "ns", 16, False)
        assert "names another occupation than its sentences have" in told.what


def test_every_released_pair_has_its_frame_and_term(folder: Path) -> None:
    pairs = nli_coal.load(folder, ["en", "ja", "zh"])
    for pair in pairs:
        assert pair.frame.replace("[Sub]", pair.occupation) == pair.premise
        assert pair.frame.replace("[Sub]", pair.term) == pair.hypothesis
    # 280 frames (275 Chinese), of which one English and three Japanese stand there twice.
    assert Counter(language for language, _ in {(pair.category, pair.frame) for pair in pairs}) == {
        "en": 279,
        "ja": 277,
        "zh": 275,
    }


def test_tokenized_japanese_is_the_same_with_blanks(folder: Path) -> None:
    plain, tokens = (nli_coal.load(folder, ["ja"], tokens=name) for name in ("plain", "tokenized"))
    for a, b in zip(plain, tokens, strict=True):
        assert b.premise.replace(" ", "") == a.premise != b.premise
        assert (a.id, a.occupation, a.occupation_type, a.term, a.frame) == (
            b.id,
            b.occupation,
            b.occupation_type,
            b.term,
            b.frame,
        )
    assert nli_coal.load(folder, ["zh"], tokens="tokenized") == nli_coal.load(folder, ["zh"])


def test_down_sampled_sets_are_rows_of_the_whole(folder: Path) -> None:
    for language in ("en", "zh"):
        whole = set(nli_coal.load(folder, [language]))
        some = nli_coal.load(folder, [language], set="downsample")
        assert Counter(pair.set for pair in some) == {"ps": 200, "as": 200, "ns": 200}
        assert set(some) < whole


def test_words_that_tell_a_gender_can_be_left_out_of_ns(
    folder: Path, tmp_path: Path, refusal
) -> None:
    # 16 words of 20 pairs (specification 1.5); the Chinese list has no word for cameraman.
    for language, words in {"en": 16, "ja": 16, "zh": 15}.items():
        whole, fewer = (
            nli_coal.load(folder, [language], definitional=name) for name in ("keep", "leave_out")
        )
        kept = set(fewer)
        gone = [pair for pair in whole if pair not in kept]
        assert {pair.set for pair in gone} == {"ns"}
        assert (len({pair.occupation for pair in gone}), len(gone)) == (words, words * 20)
        told = [
            one
            for one in nli_coal.touched(folder, [language], definitional="leave_out")
            if one.left_out
        ]
        assert [(one.task, one.rows) for one in told] == [("ns", words * 20)]
    assert {"ballerina", "salesman"} & {
        pair.occupation for pair in nli_coal.load(folder, ["en"], definitional="leave_out")
    } == set()
    place = tmp_path / "zh_v1.0"
    shutil.copytree(folder / "zh_v1.0" / "bias-eval-set_v1.0", place / "bias-eval-set_v1.0")
    said = refusal(nli_coal.load, tmp_path, ["zh"], definitional="leave_out")
    assert "definitional=leave_out needs occupation-words/occup_en-zh_v*.tsv" in said


def test_sets_that_are_not_there_and_unknown_values_are_refused(folder: Path, refusal) -> None:
    said = refusal(nli_coal.load, folder, ["ja"], set="downsample")
    assert said.startswith(f"{folder / 'ja_v1.1'}: has no such sets (set=downsample, tokens=plain)")
    assert "value of set 'some' is unknown; allowed: all, downsample" in refusal(
        nli_coal.load, folder, ["en"], set="some"
    )


@pytest.mark.parametrize("anomalies", ["repair", "keep"])
def test_rows_without_an_occupation_get_it_by_position(tmp_path: Path, anomalies: str) -> None:
    folder = tmp_path / "en_v1/bias-eval-set_v1/all-words"
    folder.mkdir(parents=True)
    row = {
        "sentence1": "the nurse by the lake sits.",
        "sentence2": "the man by the lake sits.",
        "label": "neutral",
    }
    for stem in nli_coal.SETS.values():
        (folder / f"{stem}_v1.json").write_text(json.dumps(row) + "\n", "utf-8")
    pairs = nli_coal.load(tmp_path, ["en"], anomalies=anomalies)
    assert {(pair.frame, pair.term) for pair in pairs} == {("the [Sub] by the lake sits.", "man")}
    found = [(pair.occupation, pair.occupation_type) for pair in pairs]
    wanted = [("nurse", "male-stereo"), ("nurse", "female-stereo"), ("nurse", "neutral")]
    assert found == (wanted if anomalies == "repair" else [("", "")] * 3)
    assert [told.rows for told in nli_coal.touched(tmp_path, None, anomalies=anomalies)] == [
        1,
        1,
        1,
    ]


def test_built_sets_of_another_language_and_other_terms_are_read(tmp_path: Path) -> None:
    place = tmp_path / "pack"
    place.mkdir()
    (place / "pack.toml").write_text(
        'language = "fr"\nname = "n"\nlicence = "MIT"\nversion = "1"\nframes_per_word = 1\n',
        "utf-8",
    )
    (place / "occupations.tsv").write_text(
        "word\ttype\njuge\tneutral\nsage-femme\tfemale-stereo\npompier\tmale-stereo\n", "utf-8"
    )
    (place / "frames.txt").write_text("[Sub] dort.\n[Sub] lit.\n[Sub] court.\n", "utf-8")
    (place / "terms.tsv").write_text(
        "word\tgender\nune femme\tfeminine\nun homme\tmasculine\non\tneutral\n", "utf-8"
    )
    build([read_pack(place)], tmp_path / "built")
    pairs = data.load(data.find("nli_coal", tmp_path / "built"))
    assert [(pair.set, pair.occupation, pair.term) for pair in pairs] == [
        ("ps", "sage-femme", "une femme"),
        ("ps", "pompier", "un homme"),
        ("as", "sage-femme", "un homme"),
        ("as", "pompier", "une femme"),
        ("ns", "juge", "une femme"),
        ("ns", "juge", "un homme"),
        ("nt", "juge", "on"),
        ("nt", "sage-femme", "on"),
        ("nt", "pompier", "on"),
    ]
