"""Language packs: the samples, writing and reading, every error with its place, and the audit."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data, run
from bench.analyses import curate_nli
from bench.curate import copy_example
from bench.data import SAMPLES, nli_coal
from bench.data.nli_coal.build import build
from bench.data.nli_coal.frames import GENDERS, SLOT, CaptionFilter, found_in, gender_words, judged
from bench.data.nli_coal.language_pack import (
    FILES,
    TYPES,
    Occupation,
    Pack,
    pack_errors,
    read_pack,
    shuffled,
    type_of,
    with_captions,
    write_pack,
)
from bench.data.nli_coal.language_pack_audit import check, sift
from bench.figures import style
from bench.figures.nli_coal import _language
from bench.tasks import prompts
from bench.tasks.prompts import PROMPTS

PACKS = SAMPLES / "nli_packs"
HEAD = 'language = "es"\nname = "Nuestro"\nlicence = "MIT"\nversion = "1"\n'
DESIGN = 'design = "full"\nframes_per_word = 2\n'
SPLITS = "splits = { train = [1, 1], dev = [0, 1], test = [0, 1] }\n"
# Words and sentences of our own; each of these is said of women and men alike.
WORDS = "word\ttype\nperiodista\tneutral\nrecepcionista\tfemale-stereo\nelectricista\tmale-stereo\n"
PACK = {
    "pack": HEAD + DESIGN + SPLITS,
    "occupations": WORDS,
    "terms": "word\tgender\nmujer\tfeminine\nhombre\tmasculine\n",
    "frames": "Otra vez [Sub] espera el tren.\nHoy [Sub] lee en el parque.\n",
}
NAMES = {name.partition(".")[0]: name for name in FILES} | {"captions": "captions.txt"}


def write(folder: Path, **changed: str | bytes) -> Path:
    """Write a good pack with some files changed, by their stem, or left out where they are ""."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, content in {**PACK, **changed}.items():
        if content:
            raw = content if isinstance(content, bytes) else content.encode()
            (folder / NAMES[stem]).write_bytes(raw)
    return folder


def found(folder: Path, kind: str, frames: bool = True) -> list[tuple[str, int, str, str]]:
    table = check(folder, frames)
    of_kind = table[table.kind == kind]
    return list(of_kind[["file", "row", "column", "what"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("language", "words", "frames"), [("en", 36, 60), ("zh", 36, 60), ("ja", 12, 24)]
)
def test_the_sample_packs_are_complete(language: str, words: int, frames: int) -> None:
    pack = read_pack(PACKS / language)
    sizes = (pack.language, len(pack.occupations), len(set(pack.frames)))
    assert sizes == (language, words, frames)
    assert Counter(word.type for word in pack.occupations).keys() == set(TYPES)
    assert all(len(pack.terms[gender]) == 1 for gender in GENDERS)
    assert "refused" not in set(check(PACKS / language).kind)


def test_a_small_pack_is_read_with_its_defaults(tmp_path: Path) -> None:
    frames = "[Sub] lee.\r\n\n[Sub] corre.\n\n"
    pack = read_pack(write(tmp_path, pack=HEAD, frames=frames))
    assert pack.frames == ("[Sub] lee.", "", "[Sub] corre.")
    assert pack.of_type(*TYPES)[0] == Occupation("periodista", "neutral")
    assert (pack.match, pack.design, pack.first) == ("word", "window", "feminine")
    assert pack.splits["train"] == (300, 500)
    pack = read_pack(
        write(tmp_path, pack=HEAD.replace("es", "zh") + "splits = { train = [1, 1] }\n")
    )
    assert (pack.match, pack.splits["train"], pack.splits["dev"]) == (
        "substring",
        (1, 1),
        (330, 50),
    )


def test_types_come_from_scores_by_strict_thresholds(tmp_path: Path) -> None:
    table = "word\ts1\ts2\na\t0\t0.5\nb\t-.5\t.9\nc\t.49\t.51\nd\t0\t-0.6\ne\t0\t0\n"
    kinds = [word.type for word in read_pack(write(tmp_path, occupations=table)).occupations]
    assert kinds == ["neutral", "neutral", "male-stereo", "female-stereo", "neutral"]
    write(tmp_path, pack=HEAD + "definitional = 0.6\nstereotype = 0.4\n", occupations=table)
    kinds = [word.type for word in read_pack(tmp_path).occupations]
    assert kinds == ["male-stereo", "male-stereo", "male-stereo", "female-stereo", "neutral"]
    assert type_of(0.5, 1) == type_of(0, -0.5) == "neutral"


def expected_header(choices: str, header: str) -> str:
    return f"expected the columns {choices}, once each and set apart by tabs; found: {header}"


TYPE_COLUMNS = "word, type or word, s1, s2"
# The changed files, and all errors: file, line, column, and what is wrong.
WRONG: list[tuple[Mapping[str, str | bytes], list[tuple[str, int, str, str]]]] = [
    ({"frames": "\n\n"}, [("frames", 0, "", "holds no frames; expected one sentence per line,")]),
    (
        {"frames": "Hoy [Sub] lee.\nHoy lee.\n[sub] lee.\nHoy [Sub] lee.\nUn hombre ve a [Sub].\n"},
        [
            ("frames", 2, "", "has no slot [Sub] for the occupation: 'Hoy lee.'"),
            ("frames", 3, "", "has no slot [Sub] for the occupation; it has '[sub]', which is not"),
            ("frames", 4, "", "the frame is in line 1 already: 'Hoy [Sub] lee.'"),
            ("frames", 5, "", "holds the gendered word 'hombre', which would tell the gender of"),
        ],
    ),
    (
        {
            "occupations": WORDS
            + "periodista\tneutral\n\tneutral\nx\tfemale\nmi hombre\tneutral\na\n"
        },
        [
            ("occupations", 5, "word", "'periodista' is in line 2 already; keep one of them"),
            ("occupations", 6, "word", "'' is no word; expected 1 to 200 characters"),
            ("occupations", 9, "", "has 1 cells, the header has 2; they are set apart by tabs"),
            ("occupations", 7, "type", "type 'female' is unknown; allowed: neutral,"),
            ("occupations", 8, "word", "'mi hombre' holds 'hombre', a gendered word of terms.tsv"),
        ],
    ),
    (
        {"occupations": "word\ts1\ts2\na\t0\t-0,9\nb\tnan\t0\n"},
        [
            ("occupations", 2, "s2", "'-0,9' is not a number from -1 to 1 with a decimal point"),
            ("occupations", 3, "s1", "'nan' is not a number from -1 to 1 with a decimal point"),
        ],
    ),
    (
        {"occupations": "word\na\n"},
        [("occupations", 1, "", expected_header(TYPE_COLUMNS, "'word'"))],
    ),
    (
        {"terms": PACK["terms"].replace("\t", ",")},
        [("terms", 1, "", expected_header("word, gender", "'word,gender'"))],
    ),
    ({"occupations": "\n"}, [("occupations", 1, "", expected_header(TYPE_COLUMNS, ""))]),
    (
        {"occupations": "word\ttype\na\tneutral\nb\tmale-stereo\n"},
        [("occupations", 0, "", "no occupation is of type female-stereo; add one at least")],
    ),
    (
        {"terms": "word\tgender\nmujer\tfemale\nmujer\tmasculine\n"},
        [
            ("terms", 3, "word", "'mujer' is in line 2 already; keep one of them"),
            ("terms", 2, "gender", "gender 'female' is unknown; allowed: feminine, masculine,"),
        ],
    ),
    (
        {"terms": "word\tgender\na\tfeminine\nb\tfeminine\nc\tmasculine\n"},
        [("terms", 0, "", "has 2 feminine and 1 masculine words; they are used in pairs, so")],
    ),
    (
        {"terms": "word\tgender\n" + "".join(f"w{k}\tneutral\n" for k in range(1001))},
        [("terms", 0, "", "has more than 1,000 words, the most that are looked for")],
    ),
    (
        {"terms": PACK["terms"].encode("utf-16")},
        [("terms", 0, "", "is UTF-16; save it again in UTF-8: iconv -f UTF-16 -t UTF-8")],
    ),
    ({"pack": "language ="}, [("pack", 0, "", "not TOML (Invalid value (at end of document))")]),
    (
        {"pack": 'language = "Spanish"\nlicense = "MIT"\nname = " "\nversion = "../1"\n'},
        [
            ("pack", 0, "", "key `language`: 'Spanish' is not allowed; expected a language's code"),
            ("pack", 0, "", "key `name`: ' ' is not allowed; expected a text on one line"),
            ("pack", 0, "", "key `licence`: is missing"),
            ("pack", 0, "", "key `version`: '../1' is not allowed; expected letters, digits,"),
            ("pack", 0, "", "key 'license' is unknown; allowed: language, name, licence, version"),
        ],
    ),
    (
        {
            "pack": HEAD + 'design = "grid"\nframes_per_word = 0\nverbatim = 1\nshipped = "a"\n'
            "stereotype = nan\nsplits = { x = [0, 1], train = [1], dev = [-1, 1.0] }\n"
            "[captions]\nlower = 1\nwords = []\n"
        },
        [
            ("pack", 0, "", "key `verbatim`: 1 is not allowed; Input should be a valid boolean"),
            ("pack", 0, "", "key `design`: 'grid' is not allowed; Input should be 'window' or"),
            ("pack", 0, "", "key `frames_per_word`: 0 is not allowed; Input should be greater"),
            ("pack", 0, "", "key `stereotype`: nan is not allowed; Input should be less than or"),
            ("pack", 0, "", "key `shipped`: 'a' is not allowed; Input should be a valid tuple"),
            ("pack", 0, "", "key `splits.x.[key]`: 'x' is not allowed; expected train, dev, test"),
            ("pack", 0, "", "key `splits.train.1`: is missing"),
            ("pack", 0, "", "key `splits.dev.0`: -1 is not allowed; Input should be greater than"),
            ("pack", 0, "", "key `splits.dev.1`: 1.0 is not allowed; Input should be a valid int"),
            ("pack", 0, "", "key `captions.lower`: 1 is not allowed; Input should be a valid bool"),
            (
                "pack",
                0,
                "",
                "key of [captions] 'words' is unknown; allowed: without, blanks, lower",
            ),
        ],
    ),
    (
        {"pack": HEAD + 'shipped = ["electricista"]\n'},
        [("pack", 0, "", "key `shipped`: 'electricista' is no neutral occupation of occupations")],
    ),
    (
        {"pack": "", "frames": ""},
        [
            ("pack", 0, "", "no such file; a language pack has pack.toml, occupations.tsv,"),
            ("frames", 0, "", "no such file, but there is Frames.csv; a language pack has"),
        ],
    ),
]


@pytest.mark.parametrize(("changed", "errors"), WRONG)
def test_all_errors_are_listed_at_once_and_the_first_one_is_raised(
    tmp_path: Path, refusal, changed: dict[str, str], errors: list[tuple[str, int, str, str]]
) -> None:
    """What follows from a file or a row that cannot be read is not listed besides."""
    write(tmp_path, **changed)
    if "frames" in changed and not changed["frames"]:
        (tmp_path / "Frames.csv").write_text("")
    refused = found(tmp_path, "refused")
    assert [finding[:3] for finding in refused] == [(NAMES[n], *place) for n, *place, _ in errors]
    for (*_, what), (*_, expected) in zip(refused, errors, strict=True):
        assert what.startswith(expected)
    assert refusal(read_pack, tmp_path) == pack_errors(tmp_path)[1][0]
    assert refusal(read_pack, tmp_path).startswith(str(tmp_path))


def test_errors_are_listed_up_to_a_number(tmp_path: Path) -> None:
    write(tmp_path, frames="x\n" * 5000)
    assert len(pack_errors(tmp_path)[1]) == 1000


def test_a_verbatim_pack_may_hold_gendered_words_and_repeats(tmp_path: Path) -> None:
    frames = "[Sub] y un hombre.\n" * 2
    pack = read_pack(write(tmp_path, pack=PACK["pack"] + "verbatim = true\n", frames=frames))
    assert len(pack.frames) == 2


word = st.text(st.characters(categories=["L"]), min_size=1, max_size=6)
frame = st.text(st.characters(categories=["L", "P"]), max_size=8).map(lambda text: f"[Sub]{text}")


@given(
    st.lists(word, min_size=6, max_size=12, unique=True),
    st.lists(frame | st.just(""), max_size=5),
    st.booleans(),
)
def test_a_pack_that_is_written_is_read_again(
    tmp_path_factory, words: list[str], frames: list[str], is_full: bool
) -> None:
    pack = Pack(
        language="zh" if is_full else "qaa",
        name="name",
        licence="licence",
        version="1.0",
        occupations=tuple(Occupation(one, TYPES[k % 3]) for k, one in enumerate(words[3:])),
        frames=(*frames, "[Sub]."),
        terms={gender: (one,) for gender, one in zip(GENDERS, words, strict=False)},
        match="word",
        verbatim=True,
        design="full" if is_full else "window",
        frames_per_word=3 if is_full else None,
        trained=(words[3],),
        splits={"train": (0, 1), "dev": (1, 2), "test": (3, 4)},
        captions=CaptionFilter(without=("x",), determiners={"a": "the"}),
    )
    assert read_pack(write_pack(pack, tmp_path_factory.mktemp("pack"))) == pack


def test_a_seed_shuffles_words_within_their_type() -> None:
    pack = replace(read_pack(PACKS / "en"), trained=("baker",))
    other = shuffled(pack, 1)
    assert other == shuffled(pack, 1) != shuffled(pack, 2)
    assert set(other.occupations) == set(pack.occupations)
    assert other.trained == ()


def test_frames_come_from_captions(tmp_path: Path, refusal) -> None:
    pack, path = read_pack(PACKS / "en"), tmp_path / "captions.txt"
    path.write_text("A man rides a horse\nA man and his dog.\nA woman runs.\n", "utf-8")
    frames = ("the [Sub] rides a horse.", "the [Sub] runs.")
    assert with_captions(pack, [path, path]).frames == frames, "repeats would be refused"
    assert with_captions(replace(pack, verbatim=True), [path, path]).frames == frames * 2
    path.write_text("A dog.\n", "utf-8")
    assert "no caption of 1 lines makes a frame" in refusal(with_captions, pack, [path])
    assert "none: cannot be read" in refusal(with_captions, pack, [tmp_path / "none"])


def test_a_sound_pack_has_nothing_but_its_numbers(tmp_path: Path, refusal) -> None:
    assert [what for *_, what in found(write(tmp_path), "count")] == [
        "1 words are neutral",
        "1 words are female-stereo",
        "1 words are male-stereo",
        "2 frames",
        "words: 1 feminine, 1 masculine",
        "pairs that are built: PS 4, AS 4, NS 4",
    ]
    assert set(check(tmp_path).kind) == {"count"}
    (tmp_path / "frames.txt").unlink()
    assert found(tmp_path, "refused", frames=False) == []
    assert read_pack(tmp_path, frames=False).frames == ()
    assert "no such folder" in refusal(check, tmp_path / "gone")


def test_what_is_odd_is_reported(tmp_path: Path) -> None:
    stereotypes = "".join(f"gente{k}\tmale-stereo\n" for k in range(4))
    sentences = ["Hoy [Sub] lee", "La periodista mira a [Sub].", "hoy 1  [Sub] lee."]
    sentences += ["[Sub] y [Sub] leen.", "Hoy [Sub] ve a los hombres."]
    write(
        tmp_path,
        pack=HEAD.replace("es", "qaa", 1) + DESIGN,
        occupations=WORDS + 'Periodista\tneutral\n"poeta"\tneutral\n' + stereotypes,
        terms=PACK["terms"] + "hombre bueno\tneutral\n",
        frames="\n".join([*(f"Hoy {k} [Sub] lee." for k in range(10)), *sentences]),
    )
    assert found(tmp_path, "odd") == [
        (
            "frames.txt",
            0,
            "",
            "has too few frames for the controlled sets train, dev, test; evaluation sets need "
            "none of them",
        ),
        (
            "terms.tsv",
            0,
            "word",
            "begins longer words in 1 frames, such as 'hombres'; if these tell a gender, add them "
            'to `without`, or write match = "substring"',
        ),
        ("frames.txt", 11, "", "does not end with '.' as most frames do"),
        (
            "frames.txt",
            12,
            "",
            "holds the occupation 'periodista' besides the slot, so that two people may be meant",
        ),
        ("frames.txt", 13, "", "differs from line 2 in case or blanks alone"),
        ("frames.txt", 14, "", "has several slots, which are all filled with one word"),
        (
            "pack.toml",
            0,
            "language",
            "is a language that has no name in CLDR; write [categories] into dataset.toml of what "
            "is built, so that pictures name it",
        ),
        (
            "occupations.tsv",
            0,
            "type",
            "1 of 6 words with a stereotype are female-stereo, so that scores are about the "
            "others; `coal_balanced` weighs both alike",
        ),
        ("occupations.tsv", 0, "word", "differs from another word in case alone"),
        ("occupations.tsv", 0, "word", "differs from another word in case alone"),
        ("occupations.tsv", 0, "word", "has quotation marks, which are in every sentence with it"),
        ("terms.tsv", 0, "word", "is neutral but holds a gendered word"),
    ]


def test_too_few_frames_for_the_evaluation_sets_are_refused(tmp_path: Path) -> None:
    write(tmp_path, pack=HEAD + DESIGN.replace("2", "3"))
    ((file, _, _, what),) = found(tmp_path, "refused")
    assert file == "frames.txt"
    assert "line 3 is missing or empty" in what


def test_gender_words_in_a_language_without_blanks(tmp_path: Path) -> None:
    head = HEAD.replace("es", "th", 1)
    terms = "word\tgender\nคน\tfeminine\nคนดี\tmasculine\n"
    write(tmp_path, pack=head, terms=terms, frames="วันนี้[Sub]อ่าน\nเมื่อวาน[Sub]อ่าน\n")
    assert any('write match = "substring"' in what for *_, what in found(tmp_path, "odd"))
    write(tmp_path, pack=head + 'match = "substring"\n', terms=terms)
    assert any("is found in 'คนดี' too" in what for *_, what in found(tmp_path, "odd"))


def test_captions_are_sifted_by_hand() -> None:
    pack = read_pack(curate_nli.START, frames=False)
    table = sift(pack, [curate_nli.START / "captions.txt"])
    assert len(table) == 31
    assert ((table.frame == "") != (table.why == "")).all()
    assert table.why.value_counts()["holds another word that tells a gender (without)"] == 4
    assert table.frame[6] == "한 [Sub]가 의자에 앉아 신문을 보고 있다."
    frames = with_captions(pack, [curate_nli.START / "captions.txt"]).frames
    assert frames == tuple(table.frame[table.frame != ""])
    kinds = Counter(word.type for word in pack.occupations)
    assert kinds == dict.fromkeys(TYPES, 6)


@given(st.lists(st.text(st.sampled_from("여자남그녀가 [Sub].\n\t"), max_size=20), max_size=6))
def test_a_caption_makes_a_frame_or_has_a_reason(lines: list[str]) -> None:
    pack = read_pack(curate_nli.START, frames=False)
    words = gender_words(pack.terms)
    for line in lines:
        made, reason = judged(line, words, pack.match, pack.captions)
        assert bool(made) != bool(reason)
        gendered = [*words, *pack.captions.without]
        assert not made or (SLOT in made and not found_in(made, gendered, pack.match))


def test_a_new_language_runs_and_is_called_by_its_name(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = curate_nli.make(out="made")
    assert not (made.checked.kind == "refused").any()
    source = data.find("nli_coal", made.out)
    assert source.labels == {"ko": {"en": "Korean", "ko": "한국어"}}
    (asked,) = run.evaluate_all("nli_coal", ["simulated:bias=1"], data=str(made.out))
    scores = asked.scores().set_index(["category", "task", "metric"]).score
    assert scores["ko", "all", "coal"] == pytest.approx(2 / 3)
    assert style.label("nli_coal", "ko") == _language("ko") == "한국어 (Korean)"
    assert "refused" not in set(data.check(source).kind)
    # A language model is asked in English, where our prompts lack the language.
    (in_words,) = run.evaluate_all(
        "nli_coal", ["simulated:bias=1"], data=str(made.out), read="text", limit=2
    )
    assert in_words.records.prompt.str.match(r"\s*Premise: 한 .*\nHypothesis: 한 ").all()
    assert json.loads((asked.folder / "run.json").read_text("utf-8"))["data"]["language"] == "ko"
    assert curate_nli.findings(made)[1].startswith("22 of 31 captions make a frame (71%)")
    fig = curate_nli.draw_captions(made.sifted)
    assert fig is not None
    assert fig.get_suptitle() == "22 of 31 captions make a frame"
    assert curate_nli.draw_captions(made.sifted.head(0)) is None


def test_a_pack_is_made_in_its_folder_with_the_prompts_that_it_has(tmp_path: Path) -> None:
    copy_example("nli_coal", tmp_path / "mine")
    ours = (PROMPTS / "nli_coal.toml").read_text("utf-8")
    own = ours.replace('version = "bench-nli_coal-1"', 'version = "mine-1"').replace("[en]", "[ko]")
    (tmp_path / "mine" / "prompts.toml").write_text(own, "utf-8")
    made = curate_nli.make(str(tmp_path / "mine"))
    assert made.out == tmp_path / "mine" / "made" / "sets"
    assert prompts.load("nli_coal", data=made.out).version == "mine-1"
    # It is read again as it was written by people: what was made is no part of it.
    assert curate_nli.make(str(tmp_path / "mine")).pack == made.pack


def test_two_languages_are_built_side_by_side_and_the_releases_need_no_labels(
    tmp_path: Path,
) -> None:
    build([read_pack(write(tmp_path / "es")), read_pack(PACKS / "ja")], tmp_path / "out")
    source = data.find("nli_coal", tmp_path / "out")
    assert source.labels == {"es": {"en": "Spanish", "es": "español"}}
    assert list(nli_coal.files(tmp_path / "out")) == ["ja", "es"]


def test_what_keeps_a_pack_from_being_made_is_refused(tmp_path: Path, refusal) -> None:
    folder = write(tmp_path / "a", frames="", captions="Nadie duerme.\n")
    assert "no caption of 1 makes a frame" in refusal(curate_nli.make, str(folder))
    folder = write(tmp_path / "b", frames="", captions="Un hombre duerme.\n")
    message = refusal(curate_nli.make, str(folder), out=str(tmp_path / "o"))
    assert "1 findings keep it from being built" in message
