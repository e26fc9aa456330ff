"""The commands of `bench`."""

import sys
import webbrowser
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import bench
from bench.benchmarks import get, names, resolve
from bench.cli import printing
from bench.cli.app import (
    MAKE,
    BenchmarkName,
    CheckFormat,
    DryRun,
    Format,
    Full,
    PrintFormat,
    Runs,
    argument,
    command,
    option,
    switch,
)
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.progress import say

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark


@command(
    "run cbbq --model simulated:bias=0.7 --limit 20",
    "run mcbe --model Qwen/Qwen2.5-0.5B-Instruct --answer-mode letters --categories gender,age",
)
def run(
    benchmark: Annotated[
        str, argument("BENCHMARK", "mcbe, cbbq or nli_coal; not with --from.")
    ] = "",
    *,
    source: Annotated[
        str,
        option("RUN", "Folder or run.json of a run: repeat its requests, and compare.", "--from"),
    ] = "",
    dry_run: DryRun = False,
    full: Full = False,
    format: PrintFormat = Format.table,
    **options: Any,
) -> None:
    """Ask a model, write the records, print the results. An interrupted run continues."""
    if benchmark:
        options["benchmark"] = benchmark
    if dry_run and source:
        raise BadInput("--dry-run: is for a run of its own; leave out --from")
    if not source and not {"benchmark", "model"} <= options.keys():
        raise BadInput("give BENCHMARK and --model MODEL, or repeat a run by --from RUN")
    if dry_run:
        printing.estimates([bench.run.estimate(**options)], format)
        return
    done = bench.run.repeat(source, **options) if source else bench.evaluate(**options)
    done.write_scores()
    printing.scores([done], None, format, full)


@command(
    "requests cbbq --as-model qwen-plus --out ask.jsonl",
    "requests cbbq --as-model qwen-plus --out next.jsonl --results results",
    panel="Plan and check",
)
def requests(
    benchmark: BenchmarkName,
    *,
    out: Annotated[str, option("FILE", "File of the requests, like next.jsonl.")],
    results: Annotated[
        str,
        option(
            "FILE",
            "Results so far, a file or a folder of files (*.jsonl): write the remaining requests, "
            "and the stage that needs these replies. Default: no results yet.",
        ),
    ] = "",
    **options: Any,
) -> None:
    """Write the requests of a run as a batch file in OpenAI's form, and print the next step.

    `bench run --model replay:RESULTS --as-model NAME` reads the results.
    """
    from bench.config import RunConfig
    from bench.run import batch

    if not options.get("as_model"):
        raise BadInput("Missing option '--as-model': the model's name at the service")
    config = RunConfig.of({"benchmark": benchmark, **options})
    written, waiting = batch.write(config, results, Path(out).expanduser())
    for path, count in written.items():
        print(f"{path}: {count:,} requests")
    folder = results or "results"
    if written:
        print(f"next: put their results into the folder {folder}")
    if waiting:
        again = f"`bench requests` with the same options and --results {folder}"
        print(f"then: {again} writes the next of {waiting:,} requests, which need these replies")
    else:
        judge = f" --judge replay:{folder}" if options.get("as_judge") else ""
        print(f"then: `bench run` with the same options and --model replay:{folder}{judge}")


@command("score reports/runs", "score reports/runs/MODEL/CBBQ-ID --preset official --full")
def score(
    runs: Runs,
    preset: Annotated[
        str, option("NAME", "robust, official or paper; default: the run's own.")
    ] = "",
    full: Full = False,
    format: PrintFormat = Format.table,
) -> None:
    """Score stored records again, without asking a model."""
    printing.scores(bench.run.open_runs(runs), preset or None, format, full)


@command("answers reports/runs/*/cbbq-* --out answers.html", "answers reports/runs/MODEL/CBBQ-ID")
def answers(
    runs: Runs,
    out: Annotated[str, option("FILE", "File of the page; default: ./answers.html.")] = "",
) -> None:
    """Write a page of questions, with the answers of any runs on one benchmark."""
    from bench.report import site

    print(site.write_answers(bench.run.open_runs(runs), Path(out or "answers.html").expanduser()))


@command("export reports/runs --out results", "export reports/runs/MODEL/CBBQ-ID")
def export(
    runs: Runs,
    out: Annotated[str, option("DIR", "Folder to write; default: ./eee.")] = "",
) -> None:
    """Write scores and answers for other programs, as Every Eval Ever reads them."""
    from bench.export import eee

    for run in bench.run.open_runs(runs):
        for path in eee.write(run, Path(out or "eee").expanduser()):
            print(path)


@command("report", "report mine.yml --out reports/mine")
def report(
    study: Annotated[str, argument("STUDY.yml", "The study; default: the demo study.")] = "",
    out: Annotated[str, option("DIR", "Folder of the report; default: ./reports/STUDY.")] = "",
    in_browser: Annotated[bool, switch("--open", "Open the index in a browser.")] = False,
    dry_run: DryRun = False,
    format: PrintFormat = Format.table,
) -> None:
    """Run a study's benchmarks and notebooks into an HTML report; print the path of its index."""
    from bench.report.jobs import page_jobs
    from bench.report.study import load

    plan = load(Path(study)) if study else load()
    page_jobs(plan)
    # If this package is installed, the libraries of papermill build a grammar for a second.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    # These imports take seconds, so we read the study first.
    from bench.report import build, study_runs

    if dry_run:
        printing.estimates(study_runs.estimates(plan, out or None), format)
        for step in plan.steps:
            say(f"run this first: {step}")
        return
    made = build.make(plan, out or None)
    print(made.page)
    if in_browser:
        webbrowser.open(made.page.resolve().as_uri())
    if made.failed:
        parts = f"{len(made.failed)} of the study's parts failed: {', '.join(made.failed)}"
        raise RunFailed(f"{parts}; the index says why, and {CONTINUES}")


@command("notebooks work", "notebooks .")
def notebooks(
    folder: Annotated[str, argument("DIR", "Folder to copy them to; made if missing.")],
) -> None:
    """Copy the notebooks to a folder, for JupyterLab; files that you changed are kept."""
    from bench.core.shipped import NOTEBOOKS, copy_files
    from bench.data.readers import as_path

    pages = [get(name).metadata.page for name in names()]
    for path in copy_files(as_path(folder), NOTEBOOKS, pages):
        print(path)
    say(f"open them by `jupyter lab {folder}`")


@command("data", "data cbbq --check")
def data(
    benchmark: Annotated[
        str, argument("BENCHMARK", "mcbe, cbbq or nli_coal; default: all of them.")
    ] = "",
    *,
    check: Annotated[bool, switch("--check", "List odd values of the data, row by row.")] = False,
    format: Annotated[CheckFormat, option("NAME", "table, csv or json.")] = (CheckFormat.table),
    **options: Any,
) -> None:
    """Show the installed data: folder, number of items, version and licence."""
    from bench import data as datasets
    from bench import tasks

    if format == "csv" and not check:
        raise BadInput("--format csv: is for --check; give table or json")
    folder, of_data = options.get("data", ""), {}
    chosen = [get(name) for name in ([benchmark] if benchmark else names())]
    if benchmark:
        settings = tasks.settings(chosen[0], options.get("settings", {}), "robust")
        of_data = tasks.of_data(chosen[0], settings)
    elif options or check:
        raise BadInput("--data, --set, --check: name the benchmark, for example `bench data mcbe`")
    if check:
        findings = datasets.check(datasets.find(chosen[0], folder), **of_data)
        printing.check(chosen[0], findings, format)
        return
    sources = [_described(benchmark, folder, of_data) for benchmark in chosen]
    if format == "json":
        printing.print_json([description for description, _lines in sources])
        return
    for _description, lines in sources:
        for line in filter(None, lines):
            printing.show(line)


def _described(
    benchmark: "Benchmark", folder: str, of_data: dict[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Describe the data of a benchmark, for JSON and in lines."""
    from bench import data as datasets
    from bench.data.manifest import own_prompts
    from bench.tasks import prompts

    source = datasets.find(benchmark, folder)
    items, effects = datasets.read(source, **of_data)
    categories = Counter(item.category for item in items)
    changes = [
        {
            "state": "excluded" if effect.is_excluded else "modified",
            "where": ", ".join(filter(None, (effect.category, effect.task))),
            "rows": effect.rows,
            "what": effect.what,
        }
        for effect in effects
    ]
    file = own_prompts(source.folder)
    unit = "category" if len(categories) == 1 else "categories"
    rows = [
        ("found", f"{source.found}: {source.folder}"),
        ("version", f"{source.name}, {source.version}, sha256 {source.sha256[:12]}"),
        ("licence", source.licence),
        ("prompts", file and f"{prompts.load(benchmark, None, source.folder).label}: {file}"),
        ("items", ", ".join(f"{name} {count:,}" for name, count in categories.items())),
        ("note", source.note),
        *((row["state"], "{where}: {rows:,} rows, {what}".format(**row)) for row in changes),
    ]
    lines = [f"{benchmark.metadata.title}: {len(items):,} items in {len(categories)} {unit}"]
    lines += [f"  {key:8} {value}" if value else "" for key, value in rows]
    counts = {"items": len(items), "categories": categories, "effects": changes}
    return {**source.describe(), **counts}, lines


@command("fetch mcbe", "fetch cbbq --from CBBQ.zip")
def fetch(
    benchmark: BenchmarkName,
    source: Annotated[
        str,
        option(
            "DIR",
            "Local copy: a folder, a .tar.gz or a .zip; default: the Hub or GitHub.",
            "--from",
        ),
    ] = "",
) -> None:
    """Copy a released data set to the user's data folder."""
    from bench.data.fetch import fetch as download

    print(download(get(benchmark), source or None).folder)


@command("new cbbq my-questions", "new mcbe my-instances", panel=MAKE)
def new(
    benchmark: Annotated[str, argument("BENCHMARK", "cbbq or mcbe.")],
    folder: Annotated[str, argument("DIR", "Folder of the data; made if missing.")],
) -> None:
    """Begin data of your own: a folder with two items and a commented manifest."""
    from bench.core.shipped import copy_files
    from bench.data.readers import as_path

    name = resolve(benchmark)
    source = get(name).metadata.samples.with_name("start")
    if not source.is_dir():
        raise BadInput(
            f"new {benchmark}: has no rows to begin with; allowed: cbbq, mcbe; the notebook "
            "curation/curate_nli.ipynb (`bench notebooks DIR`) begins a language pack"
        )
    for path in copy_files(as_path(folder), source):
        print(path)
    say(
        f"change the rows; dataset.toml explains each column. Then: bench data {name} --check "
        f"--data {folder}, and bench run {name} --data {folder} --model MODEL; the notebook "
        f"curation/curate_{name}.ipynb (`bench notebooks DIR`) is for items of several people"
    )


@command(
    "train hfl/chinese-bert-wwm-ext --corpus ocnli.jsonl --out my-classifier",
    "train ./my-classifier --corpus controlled.csv --out less-biased --epochs 1",
    panel=MAKE,
)
def train(
    checkpoint: Annotated[
        str, argument("CHECKPOINT", "A base model, or an NLI classifier to go on with.")
    ],
    *,
    corpus: Annotated[
        str, option("FILE", "Premises, hypotheses, labels: JSON Lines, CSV, Parquet.")
    ],
    out: Annotated[str, option("DIR", "Folder of the trained model.")],
    epochs: Annotated[
        int | None, option("N", "Passes; default: 5 with a new head, else 3.")
    ] = None,
    seed: Annotated[int, option("N", "Seed of a new head, of the order and of dropout.")] = 0,
) -> None:
    """Train an NLI classifier; an interrupted training continues."""
    from bench.train import train as train_classifier

    train_classifier(checkpoint, corpus, out, epochs, seed)
    print(f"{out}: trained; ask it by bench run nli_coal --model {out}")
