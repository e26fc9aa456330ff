"""Write `run.json` when a run begins, and compare it with the plan when the run continues."""

import json
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from bench import __version__
from bench.config import RunConfig, Where
from bench.core.errors import AnotherRun, BadInput, RunFailed
from bench.core.files import DRAFT
from bench.core.progress import say
from bench.core.text import whole_characters
from bench.data import FOUND_SAMPLES, OWN_SAMPLES, frame
from bench.run.plan import Plan, Requests, Respondents, abilities_of, make_requests
from bench.runs import records, schema
from bench.runs.notes import probe_failed, prompt_language_warning
from bench.scorers.base import BROKEN_ANSWER, Model
from bench.scorers.local import hub
from bench.tasks import prompts

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "pyarrow", "openai")
# Entries about the model that answers at an endpoint.
WHO_ANSWERED = ("answered_as", "answered_by", "providers", "system_fingerprints")
# Entries that identify a model.
IDENTITY = ["id", "revision", "base", "dtype", "prompt_date"]
IDENTITY += ["tokenizer_hash", "chat_template_hash"]
OF_JUDGE = ("--judge", "--as-judge", "the content of --judge")


def existing_run(plan: Plan) -> dict[str, Any]:
    """Read the `run.json` in the folder of a plan, {} if there is none; refuse another run."""
    folder = plan.folder
    metadata = records.run_json_in(folder)
    if not metadata:
        # A run that was killed before it wrote run.json has left only items.parquet.
        left = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if not all(name.startswith(DRAFT) for name in left - {records.ITEMS, *records.LOCKS}):
            raise BadInput(f"{folder}: is not empty and holds no run; give another --out")
        return {}
    recorded, planned = metadata["asked"], dict(plan.asked)
    for role, name in _at_commits(metadata).items():
        # The user may name a model of the Hub with the recorded commit, or a file by another path.
        content = schema.file_hash(planned, role)
        if name and (
            planned[role] == name or (content and content == schema.file_hash(recorded, role))
        ):
            planned[role] = recorded.get(role)
    old, new = _spelled(metadata["benchmark"], recorded), _spelled(plan.benchmark.name, planned)
    differ = differences(old, new)
    if recorded["judge"] is None and plan.asked["judge"]:
        names = [name for name in plan.asked["tasks"] if name in metadata["skipped"]]
        judged = [plan.benchmark.tasks[name].judged(recorded["settings"]) for name in names]
        if "needed" not in judged:  # no task was left out for lack of a judge, so we can add one
            for name in OF_JUDGE:
                differ.pop(name, None)
    if differ:
        text = "; ".join(differ.values())
        raise AnotherRun(f"{folder}: holds another run ({text}); give another --out", plan.identity)
    return metadata


def _spelled(benchmark: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that identify a run, by their names in the command."""
    spelled = {"benchmark": benchmark}
    spelled |= {f"--set {name}": value for name, value in asked["settings"].items()}
    fields = RunConfig.described()
    for name, value in {**asked, **asked.get("generation", {})}.items():
        if name not in ("settings", "generation") and value not in (None, "", [], {}):
            option = re.sub("_(content|sha256|hash)$", "", name)
            flag = RunConfig.flag(option) if option in fields else option
            spelled[flag if option == name else f"the content of {flag}"] = value
    return spelled


def options(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which `bench.evaluate` asks the requests of this run again.

    `trust_remote_code` and `keys`, for example, have to be given anew.
    """
    recorded, prompt_set, source = metadata["asked"], metadata["prompts"], metadata["data"]
    names = {"dtype", *RunConfig.model_fields} - (Where.model_fields.keys() - {"dtype"})
    values = {**recorded, **recorded.get("generation", {})}
    of_file = "#".join(filter(None, [prompt_set["file"], prompt_set["variant"]]))
    return {
        **{name: value for name, value in values.items() if name in names},
        **_at_commits(metadata),
        "benchmark": metadata["benchmark"],
        "name": metadata.get("name"),
        "preset": metadata["preset"],
        "prompts": of_file if Path(prompt_set["file"]).is_file() else prompt_set["variant"],
        "data": OWN_SAMPLES if source["found"] == FOUND_SAMPLES else source["folder"],
        "partial": True,  # the same tasks are left out
    }


def _at_commits(metadata: Mapping[str, Any]) -> dict[str, str | None]:
    """Name the models of a run; those of the Hub with the commits at which they were asked."""
    recorded, base = metadata["asked"], metadata["model"].get("base") or {}
    if not recorded.get("base") and not hub.COMMIT.fullmatch(base.get("revision", "")):
        base = {}  # the adapter names it
    models = {
        "model": (recorded["model"], metadata["model"]),
        "judge": (recorded["judge"], metadata["judge"] or {}),
        "base": (recorded.get("base") or base.get("id"), base),
    }
    return {
        role: name and hub.at_commit(name, described.get("revision"))
        for role, (name, described) in models.items()
    }


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Describe the entries that differ, by name, for example `--seed was 1, now 2`."""
    return {
        name: f"{name} was {_written(old.get(name))}, now {_written(new.get(name))}"
        for name in {**new, **old}
        if old.get(name) != new.get(name)
    }


def _written(value: Any) -> str:
    """Write a value as in the command."""
    if value is None:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def finished_run(plan: Plan, partial: bool) -> dict[str, Any]:
    """Return the `run.json` of a run that needs no more answers; {} if there is none."""
    metadata = existing_run(plan)
    if not metadata or (metadata["skipped"] and not partial):
        return {}
    has_new_judge = plan.asked["judge"] and not metadata["asked"]["judge"]
    if has_new_judge or not records.is_complete(plan.folder):
        return {}
    if has_endpoint(metadata) and broken(records.read(plan.folder, prompts=False)).any():
        return {}
    if not display(plan).items() <= metadata.items():
        metadata |= display(plan)
        # A run can also be scored on a disk that cannot be written.
        with suppress(BadInput, RunFailed), records.run_lock(plan.folder):
            records.write_run_json(plan.folder, {**existing_run(plan), **display(plan)})
    return metadata


def begin(plan: Plan, models: Respondents, partial: bool) -> tuple[dict[str, Any], Requests]:
    """Begin a run, or continue one, perhaps with a new judge: write `run.json` and the items."""
    metadata = existing_run(plan)
    is_new = not metadata
    new_roles = [role for role in models.roles if not metadata.get(role)]
    if new_roles:
        metadata |= {"benchmark": plan.benchmark.name, "asked": plan.asked}
        metadata["identity"] = plan.identity
    for role in new_roles:
        metadata |= entries(role, models[role])
    requests = make_requests(plan, metadata, partial)
    notes = [f"task {task} is left out: {why}" for task, why in requests.skipped.items()]
    if new_roles:
        metadata["requests"] = requests.total
    if is_new:
        metadata |= conditions(plan, requests, models["model"])
        notes += [probe_failed(metadata), prompt_language_warning(metadata)]
    metadata |= display(plan)
    before = metadata.get("files", {}).get(records.ITEMS)
    records.write_items(plan.folder, metadata, frame(requests.items))
    if before not in (None, metadata["files"][records.ITEMS]):
        notes.append(f"{records.ITEMS}: was of an earlier version; it is written anew")
    for note in filter(None, notes):
        say(f"{plan.title}: {note}")
    return metadata, requests


def has_endpoint(metadata: Mapping[str, Any]) -> bool:
    return any("url" in (metadata[role] or {}) for role in ("model", "judge"))


def broken(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return which answers of an endpoint came back broken, so that we ask it again."""
    return rows.error.str.startswith(BROKEN_ANSWER)


def entries(role: str, scorer: Model) -> dict[str, Any]:
    """Return the entries about the model or the judge of a run."""
    described = _described(scorer)
    if role == "model":
        return {**abilities_of(scorer), "model": described, "judge": None}
    request_types = list(scorer.request_types)
    return {"judge": {**described, "decoding": "greedy"}, "judge_request_types": request_types}


def _described(scorer: Model) -> dict[str, Any]:
    """Describe a model as `run.json` will hold it; its code can return any values."""
    text = json.dumps(scorer.describe(), ensure_ascii=False, default=str)
    return json.loads(whole_characters(text))


def display(plan: Plan) -> dict[str, Any]:
    """Return the entries that a user can change when opening a run again."""
    name = plan.config.name
    return {"preset": plan.config.preset, **({"name": name} if name else {})}


def conditions(plan: Plan, requests: Requests, model: Model) -> dict[str, Any]:
    """Return the other entries of a new run; raise BadInput if a file lacks an answer."""
    prompt_set = plan.prompt_set
    every_request = [request for stage in requests.stages for request in stage]
    model.cover(every_request)
    of_model = [request for request in every_request if not request.of_judge]
    languages = dict.fromkeys(r.category for r in of_model if r.request_type == "classify")
    # Some requests of a prompt set can come from another set.
    prompted = dict.fromkeys(r.category for r in of_model if r.prompt_version == prompt_set.label)
    return {
        "answer_mode": {task: mode.name for task, mode in requests.answer_modes.items()},
        "skipped": requests.skipped,
        **requests.effects,
        "probe": model.probe(list(languages)) if languages else [],
        "folder": str(Path.cwd()),  # the start of relative paths
        "data": plan.source.describe(),
        "prompts": {
            "version": prompt_set.version,
            "variant": prompt_set.variant,
            "source": prompt_set.source,
            "language": ", ".join(prompt_set.languages),
            "foreign": prompts.foreign(
                plan.benchmark, prompt_set, plan.source.language, list(prompted)
            ),
            "file": str(prompt_set.path.resolve()),
            "unbiased_instruction": prompt_set.unbiased_instruction,
        },
        "packages": packages(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def add_late_conditions(plan: Plan, metadata: dict[str, Any], scorers: Mapping[str, Model]) -> None:
    """Add conditions that we know only after asking, such as the model behind an endpoint."""
    for role, scorer in scorers.items():
        entry, described = metadata[role], _described(scorer)
        asked_with = {**entry.get("asked_with", {}), **described.get("asked_with", {})}
        if asked_with:
            entry["asked_with"] = asked_with
        if role == "judge" and {"temperature", "temperature=0"} & asked_with.keys():
            entry["decoding"] = "the server's own"
        entry |= {name: described[name] for name in WHO_ANSWERED if name in described}
    records.write_run_json(plan.folder, metadata)


def other_scorer(before: Mapping[str, Any], scorer: Model) -> str:
    """Pass the recorded conditions on to a model, and describe a difference; "" if none."""
    scorer.resume(before)
    old, new = _identified(before), _identified(_described(scorer))
    # Older runs recorded fewer entries.
    return next(iter(differences(old, {name: new.get(name) for name in old}).values()), "")


def _identified(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that identify a model; files are identified by their hash alone."""
    entries = {name: described[name] for name in IDENTITY if name in described}
    if base := described.get("base"):
        entries["base"] = _identified(base)
    if str(entries.get("revision")).startswith(hub.HASH):
        entries.pop("id", None)
    return entries


@cache
def packages() -> dict[str, str]:
    """Return the versions of this package, Python, and packages that numbers depend on."""
    versions = {"bias-workbench": __version__, "python": platform.python_version()}
    return versions | {name: version(name) for name in PACKAGES}
