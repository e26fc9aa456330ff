"""Language packs: every fault with its place, captions as frames, and a new language."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from bench import data, run
from bench.benchmarks import get
from bench.benchmarks.nli_coal.build import build
from bench.benchmarks.nli_coal.language_pack import (
    PACKS,
    pack_errors,
    read_pack,
    sift,
    with_captions,
    write_pack,
)
from bench.benchmarks.nli_coal.language_pack_audit import check
from bench.figures import style
from bench.tasks import prompts

HEAD = 'language = "es"\nname = "Nuestro"\nlicence = "MIT"\nversion = "1"\n'
SMALL = Path(__file__).with_name("small")
CASES = tomllib.loads(Path(__file__).with_name("packs.toml").read_text("utf-8"))["pack"]


def write(folder, **changed):
    """Write a sound pack with the files of some stems changed."""
    for path in SMALL.iterdir():
        (folder / path.name).write_text(changed.get(path.stem) or path.read_text("utf-8"), "utf-8")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_all_faults_of_a_pack_are_listed_and_the_first_error_is_raised(tmp_path, refusal, case):
    findings = check(write(tmp_path, **case.get("changed", {})))
    for kind in ("refused", "odd"):
        rows = findings[findings.kind == kind].itertuples()
        found = sorted(f"{row.file}:{row.row}:{row.column} {row.what}" for row in rows)
        expected = sorted(case.get(kind, []))
        assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected
    if errors := pack_errors(tmp_path)[1]:  # too few frames are found by the audit alone
        assert refusal(read_pack, tmp_path) == errors[0]


def test_types_come_from_scores_by_strict_thresholds(tmp_path):
    table = "word\ts1\ts2\na\t0\t0.5\nb\t-.5\t.9\nc\t.49\t.51\nd\t0\t-0.6\ne\t0\t0\n"
    write(tmp_path, pack=HEAD + "definitional = 0.6\nstereotype = 0.4\n", occupations=table)
    kinds = [word.type for word in read_pack(tmp_path).occupations]
    assert kinds == ["male-stereo", "male-stereo", "male-stereo", "female-stereo", "neutral"]
    write(tmp_path, pack=HEAD, occupations=table)
    kinds = [word.type for word in read_pack(tmp_path).occupations]
    assert kinds == ["neutral", "neutral", "male-stereo", "female-stereo", "neutral"]


def test_frames_come_from_captions(tmp_path, refusal):
    pack, path = read_pack(PACKS / "en"), tmp_path / "captions.txt"
    path.write_text("A man rides a horse\nA man and his dog.\nA woman runs.\n", "utf-8")
    frames = ("the [Sub] rides a horse.", "the [Sub] runs.")
    assert with_captions(pack, [path, path]).frames == frames, "repeats would be refused"
    assert with_captions(replace(pack, verbatim=True), [path, path]).frames == frames * 2
    table = sift(pack, [path, path])
    assert tuple(table.frame[table.frame != ""]) == frames
    assert ((table.frame == "") != (table.why == "")).all()
    path.write_text("A dog.\n", "utf-8")
    assert "no caption of 1 lines makes a frame" in refusal(with_captions, pack, [path])


def test_a_new_language_is_made_runs_and_is_called_by_its_name(tmp_path):
    start = Path(__file__).parents[3] / "notebooks/curation/examples/nli_coal"
    words, captions = read_pack(start, frames=False), [start / "captions.txt"]
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
    assert data.find("nli_coal", sets).labels == {"ko": {"en": "Korean", "ko": "한국어"}}
    asked = run.evaluate("nli_coal", "simulated:bias=1", data=sets, out=tmp_path / "run")
    scores = asked.scores().set_index(["category", "task", "metric"]).score
    assert scores["ko", "all", "coal"] == pytest.approx(2 / 3)
    assert style.label("nli_coal", "ko") == "Korean (한국어)"
