"""Write `run.json` when a run begins, and compare it with the call when the run continues."""

import copy
import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import __version__, data, records
from bench.benchmarks import module
from bench.config import RunConfig
from bench.core.errors import AnotherRun, BadInput, RunFailed
from bench.core.files import DRAFT
from bench.run.plan import Plan, Requests
from bench.run.results import short_name
from bench.scorers.base import Model, Scorer
from bench.scorers.local import file_hash, hub
from bench.scorers.stand_ins.recorded import HarnessSamples, Predictions

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow", "openai")
# What tells two scorers apart.
IDENTITY = (
    "id",
    "revision",
    "base",
    "dtype",
    "tokenizer_hash",
    "chat_template_hash",
    "prompt_date",
)


def existing_run(
    folder: Path, plan: Plan, config: RunConfig, refusal: str
) -> dict[str, Any] | None:
    """Return the `run.json` in `folder`, None if there is none; `BadInput` if it is another run's.

    `refusal` says why this process may not write there, "" if it may.
    """
    if not (folder / records.RUN_JSON).is_file():
        # A run that was killed before its run.json was written leaves its items alone.
        left = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if not all(name.startswith(DRAFT) for name in left - {records.ITEMS, *records.LOCKS}):
            raise BadInput(f"{folder}: is not empty and holds no run; give another --out")
        return None
    about = records.read_run_json(folder)
    was = {"benchmark": about["benchmark"], **about["asked"]}
    now = {"benchmark": plan.benchmark, **plan.asked}
    judged = [module("tasks", plan.benchmark).judged(k, now["settings"]) for k in plan.tasks]
    # Without a judge, a task that needs one is asked otherwise.
    if "needed" not in judged and now["judge"] and was.get("judge", "") is None:
        was |= {name: value for name, value in now.items() if "judge" in name}
    for role in ("model", "judge"):
        # A model of the Hub may be named by the commit that was found before.
        commit = (about[role] or {}).get("revision")
        if now[role] and now[role] == hub.at_commit(str(was.get(role)), commit):
            was[role] = now[role]
    base = about["model"].get("base")
    if base and now.get("base") == hub.at_commit(base["id"], base["revision"]):
        was |= {name: now[name] for name in ("base", "base_content")}
    if change := first_change(was, now):
        name, old, new = change
        doubt = file_hash.incomparable(old, new)
        reason = f"{name} was {old}, now {new}" + (f": {doubt}" if doubt else "")
        message = f"{folder}: holds another run ({reason}); give another --out"
        raise AnotherRun(message, plan.identity)
    # The default preset and the model's name do not identify a run.
    shown = {"preset": config.preset, **({"name": config.name} if config.name else {})}
    if any(about.get(name) != value for name, value in shown.items()):
        about |= shown
        if not refusal:
            with suppress(RunFailed):  # on a full disk it can still be scored
                records.write_run_json(folder, about)
    return about


def first_change(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the first entry that differs, with both values; of `settings` the setting."""
    for name in sorted({**now, **was}, key="benchmark".__eq__):  # the benchmark comes last
        old, new = was.get(name), now.get(name)
        if name == "settings" and old != new and isinstance(old, dict) and isinstance(new, dict):
            return first_change(old, new)
        if old != new:
            return name, old, new
    return None


def begin_run(
    folder: Path,
    plan: Plan,
    config: RunConfig,
    model: Scorer,
    judge: Scorer | None,
    requests: Requests,
) -> dict[str, Any]:
    """Write `items.parquet` and `run.json` of a new run, and return the content of the latter."""
    asked = [request for stage in requests.stages for request in stage if not request.of_judge]
    if isinstance(model, Predictions):
        model.cover(asked, plan.known)
    languages = dict.fromkeys(request.category for request in asked if request.verb == "classify")
    prompt_set = plan.prompt_set
    name = config.name or (short_name(model.name) if isinstance(model, HarnessSamples) else "")
    about = {
        "benchmark": plan.benchmark,
        "asked": plan.asked,
        "identity": plan.identity,
        "model": model.describe(),
        "verbs": list(model.verbs),
        "reads": list(model.reads),
        **_of_judge(judge),
        "read": {task: way.read for task, way in requests.ways.items()},
        "left_out": requests.left_out,
        "unfit": plan.unfit,
        "touched": plan.touched,
        "probe": model.probe(list(languages)) if isinstance(model, Model) and languages else [],
        "requests": requests.total,
        "folder": str(Path.cwd()),  # what relative paths start from
        "data": plan.source.describe(),
        "wording": {
            "version": prompt_set.version,
            "variant": prompt_set.variant,
            "source": prompt_set.source,
            "language": ", ".join(prompt_set.languages),
            "foreign": plan.foreign(asked),
            "file": str(prompt_set.path.resolve()),
            "unbiased_instruction": prompt_set.unbiased_instruction,
        },
        "preset": config.preset,
        **({"name": name} if name else {}),
        "packages": packages(),
        "git_commit": _commit(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    records.write_items(folder, about, data.frame(list(plan.by_id.values())))
    return about


def _of_judge(judge: Scorer | None) -> dict[str, Any]:
    described = {**judge.describe(), "decoding": "greedy"} if judge else None
    return {"judge": described, "judge_verbs": list(judge.verbs) if judge else []}


def add_judge(
    folder: Path, about: dict[str, Any], plan: Plan, judge: Scorer, requests: Requests
) -> None:
    """Add to `run.json` a judge for replies that are on record already."""
    about |= {
        "asked": plan.asked,
        "identity": plan.identity,
        **_of_judge(judge),
        "requests": requests.total,
    }
    records.write_run_json(folder, about)


def add_conditions(
    folder: Path,
    about: dict[str, Any],
    described: Mapping[str, Mapping[str, Any]],
    workers: Sequence[dict[str, Any]],
) -> None:
    """Add to `run.json` what only asking showed.

    Args:
        described: by role, where an endpoint can have needed fields in another form, and says who
            answered.
        workers: what the workers of a cluster run on.
    """
    before = copy.deepcopy(about)
    for role, description in described.items():
        asked_with = {**about[role].get("asked_with", {}), **description.get("asked_with", {})}
        if asked_with != about[role].get("asked_with", {}):
            about[role] = {**about[role], "asked_with": asked_with}
            if role == "judge" and "temperature=0" in asked_with:
                about[role]["decoding"] = "the server's own"
        who_answered = ("answered_as", "answered_by")
        about[role] |= {name: description[name] for name in who_answered if name in description}
    known = about.get("workers", [])
    if new := [worker for worker in workers if worker not in known]:
        about["workers"] = [*known, *new]
    if about != before:
        records.write_run_json(folder, about)


def check_same_scorer(folder: Path, role: str, before: dict[str, Any], scorer: Scorer) -> None:
    """Refuse to continue with another model or judge than the run was begun with.

    Its prompts get the date of the run's beginning.
    """
    if isinstance(scorer, Model):
        scorer.resume(before)
    if other := first_difference(before, scorer.describe()):
        parts = {role: before, **({"base": before.get("base")} if role == "model" else {})}
        same = [
            f"--{option} {hub.at_commit(part['id'], part['revision'])}"
            for option, part in parts.items()
            if part and hub.COMMIT.fullmatch(str(part.get("revision")))
        ]
        continues = f"{' '.join(same)} --out {folder} continues it; else " if same else ""
        raise BadInput(
            f"{folder}: was begun with another {role} ({other}); {continues}give another --out"
        )


def first_difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Say where two descriptions are of different scorers; "" if they are not."""
    for name in IDENTITY:
        if before.get(name) != now.get(name):
            return f"{name} was {before.get(name)}, now {now.get(name)}"
    return ""


def packages() -> dict[str, str]:
    """Return the versions of this package, of Python, and of packages that numbers depend on."""
    versions = {"bias-workbench": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


@cache
def _commit() -> str | None:
    """Return the commit of the checkout that the package runs from; None if it is installed."""
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
