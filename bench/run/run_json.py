"""Write `run.json` when a run begins, and compare it with the plan when the run continues."""

import copy
import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench import __version__, data, records
from bench.benchmarks import get
from bench.core.errors import AnotherRun, BadInput, RunFailed
from bench.core.files import DRAFT
from bench.core.progress import say
from bench.run.plan import Plan, Requests
from bench.scorers.base import Model, is_broken
from bench.scorers.local import hub
from bench.scorers.names import short_name
from bench.tasks import prompts

if TYPE_CHECKING:
    from bench.run.execute import Lazy

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow", "openai")
# Entries that identify a model.
HASHES = ("tokenizer_hash", "chat_template_hash")
IDENTITY = ("id", "revision", "base", "dtype", *HASHES, "prompt_date")


def in_folder(out: str | Path | None) -> dict[str, Any]:
    """Return the `run.json` in a folder, {} if there is none."""
    has_run = out and (Path(out) / records.RUN_JSON).is_file()
    return records.read_run_json(Path(str(out))) if has_run else {}


def existing_run(plan: Plan) -> dict[str, Any]:
    """Return the `run.json` in the plan's folder, {} if there is none; refuse another run."""
    folder = plan.folder
    metadata = in_folder(folder)
    if not metadata:
        # A run that was killed before it wrote run.json leaves only items.parquet behind.
        left = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if not all(name.startswith(DRAFT) for name in left - {records.ITEMS, *records.LOCKS}):
            raise BadInput(f"{folder}: is not empty and holds no run; give another --out")
        return {}
    was = options_of(metadata["benchmark"], {**metadata["asked"], **_equivalent(metadata, plan)})
    now = options_of(plan.benchmark, plan.options)
    # The benchmark comes last.
    for name in sorted({**now, **was}, key="benchmark".__eq__):
        old, new = was.get(name), now.get(name)
        if old != new:
            reason = f"{name} was {old}, now {new}"
            message = f"{folder}: holds another run ({reason}); give another --out"
            raise AnotherRun(message, plan.identity)
    return metadata


def display(plan: Plan) -> dict[str, Any]:
    """Return the entries of `run.json` that do not identify a run: the last ones count."""
    name = plan.config.name
    return {"preset": plan.config.preset, **({"name": name} if name else {})}


def finished_run(plan: Plan, partial: bool) -> dict[str, Any]:
    """Return the `run.json` of a run that we can open without asking; {} if there is none."""
    metadata = existing_run(plan)
    if not metadata or (metadata["left_out"] and not partial):
        return {}
    has_new_judge = plan.options["judge"] and not metadata["asked"]["judge"]
    if has_new_judge or not is_answered(plan.folder, metadata):
        return {}
    if not display(plan).items() <= metadata.items():
        metadata |= display(plan)
        # On a disk that cannot be written, we can still score this run.
        with suppress(BadInput, RunFailed), records.run_lock(plan.folder):
            records.write_run_json(plan.folder, {**existing_run(plan), **display(plan)})
    return metadata


def is_answered(folder: Path, metadata: Mapping[str, Any]) -> bool:
    """Return whether every request has an answer that we do not ask again."""
    if not records.is_complete(folder):
        return False
    return not has_endpoint(metadata) or not any(
        map(is_broken, records.read(folder, prompts=False).error)
    )


def has_endpoint(metadata: Mapping[str, Any]) -> bool:
    """Return whether an endpoint answers; we ask it again if its answer came back broken."""
    return any("url" in (metadata[role] or {}) for role in ("model", "judge"))


def _equivalent(metadata: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Return the entries of a plan that differ from a run's `run.json`, but mean the same."""
    was, now = metadata["asked"], plan.options
    same = {}
    judged = [get(plan.benchmark).tasks[task].judged(now["settings"]) for task in plan.tasks]
    # We can add a judge, unless we skipped tasks that need one.
    if now["judge"] and was["judge"] is None and "needed" not in judged:
        same = {name: value for name, value in now.items() if "judge" in name}
    # The user may name a Hub model by its recorded commit.
    for role in ("model", "judge"):
        commit = (metadata[role] or {}).get("revision")
        if now[role] == hub.at_commit(str(was[role]), commit):
            same[role] = now[role]
    base = metadata["model"].get("base")
    if base and now.get("base") == hub.at_commit(base["id"], base["revision"]):
        same |= {name: now[name] for name in ("base", "base_content")}
    return same


def options_of(benchmark: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a run in one mapping, with the benchmark and each setting."""
    others = {name: value for name, value in options.items() if name != "settings"}
    return {"benchmark": benchmark, **others, **options["settings"]}


def begin_run(
    plan: Plan, scorers: Mapping[str, Any], model: Model, requests: Requests
) -> dict[str, Any]:
    """Write `items.parquet` and `run.json` of a new run, with the entries `scorers`."""
    config, prompt_set = plan.config, plan.prompt_set
    own_requests = [r for stage in requests.stages for r in stage if not r.of_judge]
    model.cover(own_requests)
    languages = dict.fromkeys(r.category for r in own_requests if r.request_type == "classify")
    # A prompt set can have a task's requests from another one.
    own = dict.fromkeys(r.category for r in own_requests if r.prompt_version == prompt_set.label)
    name = config.name or short_name(model.display_name)
    metadata = {
        "benchmark": plan.benchmark,
        "asked": plan.options,
        "identity": plan.identity,
        **scorers,
        "read": {task: mode.read for task, mode in requests.answer_modes.items()},
        "left_out": requests.skipped,
        "unfit": plan.choice.excluded,
        "touched": plan.choice.modified,
        "probe": model.probe(list(languages)) if languages else [],
        "requests": requests.total,
        "folder": str(Path.cwd()),  # the start of relative paths
        "data": plan.source.describe(),
        "wording": {
            "version": prompt_set.version,
            "variant": prompt_set.variant,
            "source": prompt_set.source,
            "language": ", ".join(prompt_set.languages),
            "foreign": prompts.foreign(plan.benchmark, prompt_set, plan.source.language, list(own)),
            "file": str(prompt_set.path.resolve()),
            "unbiased_instruction": prompt_set.unbiased_instruction,
        },
        "preset": config.preset,
        **({"name": name} if name else {}),
        "packages": packages(),
        "git_commit": _commit(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    records.store_items(plan.folder, metadata, _items(plan))
    return metadata


def continue_run(plan: Plan, metadata: dict[str, Any], requests: Requests) -> None:
    """Write missing or damaged items, and the new entries of `run.json`."""
    metadata |= display(plan)
    if metadata["judge"] and not metadata["asked"]["judge"]:
        metadata |= {"asked": plan.options, "identity": plan.identity, "requests": requests.total}
    records.write_run_json(plan.folder, metadata)
    # A run's identity contains the hash of its data, so these are the same items.
    if records.store_items(plan.folder, metadata, _items(plan)):
        say(
            f"{plan.folder / records.ITEMS}: was missing, damaged or of an earlier version; it is "
            "written anew from the data"
        )


def _items(plan: Plan) -> pd.DataFrame:
    return data.frame(list(plan.choice.by_id.values()))


def add_conditions(
    plan: Plan,
    metadata: dict[str, Any],
    scorers: "Mapping[str, Lazy]",
    workers: Sequence[dict[str, Any]],
) -> None:
    """Add conditions that we know only after asking, such as the model behind an endpoint."""
    before = copy.deepcopy(metadata)
    for role, lazy in scorers.items():
        if not (lazy.loaded and metadata[role]):
            continue
        described = lazy.loaded.describe()
        asked_with = {**metadata[role].get("asked_with", {}), **described.get("asked_with", {})}
        if asked_with:
            metadata[role]["asked_with"] = asked_with
        if role == "judge" and "temperature=0" in asked_with:
            metadata[role]["decoding"] = "the server's own"
        who_answered = ("answered_as", "answered_by")
        metadata[role] |= {name: described[name] for name in who_answered if name in described}
    known = metadata.get("workers", [])
    if new := [worker for worker in workers if worker not in known]:
        metadata["workers"] = [*known, *new]
    if metadata != before:
        records.write_run_json(plan.folder, metadata)


def other_scorer(before: Mapping[str, Any], scorer: Model, names: Sequence[str] = IDENTITY) -> str:
    """Let a model take over recorded conditions, and describe how it differs; "" if not at all."""
    scorer.resume(before)
    return first_difference(before, scorer.describe(), names)


def first_difference(
    before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str] = IDENTITY
) -> str:
    """Describe the first difference of two models; older descriptions have fewer entries."""
    for name in names:
        if name in before and before[name] != now.get(name):
            return f"{name} was {before[name]}, now {now.get(name)}"
    return ""


@cache
def packages() -> dict[str, str]:
    """Return the versions of this package, Python, and packages that numbers depend on."""
    own = {"bias-workbench": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in PACKAGES}


@cache
def _commit() -> str | None:
    """Return the commit of the checkout that the package runs from; None if it is installed."""
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():
        return None
    command, quiet = ["git", "rev-parse", "HEAD"], subprocess.DEVNULL
    try:
        return subprocess.check_output(command, cwd=checkout, text=True, stderr=quiet).strip()
    except (OSError, subprocess.SubprocessError):
        return None
