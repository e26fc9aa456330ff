"""Run a benchmark: plan its requests, ask the model, and record the answers.

For example:

    run = evaluate("cbbq", "tiny:s", limit=20)
    run.scores()
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from bench.benchmarks import get, resolve
from bench.config import RunConfig
from bench.core import default_folders
from bench.core.cells import to_number
from bench.core.errors import BadInput, BudgetSpent, NotApplicable
from bench.core.progress import in_notebook, say
from bench.core.text import read_list, read_mapping
from bench.metrics.primary import primary_metrics, primary_rows
from bench.metrics.table import ALL
from bench.run import run_json
from bench.run.ask import ask_requests
from bench.run.costs import Estimate, estimate
from bench.run.plan import Respondents, plan_run
from bench.runs import records
from bench.runs.open import Run, open_runs
from bench.runs.scores import most_biased_first, score
from bench.scorers import Loaded, Model
from bench.scorers.endpoint import keys as key_names
from bench.scorers.names import path_slug

__all__ = [
    "Estimate",
    "Run",
    "estimate",
    "evaluate",
    "evaluate_all",
    "known_bias",
    "most_biased_first",
    "repeat",
    "score",
]

# Items per category and task; the scores of this many are stable.
KNOWN_BIAS_LIMIT = 400


def __dir__() -> list[str]:
    return __all__


def evaluate(
    benchmark: str,
    model: str | Model,
    *,
    partial: bool = False,
    loaded: Loaded | None = None,
    **options: Any,
) -> Run:
    """Ask a model the requests of a benchmark that have no recorded answer yet.

    If the run is complete, we open it and load no model.

    Args:
        benchmark: `mcbe`, `cbbq` or `nli_coal`.
        model: the name of a model, for example `Qwen/Qwen2.5-0.5B` (see `bench.scorers`), or a
            model from `bench.load`.
        partial: skip tasks that this model does not support, instead of raising an error.
        loaded: keeps the model and the judge in memory for the next run.
        options: as in `bench run --help`, with _ in place of -; None means the default.

    Raises:
        NotApplicable: this model does not support the tasks.
        BadInput: an option, the data or the model is wrong.
        RunFailed: the model did not answer.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> scores = run.scores()
        >>> scores.query("category == 'all' and metric == 's_amb'").score.round(2).tolist()
        [0.71]
    """
    if isinstance(model, Model):
        loaded, options = Loaded(model), _options_of(model, options)
    else:
        options["model"] = model
    config = RunConfig.of({"benchmark": benchmark, **options})
    plan = plan_run(get(benchmark), config)
    # The pages of a report do not show the folder of a run.
    shows_folder = not config.out and not in_notebook()
    if metadata := run_json.finished_run(plan, partial):
        if shows_folder:
            say(f"{plan.title}: {metadata['requests']:,} answers are in {plan.folder}")
        return Run(plan.folder, metadata, plan.benchmark)
    models = Respondents(plan.config, loaded)
    with records.run_lock(plan.folder):
        metadata, requests = run_json.begin(plan, models, partial)
        if shows_folder:
            say(f"{plan.title}: {requests.total:,} requests; records go to {plan.folder}")
        try:
            ask_requests(plan, metadata, requests, models)
        except BudgetSpent as spent:
            left = estimate(benchmark, partial=partial, **options)
            raise BudgetSpent(f"{spent}; {plan.title} needs {left}") from spent
        finally:
            run_json.add_late_conditions(plan, metadata, models)
    return Run(plan.folder, metadata, plan.benchmark)


evaluate.__signature__ = RunConfig.signature(evaluate)  # type: ignore[attr-defined]


def _options_of(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run of a loaded model: `options`, then those of `bench.load`."""
    name, load_options = model.loaded_as
    if not name:
        raise BadInput(f"{type(model).__name__}: was not loaded by bench.load; give its name")
    of_model = {"model": name, **load_options, **load_options["generation"].changed()}
    del of_model["generation"]
    return of_model | {name: value for name, value in options.items() if value is not None}


def repeat(run: Run | str | Path, out: str | Path | None = None, **options: Any) -> Run:
    """Ask the requests of a run again, with the options of its `run.json`, and compare the answers.

    Args:
        run: a run, its folder, or its `run.json`.
        out: folder of the repeat; default: `reports/runs/MODEL/BENCHMARK-ID-repeat`.
        options: options of `evaluate` that replace the recorded ones, for example `device`, or the
            new path of the data.

    Raises:
        BadInput: there is no such run, or an option is wrong.
        RunFailed: the model did not answer.

    Examples:
        >>> run = evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> repeat(run).scores().equals(run.scores())
        True
    """
    if not isinstance(run, Run):
        path = Path(run).expanduser()
        run = Run.open(path.parent if path.name == records.RUN_JSON else path)
    chosen = run_json.options(run.metadata)
    chosen |= {name: value for name, value in options.items() if value is not None}
    name = f"{run.benchmark}-{run.metadata['identity']}-repeat"
    folder = Path(out) if out else default_folders.runs() / path_slug(run.model) / name
    if folder.resolve() == run.folder.resolve():
        raise BadInput(f"--out {folder}: is the run itself; give another folder for its repeat")
    again = evaluate(**{**chosen, "out": folder})
    both = run.replies.merge(again.replies, on=records.KEYS, suffixes=("", "_again"))
    before, after = both.response.map(to_number), both.response_again.map(to_number)
    # Likelihoods are numbers, whose last digits depend on the batch.
    is_same = (both.response == both.response_again) | np.isclose(before, after, rtol=1e-4, atol=0)
    is_same &= both.error == both.error_again
    say(f"{folder}: {(~is_same).sum():,} of {len(both):,} answers differ from {run.folder}")
    return again


def evaluate_all(
    benchmark: str,
    models: Sequence[str] | str,
    runs: str | Path = "",
    recorded: Sequence[str | Path] | str = (),
    options: Mapping[str, Any] | str = MappingProxyType({}),
    **more: Any,
) -> list[Run]:
    """Run `evaluate` for several models, with the parameters of a notebook.

    We skip the tasks that a model does not support, and models that support none. An option that is
    empty or 0 keeps its default, because a notebook's parameters are literals. Lists and mappings
    can be texts such as `'["tiny:s"]'`, which papermill's `-p` passes on.

    Args:
        runs: a study's folder of runs, each in `MODEL/BENCHMARK`; default: see `evaluate`.
        recorded: folders of runs, or patterns, that we open instead of asking models.
        options, more: options of `evaluate`.

    Examples:
        >>> runs = evaluate_all("cbbq", ["simulated:answer=A"], data="samples", limit=5)
        >>> [run.label for run in runs]
        ['simulated:answer=A']
    """
    if recorded:
        return open_runs(read_list(recorded, name="recorded"))
    models = read_list(models, name="models")
    more = {**more, **read_mapping(options, name="options")}
    chosen = {name: value for name, value in more.items() if value}
    variables = chosen.pop("keys", None)
    evaluated = []
    for model in dict.fromkeys(models):
        out = Path(runs) / path_slug(model) / resolve(benchmark) if runs else None
        keys = key_names.of_run(models, model, chosen.get("judge"), variables)
        try:
            evaluated.append(evaluate(benchmark, model, out=out, partial=True, keys=keys, **chosen))
        except NotApplicable as refusal:
            say(f"not applicable: {refusal}")
    return evaluated


def known_bias(
    benchmark: str, task: str | Sequence[str], metric: str, **options: Any
) -> pd.DataFrame:
    """Score simulated respondents with a bias of 0, 0.5 and 1, one row each, or one per task.

    We ask at most `KNOWN_BIAS_LIMIT` items per category and task, and keep no files. If the data
    have no items for this metric, we use the first primary metric for which they have some.

    Args:
        task: one task, or several.
        options: see `bench.config.RunConfig`; an empty one keeps its default.

    Returns:
        Columns `task` (if several are given), `bias`, the metric, `ci_low`, `ci_high`, `n`; no rows
        if the data give no score.

    Examples:
        >>> known_bias("cbbq", "ambiguous", "s_amb", data="samples", limit=10).round(2)
           bias  s_amb  ci_low  ci_high    n
        0   0.0   0.00    0.00     0.05  140
        1   0.5   0.49    0.40     0.57  140
        2   1.0   1.00    0.95     1.00  140
    """
    limit = min(options.get("limit") or KNOWN_BIAS_LIMIT, KNOWN_BIAS_LIMIT)
    tasks = [task] if isinstance(task, str) else list(task)
    respondents = {f"simulated:bias={rate:g}": rate for rate in (0.0, 0.5, 1.0)}
    with tempfile.TemporaryDirectory() as folder:
        runs = evaluate_all(benchmark, list(respondents), folder, **{**options, "limit": limit})
        scores = score(*runs)
    scores = scores[scores.category == ALL]
    rows = scores[scores.task.isin(tasks) & (scores.metric == metric)]
    if rows.empty and (lines := primary_metrics(scores, runs[0].definition)):
        metric, rows = lines[0].metric, primary_rows(scores, lines[0])
    rows = rows.drop_duplicates(["model", "task"]).sort_values("task", kind="stable")
    rows = rows.assign(bias=rows.model.map(respondents)).rename(columns={"score": metric})
    columns = ["bias", metric, "ci_low", "ci_high", "n"]
    return rows[columns if isinstance(task, str) else ["task", *columns]].reset_index(drop=True)
