"""Run a benchmark: plan the requests, and ask those without a record.

result = evaluate("cbbq", "tiny:s", limit=20)
result.scores()
"""

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd

from bench import records
from bench.benchmarks import resolve
from bench.config import RunConfig
from bench.core import places
from bench.core.errors import BadInput, BudgetSpent, NotApplicable
from bench.core.progress import in_notebook, say
from bench.data import frame
from bench.metrics.headline import asked_headlines, headline_rows, prompt_language_warning
from bench.metrics.table import ALL
from bench.run import batch, repeating, run_json
from bench.run.cluster import Cluster
from bench.run.costs import Estimate, estimate, money, summed
from bench.run.execute import execute_requests
from bench.run.prepare import models, prepare
from bench.run.results import (
    PRESETS,
    Run,
    all_items,
    labels,
    path_slug,
    probe_failed,
    score,
    short_name,
    table,
)
from bench.scorers.base import Model
from bench.scorers.endpoint import keys as key_names

__all__ = [
    "PRESETS",
    "Estimate",
    "Run",
    "all_items",
    "estimate",
    "evaluate",
    "evaluate_all",
    "known_bias",
    "labels",
    "money",
    "path_slug",
    "repeat",
    "score",
    "short_name",
    "summed",
    "table",
]

# Items per category and task that are enough to show what a known bias looks like.
KNOWN_BIAS_LIMIT = 400


def __dir__() -> list[str]:
    return __all__


def evaluate(
    benchmark: str, model: str, *, partial: bool = False, like: Run | None = None, **options: Any
) -> Run:
    """Ask `model` the requests of a benchmark that the run's folder does not answer yet.

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
    config = RunConfig.of({"benchmark": benchmark, "model": model, **options})
    config, plan, folder = ready = prepare(config, like)
    cluster = Cluster(config.scheduler, config.resources) if config.scheduler else None
    asked, judge = models(config, plan.asked["judge"], cluster)
    title = ready.title
    with records.run_lock(folder) as refusal, cluster or nullcontext():
        about = run_json.existing_run(folder, plan, config, refusal)
        has_judge = about and about["judge"]
        if refusal and (about is None or (judge and not has_judge)):
            raise BadInput(refusal)
        if about is None:
            new_model = asked.load()
            verbs, reads, described = new_model.verbs, new_model.reads, new_model.describe()
        else:
            verbs, reads, described = about["verbs"], about["reads"], about["model"]
        new_judge = judge.load() if judge and not has_judge else None
        judge_verbs = new_judge.verbs if new_judge else about["judge_verbs"] if about else ()
        lacks = described.get("lacks", {})
        requests = plan.requests(verbs, reads, judge_verbs, partial, lacks)
        if about is None or new_judge:
            loaded = [model.load() if model and model.loaded else None for model in (asked, judge)]
            batch.check(requests, *loaded)
        if about is None:
            if like:
                for role, scorer in (("model", new_model), ("judge", new_judge)):
                    if isinstance(scorer, Model):
                        scorer.resume(like.about[role] or {})
                    if scorer:
                        repeating.check_scorer(like.about, role, scorer.describe())
            about = run_json.begin_run(folder, plan, config, new_model, new_judge, requests)
            if like:
                for sentence in repeating.other_conditions(like.about, about):
                    say(f"not as in {like.folder}: {sentence}")
            if doubt := probe_failed(about):
                say(f"{title}: {doubt}; it is asked all the same")
            if warning := prompt_language_warning(about):
                say(f"{title}: {warning}")
        else:
            items = frame(list(plan.by_id.values()))
            if not refusal and not records.has_items(folder, items):
                # The data are the same, or this would be another run; versions can differ.
                records.write_items(folder, about, items)
                say(
                    f"{folder / records.ITEMS}: was missing, damaged or of an earlier version; "
                    "it is written anew from the data"
                )
            if new_judge:
                run_json.add_judge(folder, about, plan, new_judge, requests)
        for task, reason in requests.left_out.items():
            say(f"{title}: task {task} is left out: {reason}")
        if not config.out and not in_notebook():  # a page does not depend on where it was made
            say(f"{title}: {requests.total:,} requests; records go to {folder}")
        try:
            execute_requests(folder, plan, about, requests, asked, judge or asked, refusal)
        except BudgetSpent as spent:
            left = estimate(benchmark, model, partial=partial, **options)
            raise BudgetSpent(f"{spent}; {title} needs {left}") from spent
        finally:
            used = {
                role: scorer.load().describe()
                for role, scorer in (("model", asked), ("judge", judge))
                if scorer and about[role] and scorer.loaded
            }
            workers = cluster.workers if cluster else []
            run_json.add_conditions(folder, about, used, workers)
    return Run(folder, about)


def repeat(run: Run | str | Path, out: str | Path | None = None, **options: Any) -> Run:
    """Ask again what a run was asked, from its `run.json` alone, and compare the answers.

    Data, prompts and model have to be the same; other versions of packages are reported.

    Args:
        run: a run, its folder, or its `run.json`.
        out: folder of the repeat; default: `reports/runs/MODEL/BENCHMARK-ID-repeat`.
        options: of `evaluate`: where the same model, data or prompts are, `device`,
            `batch_tokens`. One that would ask something else is refused.

    Raises:
        BadInput: there is no such run, or this would be no repeat of it.
        RunFailed: the model did not answer.
    """
    if not isinstance(run, Run):
        path = Path(run).expanduser()
        run = Run.open(path.parent if path.name == records.RUN_JSON else path)
    if run.about["model"].get("trust_remote_code") and not options.get("trust_remote_code"):
        raise BadInput(
            f"{run.folder}: ran code that came with its model; if you trust it, add "
            "--trust-remote-code"
        )
    given = {name: value for name, value in options.items() if value is not None}
    recorded = repeating.options(run.about)
    settings = {**(recorded["settings"] or {}), **given.get("settings", {})}
    given = {**recorded, **given, "settings": settings}
    if resolve(given["benchmark"]) != run.benchmark:
        raise BadInput(
            f"--from: {run.folder} is a run of {run.benchmark}, not of {given['benchmark']}"
        )
    name = f"{run.benchmark}-{run.about['identity']}-repeat"
    folder = Path(out) if out else places.reports() / "runs" / path_slug(run.model) / name
    if folder.resolve() == run.folder.resolve():
        raise BadInput(f"--out {folder}: is the run itself; give another folder for its repeat")
    say(f"repeating {run.folder}: {run.benchmark}, {given['model']}; records go to {folder}")
    again = evaluate(**{**given, "out": folder, "like": run})
    if records.count(run.folder):
        difference = repeating.difference(run.records, again.records)
        say(f"{folder}: compared with {run.folder}, {difference}")
    return again


def evaluate_all(
    benchmark: str,
    models: Sequence[str],
    runs: str | Path = "",
    recorded: Sequence[str | Path] = (),
    **options: Any,
) -> list[Run]:
    """Run `evaluate` for each of `models`, as notebooks do.

    Tasks that a model cannot be asked are left out, and so is a model with none left. An option
    that is empty or 0 keeps its default, because a notebook's parameters are literals.

    Args:
        runs: a study's folder of runs, each in `MODEL/BENCHMARK`; default: see `evaluate`.
        recorded: folders of runs to open instead; no model is asked then.
    """
    if recorded:
        return [Run.open(folder) for folder in recorded]
    if isinstance(models, str):
        raise BadInput(f"models {models!r}: expected a list of models, like [{models!r}]")
    given = {name: value for name, value in options.items() if value}
    variables = given.pop("keys", None)
    evaluated = []
    for model in dict.fromkeys(models):
        out = Path(runs) / path_slug(model) / resolve(benchmark) if runs else None
        keys = key_names.of_run(models, model, given.get("judge"), variables)
        try:
            evaluated.append(evaluate(benchmark, model, out=out, partial=True, keys=keys, **given))
        except NotApplicable as refusal:
            say(f"not applicable: {refusal}")
    return evaluated


def known_bias(
    benchmark: str, task: str, metric: str, rates: Sequence[float] = (0, 0.5, 1), **options: Any
) -> pd.DataFrame:
    """Score simulated respondents of known bias: one row per rate.

    Nothing is kept, and at most `KNOWN_BIAS_LIMIT` items per category and task are asked. Where the
    data do not have all tasks of the metric, the benchmark's first score that they have counts.

    Args:
        options: see `bench.config.RunConfig`; an empty one keeps its default.

    Returns:
        Columns `bias`, the metric, `ci_low`, `ci_high`, `n`; no rows where the data give no score.
    """
    limit = min(options.get("limit") or KNOWN_BIAS_LIMIT, KNOWN_BIAS_LIMIT)
    rows = []
    for rate in rates:
        with tempfile.TemporaryDirectory() as folder:
            respondent = [f"simulated:bias={rate:g}"]
            runs = evaluate_all(benchmark, respondent, folder, **{**options, "limit": limit})
            scores = table(runs, beside=False)
        scores = scores[scores.category == ALL]
        own = scores[(scores.task == task) & (scores.metric == metric)]
        if own.empty and (asked := asked_headlines(scores, benchmark)):
            task, metric, *_ = asked[0]
            own = headline_rows(scores, asked[0])
        for row in own.head(1).to_dict("records"):
            values = {name: row[name] for name in ("ci_low", "ci_high", "n")}
            rows.append({"bias": rate, metric: row["score"], **values})
    return pd.DataFrame(rows, columns=["bias", metric, "ci_low", "ci_high", "n"])
