"""Official prompts are read from scripts, and other prompts are refused."""

import tomllib
from pathlib import Path

import pytest

from bench.benchmarks.cbbq import official_wording as cbbq
from bench.benchmarks.mcbe import official_wording as mcbe
from bench.data.official_wording import digest
from tests.helpers.cases import json_lines

OFFICIAL = {"cbbq": cbbq.OFFICIAL, "mcbe": mcbe.OFFICIAL}


def invented(benchmark, name):
    return tomllib.loads((Path(__file__).parent / benchmark / name).read_text("utf-8"))


def write_scripts(benchmark, folder, change=lambda code: code):
    """Write the invented scripts of a benchmark into a folder."""
    for name, code in invented(benchmark, "scripts.toml").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        encoding = "gbk" if "coding=gbk" in code else "utf-8"
        (folder / name).write_text(change(code), encoding)
    return folder


def release(monkeypatch, benchmark):
    """Let the invented prompts count as the released ones."""
    sha256 = digest(invented(benchmark, "prompts.toml"))
    monkeypatch.setattr(OFFICIAL[benchmark], "sha256", sha256)


@pytest.mark.parametrize("benchmark", OFFICIAL)
def test_the_released_prompts_are_known(shared, benchmark):
    released = tomllib.loads((shared / f"data/{benchmark}/prompts.toml").read_text("utf-8"))
    official = OFFICIAL[benchmark]
    assert (digest(released), released["version"]) == (official.sha256, official.version)


@pytest.mark.parametrize("benchmark", OFFICIAL)
def test_prompts_are_read_from_scripts_that_are_not_run(tmp_path, monkeypatch, benchmark):
    release(monkeypatch, benchmark)
    found = tomllib.loads(OFFICIAL[benchmark].read(write_scripts(benchmark, tmp_path)))
    official = {name: getattr(OFFICIAL[benchmark], name) for name in ("version", "source")}
    assert found == invented(benchmark, "prompts.toml") | official


@pytest.mark.parametrize(("benchmark", "old", "new"), json_lines(__file__, "other_prompts.jsonl"))
def test_other_prompts_than_the_released_ones_are_refused(
    tmp_path, refusal, monkeypatch, benchmark, old, new
):
    release(monkeypatch, benchmark)
    write_scripts(benchmark, tmp_path, lambda code: code.replace(old, new))
    message = refusal(OFFICIAL[benchmark].read, tmp_path)
    assert message.startswith(f"{tmp_path}: the prompts in the scripts are not the released ones;")
    assert message.endswith(f"with the data and run `bench fetch {benchmark} --from DIR`")
