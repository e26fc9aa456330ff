"""What `run.json` says of a run: written when it begins, held against the call when it goes on."""

import platform
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import __version__, data, lock, records
from bench.config import RunConfig
from bench.core.errors import AnotherRun, BadInput, RunFailed
from bench.core.files import DRAFT
from bench.run.plan import Plan, Requests
from bench.scorers.base import Model, Scorer
from bench.scorers.local import file_hash, hub
from bench.scorers.stand_ins.recorded import Predictions

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow", "openai")


def about_run(
    folder: Path, plan: Plan, config: RunConfig, held: lock.Hold
) -> dict[str, Any] | None:
    """What `run.json` in `folder` says, or None where there is none; another run's folder is refused."""
    if not (folder / records.RUN_JSON).is_file():
        # Items are written first: a run that was killed right then leaves them alone.
        if folder.is_dir() and any(
            path.name not in (records.ITEMS, lock.FILE) and not path.name.startswith(DRAFT)
            for path in folder.iterdir()
        ):
            raise BadInput(f"{folder}: is not empty and holds no run; give another --out")
        return None
    about = records.read_run_json(folder)
    before, now = about.get("asked", {}), plan.asked
    if plan.may_be_judged_later and now["judge"] and before.get("judge", "") is None:
        # The judge's questions stand behind all others, so that the shards that are there stay as they are.
        before = {**before, "judge": now["judge"], "judge_content": now["judge_content"]}
    # A model of the Hub may be asked for at the very commit that was found before.
    for role in ("model", "judge"):
        commit = (about.get(role) or {}).get("revision")
        if now[role] and now[role] == hub.at_commit(str(before.get(role)), commit):
            before = {**before, role: now[role]}
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
        doubt = file_hash.incomparable(was, now_is)
        why = f"{what} was {was}, now {now_is}" + (f": {doubt}" if doubt else "")
        raise AnotherRun(f"{folder}: holds another run ({why}); give another --out")
    # How answers are scored by default, and what the model is called, are no part of what was asked.
    shown = {"preset": config.preset, **({"name": config.name} if config.name else {})}
    if any(about.get(name) != value for name, value in shown.items()):
        about |= shown
        if not held.why_not:
            with suppress(RunFailed):  # on a full disk it is scored all the same
                records.write_run_json(folder, about)
    return about


def begin(
    folder: Path,
    plan: Plan,
    config: RunConfig,
    model: Scorer,
    judge: Scorer | None,
    requests: Requests,
    shard: int,
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
            "language": ", ".join(plan.wording.languages),
            "foreign": plan.foreign(wanted),
            "file": str(plan.wording.path.resolve()),
            "unbiased_instruction": plan.wording.unbiased_instruction,
        },
        "preset": config.preset,
        **({"name": config.name} if config.name else {}),
        "packages": packages(),
        "git_commit": _commit(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    records.write_items(folder, data.frame(list(plan.by_id.values())))
    records.write_run_json(folder, about)
    return about


def add_judge(
    folder: Path, about: dict[str, Any], plan: Plan, judge: Scorer, requests: Requests
) -> None:
    """Note in `run.json` who is to judge replies that are on record already."""
    about |= {
        "asked": plan.asked,
        "identity": plan.identity,
        "judge": {**judge.describe(), "decoding": "greedy"},
        "judge_verbs": list(judge.verbs),
        "requests": requests.total,
    }
    records.write_run_json(folder, about)


def add_asked_with(folder: Path, about: dict[str, Any], role: str, scorer: Scorer) -> None:
    """Note in `run.json` the fields that an endpoint turned out to want otherwise during the run."""
    before = about[role]
    asked_with = {**before.get("asked_with", {}), **scorer.describe().get("asked_with", {})}
    if asked_with == before.get("asked_with", {}):
        return
    about[role] = {**before, "asked_with": asked_with}
    if role == "judge" and "temperature=0" in asked_with:
        about[role]["decoding"] = "the server's own"
    records.write_run_json(folder, about)


def add_workers(folder: Path, about: dict[str, Any], workers: Sequence[dict[str, Any]]) -> None:
    """Note in `run.json` what the workers of a cluster run on, each kind once."""
    new = [one for one in workers if one not in about.get("workers", [])]
    if new:
        about["workers"] = [*about.get("workers", []), *new]
        records.write_run_json(folder, about)


def check_same_scorer(folder: Path, role: str, before: dict[str, Any], scorer: Scorer) -> None:
    """Refuse to go on with another model or judge than that with which the run was begun.

    Raises:
        BadInput: it is another one.
    """
    if other := first_difference(before, scorer.describe()):
        commit = str(before.get("revision"))
        way = ""
        if hub.COMMIT.fullmatch(commit):
            way = f"--{role} {before['id']}@{commit} --out {folder} continues it; else "
        begun = f"{folder}: was begun with another {role} ({other})"
        raise BadInput(f"{begun}; {way}give another --out")


def first_difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Where two descriptions are not of the same scorer, the first such place; "" where they are."""
    for name in ("id", "revision", "base", "dtype", "tokenizer_hash", "chat_template_hash"):
        if before.get(name) != now.get(name):
            return f"{name} was {before.get(name)}, now {now.get(name)}"
    return ""


def packages() -> dict[str, str]:
    """The versions of this package, of Python, and of the packages that numbers rest on."""
    found = {"bias-workbench": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def _commit() -> str | None:
    """The commit of the checkout that the package runs from; None where it was installed."""
    here = Path(__file__).parents[1]
    if not (here.parent / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
