"""`bench build nli-coal`: sets that run, packs that are only checked, and wrong calls."""

import json
import shutil
from pathlib import Path

import pytest

from bench.benchmarks.nli_coal.language_pack import PACKS

EN = f"--pack {PACKS / 'en'}"


def test_built_sets_run_and_are_fetched_with_their_pack(bench, user):
    status, out, err = bench(f"build nli-coal {EN} --pack {PACKS / 'zh'} --out o --rate .5")
    assert (status, err.count("6 neutral words of the down-sampled NS are not trained")) == (0, 2)
    assert "5-neutral-terms_v0.1.json" in out
    call = "run nli_coal --model simulated:bias=1 --data o --limit 5 --format json"
    run = json.loads(bench(call)[1])["run"]
    assert run["asked"]["tasks"] == ["ps", "as", "ns", "nt"]
    assert run["data"]["note"].startswith("built from language packs; 0 of ")
    assert bench("fetch nli_coal --from o")[0] == 0
    _, out, _ = bench("data nli_coal --format json")
    assert json.loads(out)[0]["categories"].keys() == {"en", "zh"}
    assert (user / "nli_coal/zh_v0.1/pack/frames.txt").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "build: give what to build from, either --pack DIR or --from DIR"),
        (f"{EN} --categories en", "--categories: chooses languages of a released folder"),
        (f"--from {PACKS.parent / 'nli_coal'} --categories fr", "language 'fr' is unknown"),
        ("--pack nowhere", "nowhere/pack.toml: no such file; a language pack has pack.toml"),
        ("--from nowhere", "nowhere: holds no data of NLI-CoAL"),
        (f"{EN} --rate 0.5;1", "--rate: '0.5;1' is not a number"),
        (f"{EN} --split dev", "--split: is about bias-controlled sets; say at which rates"),
        (f"{EN} --captions no.txt", "no.txt: cannot be read"),
        (f"{EN} --pack {PACKS / 'zh'} --captions c", "--captions: are of one language, and there"),
        ("--from x --check", "--check: is about language packs"),
    ],
)
def test_a_wrong_call_is_one_line_and_nothing_is_written(bench, words, message):
    status, out, err = bench(f"build nli-coal --out o {words}")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not Path("o").exists()


def test_a_pack_is_checked_and_a_wrong_one_is_not_built(bench):
    status, out, _ = bench(f"build nli-coal {EN} --check")
    assert status == 0
    assert "pairs that are built: PS 480, AS 480, NS 768, NT 864" in out
    shutil.copytree(PACKS / "en", "mine")
    Path("mine/frames.txt").write_text("No slot.\nNone here.\n", "utf-8")
    Path("mine/terms.tsv").write_text("word\tgender\nwoman\tfeminine\n", "utf-8")
    status, out, err = bench("build nli-coal --pack mine --check --format csv")
    files = [line.split(",")[0] for line in out.splitlines() if "refused" in line]
    assert (status, files) == (2, ["frames.txt", "frames.txt", "terms.tsv"])
    assert "3 findings are of rows that are refused" in err
    status, _, err = bench("build nli-coal --pack mine --out o")
    assert (status, Path("o").exists()) == (2, False)
    assert "mine/frames.txt, line 1: has no slot [Sub] for the occupation" in err
