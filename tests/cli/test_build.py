"""`bench build nli-coal`: released files again byte for byte, sets from packs and captions that run, and wrong calls."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import cli, data

PACKS = data.SAMPLES / "nli_packs"


@pytest.fixture
def bench(own_folder: Path, monkeypatch: Any, capsys: Any) -> Any:
    """Runs the command in a folder of its own: (status, standard output, standard error)."""

    def call(*words: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bench", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def test_the_release_is_built_again_and_its_untrained_words_are_told(
    bench: Any, shared: Path
) -> None:
    folder = shared / "data" / "nli_coal"
    words = ("build", "nli-coal", "--from", folder / "zh_v1.0", "--compat", "--out", "o")
    status, out, err = bench(*words, "--rate", "0,.3", "--rate", ".5,1", "--split", "dev,test")
    assert status == 0
    lines = out.splitlines()
    assert (
        lines[0]
        == "o/zh_v1.0/bias-eval-set_v1.0/all-words/1-prostereo_v1.0.json: 1,000 pairs, as released (git blob "
        + lines[0][-41:]
    )
    assert sum(", as released (git blob " in line for line in lines) == 8 + 4 + 2
    # Of the test sets the release has those at 0 and 1.
    assert [
        line.partition(":")[0].rpartition("/")[2] for line in lines if "released" not in line
    ] == ["test_r-3.json", "test_r-5.json"]
    assert lines[-1].endswith("in 16 files, 14 of which are the released ones to the byte")
    assert err.startswith(
        "note: zh: 10 neutral words of the down-sampled NS are not trained as neutral"
    )
    assert err.rstrip().endswith("--ns-words trained takes those that are")
    assert bench(*words, "--ns-words", "trained")[2] == ""


def test_languages_of_a_release_can_be_chosen(bench: Any, shared: Path) -> None:
    words = (
        "build",
        "nli-coal",
        "--from",
        shared / "data" / "nli_coal",
        "--compat",
        "--out",
        "o",
        "--rate",
        "all",
        "--split",
        "dev",
    )
    # Of Japanese no controlled set is at hand, so the frames of one are not known.
    status, _, err = bench(*words)
    assert status == 2
    assert "(ja_v1.1): 30 words" in err
    assert err.endswith("add captions, or leave the language out\n")
    status, out, _ = bench(*words, "--categories", "en,zh")
    assert status == 0
    # Eight evaluation files a language, and four dev sets whose ids are known; the other seven are made the same way.
    assert out.splitlines()[-1].endswith(
        "in 38 files, 24 of which are the released ones to the byte"
    )


def test_what_is_built_runs(bench: Any) -> None:
    status, out, err = bench(
        "build", "nli-coal", "--pack", PACKS / "en", "--pack", PACKS / "zh", "--out", "o"
    )
    assert status == 0
    assert [line[:58] for line in err.splitlines()] == [
        f"note: {language}: 6 neutral words of the down-sampled NS are not t"
        for language in ("en", "zh")
    ]
    assert "controlled" not in out
    assert "5-neutral-terms_v0.1.json" in out
    _, out, _ = bench(
        "run",
        "nli_coal",
        "--model",
        "simulated:bias=1",
        "--data",
        "o",
        "--limit",
        5,
        "--format",
        "json",
    )
    run = json.loads(out)["run"]
    assert run["asked"]["tasks"] == ["ps", "as", "ns", "nt"]
    assert run["data"]["note"].startswith("built from language packs; 0 of ")
    _, out, _ = bench(
        "data", "nli_coal", "--data", "o", "--set", "set=downsample", "--format", "json"
    )
    assert set(json.loads(out)[0]["categories"]) == {"en", "zh"}


def test_all_rates_in_so_many_rows(bench: Any) -> None:
    words = (
        "build",
        "nli-coal",
        "--pack",
        PACKS / "en",
        "--out",
        "o",
        "--rate",
        "all",
        "--split",
        "train",
    )
    _, out, _ = bench(*words, "--rows", 600, "--assign", "row", "--seed", 2, "--design", "full")
    sets = [line for line in out.splitlines() if "/train/" in line]
    assert len(sets) == 11
    assert all(": 600 pairs (git blob " in line for line in sets)
    rows = [
        json.loads(line)
        for line in Path("o/en_v0.1/bias-controlled-set_v0.1/train/train_r-3.json")
        .read_text("utf-8")
        .splitlines()
    ]
    labels = [row["label"] for row in rows]
    assert {name: labels.count(name) for name in set(labels)} == dict.fromkeys(
        ("entailment", "contradiction", "neutral"), 200
    )


def test_frames_are_made_of_captions(bench: Any) -> None:
    captions = [
        "A man sleeps",
        "a woman sees a man",
        "A WOMAN reads.",
        "two dogs",
        "a young man eats",
    ]
    Path("c1.txt").write_text("\n".join(captions[:3]), "utf-8")
    Path("c2.txt").write_text("\n".join(captions[3:]), "utf-8")
    words = (
        "build",
        "nli-coal",
        "--pack",
        PACKS / "en",
        "--captions",
        "c1.txt",
        "--captions",
        "c2.txt",
    )
    status, _, err = bench(*words, "--out", "o")
    # The pack asks for 24 frames a word, and these make three.
    assert (status, err.count("\n")) == (2, 1)
    assert (
        "with 24 frames each (full) need lines 1 to 24 of frames.txt; line 4 is not there, it has 3"
        in err
    )


def test_captions_of_a_release_follow_its_own_rule(bench: Any, shared: Path) -> None:
    """Chinese: an id before the blank, one of the two words, no blank, none of the words that tell a gender."""
    lines = [
        f"{k}.jpg#0 一个{word}在第{k}街上走。" for k, word in enumerate(["女人", "男人"] * 140)
    ]
    lines += ["9.jpg#1 一个男人和他的狗。", "9.jpg#2 一个男人 坐着。", "9.jpg#3 男人和女人。"]
    Path("flickr.txt").write_text("\n".join(lines), "utf-8")
    folder = shared / "data" / "nli_coal" / "zh_v1.0"
    assert (
        bench("build", "nli-coal", "--from", folder, "--captions", "flickr.txt", "--out", "o")[0]
        == 0
    )
    frames = Path("o/zh_v1.0/pack/frames.txt").read_text("utf-8").splitlines()
    assert len(frames) == 280
    assert frames[1] == "一个[Sub]在第1街上走。"


def pack(**changed: str) -> Path:
    """A copy of the English pack with other files."""
    Path("pack").mkdir(exist_ok=True)
    for path in (PACKS / "en").iterdir():
        (Path("pack") / path.name).write_text(
            changed.get(path.stem, path.read_text("utf-8")), "utf-8"
        )
    return Path("pack")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "build: give what to build from, either --pack DIR or --from DIR"),
        (("--pack", PACKS / "en", "--from", "x"), "either --pack DIR or --from DIR"),
        (
            ("--pack", PACKS / "en", "--categories", "en"),
            "--categories: chooses languages of a released folder",
        ),
        (("--from", PACKS.parent / "nli_coal", "--categories", "fr"), "language 'fr' is unknown"),
        (("--pack", "nowhere"), "nowhere/pack.toml: no such file; a language pack has pack.toml"),
        (("--from", "nowhere"), "nowhere: holds no data of NLI-CoAL"),
        (("--pack", PACKS / "en", "--rate", "0.5;1"), "--rate 0.5;1: expected numbers from 0 to 1"),
        (("--pack", PACKS / "en", "--rate", "7"), "rate 7.0: has to be from 0 to 1"),
        (
            ("--pack", PACKS / "en", "--rate", "1", "--split", "valid"),
            "split 'valid' is unknown; allowed: train, dev, test",
        ),
        (
            ("--pack", PACKS / "en", "--rate", "1", "--assign", "dice"),
            "assignment 'dice' is unknown; allowed: word, balanced, row",
        ),
        (
            ("--pack", PACKS / "en", "--rate", "1", "--rows", "100"),
            "a frame makes 60 pairs of a controlled set, so it cannot have 100; give 60 or 120",
        ),
        (("--pack", PACKS / "en", "--rate", "1", "--rows", "0"), "cannot have 0; give 60"),
        (("--pack", PACKS / "en", "--rate", "1", "--rows", "-1"), "cannot have -1; give 60"),
        (
            ("--pack", PACKS / "en", "--rate", "1", "--start", "999"),
            "need lines 1000 to 1023 of frames.txt",
        ),
        (
            ("--pack", PACKS / "en", "--split", "dev"),
            "--split: is about bias-controlled sets; say at which rates",
        ),
        (("--pack", PACKS / "en", "--start", "0"), "--start: is about bias-controlled sets"),
        (("--pack", PACKS / "en", "--assign", "row"), "--assign: is about bias-controlled sets"),
        (
            ("--pack", PACKS / "en", "--design", "grid"),
            "design 'grid' is unknown; allowed: window, full",
        ),
        (
            ("--pack", PACKS / "en", "--ns-words", "some"),
            "ns_words 'some' is unknown; allowed: shipped, trained",
        ),
        (("--pack", PACKS / "en", "--captions", "no.txt"), "no.txt: no such file of captions"),
        (
            ("--pack", PACKS / "en", "--pack", PACKS / "zh", "--captions", "c"),
            "--captions: are of one language, and there are packs of en, zh",
        ),
    ],
)
def test_a_wrong_call_is_one_line_and_nothing_is_written(
    bench: Any, words: tuple[Any, ...], message: str
) -> None:
    status, out, err = bench("build", "nli-coal", "--out", "o", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.startswith("bench: ")
    assert err.count("\n") == 1
    assert not Path("o").exists()


def test_a_frame_without_slot_names_file_and_line(bench: Any) -> None:
    folder = pack(frames="the [Sub] sits.\nthe person sits.\n")
    status, out, err = bench("build", "nli-coal", "--pack", folder, "--out", "o")
    assert (status, out) == (2, "")
    assert err.startswith("bench: pack/frames.txt, line 2: has no slot [Sub] for the occupation")


def test_only_nli_coal_is_built(bench: Any) -> None:
    assert (
        "build cbbq: is not made of words and frames; allowed: nli-coal"
        in bench("build", "cbbq", "--out", "o")[2]
    )


def test_built_sets_are_fetched_with_their_pack(bench: Any, user: Path) -> None:
    bench("build", "nli-coal", "--pack", PACKS / "ja", "--out", "o", "--rate", ".5")
    assert bench("fetch", "nli_coal", "--from", "o")[0] == 0
    _, out, _ = bench("data", "nli_coal", "--format", "json")
    assert json.loads(out)[0]["categories"].keys() == {"ja"}
    assert (user / "nli_coal/ja_v0.1/pack/frames.txt").is_file()


def test_a_pack_is_checked_and_nothing_is_built(bench: Any) -> None:
    status, out, _ = bench("build", "nli-coal", "--pack", PACKS / "en", "--check")
    assert status == 0
    assert "pairs that are built: PS 480, AS 480, NS 768, NT 864" in out
    folder = Path(shutil.copytree(PACKS / "en", "mine"))
    (folder / "frames.txt").write_text("No slot.\nNone here.\n", "utf-8")
    (folder / "terms.tsv").write_text("word\tgender\nwoman\tfeminine\n", "utf-8")
    status, out, err = bench("build", "nli-coal", "--pack", folder, "--check", "--format", "csv")
    assert status == 2
    assert [line.split(",")[0] for line in out.splitlines() if "refused" in line] == [
        "terms.tsv",
        "frames.txt",
        "frames.txt",
    ]
    assert "3 findings are of rows that are refused" in err
    assert "--out: is missing" in bench("build", "nli-coal", "--pack", folder)[2]
    assert (
        "--check: is about language packs"
        in bench("build", "nli-coal", "--from", "x", "--check")[2]
    )
