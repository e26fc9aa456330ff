"""The audit of language packs lists all errors at once; captions are sifted by the filter."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data, run
from bench.analyses import curate_nli
from bench.curate import copy_example
from bench.data import SAMPLES, nli_coal
from bench.data.nli_coal.build import build
from bench.data.nli_coal.frames import from_captions
from bench.data.nli_coal.language_pack import faults, read_pack, read_words, type_of
from bench.data.nli_coal.language_pack_audit import check, sift
from bench.figures import style
from bench.figures.nli_coal import _language
from bench.tasks import prompts
from bench.tasks.prompts import PROMPTS

HEAD = (
    'language = "es"\nname = "Nuestro"\nlicence = "MIT"\nversion = "1"\ndesign = "full"\n'
    "frames_per_word = 2\n"
)
# Words and sentences of our own; each of these is said of women and men alike.
WORDS = "word\ttype\nperiodista\tneutral\nrecepcionista\tfemale-stereo\nelectricista\tmale-stereo\n"
PACK = {
    "pack.toml": HEAD + "splits = { train = [1, 1], dev = [0, 1], test = [0, 1] }\n",
    "occupations.tsv": WORDS,
    "terms.tsv": "word\tgender\nmujer\tfeminine\nhombre\tmasculine\n",
    "frames.txt": "Otra vez [Sub] espera el tren.\nHoy [Sub] lee en el parque.\n",
}


def folder_of(folder: Path, **files: str) -> Path:
    """Write a pack with changed files, or without those that are ""; `.` is `_` in names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        **PACK,
        **{key.replace("_", "."): text for key, text in files.items()},
    }.items():
        if text:
            (folder / name).write_text(text, "utf-8")
    return folder


def found(folder: Path, kind: str, frames: bool = True) -> list[tuple[str, int, str, str]]:
    table = check(folder, frames)
    some = table[table.kind == kind]
    return list(some[["file", "row", "column", "what"]].itertuples(index=False, name=None))


def test_a_sound_pack_has_nothing_but_its_numbers(tmp_path: Path) -> None:
    table = check(folder_of(tmp_path))
    assert set(table.kind) == {"count"}
    assert table.what.tolist()[-1] == "pairs that are built: PS 4, AS 4, NS 4"
    pack, told = faults(tmp_path)
    assert told == []
    assert pack == read_pack(tmp_path)


def test_everything_that_is_wrong_is_listed_at_once(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        pack_toml=HEAD.replace('"es"', '"Spanish"').replace("licence", "license")
        + 'match = "some"\n',
        occupations_tsv=WORDS
        + "periodista\tneutral\n\tneutral\nartista\twoman\nun hombre\tneutral\nalone\n",
        terms_tsv="word\tgender\nmujer\tfeminine\nhombre\tmasculine\ndama\tfeminine\nx\tother\n",
        frames_txt="Hoy [Sub] lee.\nHoy alguien lee.\nHoy [Sub] lee.\nUna mujer mira a [Sub].\n",
    )
    assert found(folder, "refused") == [
        (
            "pack.toml",
            0,
            "",
            "key `licence` is missing; a pack needs language, name, licence, version",
        ),
        (
            "pack.toml",
            0,
            "",
            "key `language`: 'Spanish' is not allowed; expected a language's code of two or three "
            "small letters, such as zh",
        ),
        *[one for one in found(folder, "refused") if "license" in one[3]],
        ("pack.toml", 0, "", "key `match`: 'some' is not allowed; expected word, substring"),
        ("terms.tsv", 5, "gender", "'other' is unknown; allowed: feminine, masculine, neutral"),
        (
            "occupations.tsv",
            5,
            "word",
            "'periodista' is in line 2 already; every word needs one line",
        ),
        ("occupations.tsv", 6, "word", "is empty; expected a word"),
        (
            "occupations.tsv",
            7,
            "type",
            "'woman' is unknown; allowed: neutral, female-stereo, male-stereo",
        ),
        ("occupations.tsv", 8, "word", "'un hombre' holds 'hombre', a gendered word of terms.tsv"),
        ("occupations.tsv", 9, "", "has 1 cells, the header has 2; they are set apart by tabs"),
        ("frames.txt", 2, "", "has no slot [Sub] for the occupation: 'Hoy alguien lee.'"),
        ("frames.txt", 3, "", "the frame is in line 1 already: 'Hoy [Sub] lee.'"),
        (
            "frames.txt",
            4,
            "",
            "holds the gendered word 'mujer', which would tell the gender of a person in it: "
            "'Una mujer mira a [Sub].'",
        ),
    ]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "terms.tsv",
            PACK["terms.tsv"].encode("utf-16"),
            [(0, "", "is UTF-16; save it again in UTF-8: iconv -f UTF-16 -t UTF-8 'terms.tsv'")],
        ),
        (
            "terms.tsv",
            PACK["terms.tsv"].replace("\t", ","),
            [
                (
                    1,
                    "",
                    "is 'word,gender' without a tab; columns are set apart by tabs, in every line",
                )
            ],
        ),
        (
            "occupations.tsv",
            WORDS.replace("\t", "  "),
            [
                (
                    1,
                    "",
                    "is 'word  type' without a tab; columns are set apart by tabs, in every line",
                )
            ],
        ),
        (
            "occupations.tsv",
            "\n",
            [(0, "", "is empty; expected a header with the columns word, and type or s1 and s2")],
        ),
        (
            "terms.tsv",
            PACK["terms.tsv"] + "mujer\tmasculine\ndama\tfeminine\n",
            [
                (
                    4,
                    "word",
                    "'mujer' is in line 2 already, with another gender; every word needs one line",
                )
            ],
        ),
        (
            "occupations.tsv",
            WORDS.replace("neutral", "Neutral"),
            [(2, "type", "'Neutral' is unknown; allowed: neutral, female-stereo, male-stereo")],
        ),
        (
            "occupations.tsv",
            "word\ts1\ts2\na\t0\t-0,9\nb\t0\t5\n",
            [
                (
                    2,
                    "s2",
                    "'-0,9' is not a number from -1 to 1; if it is -0.9, write it with a point",
                ),
                (3, "s2", "'5' is not a number from -1 to 1"),
            ],
        ),
    ],
)
def test_one_fault_is_one_sentence(
    tmp_path: Path, name: str, content: str | bytes, told: list[tuple[int, str, str]]
) -> None:
    """What follows from a file or a row that cannot be read is not told besides."""
    (folder_of(tmp_path) / name).write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    assert found(tmp_path, "refused") == [(name, *one) for one in told]


def test_a_file_of_another_name_is_pointed_at(tmp_path: Path) -> None:
    (folder_of(tmp_path) / "terms.tsv").rename(tmp_path / "Terms.csv")
    (tmp_path / "frames.txt").unlink()
    (tmp_path / "frames.txt").mkdir()
    files = "a language pack has pack.toml, occupations.tsv, frames.txt, terms.tsv"
    assert found(tmp_path, "refused") == [
        ("frames.txt", 0, "", f"is a folder, not a file; {files}"),
        ("terms.tsv", 0, "", f"no such file, but Terms.csv; {files}"),
    ]


def test_quotation_marks_and_words_within_longer_ones_are_odd(tmp_path: Path) -> None:
    folder_of(
        tmp_path,
        occupations_tsv=WORDS.replace("periodista", '"periodista"'),
        frames_txt="Hoy [Sub] ve a los hombres.\nOtra vez [Sub] lee.\n",
    )
    assert found(tmp_path, "odd") == [
        (
            "terms.tsv",
            0,
            "word",
            "begins longer words in 1 frames, such as 'hombres'; if these tell a gender, add them "
            'to `without`, or write match = "substring"',
        ),
        (
            "occupations.tsv",
            0,
            "word",
            "has quotation marks, which are in every sentence with it",
        ),
    ]


def test_the_reader_refuses_what_is_listed_first(tmp_path: Path, refusal) -> None:
    for files in (
        {"frames_txt": ""},
        {"terms_tsv": ""},
        {"occupations_tsv": "word\ttype\n"},
        {"pack_toml": "language ="},
        {"pack_toml": ""},
        {"terms_tsv": "word\nmujer\n"},
        {"occupations_tsv": "word\ts1\ts2\nx\t0\t7\n"},
        {"frames_txt": "\n\n"},
    ):
        folder = folder_of(tmp_path / str(len(list(tmp_path.iterdir()))), **files)
        told = faults(folder)[1]
        assert refusal(read_pack, folder) == told[0]
        refused = check(folder)
        assert (refused.kind == "refused").sum() == len(told)


def test_what_is_odd_is_told(tmp_path: Path) -> None:
    frames = [f"Hoy {k} [Sub] lee." for k in range(10)]
    folder = folder_of(
        tmp_path,
        pack_toml=HEAD.replace("es", "qaa", 1),
        occupations_tsv=WORDS
        + "Periodista\tneutral\n"
        + "".join(f"gente{k}\tmale-stereo\n" for k in range(4)),
        terms_tsv="word\tgender\nmujer\tfeminine\nhombre\tmasculine\n",
        frames_txt="\n".join(
            [
                *frames,
                "Hoy [Sub] lee",
                "La periodista mira a [Sub].",
                "hoy 1  [Sub] lee.",
                "[Sub] y [Sub] leen.",
            ]
        ),
    )
    assert {what for *_, what in found(folder, "odd")} == {
        "is a language that has no name in CLDR; write [categories] into dataset.toml of what is "
        "built, so that pictures name it",
        "has too few frames for the controlled sets train, dev, test; evaluation sets need none "
        "of them",
        "differs from another word in case alone",
        "1 of 6 words with a stereotype are female-stereo, so that scores are about the others; "
        "`coal_balanced` weighs both alike",
        "does not end with '.' as most frames do",
        "holds the occupation 'periodista' besides the slot, so that two people may be meant",
        "differs from line 2 in case or blanks alone",
        "has several slots, which are all filled with one word",
    }


def test_too_few_frames_for_the_evaluation_sets_are_refused(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path, pack_toml=HEAD.replace("frames_per_word = 2", "frames_per_word = 3")
    )
    ((file, _, _, what),) = found(folder, "refused")
    assert file == "frames.txt"
    assert "line 3 is not there" in what


def test_words_are_looked_at_before_there_are_frames(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, frames_txt="")
    assert found(folder, "refused", frames=False) == []
    assert read_words(folder).frames == ()


def test_a_language_without_blanks_is_told_how_to_find_words(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path, pack_toml=HEAD.replace("es", "th", 1), frames_txt="วันนี้[Sub]อ่าน\nเมื่อวาน[Sub]อ่าน\n"
    )
    assert any('write match = "substring"' in what for *_, what in found(folder, "odd"))


def test_captions_are_sifted_by_hand() -> None:
    pack = read_words(curate_nli.START)
    table = sift(pack, [curate_nli.START / "captions.txt"])
    lines = (curate_nli.START / "captions.txt").read_text("utf-8").splitlines()
    assert len(table) == len(lines) == 31
    assert ((table.frame == "") != (table.why == "")).all()
    assert table.why.value_counts()["holds another word that tells a gender (without)"] == 4
    assert table.frame[6] == "한 [Sub]가 의자에 앉아 신문을 보고 있다."
    # The release's own way takes a frame as often as it comes.
    taken = from_captions(lines, pack.terms, pack.match, pack.captions)
    assert list(dict.fromkeys(taken)) == list(table.frame[table.frame != ""])


@given(st.lists(st.text(st.sampled_from("여자남그녀가 [Sub].\n\t"), max_size=20), max_size=6))
def test_a_caption_makes_a_frame_or_has_a_reason(lines: list[str]) -> None:
    from bench.data.nli_coal.frames import SLOT, found_in, gender_words, judged

    pack = read_words(curate_nli.START)
    for line in lines:
        frame, why = judged(line, gender_words(pack.terms), pack.match, pack.captions)
        assert bool(frame) != bool(why)
        assert not frame or (SLOT in frame and not found_in(frame, pack.gendered, pack.match))


def test_types_of_our_start_are_those_of_its_scores() -> None:
    rows = [
        line.split("\t")
        for line in (curate_nli.START / "occupations.tsv").read_text("utf-8").splitlines()[1:]
    ]
    types = {one.word: one.type for one in read_words(curate_nli.START).occupations}
    assert types == {word: type_of(float(one), float(two)) for word, one, two in rows}
    assert [
        list(types.values()).count(kind) for kind in ("female-stereo", "male-stereo", "neutral")
    ] == [
        6,
        6,
        6,
    ]


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
    assert style.label("nli_coal", "ko") == "한국어 (Korean)"
    assert _language("ko") == "한국어 (Korean)"
    assert data.check(source).kind.tolist().count("refused") == 0
    # A language model is asked in English, where our wording has no prompt for the language.
    (in_words,) = run.evaluate_all(
        "nli_coal", ["simulated:bias=1"], data=str(made.out), read="text", limit=2
    )
    assert in_words.records.prompt.str.match(r"\s*Premise: 한 .*\nHypothesis: 한 ").all()
    assert json.loads((asked.folder / "run.json").read_text("utf-8"))["data"]["language"] == "ko"
    told = curate_nli.findings(made)
    assert told[1].startswith("22 of 31 captions make a frame (71%)")
    fig = curate_nli.draw_captions(made.sifted)
    assert fig is not None
    assert fig.get_suptitle() == "22 of 31 captions make a frame"
    assert curate_nli.draw_captions(made.sifted.head(0)) is None


def test_a_pack_of_one_s_own_is_made_in_its_folder_with_the_wording_that_it_has(
    tmp_path: Path,
) -> None:
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
    packs = [read_pack(folder_of(tmp_path / "es")), read_pack(SAMPLES / "nli_packs" / "ja")]
    build(packs, tmp_path / "out")
    source = data.find("nli_coal", tmp_path / "out")
    assert source.labels == {"es": {"en": "Spanish", "es": "español"}}
    assert list(nli_coal.files(tmp_path / "out")) == ["ja", "es"]


def test_what_keeps_a_pack_from_being_made_is_refused(tmp_path: Path, refusal) -> None:
    assert "no such folder" in refusal(curate_nli.checked, str(tmp_path / "gone"))
    folder = folder_of(tmp_path / "a", frames_txt="", captions_txt="Nadie duerme.\n")
    assert "no caption of 1 makes a frame" in refusal(curate_nli.make, str(folder))
    folder = folder_of(tmp_path / "b", frames_txt="", captions_txt="Un hombre duerme.\n")
    message = refusal(curate_nli.make, str(folder), out=str(tmp_path / "o"))
    assert "1 findings keep it from being built" in message
