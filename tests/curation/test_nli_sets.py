"""NLI-CoAL's sets: packs and their mistakes, pairs by hand, controlled sets, the released files."""

import shutil
import tomllib
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import nli_sets
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nli_sets import PACKS, RATES, Occupation, read_pack

from bench import data, run
from bench.benchmarks import get
from bench.tasks import prompts
from tests.helpers.cases import cases

# Three words, four frames, and two terms per gender, in a language that the benchmark has not.
ES = Path(__file__).with_name("es_pack")
SMALL = read_pack(ES)
KOREAN = Path(nli_sets.__file__).with_name("examples") / "nli_coal"
WRONG = tomllib.loads(ES.with_name("wrong_packs.toml").read_text("utf-8"))["pack"]


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_of_a_pack_are_listed_and_the_first_is_raised(tmp_path, refusal, case):
    for path in ES.iterdir():
        text = case.get("changed", {}).get(path.stem) or path.read_text("utf-8")
        (tmp_path / path.name).write_text(text, "utf-8")
    expected = case.get("findings", [])
    if "error" in case or any(text.startswith("refused") for text in expected):
        first = case.get("error") or expected[0].removeprefix("refused ")
        assert refusal(read_pack, tmp_path).startswith(f"{tmp_path}/{first}")
    if "error" not in case:
        rows = nli_sets.check_pack(read_pack(tmp_path, strict=False)).itertuples()
        found = [f"{row.kind} {row.place}: {row.value!r} {row.what}" for row in rows]
        assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected


def test_a_pack_without_a_file_is_refused_but_frames_may_come_later(tmp_path, refusal):
    folder = Path(shutil.copytree(ES, tmp_path / "es"))
    (folder / "frames.txt").unlink()
    pack = read_pack(folder)
    assert pack.frames == ()
    message = refusal(nli_sets.evaluation_sets, pack)
    assert "need lines 1 to 4 of frames.txt; line 1 is missing or empty" in message
    (folder / "terms.tsv").unlink()
    assert refusal(read_pack, folder).endswith(
        "terms.tsv: no such file; a language pack has "
        "pack.toml, occupations.tsv, frames.txt, terms.tsv"
    )


def test_types_come_from_scores_by_strict_thresholds(tmp_path):
    folder = Path(shutil.copytree(ES, tmp_path / "es"))
    table = "word\ts1\ts2\na\t0\t0.5\nb\t-.5\t.9\nc\t.49\t.51\nd\t0\t-0.6\ne\t0\t0\n"
    (folder / "occupations.tsv").write_text(table, "utf-8")
    kinds = [word.type for word in read_pack(folder).occupations]
    assert kinds == ["neutral", "neutral", "male-stereo", "female-stereo", "neutral"]


@cases(__file__, "captions.csv")
def test_a_caption_with_one_gendered_word_becomes_a_frame(case):
    pack = read_pack(PACKS / case["language"])
    made, again = nli_sets.sift(pack, [case["caption"]] * 2).itertuples()
    assert (made.frame, made.why[: len(case["reason"])]) == (case["frame"], case["reason"])
    assert bool(made.why) == bool(case["reason"])
    assert again.frame == "", "the frame of an earlier caption"
    verbatim = nli_sets.sift(replace(pack, verbatim=True), [case["caption"]] * 2)
    assert list(verbatim.frame) == [case["frame"]] * 2


def test_the_window_slides_by_a_frame_a_word():
    # The frames are 1 and 2 for periodista, 2 and 3 for recepcionista, 3 and 4 for electricista.
    pairs = nli_sets.evaluation_sets(SMALL)
    assert list(pairs.id) == list(range(8 + 8 + 8 + 6))
    rows = {
        name: list(rows[["occupation", "line", "term"]].itertuples(index=False, name=None))
        for name, rows in pairs.groupby("set")
    }
    assert rows["ps"] == [
        *product(["recepcionista"], (2, 3), ("mujer", "chica")),
        *product(["electricista"], (3, 4), ("hombre", "chico")),
    ]
    assert rows["as"][0] == ("recepcionista", 2, "hombre")
    assert rows["ns"][3:5] == [("periodista", 2, "chica"), ("periodista", 1, "hombre")]
    assert rows["nt"][1:3] == [("periodista", 2, "persona"), ("recepcionista", 2, "persona")]
    first = pairs.iloc[0]
    assert (first.premise, first.hypothesis) == ("Hoy recepcionista lee 1.", "Hoy mujer lee 1.")
    assert (first.frame, first.gender, first.label) == ("Hoy [Sub] lee 1.", "feminine", "neutral")


@given(st.sampled_from(("window", "full")), st.integers(0, 19))
def test_a_controlled_set_has_a_third_of_each_label_and_a_higher_rate_only_adds(design, k):
    pack = replace(read_pack(PACKS / "zh"), design=design, splits={"train": (10, 20)})
    rows, more, every = (nli_sets.controlled_set(pack, rate / 20) for rate in (k, k + 1, 20))
    labels = ("entailment", "contradiction", "neutral")
    assert Counter(rows.label) == dict.fromkeys(labels, 400)
    stereotyped = rows[rows.label != "neutral"]
    is_pro = stereotyped.gender == stereotyped.occupation_type.map(nli_sets.PRO)
    follows = (stereotyped.label == "entailment") == is_pro
    assert follows.sum() == len(stereotyped) * k / 20
    assert ((rows.label == more.label) | (more.label == every.label)).all()
    same = ["premise", "hypothesis", "line"]
    assert rows[same].equals(every[same]), "pairs can be mixed row by row"


def test_all_shared_sets_are_built_again_byte_for_byte(shared, tmp_path):
    folder = shared / "data" / "nli_coal"
    packs = {name: nli_sets.released_pack(folder, name) for name in ("en", "ja", "zh")}
    built = nli_sets.write_sets(list(packs.values()), tmp_path, compat=True)
    assert len(built) == 24
    assert list(built.file[built.as_released.isna()].str[:26]) == ["ja_v1.1/bias-eval-set_v1.1"] * 4
    for split, rates in (("dev", RATES), ("test", (0, 1))):
        options = {"rates": rates, "splits": [split], "compat": True}
        nli_sets.write_sets([packs["en"], packs["zh"]], tmp_path, **options)
    sets = (path.relative_to(folder) for path in folder.rglob("bias-*-set_v*/**/*.json"))
    released = [path for path in sets if "tokenized" not in path.parts]
    assert len(released) == 4 + 2 * (8 + 4 + 2)
    for path in released:
        assert (tmp_path / path).read_bytes() == (folder / path).read_bytes()
    for name in ("en", "zh"):  # neutral words that the controlled sets do not teach
        pairs = nli_sets.evaluation_sets(packs[name])
        shipped, taught = (
            set(nli_sets.down_sampled(packs[name], pairs, words).query("set == 'ns'").occupation)
            for words in ("shipped", "trained")
        )
        assert len(shipped - taught) == {"en": 9, "zh": 10}[name]
    assert nli_sets.released_pack(tmp_path, "ja") == packs["ja"], "read from the copy beside sets"


def test_our_packs_have_nothing_odd_and_make_all_their_sets():
    for pack in map(read_pack, PACKS.iterdir()):
        assert nli_sets.check_pack(pack).empty
        for split in nli_sets.SPLITS:
            assert len(nli_sets.controlled_set(pack, 0.5, split))


def test_sets_that_cannot_be_built_are_refused(tmp_path, refusal):
    message = refusal(nli_sets.evaluation_sets, replace(SMALL, frames_per_word=3))
    assert message.startswith("small: 3 words with 3 frames each (window) need lines 1 to 5 of fr")
    assert "rate 1.1: has to be from 0 to 1" in refusal(nli_sets.controlled_set, SMALL, 1.1)
    assert "split 'all' is unknown" in refusal(nli_sets.controlled_set, SMALL, 1, "all")
    pairs = nli_sets.evaluation_sets(SMALL)
    assert "ns_words 'x' is unknown" in refusal(nli_sets.down_sampled, SMALL, pairs, "x")
    refusal(nli_sets.write_sets, [SMALL], tmp_path / "out", rates=[0, 2])
    assert not (tmp_path / "out").exists()
    assert "holds no data of NLI-CoAL" in refusal(nli_sets.released_pack, tmp_path, "en")


def test_a_fourth_language_needs_a_pack_and_nothing_else(tmp_path):
    built = nli_sets.write_sets([SMALL], tmp_path / "sets", rates=[0.3, 0.35], splits=["train"])
    names = [Path(file).name for file in built.file if "controlled" in file]
    assert names == ["train_r-3.json", "train_r-3.5.json"]
    copy = tmp_path / "sets/es_v1/pack"
    assert read_pack(copy) == SMALL
    pairs = data.frame(data.load(data.find("nli_coal", tmp_path / "sets")))
    columns = ["set", "id", "premise", "hypothesis", "occupation", "gender", "term", "frame"]
    expected = nli_sets.evaluation_sets(SMALL)[columns]
    assert pairs[columns].astype(object).equals(expected.astype(object))
    asked = run.evaluate("nli_coal", "simulated:bias=1", data=tmp_path / "sets", out=tmp_path / "r")
    scores = asked.scores().set_index(["category", "task", "metric"]).score
    assert scores["es", "all", "coal"] == pytest.approx(2 / 3)
    assert asked.category_names["es"] == "Spanish (español)"
    (copy / "terms.tsv").write_text("word\tgender\nmujer\tfeminine\n", "utf-8")
    with pytest.raises(data.BadInput, match="has 1 feminine and 0 masculine words"):
        data.load(data.find("nli_coal", tmp_path / "sets"))


def test_captions_and_scored_words_make_a_pack_with_prompts_of_its_own(tmp_path):
    start, captions = read_pack(KOREAN), (KOREAN / "captions.txt").read_text("utf-8").splitlines()
    sifted = nli_sets.sift(start, captions)
    assert ((sifted.frame != "").sum(), len(sifted)) == (22, 31)
    pack = replace(start, frames=tuple(filter(None, sifted.frame)))
    assert read_pack(nli_sets.write_pack(pack, tmp_path / "pack")) == pack
    sets = tmp_path / "sets"
    nli_sets.write_sets([pack], sets)
    ours = get("nli_coal").metadata.prompts.read_text("utf-8")
    own = ours.replace('version = "bench-nli_coal-1"', 'version = "mine-1"').replace("[en]", "[ko]")
    (sets / "prompts.toml").write_text(own, "utf-8")
    assert prompts.load(get("nli_coal"), data=sets).version == "mine-1"
    assert data.find("nli_coal", sets).labels == {"ko": {"en": "Korean", "ko": "한국어"}}


def test_built_sets_are_fetched_with_their_pack(bench, user):
    packs = [read_pack(PACKS / name) for name in ("en", "zh")]
    nli_sets.write_sets(packs, "o")
    assert bench("fetch nli_coal --from o")[0] == 0
    pairs = data.load(data.find("nli_coal", user / "nli_coal"))
    assert {pair.category for pair in pairs} == {"en", "zh"}
    assert (user / "nli_coal/zh_v0.1/pack/frames.txt").is_file()


def test_the_longest_occupation_is_the_leftmost_of_equally_long_ones():
    words = [Occupation(word, "neutral") for word in ("nurse", "head nurse", "head baker")]
    assert nli_sets._longest(words, "the head baker and the head nurse").word == "head baker"
