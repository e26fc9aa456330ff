"""A damaged file is read, or refused with one line that names it; nothing else may happen.

HOSTILE_FILES sets how many files each reader reads, default: 100.
"""

import os
import shutil
import warnings
from functools import cache, partial
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench import data
from bench.analyses.marks import read_verdicts
from bench.analyses.published import PATH, published
from bench.benchmarks import get
from bench.benchmarks import names as benchmarks
from bench.benchmarks.cbbq import official_wording as cbbq_prompts
from bench.benchmarks.cbbq.expand import expand
from bench.benchmarks.mcbe import official_wording as mcbe_prompts
from bench.benchmarks.nli_coal import corpora
from bench.benchmarks.nli_coal.language_pack import PACKS, read_pack, with_captions
from bench.core.places import PACKAGE
from bench.data.fetch import unpack
from bench.metrics import agreement
from bench.report import study
from bench.scorers.stand_ins.recorded import Predictions, Replay
from bench.tasks import prompts
from tests.data.cbbq import test_official_wording as cbbq_scripts
from tests.data.mcbe import test_official_wording as mcbe_scripts
from tests.slow.helpers.hostile import (
    Damages,
    Files,
    Reader,
    attempt,
    damages,
    made,
    of,
    short,
    write,
)

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("HOSTILE_FILES", "100"))


@cache
def mcbe_workbook() -> Files:
    table = pd.read_csv(samples("mcbe") / "age.csv", dtype=str)[:5]
    return made(lambda folder: table.to_excel(folder / "age.xlsx", index=False), "*")


def samples(benchmark: str) -> Path:
    return get(benchmark).metadata.samples


@cache
def cbbq_templates() -> Files:
    return short(of(samples("cbbq"), "age/*/*.csv", "disease/*/*.csv", "dataset.toml"), 4)


@cache
def cbbq_questions(form: str, expansion: str) -> Files:
    source = data.find("cbbq", "samples")
    files = made(lambda folder: expand(source, folder, form, expansion), "age/*/*", "dataset.toml")
    return {
        name: raw[:4000].rpartition(b"},{")[0] + b"}]" if name.endswith("json") else raw
        for name, raw in short(files).items()
    }


@cache
def release(kind: str) -> Files:
    def pack(folder: Path) -> None:
        files = enumerate(cbbq_templates().values())
        write(folder / "in", {f"{k}.csv": raw[:500] for k, raw in files})
        shutil.make_archive(str(folder / "release"), kind, folder / "in")

    return made(pack, "release.*")


@cache
def scripts(benchmark: str) -> Files:
    helpers = {"cbbq": cbbq_scripts, "mcbe": mcbe_scripts}[benchmark]
    return made(lambda folder: helpers.scripts(folder, helpers.INVENTED), "**/*.py")


def read_data(benchmark: str, folder: Path) -> None:
    """Load, check and count a data set under its first and last settings."""
    source, own = data.find(benchmark, folder), get(benchmark)
    last = {name: one.allowed[-1] for name, one in own.settings.items() if one.of_data}
    for given_settings in ({}, last, {**last, **own.metadata.release.tolerant}):
        attempt(lambda chosen=given_settings: data.load(source, **chosen))
    attempt(lambda: data.check(source))
    source.describe()
    data.load(source)


def read_language_pack(folder: Path) -> None:
    pack = read_pack(folder)
    attempt(lambda: with_captions(pack, [folder / "captions.txt"]))


def read_prompts(folder: Path) -> None:
    for benchmark in benchmarks():
        prompts.load(benchmark, f"{folder / benchmark}.toml")
        prompts.load(benchmark, f"{folder / benchmark}.toml#reworded")


def read_archive(folder: Path) -> None:
    (archive,) = folder.iterdir()
    into = folder / "into"
    into.mkdir()
    try:
        unpack(archive, into)
    finally:
        assert set(folder.iterdir()) == {into, archive}, "something lies outside"
        assert not any(path.is_symlink() for path in into.rglob("*"))


# What reads each file in `texts`, and ours of published scores.
TEXTS = Path(__file__).parent / "texts"
READ_TEXT = {
    "study.yml": study.load,
    "answers.jsonl": lambda path: Replay(path).describe(),
    "answers.csv": lambda path: Replay(path).describe(),
    "predictions.jsonl": Predictions,
    "predictions.csv": Predictions,
    "verdicts.csv": read_verdicts,
    "annotators.csv": partial(agreement.read_annotations, levels=True),
    "human.csv": agreement.read_human,
    PATH.name: lambda path: published("mcbe", path),
    "corpus.jsonl": lambda path: corpora.read([path]),
    "corpus.tsv": lambda path: corpora.read([path]),
}
READERS = {
    **{
        name: Reader(
            lambda name=name: short({**of(TEXTS, name), **of(PATH.parent, name)}, 40),
            lambda folder, name=name, read=read: read(folder / name),
        )
        for name, read in READ_TEXT.items()
    },
    "McBE csv": Reader(
        cache(lambda: short(of(samples("mcbe"), "age.csv", "worldview.csv", "dataset.toml"))),
        partial(read_data, "mcbe"),
    ),
    "McBE xlsx": Reader(mcbe_workbook, partial(read_data, "mcbe")),
    "CBBQ templates": Reader(cbbq_templates, partial(read_data, "cbbq")),
    "CBBQ csv": Reader(partial(cbbq_questions, "csv", "compat"), partial(read_data, "cbbq")),
    "CBBQ json": Reader(partial(cbbq_questions, "json", "repair"), partial(read_data, "cbbq")),
    "NLI-CoAL": Reader(
        cache(lambda: short(of(samples("nli_coal"), "zh_*/**/*-*stereo_*.json", "*.toml"))),
        partial(read_data, "nli_coal"),
    ),
    "language pack": Reader(
        cache(
            lambda: {
                **of(PACKS / "en", "*"),
                "captions.txt": b"A man rides\n",
            }
        ),
        read_language_pack,
    ),
    "prompts": Reader(cache(lambda: of(PACKAGE / "benchmarks", "*/prompts.toml")), read_prompts),
    "McBE scripts": Reader(partial(scripts, "mcbe"), mcbe_prompts.read),
    "CBBQ scripts": Reader(partial(scripts, "cbbq"), cbbq_prompts.read),
    "zip": Reader(partial(release, "zip"), read_archive),
    "tar.gz": Reader(partial(release, "gztar"), read_archive),
}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_one_line_that_names_it(
    tmp_path: Path, name: str
) -> None:
    reader, folder = READERS[name], tmp_path / "folder"
    names = reader.names()
    assert not reader.read_damaged(folder, names[0], []), "the sample itself is right"
    refused = []

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(st.sampled_from(names), damages)
    def read_one(file: str, changes: Damages) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            message = reader.read_damaged(folder, file, changes)
        assert message.isprintable(), "a message is one line"
        assert len(message) <= 2100
        assert not message or str(folder) in message, message
        refused.append(bool(message))

    read_one()
    assert any(refused)
