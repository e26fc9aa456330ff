"""Each reader of files from outside, with a sample that it takes.

Test support. `READERS` has them all but those of curation projects, which are in `hostile_curate`.
"""

import csv
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from bench import data
from bench.analyses.judge_agreement.marks import read_verdicts
from bench.benchmarks import module
from bench.core.errors import BadInput
from bench.data import cbbq, mcbe, nli_coal
from bench.data.cbbq import official_wording as cbbq_wording
from bench.data.cbbq import templates
from bench.data.cbbq.expand import expand
from bench.data.fetch import unpack
from bench.data.mcbe import official_wording as mcbe_wording
from bench.data.nli_coal import corpora
from bench.data.nli_coal.language_pack import FRAMES, TERMS, read_pack, with_captions
from bench.data.nli_coal.write import build
from bench.data.published import PATH, published
from bench.metrics import agreement, annotators
from bench.report import study
from bench.scorers.stand_ins.recorded import Predictions, Replay
from bench.tasks import chosen, settings
from bench.tasks import prompts as wording
from bench.tasks.nli_coal import LABELS
from bench.tasks.request import Way
from tests.slow.helpers.hostile import Files, Reader, attempt, both, of, short

SAMPLES = data.SAMPLES


@cache
def mcbe_csv() -> Files:
    return short(of(SAMPLES / "mcbe", "age.csv", "worldview.csv", "dataset.toml"))


@cache
def mcbe_xlsx() -> Files:
    book = Workbook()
    sheet = book.active
    for row in csv.reader(io.StringIO(mcbe_csv()["age.csv"].decode("utf-8-sig"))):
        sheet.append(row)
    sheet.append(["=1+1"] * 6)
    stream = io.BytesIO()
    book.save(stream)
    return {"age.xlsx": stream.getvalue()}


def read_mcbe(folder: Path) -> None:
    for chosen_settings in (
        {},
        {"encoding": "gb18030"},
        {"bad_rows": "leave_out", "separators": "any"},
    ):
        source = data.find("mcbe", folder)
        attempt(lambda source=source, given=chosen_settings: data.check(source, **given))
        attempt(
            lambda source=source, given=chosen_settings: mcbe.touched(source.folder, None, **given)
        )
        attempt(
            lambda source=source, given=chosen_settings: (
                source.describe() and data.load(source, **given)
            )
        )
    data.load(data.find("mcbe", folder))


@cache
def cbbq_csv() -> Files:
    return short(of(SAMPLES / "cbbq", "age/*/*.csv", "disease/*/*.csv", "dataset.toml"), 4)


@cache
def cbbq_expanded(form: str, expansion: str) -> Files:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as root:
        for name, raw in cbbq_csv().items():
            (Path(root) / "in" / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / "in" / name).write_bytes(raw)
        expand(data.find("cbbq", Path(root) / "in"), Path(root) / "out", form, expansion)
        found = of(Path(root) / "out", "age/*/*", "dataset.toml")
    return {
        name: raw[:4000].rpartition(b"},{")[0] + b"}]"
        if name.endswith(".json")
        else b"".join(raw.splitlines(keepends=True)[:6])
        for name, raw in found.items()
    }


def read_cbbq(folder: Path) -> None:
    source = data.find("cbbq", folder)
    for expansion in templates.EXPANSIONS:
        attempt(
            lambda expansion=expansion: data.load(
                source, expansion=expansion, labels="audited", polarity="column", dedupe="yes"
            )
        )
    attempt(lambda: data.check(source))
    attempt(lambda: cbbq.touched(source.folder, None))
    data.load(source)


@cache
def nli_sets() -> Files:
    return short(
        of(SAMPLES / "nli_coal", "zh_*/**/*-*stereo_*.json", "zh_*/**/*.tsv", "dataset.toml")
    )


@cache
def nli_built() -> Files:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as root:
        build([read_pack(SAMPLES / "nli_packs" / "en")], Path(root))
        found = of(Path(root), "**/all-words/[1235]*", "**/pack/*", "dataset.toml")
    return {
        name: raw if "/pack/" in name else short({name: raw})[name] for name, raw in found.items()
    }


def read_nli(folder: Path) -> None:
    source = data.find("nli_coal", folder)
    attempt(lambda: data.load(source, definitional="leave_out", anomalies="keep"))
    attempt(lambda: data.check(source))
    attempt(lambda: nli_coal.touched(source.folder, None))
    data.load(source)


@cache
def nli_pack() -> Files:
    return {
        **of(SAMPLES / "nli_packs" / "en", "*"),
        "captions.txt": "A man rides a horse\n1 那个女人在笑\n".encode(),
    }


def read_nli_pack(folder: Path) -> None:
    pack = read_pack(folder)
    attempt(lambda: with_captions(pack, [folder / "captions.txt"], 10))
    assert pack.frames
    assert (folder / FRAMES).is_file()
    assert (folder / TERMS).is_file()


def corpus() -> Files:
    rows = [
        ("猫在睡觉。", "有动物在睡。", "entailment"),
        ("A man runs.", "He sits.", "contradiction"),
        ("x", "y", "-"),
    ]
    names_ = ("sentence1", "sentence2", "gold_label")
    return {
        "a.jsonl": "".join(
            json.dumps(dict(zip(names_, row, strict=True))) + "\n" for row in rows
        ).encode(),
        "b.tsv": "".join("\t".join(row) + "\n" for row in [names_, *rows]).encode(),
        "c.txt": "".join(f"{label}\t{a}\t{b}\n" for a, b, label in rows).encode(),
    }


def read_corpus(folder: Path) -> None:
    for name in corpus():
        attempt(lambda name=name: corpora.read([folder / name]))
    corpora.read([folder / name for name in corpus()])


@cache
def prompts() -> Files:
    return of(wording.PROMPTS, "*.toml")


@cache
def some_items(benchmark: str) -> list[Any]:
    return data.spread_evenly(data.load(data.find(benchmark, SAMPLES / benchmark)), 6)


def read_prompts(folder: Path) -> None:
    refused: list[BadInput] = []
    for benchmark in ("mcbe", "cbbq", "nli_coal"):
        for variant in ("", "#reworded"):
            try:
                text = wording.load(benchmark, f"{folder / benchmark}.toml{variant}")
                room, whole = module("tasks", benchmark), settings(benchmark, {}, "robust")
                for task in chosen(benchmark, None):
                    list(
                        room.requests(some_items(benchmark), text, task, Way("generate"), whole, 0)
                    )
                assert text.label.isprintable()
                assert text.unbiased_instruction in (True, False)
            except BadInput as refusal:
                refused.append(refusal)
    if refused:
        raise refused[0]


def scripts_of(benchmark: str) -> Callable[[], Files]:
    from tempfile import TemporaryDirectory

    from tests.data.cbbq import test_official_wording as test_data_cbbq_wording
    from tests.data.mcbe import test_official_wording as test_data_mcbe_wording

    given: Any = {"mcbe": test_data_mcbe_wording, "cbbq": test_data_cbbq_wording}[benchmark]

    @cache
    def sample() -> Files:
        with TemporaryDirectory() as root:
            given.scripts(Path(root), given.INVENTED)
            return of(Path(root), "**/*.py")

    return sample


@cache
def release(form: str) -> Files:
    """A release as an archive."""
    stream = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, raw in cbbq_csv().items():
                zipped.writestr(f"release/{name}", raw[:500])
    else:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for name, raw in cbbq_csv().items():
                info = tarfile.TarInfo(f"release/{name}")
                info.size = 500
                tar.addfile(info, io.BytesIO(raw[:500].ljust(500)))
    return {f"release.{form}": stream.getvalue()}


def read_archive(folder: Path) -> None:
    import gzip

    into = folder / "into"
    into.mkdir()
    for path in list(folder.iterdir()):
        if path.suffix == ".tar":
            packed = path.with_suffix(".tar.gz")
            packed.write_bytes(gzip.compress(path.read_bytes(), 1))
            path.unlink()
            path = packed
        if path.is_file():
            try:
                unpack(path, into, lambda name: True)
            finally:
                assert {one.name for one in folder.iterdir()} == {"into", path.name}, (
                    "something lies outside"
                )
                assert all(not one.is_symlink() for one in into.rglob("*"))


def a_study() -> Files:
    text = """\
title: Two models
question: Which?
language: en
models: ["simulated:bias=0.2", "simulated:answer=A,label=neutral", "tiny:s,bias=0.25"]
benchmarks:
  cbbq: {categories: [gender, age], limit: 20, settings: {explanation: "yes"}}
  mcbe: {judge: "simulated:", repeats: 2, tasks: [pc, ba]}
  nli_coal: {read: text, label_names: {"simulated:bias=0.2": [neutral, entailment, contradiction]}}
analyses:
  compare_models: &some {runs: [../x/*]}
  prompt_robustness: *some
options: {seed: 0, preset: robust, device: cpu}
"""
    return {"study.yml": text.encode()}


def answers() -> Files:
    rows = [("ss", f"gender:{k}", "甲|乙", k, "A") for k in range(4)]
    columns = ("task", "item_id", "request", "repeat", "response")
    objects = [dict(zip(columns, row, strict=True)) for row in rows] + [
        {"prompt": "谁？", "response": 1.5}
    ]
    table = "".join(",".join(map(str, row)) + "\n" for row in [columns, *rows])
    return {
        "a.jsonl": "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects).encode(),
        "b.csv": table.encode("utf-8-sig"),
    }


def predicted() -> Files:
    rows = [
        {"id": 1, "label": "neutral"},
        {"id": 2, **dict(zip(LABELS, (0.1, 0.2, 0.7), strict=True))},
    ]
    rows.append({"id": 3, "label": list(LABELS), "scores": [0.2, 0.2, 0.6]})
    rows.append(
        {
            "id": 4,
            "scores": [
                {"label": one, "score": k} for k, one in zip((0, 0, 1), LABELS, strict=True)
            ],
        }
    )
    return {
        "a.jsonl": "".join(json.dumps(one) + "\n" for one in rows).encode(),
        "b.csv": b"id,language,entailment,contradiction,neutral\n1,en,0.1,0.2,0.7\n2,zh,1,0,0\n",
    }


def sheets() -> Files:
    return {
        "marks.csv": "task,item_id,request,repeat,prompt,reply,response\nambiguous,a:1,judge,0,'=q,＝r,有\nambiguous,a:2,judge:x,1,q,r,\n".encode(
            "utf-8-sig"
        ),
        "kappa.csv": b"item_id,rater,rating,category\na:1,x,3,a\na:1,y,4.5,a\n",
        "human.csv": b"item_id,model,human\na:1,m,50\na:2,m,12.5\n",
        "published.csv": PATH.read_bytes()[:3000].rpartition(b"\n")[0] + b"\n",
    }


READERS: dict[str, Reader] = {
    "McBE csv": Reader(mcbe_csv, read_mcbe),
    "McBE xlsx": Reader(mcbe_xlsx, read_mcbe),
    "McBE xlsx, parts": Reader(mcbe_xlsx, read_mcbe, inside=True),
    "CBBQ templates": Reader(cbbq_csv, read_cbbq),
    "CBBQ questions csv": Reader(lambda: cbbq_expanded("csv", "compat"), read_cbbq),
    "CBBQ questions csv, ours": Reader(lambda: cbbq_expanded("csv", "repair"), read_cbbq),
    "CBBQ questions json": Reader(lambda: cbbq_expanded("json", "compat"), read_cbbq),
    "CBBQ questions json, ours": Reader(lambda: cbbq_expanded("json", "repair"), read_cbbq),
    "NLI-CoAL sets": Reader(nli_sets, read_nli),
    "NLI-CoAL sets with a pack": Reader(nli_built, read_nli),
    "NLI-CoAL packs, captions": Reader(nli_pack, read_nli_pack),
    "NLI corpora": Reader(corpus, read_corpus),
    "wording": Reader(prompts, read_prompts),
    "McBE scripts": Reader(scripts_of("mcbe"), lambda folder: mcbe_wording.read(folder)),
    "CBBQ scripts": Reader(scripts_of("cbbq"), lambda folder: cbbq_wording.read(folder)),
    "archives tar": Reader(lambda: release("tar"), read_archive),
    "archives tar.gz": Reader(
        lambda: {
            "release.tar.gz": __import__("gzip").compress(release("tar")["release.tar"], mtime=0)
        },
        read_archive,
    ),
    "archives zip": Reader(lambda: release("zip"), read_archive),
    "studies": Reader(a_study, lambda folder: study.load(folder / "study.yml")),
    "recorded answers": Reader(
        answers,
        both(
            lambda folder: Replay(folder / "a.jsonl").describe(),
            lambda folder: Replay(folder / "b.csv").describe(),
        ),
    ),
    "predictions": Reader(
        predicted,
        both(
            lambda folder: Predictions(folder / "a.jsonl"),
            lambda folder: Predictions(folder / "b.csv"),
        ),
    ),
    "marks and annotations": Reader(
        sheets,
        both(
            lambda folder: Replay(folder / "marks.csv"),
            lambda folder: read_verdicts(folder / "marks.csv"),
            lambda folder: annotators.read_annotations(folder / "kappa.csv"),
            lambda folder: annotators.read_annotations(folder / "kappa.csv", levels=True),
            lambda folder: agreement.read_human(folder / "human.csv"),
            lambda folder: published("mcbe", folder / "published.csv"),
        ),
    ),
}
