"""Running a benchmark: plan the requests, ask those that no record answers yet, write them shard by shard.

result = evaluate("cbbq", "tiny:s", limit=20)
result.scores()
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd

from bench import records, repeating, scorers
from bench.about import about_run, add_judge, add_workers, begin
from bench.ask import Lazy, ask
from bench.benchmarks import resolve
from bench.cluster import Cluster
from bench.data import frame
from bench.errors import BadInput, NotApplicable, RunFailed
from bench.lock import Hold, hold
from bench.metrics.findings import foreign
from bench.plan import Plan, Requests
from bench.progress import say
from bench.results import PRESETS, Run, check_preset, labels, probe_failed, short_name, table
from bench.scorers.base import digest
from bench.scorers.limits import Limits

__all__ = [
    "PRESETS",
    "Run",
    "by_setting",
    "evaluate",
    "evaluate_all",
    "known_bias",
    "labels",
    "repeat",
    "short_name",
    "slug",
    "table",
]

# A killed run loses at most this many answers.
SHARD = 256


def evaluate(
    benchmark: str,
    model: str,
    *,
    judge: str | None = None,
    categories: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    read: str | None = None,
    max_new_tokens: int | None = None,
    settings: Mapping[str, str] | None = None,
    preset: str = "robust",
    prompts: str | None = None,
    data: str | Path | None = None,
    out: str | Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
    batch_tokens: int | None = None,
    trust_remote_code: bool = False,
    label_names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    limits: Mapping[str, float | None] | None = None,
    partial: bool = False,
    like: Run | None = None,
    scheduler: str | None = None,
    resources: Mapping[str, float] | None = None,
) -> Run:
    """Ask `model` the benchmark's requests that the run's folder does not answer yet, and return the run.

    A run that is complete is only read; nothing is loaded and nobody is asked.

    Args:
        benchmark: `mcbe`, `cbbq` or `nli_coal`.
        model: see `bench.scorers`.
        judge: the model that marks replies where a task has that done, in the same spelling; it answers without sampling.
            Without one such tasks are left out, unless they are named in `tasks`.
        limit: at most this many items a category and task, spread evenly over them.
        repeats: how often each request is asked; repeat k has the seed `seed + k`.
        read: how a choice is read: `text`, `letters` (probabilities), or what the model can, text first.
        max_new_tokens: so many tokens a reply may take; what the tasks allow if None.
        settings: what can be chosen about a benchmark's data and tasks: `SETTINGS` in its modules of these rooms.
        preset: how the answers are scored by default, `robust`, `official` or `paper`; a setting that was not given is
            as the preset has it.
        prompts: `ours`, a variant of that, `official` for the released one, or `FILE` or `FILE#VARIANT`; the wording that
            the data bring if None, else ours.
        data: the data set's folder; else see `bench.data.find`.
        out: the run's folder; `reports/runs/MODEL/BENCHMARK-ID` if None, under the nearest folder with `reports/`.
        label_names: what LABEL_0, LABEL_1 and LABEL_2 of an NLI classifier mean, in this order; of several models by name.
        limits: how endpoints may be asked, like `{"concurrency": 16}`; see `bench.scorers.limits.Limits`. No part of what
            makes a run the run it is.
        partial: leave out the tasks that the model cannot be asked, in place of refusing.
        like: a run that this one has to be the same as, but for where it is made; see `repeat`.
        scheduler: the address of a Dask cluster's, whose workers hold the model then; `device` and `batch_tokens` are meant
            for them. Files of answers and endpoints are asked from here all the same.
        resources: what a worker of the cluster has to offer for each shard, like `{"GPU": 1}`.

    Raises:
        NotApplicable: the model cannot be asked the tasks.
        BadInput: an option, the data or the model is wrong, or not as in `like`.
        RunFailed: the model did not answer.
    """
    check_preset(preset)
    Limits.of(limits)
    for name, value in (("categories", categories), ("tasks", tasks), ("label_names", label_names)):
        if isinstance(value, str):
            raise BadInput(f"{name} {value!r}: expected a list, like [{value!r}]")
    labels_meant = label_names.get(model) if isinstance(label_names, Mapping) else label_names
    # What a run in this folder was asked with stays: another preset scores its answers anew, and asks nobody.
    settings = {**_settings(out, benchmark), **(settings or {})}
    plan = Plan.make(
        benchmark, model, judge=judge, categories=categories, chosen=tasks, limit=limit, repeats=repeats, seed=seed, read=read,
        max_new_tokens=max_new_tokens, settings=settings, preset=preset, prompts=prompts, folder=data, dtype=dtype,
        label_names=labels_meant, elsewhere=bool(scheduler),
    )  # fmt: skip
    if like:
        repeating.check_plan(like.about, plan, preset)
    judge = plan.asked["judge"]  # None where no task needs one
    folder = Path(out) if out else _default_root() / slug(model) / f"{plan.benchmark}-{plan.identity}"

    if resources and not scheduler:
        raise BadInput("--resources: says what workers of a cluster have to offer; give --scheduler too")
    workers = Cluster(scheduler, resources) if scheduler else None

    def loaded(name: str, meant: Sequence[str] | None = None) -> Lazy:
        options = (device, dtype, batch_tokens, trust_remote_code, tuple(meant or ()))
        if workers and workers.asks(name):
            return Lazy(workers.scorer(name, options))
        return Lazy(lambda: scorers.load(name, *options, limits))

    asked = loaded(model, labels_meant)
    # A model that judges itself is loaded once.
    marks = asked if judge in (None, model) else loaded(str(judge))
    with hold(folder) as held, workers or nullcontext():
        about = about_run(folder, plan, preset, held)
        if about is None:
            held.need()
            about, requests = _begun(
                folder, plan, preset, asked, marks if judge else None, partial, like, workers
            )
        else:
            requests = _continued(folder, plan, about, marks if judge else None, partial, held)
        for task, why in requests.left_out.items():
            say(f"{plan.benchmark}, {model}: task {task} is left out: {why}")
        try:
            ask(folder, plan, about, requests, asked, marks, held)
        finally:
            if workers:
                add_workers(folder, about, workers.workers)
    return Run(folder, about)


def repeat(run: Run | str | Path, out: str | Path | None = None, **options: Any) -> Run:
    """Ask again what `run` was asked, from its `run.json` alone, and say how its answers compare where they are there too.

    Data, wording and model have to be the same, which their hashes tell; other versions of packages are told.

    Args:
        run: a run, its folder, or its `run.json`.
        out: the folder of the repeat; `reports/runs/MODEL/BENCHMARK-ID-repeat` if None.
        options: those of `evaluate`: where the same model, data or wording lie, `device`, `batch_tokens`. One that would
            ask something else is refused.

    Raises:
        BadInput: not a run, or something that would not be a repeat of it.
        RunFailed: the model did not answer.
    """
    if not isinstance(run, Run):
        place = Path(run).expanduser()
        run = Run.open(place.parent if place.name == records.ABOUT else place)
    if run.about["model"].get("trust_remote_code") and not options.get("trust_remote_code"):
        raise BadInput(
            f"{run.folder}: ran code that came with its model; if you trust it, add --trust-remote-code"
        )
    given = {**repeating.options(run.about), **options}
    given["settings"] = {**(run.about["asked"].get("settings") or {}), **(options.get("settings") or {})}
    benchmark, model = given.pop("benchmark"), given.pop("model")
    if resolve(benchmark) != run.benchmark:
        raise BadInput(f"--from: {run.folder} is a run of {run.benchmark}, not of {benchmark}")
    name = f"{run.benchmark}-{run.about['identity']}-repeat"
    folder = Path(out) if out else _default_root() / slug(run.model) / name
    if folder.resolve() == run.folder.resolve():
        raise BadInput(f"--out {folder}: is the run itself; give another folder for its repeat")
    say(f"repeating {run.folder}: {run.benchmark}, {model}")
    done = evaluate(benchmark, model, out=folder, like=run, **given)
    if any((run.folder / "records").glob("*.parquet")):
        say(f"{folder}: beside {run.folder} {repeating.difference(run.records, done.records)}")
    return done


def _begun(
    folder: Path, plan: Plan, preset: str, model: Lazy, judge: Lazy | None, partial: bool, like: Run | None,
    workers: Cluster | None,
) -> tuple[dict[str, Any], Requests]:  # fmt: skip
    """A new run in `folder`: what its `run.json` says, and what is to be asked."""
    asked, marks = model.load(), judge.load() if judge else None
    lacks = asked.describe().get("lacks", {})
    requests = plan.requests(asked.verbs, asked.reads, marks.verbs if marks else (), partial, lacks)
    shard = workers.shard(SHARD, requests.total) if workers else SHARD
    if like:
        for role, scorer in (("model", asked), ("judge", marks)):
            if scorer:
                repeating.check_scorer(like.about, role, scorer.describe())
        # What is asked together is computed together, which moves the last digits of numbers.
        shard = int(like.about["shard"])
    about = begin(folder, plan, preset, asked, marks, requests, shard)
    for sentence in repeating.told(like.about, about) if like else ():
        say(f"not as in {like.folder if like else ''}: {sentence}")
    if doubt := probe_failed(about):
        say(f"{plan.benchmark}, {plan.asked['model']}: {doubt}; it is asked all the same")
    if told := foreign(about):
        say(f"{plan.benchmark}, {plan.asked['model']}: {told}")
    return about, requests


def _continued(
    folder: Path, plan: Plan, about: dict[str, Any], judge: Lazy | None, partial: bool, held: Hold
) -> Requests:
    """What is to be asked in a run that was begun before; a judge whom it had not is noted in its `run.json`."""
    if not held.why_not and not records.has_items(folder):
        # Their data are the same, or this would be another run.
        records.write_items(folder, frame(list(plan.by_id.values())))
        say(f"{folder / records.ITEMS}: was missing or damaged; it is written anew from the data")
    later = judge.load() if judge and not about["judge"] else None
    marking = later.verbs if later else about["judge_verbs"]
    requests = plan.requests(
        about["verbs"], about["reads"], marking, partial, about["model"].get("lacks", {})
    )
    if later:
        held.need()
        add_judge(folder, about, plan, later, requests)
    return requests


def evaluate_all(benchmark: str, models: Sequence[str], runs: str | Path = "", **options: Any) -> list[Run]:
    """`evaluate` for each of `models`, as notebooks and studies call it.

    Tasks that a model cannot be asked are left out, and so is a model with none left. An option that is empty or 0 is
    left at its default, because a notebook's parameters are literals.

    Args:
        runs: a study's folder of runs, with one `MODEL/BENCHMARK` each; see `evaluate` if empty.
    """
    if isinstance(models, str):
        raise BadInput(f"models {models!r}: expected a list of models, like [{models!r}]")
    given = {name: value for name, value in options.items() if value}
    found = []
    for model in dict.fromkeys(models):
        out = Path(runs) / slug(model) / resolve(benchmark) if runs else None
        try:
            found.append(evaluate(benchmark, model, out=out, partial=True, **given))
        except NotApplicable as refusal:
            say(f"not applicable: {refusal}")
    return found


def known_bias(
    benchmark: str, task: str, metric: str, rates: Sequence[float] = (0, 0.5, 1), **options: Any
) -> pd.DataFrame:
    """What a metric says of simulated respondents whose bias is known: a row a rate."""
    rows = []
    for rate in rates:
        scores = table(evaluate_all(benchmark, [f"simulated:bias={rate:g}"], **options))
        found = scores[(scores.category == "all") & (scores.task == task) & (scores.metric == metric)].iloc[0]
        rows.append(
            {
                "bias": rate,
                metric: found.score,
                "ci_low": found.ci_low,
                "ci_high": found.ci_high,
                "n": found.n,
            }
        )
    return pd.DataFrame(rows)


def by_setting(
    benchmark: str,
    models: Sequence[str],
    name: str,
    values: Sequence[str],
    runs: str | Path = "",
    **options: Any,
) -> pd.DataFrame:
    """The score tables of `models`, asked once with each of the `values` of setting `name`, which is a column of it.

    What cannot be asked so is told and left out: this stands beside a run, and is not to end what comes after.

    Args:
        runs: as in `evaluate_all`; each run here has a folder of its own beside the benchmark's.
        options: those of `evaluate`; an empty one is left at its default.

    Returns:
        An empty frame where nothing could be asked.
    """
    given = {key: value for key, value in options.items() if value}
    tables = []
    for model in dict.fromkeys(models):
        for value in values:
            settings = {**given.get("settings", {}), name: value}
            own = f"{resolve(benchmark)}.{digest([given, name, value])[:8]}"
            out = Path(runs) / slug(model) / own if runs else None
            try:
                done = evaluate(benchmark, model, out=out, partial=True, **{**given, "settings": settings})
            except (BadInput, RunFailed) as refusal:
                say(f"not asked with {name}={value}: {refusal}")
                continue
            tables.append(done.scores().assign(model=done.label, **{name: value}))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def slug(model: str) -> str:
    """`model` as a folder's name."""
    name = re.sub(r"[^\w.,=+-]+", "_", model).strip("._") or "model"
    return name if len(name) <= 80 else f"{name[-72:]}-{digest(model)[:7]}"


def _settings(out: str | Path | None, benchmark: str) -> dict[str, str]:
    """The settings of the run that lies in `out`; none where there is no run of this benchmark."""
    if not out or not (Path(out) / records.ABOUT).is_file():
        return {}
    about = records.read_about(Path(out))
    return dict(about["asked"].get("settings", {})) if about["benchmark"] == resolve(benchmark) else {}


def curated(name: str) -> Path:
    """Where what is curated goes if nobody says: `reports/curated/NAME`, beside the runs."""
    return _default_root().parent / "curated" / name


def _default_root() -> Path:
    """`reports/runs` of the project that the working folder is in, so that notebooks and the command share it."""
    here = Path.cwd()
    home = next((folder for folder in (here, *here.parents) if (folder / "reports").is_dir()), here)
    return home / "reports" / "runs"
