"""Language packs: the samples, writing and reading, and wrong lines with their place."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.data.nli_coal.frames import GENDERS, CaptionFilter
from bench.data.nli_coal.language_pack import (
    TYPES,
    Occupation,
    Pack,
    read_pack,
    shuffled,
    type_of,
    with_captions,
    write_pack,
)

SAMPLES = data.SAMPLES / "nli_packs"
FILES = {
    "pack.toml": 'language = "en"\nname = "mine"\nlicence = "MIT"\nversion = "1"\n',
    "occupations.tsv": "word\ttype\nbaker\tneutral\nnurse\tfemale-stereo\nplumber\tmale-stereo\n",
    "frames.txt": "the [Sub] sits.\n\nthe [Sub] runs.\n",
    "terms.tsv": "word\tgender\nwoman\tfeminine\nman\tmasculine\n",
}


def write(folder: Path, **changed: str | None) -> Path:
    """A good pack with some files changed, by their stem, or left out."""
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        text = changed.get(name.partition(".")[0], text)
        if text is not None:
            (folder / name).write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("language", "words", "frames"), [("en", 36, 60), ("zh", 36, 60), ("ja", 12, 24)]
)
def test_the_sample_packs_are_whole(language: str, words: int, frames: int) -> None:
    pack = read_pack(SAMPLES / language)
    assert (pack.language, len(pack.occupations), len(set(pack.frames))) == (
        language,
        words,
        frames,
    )
    assert Counter(one.type for one in pack.occupations).keys() == set(TYPES)
    assert all(len(pack.terms[gender]) == 1 for gender in GENDERS)
    assert all("[Sub]" in frame for frame in pack.frames)


def test_a_small_pack_is_read_with_its_defaults(tmp_path: Path) -> None:
    pack = read_pack(write(tmp_path))
    assert pack.frames == ("the [Sub] sits.", "", "the [Sub] runs.")
    assert pack.of_type(*TYPES)[0] == Occupation("baker", "neutral")
    assert (pack.match, pack.design, pack.first) == ("word", "window", "feminine")
    assert pack.splits["train"] == (300, 500)


def test_types_come_from_scores_by_strict_thresholds(tmp_path: Path) -> None:
    table = "word\ts1\ts2\na\t0\t0.5\nb\t-.5\t.9\nc\t.49\t.51\nd\t0\t-0.6\n"
    kinds = [one.type for one in read_pack(write(tmp_path, occupations=table)).occupations]
    assert kinds == ["neutral", "neutral", "male-stereo", "female-stereo"]
    head = FILES["pack.toml"] + "definitional = 0.6\nstereotype = 0.4\n"
    kinds = [
        one.type
        for one in read_pack(
            write(tmp_path, pack=head, occupations=table + "e\t0\t0\n")
        ).occupations
    ]
    assert kinds == ["male-stereo", "male-stereo", "male-stereo", "female-stereo", "neutral"]
    assert type_of(0.5, 1) == type_of(0, -0.5) == "neutral"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "frames",
            "the [Sub] sits.\nthe nurse runs.\n",
            "frames.txt, line 2: has no slot [Sub] for the occupation: 'the nurse runs.'",
        ),
        (
            "frames",
            "the [sub] sits.\n",
            "line 1: has no slot [Sub] for the occupation; it has '[sub]', which is not the same",
        ),
        (
            "frames",
            "the [Sub] sits.\n\nthe [Sub] by a man.\n",
            "frames.txt, line 3: holds the gendered word 'man'",
        ),
        (
            "frames",
            "the [Sub] sits.\nthe [Sub] sits.\n",
            "frames.txt, line 2: the frame is in line 1 already",
        ),
        ("frames", "\n\n", "frames.txt: holds no frames"),
        ("frames", None, "frames.txt: no such file; a language pack has pack.toml"),
        (
            "occupations",
            "word\ttype\nnurse\tfemale\n",
            "occupations.tsv, line 2, column `type` 'female' is unknown; allowed: neutral",
        ),
        (
            "occupations",
            "word\ttype\na\tneutral\n\na\tneutral\n",
            "occupations.tsv, line 4, column `word`: 'a' is in line 2 already",
        ),
        ("occupations", "word\ttype\n\tneutral\n", "line 2, column `word`: is empty"),
        (
            "occupations",
            "word\ttype\ncleaning woman\tneutral\n",
            "line 2, column `word`: 'cleaning woman' holds 'woman', a gendered word",
        ),
        (
            "occupations",
            "word\ttype\na\n",
            "line 2: has 1 cells, the header has 2; they are set apart by tabs",
        ),
        (
            "occupations",
            "word\na\n",
            "column `type` is missing, or columns `s1` and `s2`; found: word",
        ),
        (
            "occupations",
            "word\ts1\ts2\na\t0\t2\n",
            "line 2, column `s2`: '2' is not a number from -1 to 1",
        ),
        ("occupations", "word\ts1\ts2\na\tnan\t0\n", "line 2, column `s1`: 'nan' is not a number"),
        (
            "occupations",
            "word\ttype\na\tneutral\nb\tmale-stereo\n",
            "no occupation is of type female-stereo",
        ),
        (
            "occupations",
            "occupation\ttype\n",
            "line 1 (header): column `word` is missing; found: occupation, type",
        ),
        ("occupations", "\n", "occupations.tsv: is empty; expected a header with the columns word"),
        (
            "terms",
            "word\tgender\nwoman\tfemale\n",
            "terms.tsv, line 2, column `gender` 'female' is unknown; allowed: feminine",
        ),
        ("terms", "word\tgender\nwoman\tfeminine\n", "terms.tsv: no word is masculine"),
        (
            "terms",
            "word\tgender\na\tfeminine\nb\tfeminine\nc\tmasculine\n",
            "has 2 feminine and 1 masculine words; they are used in pairs",
        ),
        (
            "terms",
            "word\tgender\na\tfeminine\na\tmasculine\n",
            "line 3, column `word`: 'a' is in line 2 already",
        ),
        ("pack", 'language = "en"\n', "pack.toml: key `name` is missing"),
        (
            "pack",
            FILES["pack.toml"] + "frame = 1\n",
            "pack.toml: key 'frame' is unknown; allowed: language, name",
        ),
        (
            "pack",
            FILES["pack.toml"] + 'design = "grid"\n',
            "key `design`: 'grid' is not allowed; expected window, full",
        ),
        (
            "pack",
            FILES["pack.toml"] + "frames_per_word = 0\n",
            "key `frames_per_word`: 0 is not allowed; expected a whole number from 1",
        ),
        (
            "pack",
            FILES["pack.toml"] + 'shipped = ["nurse"]\n',
            "key `shipped`: 'nurse' is no neutral occupation",
        ),
        ("pack", FILES["pack.toml"] + "[splits]\ntrain = [1]\n", "key `splits`"),
        (
            "pack",
            FILES["pack.toml"] + "[captions]\nlower = 1\n",
            "key of [captions] `lower`: 1 is not allowed; expected true, false",
        ),
        ("pack", FILES["pack.toml"] + 'language = "zh"\n', "pack.toml: not TOML"),
        ("pack", FILES["pack.toml"].replace('"1"', '"../1"'), "key `version`"),
    ],
)
def test_a_wrong_pack_is_refused_with_its_place(
    tmp_path: Path, refusal, name: str, text: str | None, said: str
) -> None:
    message = refusal(read_pack, write(tmp_path, **{name: text}))
    assert message.startswith(str(tmp_path))
    assert said in message


def test_a_verbatim_pack_may_hold_gendered_words_and_repeats(tmp_path: Path) -> None:
    frames = "the [Sub] by a man.\nthe [Sub] by a man.\n"
    assert (
        len(
            read_pack(
                write(tmp_path, pack=FILES["pack.toml"] + "verbatim = true\n", frames=frames)
            ).frames
        )
        == 2
    )


word = st.text(st.characters(categories=["L"]), min_size=1, max_size=6)
frame = st.text(st.characters(categories=["L", "P"]), max_size=8).map(lambda text: f"[Sub]{text}")


@given(
    st.lists(word, min_size=6, max_size=12, unique=True),
    st.lists(frame | st.just(""), max_size=5),
    st.booleans(),
)
def test_a_pack_that_is_written_is_read_again(
    tmp_path_factory, words: list[str], frames: list[str], full: bool
) -> None:
    occupations = tuple(Occupation(one, TYPES[k % 3]) for k, one in enumerate(words[3:]))
    terms = {gender: (one,) for gender, one in zip(GENDERS, words, strict=False)}
    pack = Pack(
        "qaa",
        "name",
        "licence",
        "1.0",
        occupations,
        (*frames, "[Sub]."),
        terms,
        match="word",
        verbatim=True,
        design="full" if full else "window",
        frames_per_word=3 if full else None,
        trained=(words[3],),
        splits={"train": (0, 1), "dev": (1, 2), "test": (3, 4)},
        captions=CaptionFilter(without=("x",), determiners={"a": "the"}),
    )
    assert read_pack(write_pack(pack, tmp_path_factory.mktemp("pack"))) == pack


def test_a_seed_shuffles_words_within_their_type(tmp_path: Path) -> None:
    pack = replace(read_pack(SAMPLES / "en"), trained=("baker",))
    other = shuffled(pack, 1)
    assert other == shuffled(pack, 1) != shuffled(pack, 2)
    assert set(other.occupations) == set(pack.occupations)
    assert other.trained == ()


def test_frames_come_from_captions(tmp_path: Path, refusal) -> None:
    pack = read_pack(SAMPLES / "en")
    path = tmp_path / "captions.txt"
    path.write_text("A man rides a horse\nA man and his dog.\nA woman runs.\n", "utf-8")
    assert with_captions(pack, [path]).frames == ("the [Sub] rides a horse.", "the [Sub] runs.")
    assert with_captions(pack, [path, path], most=3).frames[2] == "the [Sub] rides a horse."
    path.write_text("A dog.\n", "utf-8")
    assert "no caption of 1 lines makes a frame" in refusal(with_captions, pack, [path])
    assert "no such file of captions" in refusal(with_captions, pack, [tmp_path / "none"])
