"""Asking: the requests of a plan that no record answers yet, shard by shard, of the model or of the judge.

A request that needs an earlier reply is finished when that reply is on record, so a run that was killed between the two
goes on like one that was not.
"""

import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from bench import __version__, data, records
from bench.benchmarks import module
from bench.errors import AnotherRun, BadInput, RunFailed
from bench.plan import Plan, Requests
from bench.progress import progress, say
from bench.scorers.base import Answer, Model, Scorer, digest
from bench.scorers.predictions import Predictions
from bench.tasks.request import Request

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow", "openai")
NOT_ASKED = "not asked: the reply that it is about did not come"


class Lazy:
    """A scorer that is loaded when it is first needed, because a complete run needs none."""

    def __init__(self, make: Callable[[], Scorer]) -> None:
        self._make = make
        self._scorer: Scorer | None = None

    @property
    def loaded(self) -> bool:
        return self._scorer is not None

    def load(self) -> Scorer:
        if self._scorer is None:
            self._scorer = self._make()
        return self._scorer


def about_run(folder: Path, plan: Plan, preset: str) -> dict[str, Any] | None:
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
    if plan.may_be_judged_later and now["judge"] and before.get("judge", "") is None:
        # The judge's questions stand behind all others, so that the shards that are there stay as they are.
        before = {**before, "judge": now["judge"], "judge_content": now["judge_content"]}
    changed = [name for name in {**now, **before} if before.get(name) != now.get(name)] or (
        ["benchmark"] if about.get("benchmark") != plan.benchmark else []
    )
    if changed:
        what = changed[0]
        was: Any = before.get(what)
        now_is: Any = now.get(what)
        if what == "benchmark":
            was, now_is = about.get(what), plan.benchmark
        if what == "settings" and isinstance(was, dict):
            what = next(name for name in now_is if was.get(name) != now_is[name])
            was, now_is = was.get(what), now_is[what]
        raise AnotherRun(f"{folder}: holds another run ({what} was {was}, now {now_is}); give another --out")
    if about["preset"] != preset:  # how answers are scored by default is no part of what was asked
        about["preset"] = preset
        records.write_about(folder, about)
    return about


def begin(
    folder: Path, plan: Plan, preset: str, model: Scorer, judge: Scorer | None, requests: Requests, shard: int
) -> dict[str, Any]:
    """Write `items.parquet` and `run.json` of a new run, and return what the latter says.

    Raises:
        BadInput: a file of predictions has not one for each request, or others; nothing is written then.
    """
    wanted = [request for stage in requests.stages for request in stage if not request.of_judge]
    if isinstance(model, Predictions):
        model.cover(wanted, plan.known)
    languages = dict.fromkeys(request.category for request in wanted if request.verb == "classify")
    about = {
        "benchmark": plan.benchmark,
        "asked": plan.asked,
        "identity": plan.identity,
        "model": model.describe(),
        "verbs": list(model.verbs),
        "reads": list(model.reads),
        "judge": {**judge.describe(), "decoding": "greedy"} if judge else None,
        "judge_verbs": list(judge.verbs) if judge else [],
        "read": {task: way.read for task, way in requests.ways.items()},
        "left_out": requests.left_out,
        "unfit": plan.unfit,
        "touched": plan.touched,
        "probe": model.probe(list(languages)) if isinstance(model, Model) and languages else [],
        "requests": requests.total,
        "shard": shard,
        "order": "prompt",
        "folder": str(Path.cwd()),  # from which the paths here are meant
        "data": plan.source.describe(),
        "wording": {
            "version": plan.wording.version,
            "variant": plan.wording.variant,
            "source": plan.wording.source,
            "file": str(plan.wording.path.resolve()),
            "unbiased_instruction": plan.wording.unbiased_instruction,
        },
        "preset": preset,
        "packages": {"bias-workbench": __version__, "python": platform.python_version(), **_versions()},
        "git_commit": _commit(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    records.write_items(folder, data.frame(list(plan.by_id.values())))
    records.write_about(folder, about)
    return about


def add_judge(folder: Path, about: dict[str, Any], plan: Plan, judge: Scorer, requests: Requests) -> None:
    """Note in `run.json` who is to judge replies that are on record already."""
    about |= {
        "asked": plan.asked,
        "identity": plan.identity,
        "judge": {**judge.describe(), "decoding": "greedy"},
        "judge_verbs": list(judge.verbs),
        "requests": requests.total,
    }
    records.write_about(folder, about)


def ask(
    folder: Path, plan: Plan, about: dict[str, Any], requests: Requests, model: Lazy, judge: Lazy
) -> None:
    """Ask what is missing in `folder`, and write it.

    Raises:
        BadInput: the model is another one than that with which the run was begun.
        RunFailed: the model or the judge did not answer.
    """
    places = {id(request): place for place, request in enumerate(chain(*requests.stages))}
    shards = requests.shards(int(about["shard"]), about.get("order", "plan"))
    missing = [k for k in range(len(shards)) if not records.shard_path(folder, k).is_file()]
    for role, scorer in (("model", model), ("judge", judge)):
        wanted = any(request.of_judge == (role == "judge") for k in missing for request in shards[k])
        if wanted and about[role] and not scorer.loaded:
            _same(folder, role, about[role], scorer.load())
    what, began = f"asking {plan.asked['model']} {plan.benchmark}", time.perf_counter()
    with progress(
        requests.total, what, "requests", requests.total - sum(len(shards[k]) for k in missing)
    ) as bar:
        replies: dict[tuple[Any, ...], str | None] = {}
        for k in missing:
            some = shards[k]
            if any(request.after and _earlier(request) not in replies for request in some):
                replies = _replies(folder, {(request.task, request.after) for request in some})
            rows = _rows(plan, some, replies, model, judge)
            for request, row in zip(some, rows, strict=True):
                row["place"] = places[id(request)]
            records.write_shard(folder, k, rows)
            bar.advance(len(some))
    _tell(what, [model, judge], time.perf_counter() - began)


def answers(plan: Plan, requests: Requests, model: Scorer, judge: Scorer | None = None) -> pd.DataFrame:
    """What `model` and `judge` say to all requests, as records have it; nothing is written.

    For respondents that answer at once and can be asked again: a run on disk can be continued, this cannot.
    """
    who = Lazy(lambda: model), Lazy(lambda: judge or model)
    replies: dict[tuple[Any, ...], str | None] = {}
    found: list[dict[str, Any]] = []
    for stage in requests.stages:
        rows = _rows(plan, stage, replies, *who)
        for row in rows:
            key = row["task"], row["item_id"], row["request"], row["repeat"]
            replies[key] = None if row["error"] else row["response"]
        found += rows
    return pd.DataFrame(found)


def _tell(what: str, scorers: Sequence[Lazy], seconds: float) -> None:
    """How many tokens were asked about, how many were computed, and how fast."""
    loaded = [lazy.load() for lazy in dict.fromkeys(scorers) if lazy.loaded]
    tallies = [scorer.tally for scorer in loaded if isinstance(scorer, Model)]
    asked, computed = (sum(getattr(tally, name) for tally in tallies) for name in ("asked", "computed"))
    if asked:
        say(
            f"{what}: {asked:,} tokens asked, {computed:,} computed ({computed / asked:.0%}), {computed / seconds:,.0f} a second"
        )


def _rows(
    plan: Plan, shard: Sequence[Request], replies: dict[tuple[Any, ...], str | None], model: Lazy, judge: Lazy
) -> list[dict[str, Any]]:
    """The answers to a shard, in its order."""
    finished = {
        i: request.then(request, replies[_earlier(request)]) if request.then else request
        for i, request in enumerate(shard)
    }
    answers = {i: Answer("", error=NOT_ASKED) for i, request in finished.items() if request is None}
    for of_judge, scorer, who in ((False, model, "model"), (True, judge, "judge")):
        some = {i: request for i, request in finished.items() if request and request.of_judge == of_judge}
        if some:
            answers |= zip(some, _answers(scorer.load(), list(some.values()), who), strict=True)
    return [_row(plan, finished[i] or request, answers[i]) for i, request in enumerate(shard)]


def _answers(scorer: Scorer, requests: Sequence[Request], who: str) -> list[Answer]:
    try:
        return scorer.answer(requests)
    except (RuntimeError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunFailed(
            f"the {who} did not answer ({first}); the same command continues from what is recorded"
        ) from error


def _earlier(request: Request) -> tuple[Any, ...]:
    return request.task, request.item_id, request.after, request.repeat


def _replies(folder: Path, wanted: set[tuple[str, str]]) -> dict[tuple[Any, ...], str | None]:
    """The recorded replies to the requests of `wanted` (task and name), None where there is none."""
    rows = records.read(folder)
    names = zip(rows.task, rows.item_id, rows.request, rows.repeat, rows.response, rows.error, strict=True)
    return {
        (task, item, name, repeat): None if error else response
        for task, item, name, repeat, response, error in names
        if (task, name) in wanted
    }


def _same(folder: Path, role: str, before: dict[str, Any], scorer: Scorer) -> None:
    now = scorer.describe()
    for name in ("id", "revision", "dtype", "tokenizer_hash", "chat_template_hash"):
        if before.get(name) != now.get(name):
            raise BadInput(
                f"{folder}: was begun with another {role} ({name} was {before.get(name)}, now {now.get(name)}); give another --out"
            )


def _row(plan: Plan, request: Request, answer: Answer) -> dict[str, Any]:
    room, item = module("tasks", plan.benchmark), plan.by_id[request.item_id]
    parsed = "" if answer.error else room.parse(request.task, request.request, answer.response, item)
    return {
        "benchmark": plan.benchmark, "category": request.category, "task": request.task, "item_id": request.item_id,
        "request": request.request, "repeat": request.repeat, "seed": request.seed, "prompt_version": request.prompt_version,
        "prompt_hash": digest(request.text), "prompt": request.text, "response": answer.response,
        "logprobs": None if answer.logprobs is None else list(answer.logprobs), "parsed": parsed, "valid": bool(parsed),
        "error": answer.error, "seconds": answer.seconds,
    }  # fmt: skip


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
