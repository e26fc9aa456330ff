"""Running a benchmark: plan the requests, ask those that no record answers yet, write them shard by shard.

result = evaluate("cbbq", "tiny:s", limit=20)
result.scores()
"""

import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from bench import __version__, data, records, scorers
from bench.benchmarks import module, resolve
from bench.errors import AnotherRun, BadInput, NotApplicable, RunFailed, expected
from bench.plan import Plan
from bench.progress import progress, say
from bench.scorers.base import Answer, Scorer, digest
from bench.tasks.request import Request

# A killed run loses at most this many answers.
SHARD = 256
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow", "openai")
PRESETS = ("robust", "official", "paper")


@dataclass(frozen=True)
class Run:
    """A run on disk: its folder and what `run.json` says of it."""

    folder: Path
    about: dict[str, Any]

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """The run in `folder`.

        Raises:
            BadInput: not a run's folder.
        """
        return cls(Path(folder), records.read_about(Path(folder)))

    @property
    def benchmark(self) -> str:
        return str(self.about["benchmark"])

    @property
    def model(self) -> str:
        return str(self.about["asked"]["model"])

    @property
    def label(self) -> str:
        """The model's name as pictures and tables show it."""
        return short_name(self.model)

    @property
    def records(self) -> pd.DataFrame:
        return records.read(self.folder)

    @property
    def items(self) -> pd.DataFrame:
        return records.read_items(self.folder)

    def scores(self, preset: str | None = None) -> pd.DataFrame:
        """The score table under `preset`; where the run's own is `robust`, with the official rows that differ behind it.

        Raises:
            BadInput: an unknown preset, or no records yet.
        """
        preset = preset or str(self.about["preset"])
        check_preset(preset)
        rows, items = self.records, self.items
        room = module("metrics", self.benchmark)
        table = room.score_records(rows, items, preset)
        if preset == "robust":
            table = pd.concat(
                [table, _official_rows(table, room.score_records(rows, items, "official"))], ignore_index=True
            )
        table.insert(0, "benchmark", self.benchmark)
        if len(rows) < self.about["requests"]:
            unfinished = f"unfinished run: {len(rows)} of {self.about['requests']} answers"
            table["note"] = [f"{unfinished}; {note}" if note else unfinished for note in table.note]
        return table


def evaluate(
    benchmark: str,
    model: str,
    *,
    categories: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    read: str | None = None,
    preset: str = "robust",
    prompts: str | None = None,
    data: str | Path | None = None,
    out: str | Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
    batch_tokens: int | None = None,
    trust_remote_code: bool = False,
    partial: bool = False,
) -> Run:
    """Ask `model` the benchmark's requests that the run's folder does not answer yet, and return the run.

    A run that is complete is only read; nothing is loaded and nobody is asked.

    Args:
        benchmark: `mcbe`, `cbbq` or `nli_coal`.
        model: see `bench.scorers`.
        limit: at most this many items a category and task, spread evenly over them.
        repeats: how often each request is asked; repeat k has the seed `seed + k`.
        read: how a choice is read: `text`, `letters` (probabilities), or what the model can, text first.
        preset: how the answers are scored by default: `robust`, `official` or `paper`.
        prompts: a variant of our wording, or `FILE` or `FILE#VARIANT` with another.
        data: the data set's folder; else see `bench.data.find`.
        out: the run's folder; `reports/runs/MODEL/BENCHMARK-ID` if None, under the nearest folder with `reports/`.
        partial: leave out the tasks that the model cannot be asked, in place of refusing.

    Raises:
        NotApplicable: the model cannot be asked the tasks.
        BadInput: an option, the data or the model is wrong.
        RunFailed: the model did not answer.
    """
    check_preset(preset)
    plan = Plan.make(benchmark, model, categories, tasks, limit, repeats, seed, read, prompts, data, dtype)
    folder = Path(out) if out else _default_root() / slug(model) / f"{plan.benchmark}-{plan.identity}"
    scorer = _Lazy(lambda: scorers.load(model, device, dtype, batch_tokens, trust_remote_code))
    about = _about(folder, plan, preset, scorer)
    requests = plan.requests(scorer.verbs if about is None else tuple(about["verbs"]), partial)
    if about is None:
        about = _begin(folder, plan, preset, scorer.load(), len(requests))
    size = int(about["shard"])
    missing = [k for k in range(-(-len(requests) // size)) if not records.shard_path(folder, k).is_file()]
    if missing and not scorer.loaded:
        _same_model(folder, about, scorer.load())
    done = len(requests) - sum(len(requests[k * size : (k + 1) * size]) for k in missing)
    with progress(len(requests), f"asking {model} {plan.benchmark}", "requests", done) as bar:
        for k in missing:
            some = requests[k * size : (k + 1) * size]
            records.write_shard(
                folder,
                k,
                [
                    _row(plan, request, answer)
                    for request, answer in zip(some, _ask(scorer.load(), some), strict=True)
                ],
            )
            bar.advance(len(some))
    return Run(folder, about)


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


def table(runs: Sequence[Run], preset: str | None = None) -> pd.DataFrame:
    """The score tables of several runs in one, with a column `model`.

    Raises:
        BadInput: there is no run.
    """
    if not runs:
        raise BadInput("no model is left to tell of: none was named, or none can be asked these tasks")
    names = labels(runs)
    tables = [run.scores(preset).assign(model=name) for run, name in zip(runs, names, strict=True)]
    return pd.concat(
        [part[["model", *(name for name in part if name != "model")]] for part in tables], ignore_index=True
    )


def labels(runs: Sequence[Run]) -> list[str]:
    """A name a run: short where that tells the models apart, else as it was asked for."""
    models = {run.model: run.label for run in runs}
    short = list(models.values())
    return [run.label if short.count(run.label) == 1 else run.model for run in runs]


def check_preset(preset: str) -> None:
    """Refuse an unknown preset."""
    if preset not in PRESETS:
        raise BadInput(expected(preset, PRESETS, "preset"))


def short_name(model: str) -> str:
    """A model's name without the path to it."""
    if model.partition(":")[0] in ("tiny", "simulated", "openai"):
        return model.partition("@")[0]
    return Path(model.rstrip("/")).name.removesuffix(".gguf").removesuffix(".jsonl")


def slug(model: str) -> str:
    """`model` as a folder's name."""
    name = re.sub(r"[^\w.,=+-]+", "_", model).strip("._") or "model"
    return name if len(name) <= 80 else f"{name[-72:]}-{digest(model)[:7]}"


class _Lazy:
    """A scorer that is loaded when it is first needed, because a complete run needs none."""

    def __init__(self, make: Callable[[], Scorer]) -> None:
        self._make = make
        self._scorer: Scorer | None = None

    @property
    def loaded(self) -> bool:
        return self._scorer is not None

    @property
    def verbs(self) -> tuple[str, ...]:
        return self.load().verbs

    def load(self) -> Scorer:
        if self._scorer is None:
            self._scorer = self._make()
        return self._scorer


def _default_root() -> Path:
    """`reports/runs` of the project that the working folder is in, so that notebooks and the command share it."""
    here = Path.cwd()
    home = next((folder for folder in (here, *here.parents) if (folder / "reports").is_dir()), here)
    return home / "reports" / "runs"


def _about(folder: Path, plan: Plan, preset: str, scorer: _Lazy) -> dict[str, Any] | None:
    """What `run.json` in `folder` says, or None where there is none; another run's folder is refused."""
    if not (folder / records.ABOUT).is_file():
        # Items are written first: a run that was killed right then leaves them alone.
        if folder.is_dir() and any(
            path.name != records.ITEMS and path.suffix != ".part" for path in folder.iterdir()
        ):
            raise BadInput(f"{folder}: is not empty and holds no run; give another --out")
        return None
    about = records.read_about(folder)
    before, now = about.get("asked", {}), plan.asked
    changed = [name for name in now if before.get(name) != now[name]] or (
        ["benchmark"] if about.get("benchmark") != plan.benchmark else []
    )
    if changed:
        what = changed[0]
        was, now_is = before.get(what, about.get(what)), now.get(what, plan.benchmark)
        raise AnotherRun(f"{folder}: holds another run ({what} was {was}, now {now_is}); give another --out")
    if about["preset"] != preset:  # how answers are scored by default is no part of what was asked
        about["preset"] = preset
        records.write_about(folder, about)
    return about


def _begin(folder: Path, plan: Plan, preset: str, scorer: Scorer, requests: int) -> dict[str, Any]:
    about = {
        "benchmark": plan.benchmark,
        "asked": plan.asked,
        "identity": plan.identity,
        "model": scorer.describe(),
        "verbs": list(scorer.verbs),
        "requests": requests,
        "shard": SHARD,
        "data": plan.source.describe(),
        "wording": {
            "version": plan.wording.version,
            "variant": plan.wording.variant,
            "source": plan.wording.source,
        },
        "preset": preset,
        "packages": {"bias-workbench": __version__, "python": platform.python_version(), **_versions()},
        "git_commit": _commit(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    records.write_items(folder, data.frame(list(plan.by_id.values())))
    records.write_about(folder, about)
    return about


def _same_model(folder: Path, about: dict[str, Any], scorer: Scorer) -> None:
    before, now = about["model"], scorer.describe()
    for name in ("id", "revision", "dtype", "tokenizer_hash", "chat_template_hash"):
        if before.get(name) != now.get(name):
            raise BadInput(
                f"{folder}: was begun with another model ({name} was {before.get(name)}, now {now.get(name)}); give another --out"
            )


def _ask(scorer: Scorer, requests: Sequence[Request]) -> list[Answer]:
    try:
        return scorer.answer(requests)
    except (RuntimeError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunFailed(
            f"the model did not answer ({first}); the same command continues from what is recorded"
        ) from error


def _row(plan: Plan, request: Request, answer: Answer) -> dict[str, Any]:
    parsed = (
        ""
        if answer.error
        else module("tasks", plan.benchmark).parse(request.task, answer.response, plan.by_id[request.item_id])
    )
    return {
        "benchmark": plan.benchmark, "category": request.category, "task": request.task, "item_id": request.item_id,
        "request": request.request, "repeat": request.repeat, "seed": request.seed, "prompt_version": request.prompt_version,
        "prompt_hash": digest(request.text), "prompt": request.text, "response": answer.response,
        "logprobs": None if answer.logprobs is None else list(answer.logprobs), "parsed": parsed, "valid": bool(parsed),
        "error": answer.error, "seconds": answer.seconds,
    }  # fmt: skip


def _official_rows(table: pd.DataFrame, official: pd.DataFrame) -> pd.DataFrame:
    """The rows of `official` whose score is not that of the same row in `table`."""
    keys = ["category", "task", "metric"]
    both = official.merge(table[[*keys, "score"]], on=keys, how="left", suffixes=("", "_robust"))
    same = (both.score == both.score_robust) | (both.score.isna() & both.score_robust.isna())
    return official[~same.to_numpy()]


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def _commit() -> str | None:
    """The commit of the checkout that the package runs from; None where it was installed."""
    here = Path(__file__).parent
    if not (here.parent / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
