"""Running a benchmark: plan the requests, ask those that no record answers yet, write them shard by shard.

result = evaluate("cbbq", "tiny:s", limit=20)
result.scores()
"""

import re
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench import records, scorers
from bench.benchmarks import resolve
from bench.config import RunConfig
from bench.core import places
from bench.core.errors import BadInput, NotApplicable
from bench.core.progress import in_notebook, say
from bench.data import frame
from bench.lock import Hold, hold
from bench.metrics.headline import prompt_language_warning
from bench.run import repeating
from bench.run.cluster import Cluster
from bench.run.execute import Lazy, execute_requests
from bench.run.plan import Plan, Requests
from bench.run.results import (
    PRESETS,
    Run,
    all_items,
    check_preset,
    labels,
    probe_failed,
    short_name,
    table,
)
from bench.run.run_json import about_run, add_asked_with, add_judge, add_workers, begin
from bench.scorers.base import Scorer, digest
from bench.scorers.endpoint import keys as key_names
from bench.scorers.endpoint.limits import Limits
from bench.scorers.generation_options import GenerationOptions
from bench.scorers.local import hub

__all__ = [
    "PRESETS",
    "Run",
    "all_items",
    "evaluate",
    "evaluate_all",
    "known_bias",
    "labels",
    "path_slug",
    "repeat",
    "short_name",
    "table",
]

# A killed run loses at most this many answers.
SHARD = 256
# Items per category and task that are enough to show what a known bias looks like.
KNOWN_BIAS_LIMIT = 400


def evaluate(
    benchmark: str, model: str, *, partial: bool = False, like: Run | None = None, **options: Any
) -> Run:
    """Ask `model` the benchmark's requests that the run's folder does not answer yet, and return the run.

    A run that is complete is only read; no model is loaded.

    Args:
        benchmark: `mcbe`, `cbbq` or `nli_coal`.
        model: see `bench.scorers`.
        partial: leave out the tasks that the model cannot be asked, instead of refusing.
        like: a run that this one has to repeat exactly; see `repeat`.
        options: see `bench.config.RunConfig`; None means the default.

    Raises:
        NotApplicable: the model cannot be asked the tasks.
        BadInput: an option, the data or the model is wrong, or not as in `like`.
        RunFailed: the model did not answer.
    """
    return _evaluate(RunConfig.of(benchmark=benchmark, model=model, **options), partial, like)


def _evaluate(config: RunConfig, partial: bool, like: Run | None) -> Run:
    check_preset(config.preset)
    limits = Limits.of(config.limits)
    key_names.check(config.keys or {}, [config.model, config.judge])
    # The settings of a run that lies in this folder stay: another preset scores its answers again.
    recorded = like.about["asked"] if like else _recorded(config.out, config.benchmark)
    settings = {**recorded.get("settings", {}), **(config.settings or {})}
    model = hub.at_revision(config.model, config.revision)
    config = config.model_copy(update={"settings": settings, "model": model, "revision": None})
    plan = Plan.make(config, recorded)
    if like:
        repeating.check_plan(like.about, plan, config.preset)
    judge = plan.asked["judge"]  # None where no task needs one
    folder = _run_folder(config, plan)

    if config.resources and not config.scheduler:
        raise BadInput(
            "--resources: says what workers of a cluster have to offer; give --scheduler too"
        )
    workers = Cluster(config.scheduler, config.resources) if config.scheduler else None

    key_variables = key_names.of_run([config.model], config.model, config.judge, config.keys)

    def load(name: str, options: dict[str, Any]) -> Scorer:
        key_names.check_set(key_variables)  # the judge's too, before anything is asked
        return scorers.load(name, **options, limits=limits._asdict(), keys=key_variables)

    def loaded(
        name: str, generation: GenerationOptions, label_names: Sequence[str] | None = None
    ) -> Lazy:
        options: dict[str, Any] = {
            "device": config.device,
            "dtype": config.dtype,
            "batch_tokens": config.batch_tokens,
            "trust_remote_code": config.trust_remote_code,
            "label_names": list(label_names or ()),
            "generation": generation.changed(),
        }
        if workers and workers.asks(name):
            return Lazy(workers.scorer(name, options))
        return Lazy(lambda: load(name, options))

    asked = loaded(config.model, config.generation, config.labels_of(config.model))
    # A judge needs room for its thoughts too, and otherwise grades as it is.
    thinks = judge is not None and scorers.writes_replies(str(judge))
    of_judge = GenerationOptions(thinking_tokens=config.thinking_tokens if thinks else None)
    # A model that judges itself is loaded once.
    alone = judge is None or (judge == config.model and of_judge == config.generation)
    marks = asked if alone else loaded(str(judge), of_judge)
    with hold(folder) as held, workers or nullcontext():
        about = about_run(folder, plan, config, held)
        if about is None:
            held.need()
            about, requests = _begun(
                folder, plan, config, asked, marks if judge else None, partial, like, workers
            )
        else:
            requests = _continued(folder, plan, about, marks if judge else None, partial, held)
        for task, why in requests.left_out.items():
            say(f"{plan.benchmark}, {config.model}: task {task} is left out: {why}")
        if (
            not config.out and not in_notebook()
        ):  # what a notebook shows does not depend on where it lies
            say(f"{plan.benchmark}, {config.model}: records go to {folder}")
        try:
            execute_requests(folder, plan, about, requests, asked, marks, held)
        finally:
            for role, scorer in (("model", asked), ("judge", marks)):
                if about[role] and scorer.loaded:
                    add_asked_with(folder, about, role, scorer.load())
            if workers:
                add_workers(folder, about, workers.workers)
    return Run(folder, about)


def _run_folder(config: RunConfig, plan: Plan) -> Path:
    if config.out:
        return Path(config.out)
    return _default_root() / path_slug(config.model) / f"{plan.benchmark}-{plan.identity}"


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
        run = Run.open(place.parent if place.name == records.RUN_JSON else place)
    if run.about["model"].get("trust_remote_code") and not options.get("trust_remote_code"):
        raise BadInput(
            f"{run.folder}: ran code that came with its model; if you trust it, add --trust-remote-code"
        )
    given = {**repeating.options(run.about), **{k: v for k, v in options.items() if v is not None}}
    given["settings"] = {
        **(run.about["asked"].get("settings") or {}),
        **(options.get("settings") or {}),
    }
    benchmark, model = given.pop("benchmark"), given.pop("model")
    if resolve(benchmark) != run.benchmark:
        raise BadInput(f"--from: {run.folder} is a run of {run.benchmark}, not of {benchmark}")
    name = f"{run.benchmark}-{run.about['identity']}-repeat"
    folder = Path(out) if out else _default_root() / path_slug(run.model) / name
    if folder.resolve() == run.folder.resolve():
        raise BadInput(f"--out {folder}: is the run itself; give another folder for its repeat")
    say(f"repeating {run.folder}: {run.benchmark}, {model}; records go to {folder}")
    done = evaluate(benchmark, model, out=folder, like=run, **given)
    if any((run.folder / "records").glob("*.parquet")):
        say(f"{folder}: beside {run.folder} {repeating.difference(run.records, done.records)}")
    return done


def _begun(
    folder: Path,
    plan: Plan,
    config: RunConfig,
    model: Lazy,
    judge: Lazy | None,
    partial: bool,
    like: Run | None,
    workers: Cluster | None,
) -> tuple[dict[str, Any], Requests]:
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
    about = begin(folder, plan, config, asked, marks, requests, shard)
    for sentence in repeating.told(like.about, about) if like else ():
        say(f"not as in {like.folder if like else ''}: {sentence}")
    if doubt := probe_failed(about):
        say(f"{plan.benchmark}, {plan.asked['model']}: {doubt}; it is asked all the same")
    if told := prompt_language_warning(about):
        say(f"{plan.benchmark}, {plan.asked['model']}: {told}")
    return about, requests


def _continued(
    folder: Path, plan: Plan, about: dict[str, Any], judge: Lazy | None, partial: bool, held: Hold
) -> Requests:
    """What is to be asked in a run that was begun before; a judge whom it had not is noted in its `run.json`."""
    items = frame(list(plan.by_id.values()))
    if not held.why_not and not records.has_items(folder, items):
        # The data are the same, or this would be another run; versions may read them otherwise.
        records.write_items(folder, items)
        say(
            f"{folder / records.ITEMS}: was missing, damaged or of an earlier version; "
            "it is written anew from the data"
        )
    later = judge.load() if judge and not about["judge"] else None
    marking = later.verbs if later else about["judge_verbs"]
    requests = plan.requests(
        about["verbs"], about["reads"], marking, partial, about["model"].get("lacks", {})
    )
    if later:
        held.need()
        add_judge(folder, about, plan, later, requests)
    return requests


def evaluate_all(
    benchmark: str,
    models: Sequence[str],
    runs: str | Path = "",
    recorded: Sequence[str | Path] = (),
    **options: Any,
) -> list[Run]:
    """`evaluate` for each of `models`, as notebooks call it.

    Tasks that a model cannot be asked are left out, and so is a model with none left. An option that is empty or 0 is
    left at its default, because a notebook's parameters are literals.

    Args:
        runs: a study's folder of runs, with one `MODEL/BENCHMARK` each; see `evaluate` if empty.
        recorded: folders of runs to open instead; no model is asked then.
    """
    if recorded:
        return [Run.open(folder) for folder in recorded]
    if isinstance(models, str):
        raise BadInput(f"models {models!r}: expected a list of models, like [{models!r}]")
    given = {name: value for name, value in options.items() if value}
    variables = given.pop("keys", None)
    found = []
    for model in dict.fromkeys(models):
        out = Path(runs) / path_slug(model) / resolve(benchmark) if runs else None
        keys = key_names.of_run(models, model, given.get("judge"), variables)
        try:
            found.append(evaluate(benchmark, model, out=out, partial=True, keys=keys, **given))
        except NotApplicable as refusal:
            say(f"not applicable: {refusal}")
    return found


def known_bias(
    benchmark: str, task: str, metric: str, rates: Sequence[float] = (0, 0.5, 1), **options: Any
) -> pd.DataFrame:
    """What a metric says of simulated respondents whose bias is known: a row per rate.

    Nothing is kept, and at most `KNOWN_BIAS_LIMIT` items per category and task are asked.

    Args:
        options: see `bench.config.RunConfig`; an empty one is left at its default.

    Returns:
        Columns `bias`, the metric, `ci_low`, `ci_high`, `n`; the metric is NaN where the data do
        not define it.
    """
    limit = min(options.get("limit") or KNOWN_BIAS_LIMIT, KNOWN_BIAS_LIMIT)
    rows = []
    for rate in rates:
        with tempfile.TemporaryDirectory() as folder:
            respondent = [f"simulated:bias={rate:g}"]
            runs = evaluate_all(benchmark, respondent, folder, **{**options, "limit": limit})
            scores = table(runs, beside=False)
        here = scores[
            (scores.category == "all") & (scores.task == task) & (scores.metric == metric)
        ]
        row = here.iloc[0] if len(here) else pd.Series({"score": np.nan, "n": 0}, dtype=object)
        values = {name: row.get(name, np.nan) for name in ("ci_low", "ci_high", "n")}
        rows.append({"bias": rate, metric: row.score, **values})
    return pd.DataFrame(rows)


def path_slug(model: str) -> str:
    """`model` as a folder's name."""
    name = re.sub(r"[^\w.,=+-]+", "_", model).strip("._") or "model"
    return name if len(name) <= 80 else f"{name[-72:]}-{digest(model)[:7]}"


def _recorded(out: str | Path | None, benchmark: str) -> dict[str, Any]:
    """What was asked in the run that lies in `out`; nothing where there is no run of the benchmark."""
    if not out or not (Path(out) / records.RUN_JSON).is_file():
        return {}
    about = records.read_run_json(Path(out))
    return dict(about["asked"]) if about["benchmark"] == resolve(benchmark) else {}


def curated(name: str) -> Path:
    """Return the default folder of a curated data set: `reports/curated/NAME`, next to the runs."""
    return places.reports() / "curated" / name


def _default_root() -> Path:
    """Return the default folder of runs, which notebooks and the command share."""
    return places.reports() / "runs"
