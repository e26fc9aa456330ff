"""Language packs: written and read again, every error with its place, the audit, and a new one."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from bench import data, run
from bench.benchmarks import get
from bench.benchmarks.nli_coal.build import build
from bench.benchmarks.nli_coal.language_pack import (
    FILES,
    PACKS,
    pack_errors,
    read_pack,
    type_of,
    with_captions,
    write_pack,
)
from bench.benchmarks.nli_coal.language_pack_audit import check, sift
from bench.figures import style
from bench.tasks import prompts

HEAD = 'language = "es"\nname = "Nuestro"\nlicence = "MIT"\nversion = "1"\n'
DESIGN = 'design = "full"\nframes_per_word = 2\n'
# Words and sentences of our own; each of these is said of women and men alike.
WORDS = "word\ttype\nperiodista\tneutral\nrecepcionista\tfemale-stereo\nelectricista\tmale-stereo\n"
TERMS = "word\tgender\nmujer\tfeminine\nhombre\tmasculine\n"
PACK = {
    "pack": HEAD + DESIGN + "splits = { train = [1, 1], dev = [0, 1], test = [0, 1] }\n",
    "occupations": WORDS,
    "terms": TERMS,
    "frames": "Otra vez [Sub] espera el tren.\nHoy [Sub] lee en el parque.\n",
}
NAMES = {name.partition(".")[0]: name for name in FILES}


def write(folder, changed=PACK):
    """Write a good pack with some files changed, by their stem, or left out where they are ""."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, content in {**PACK, **changed}.items():
        if content:
            (folder / NAMES[stem]).write_text(content, "utf-8")
    return folder


def found(folder, kind):
    table = check(folder)
    rows = table[table.kind == kind].itertuples()
    return [f"{row.file}:{row.row}:{row.column} {row.what}" for row in rows]


def test_types_come_from_scores_by_strict_thresholds(tmp_path):
    table = "word\ts1\ts2\na\t0\t0.5\nb\t-.5\t.9\nc\t.49\t.51\nd\t0\t-0.6\ne\t0\t0\n"
    write(tmp_path, {"pack": HEAD + "definitional = 0.6\nstereotype = 0.4\n", "occupations": table})
    kinds = [word.type for word in read_pack(tmp_path).occupations]
    assert kinds == ["male-stereo", "male-stereo", "male-stereo", "female-stereo", "neutral"]
    assert type_of(0.5, 1) == type_of(0, -0.5) == "neutral"


WRONG = tomllib.loads(Path(__file__).with_name("wrong_packs.toml").read_text("utf-8"))["wrong"]


@pytest.mark.parametrize(("changed", "errors"), [tuple(case.values()) for case in WRONG])
def test_all_errors_are_listed_at_once_and_the_first_one_is_raised(
    tmp_path, refusal, changed, errors
):
    refused = found(write(tmp_path, changed), "refused")
    assert len(refused) == len(errors)
    for what, expected in zip(sorted(refused), sorted(errors), strict=True):
        assert what.startswith(expected)
    if listed := pack_errors(tmp_path)[1]:  # too few frames are found by the audit alone
        assert refusal(read_pack, tmp_path) == listed[0]


def test_frames_come_from_captions(tmp_path, refusal):
    pack, path = (
        read_pack(PACKS / "en"),
        tmp_path / "captions.txt",
    )
    path.write_text("A man rides a horse\nA man and his dog.\nA woman runs.\n", "utf-8")
    frames = ("the [Sub] rides a horse.", "the [Sub] runs.")
    assert with_captions(pack, [path, path]).frames == frames, "repeats would be refused"
    assert with_captions(replace(pack, verbatim=True), [path, path]).frames == frames * 2
    table = sift(pack, [path, path])
    assert tuple(table.frame[table.frame != ""]) == frames
    assert ((table.frame == "") != (table.why == "")).all()
    path.write_text("A dog.\n", "utf-8")
    assert "no caption of 1 lines makes a frame" in refusal(with_captions, pack, [path])


ODD = {
    "pack": HEAD.replace("es", "qaa", 1) + DESIGN,
    "occupations": WORDS
    + 'Periodista\tneutral\n"poeta"\tneutral\n'
    + "".join(f"gente{k}\tmale-stereo\n" for k in range(4)),
    "terms": TERMS + "hombre bueno\tneutral\n",
    "frames": "".join(f"Hoy {k} [Sub] lee.\n" for k in range(10))
    + "Hoy [Sub] lee\nLa periodista mira a [Sub].\nhoy 1  [Sub] lee.\nHoy [Sub] ve a los hombres.",
}
FAULTS = """frames.txt:0: has too few frames
terms.tsv:0:word begins longer words in 1 frames, such as 'hombres'
frames.txt:11: does not end with '.'
frames.txt:12: holds the occupation 'periodista' besides the slot
frames.txt:13: differs from line 2 in case or blanks alone
pack.toml:0:language is a language that has no name in CLDR
occupations.tsv:0:type 1 of 6 words with a stereotype are female-stereo
occupations.tsv:0:word differs from another word in case alone
occupations.tsv:0:word differs from another word in case alone
occupations.tsv:0:word has quotation marks
terms.tsv:0:word is neutral but holds a gendered word"""


def test_a_sound_pack_has_nothing_but_its_numbers(tmp_path):
    assert found(write(tmp_path), "odd") == found(tmp_path, "refused") == []
    assert found(tmp_path, "count")[-1] == ":0: pairs that are built: PS 4, AS 4, NS 4"


def test_odd_words_and_frames_are_reported(tmp_path):
    odd, expected = sorted(found(write(tmp_path, ODD), "odd")), sorted(FAULTS.splitlines())
    assert [what[: len(start)] for what, start in zip(odd, expected, strict=True)] == expected


def test_a_new_language_is_made_runs_and_is_called_by_its_name(tmp_path):
    start = Path(__file__).parents[3] / "notebooks/curation/examples/nli_coal"
    words = read_pack(start, frames=False)
    captions = [start / "captions.txt"]
    sifted = sift(words, captions)
    assert ((sifted.frame != "").sum(), len(sifted)) == (22, 31)
    pack = with_captions(words, captions)
    folder = write_pack(pack, tmp_path / "pack")
    assert not (check(folder).kind == "refused").any()
    assert read_pack(folder) == pack
    sets = tmp_path / "sets"
    build([pack], sets)
    ours = get("nli_coal").metadata.prompts.read_text("utf-8")
    own = ours.replace('version = "bench-nli_coal-1"', 'version = "mine-1"').replace("[en]", "[ko]")
    (sets / "prompts.toml").write_text(own, "utf-8")
    assert prompts.load("nli_coal", data=sets).version == "mine-1"
    source = data.find("nli_coal", sets)
    assert source.labels == {"ko": {"en": "Korean", "ko": "한국어"}}
    asked = run.evaluate("nli_coal", "simulated:bias=1", data=sets, out=tmp_path / "run")
    scores = asked.scores().set_index(["category", "task", "metric"]).score
    assert scores["ko", "all", "coal"] == pytest.approx(2 / 3)
    assert style.label("nli_coal", "ko") == "Korean (한국어)"
