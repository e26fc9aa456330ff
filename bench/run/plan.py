"""Plan a run: its items, prompts, requests, models and folder."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bench import data, scorers, tasks
from bench.benchmarks.base import Benchmark
from bench.config import Generation, RunConfig
from bench.core import default_folders
from bench.core.errors import BadInput, NotApplicable
from bench.runs import records, schema
from bench.scorers import Loaded, Model
from bench.scorers.base import digest
from bench.scorers.endpoint import keys as key_names
from bench.scorers.names import path_slug
from bench.tasks import prompts
from bench.tasks.nli_labels import label_order
from bench.tasks.request import AnswerMode, Request

NO_JUDGE = "it needs a judge; give --judge MODEL"
# Options that decide the requests and the answers.
ASKED = {"model", "judge", "as_model", "as_judge", "base", "dtype", "settings", "tasks"}
ASKED |= {"categories", "limit", "repeats", "seed", "answer_mode", "max_new_tokens"}


def abilities_of(
    model: type[Model] | Model, judge: type[Model] | Model | None = None
) -> dict[str, Any]:
    """Return the request types and answer modes of a model and its judge, as `run.json` has them.

    The best come first. `unsupported` has reasons why the model lacks a request type.
    """
    return {
        "request_types": list(model.request_types),
        "answer_modes": list(model.answer_modes),
        "model": {"unsupported": getattr(model, "unsupported", {})},
        "judge_request_types": list(judge.request_types) if judge else [],
    }


class Requests(NamedTuple):
    """The requests of a run by stage, and the items that they are about.

    Attributes:
        answer_modes: of each task.
        skipped: the reason why a task is left out.
        effects: the numbers of `excluded` and of `modified` items, as `run.json` has them.
    """

    stages: list[list[Request]]
    items: list[Any]
    answer_modes: dict[str, AnswerMode]
    skipped: dict[str, str]
    effects: dict[str, list[dict[str, Any]]]

    @property
    def total(self) -> int:
        return sum(map(len, self.stages))


@dataclass(frozen=True)
class Plan:
    """The options, data and prompts of a run, whose items are not read yet.

    Attributes:
        config: its options, with every setting of the benchmark.
        asked: what decides the requests and the answers, as `run.json` keeps it.
        identity: a hash of this. Two runs with one identity are the same run.
        title: the benchmark and the model, for messages.
    """

    benchmark: Benchmark
    config: RunConfig
    source: data.Source
    prompt_set: prompts.PromptSet
    asked: dict[str, Any]
    identity: str
    title: str
    folder: Path


def plan_run(benchmark: Benchmark, config: RunConfig) -> Plan:
    """Plan a run: check its options, find its data and prompts, and name its folder."""
    _check(config)
    # A run that continues keeps its settings and its limit of tokens, whatever the preset.
    before = records.run_json_in(Path(config.out)) if config.out else {}
    recorded = before["asked"] if before.get("benchmark") == benchmark.name else {}
    chosen = {**recorded.get("settings", {}), **(config.settings or {})}
    settings = tasks.settings(benchmark, chosen, config.preset)
    names = tasks.chosen(benchmark, config.tasks)
    source = data.find(benchmark, config.data)
    prompt_set = prompts.load(benchmark, config.prompts, source.folder)
    limit = config.max_new_tokens or recorded.get("max_new_tokens")
    if not limit and not recorded and config.preset == "official":
        # This preset takes the limit of the released script.
        limit = benchmark.metadata.release.reply_limit(prompt_set.label)
    updates = {"benchmark": benchmark.name, "settings": settings, "max_new_tokens": limit}
    if not any(benchmark.tasks[task].judged(settings) for task in names):
        updates |= {"judge": None, "as_judge": None}
    config = config.model_copy(update=updates)
    models = {"model": config.model, "judge": config.judge, "base": config.base}
    asked: dict[str, Any] = {
        **config.model_dump(include=ASKED, mode="json"),
        "tasks": names,
        "label_names": list(label_order(config.labels_of(config.model))),
        "generation": config.generation.changed(),
        "prompts": prompt_set.label,
        # Earlier versions took every k-th item.
        "sample": "balanced" if config.limit else None,
        "data_sha256": source.sha256,
        "prompts_hash": digest(prompt_set.tables),
    }
    for role, model in models.items():
        asked[f"{role}_content"] = scorers.content(model) if model else None
    identity = schema.identity(benchmark.name, asked)
    name = config.as_model or config.model
    title = f"{benchmark.name}, {name}"
    if not config.as_model and schema.file_hash(asked, "model"):
        kind, path = scorers.split_kind(name)
        # However the path is written, the runs are in one folder.
        name = f"{kind}:{Path(path).expanduser().resolve().name}"
    runs = default_folders.runs() / path_slug(name)
    folder = Path(config.out or runs / f"{benchmark.name}-{identity[:8]}")
    return Plan(benchmark, config, source, prompt_set, asked, identity, title, folder)


def make_requests(plan: Plan, abilities: Mapping[str, Any], partial: bool) -> Requests:
    """Read the items, and make all requests, stage by stage, repeat by repeat, task by task.

    Without a judge, we skip the tasks that need one, unless the user named them; if `partial`,
    also the tasks that this model does not support.

    Args:
        abilities: of model and judge, see `abilities_of`; or the `run.json` with them.
    """
    benchmark, asked = plan.benchmark, plan.asked
    items, items_by_task, effects = _sampled(plan)
    answer_modes: dict[str, AnswerMode] = {}
    skipped: dict[str, str] = {}
    refused: list[str] = []
    for name, of_task in items_by_task.items():
        types, modes = abilities["request_types"], abilities["answer_modes"]
        mode = tasks.answer_mode(benchmark.tasks[name], asked["answer_mode"], types, modes)
        unsupported = _unsupported(plan, name, of_task[:1], mode, abilities)
        if reason := unsupported or _ungraded(plan, name, abilities["judge_request_types"]):
            skipped[name] = reason
            refused += [name] if not partial and (unsupported or plan.config.tasks) else []
        elif mode:
            answer_modes[name] = mode
    if refused or not answer_modes:
        refused = refused or list(skipped)
        problem = (
            f"task {', '.join(refused)} of {benchmark.name} ({skipped[refused[0]]}); "
            f"tasks that remain: {', '.join(answer_modes) or 'none'}"
        )
        if all(skipped[name].startswith(NO_JUDGE) for name in refused):
            raise BadInput(f"cannot ask {problem}")
        raise NotApplicable(f"model {asked['model']}: cannot do {problem}")
    limit, seed, settings = (asked[k] for k in ("max_new_tokens", "seed", "settings"))
    requests = [
        replace(r, repeat=k, seed=seed + k, max_new_tokens=limit or r.max_new_tokens)
        for k in range(asked["repeats"])
        for name, mode in answer_modes.items()
        for r in benchmark.requests(
            items_by_task[name], plan.prompt_set, name, mode, settings, seed + k
        )
        if asked["judge"] or not r.of_judge
    ]
    if not requests:
        raise BadInput(
            f"{plan.source.folder}: leaves nothing to ask for tasks {', '.join(items_by_task)}; "
            "choose other --tasks or --categories"
        )
    return Requests(_stages(requests), items, answer_modes, skipped, effects)


def _sampled(
    plan: Plan,
) -> tuple[list[Any], dict[str, list[Any]], dict[str, list[dict[str, Any]]]]:
    """Read the items; return those of this run, those of each task, and the effects of settings."""
    benchmark = plan.benchmark
    of_data = tasks.of_data(benchmark, plan.asked["settings"])
    items, of_settings = data.read(plan.source, plan.config.categories, **of_data)
    counts = Counter[tuple[str, ...]]()
    # The tasks that the user named, otherwise those for which the data have items.
    items_by_task: dict[str, list[Any]] = {}
    for name in plan.asked["tasks"]:
        task = benchmark.tasks[name]
        applicable = list(filter(task.applies, items))
        by_category = defaultdict[str, list[Any]](list)
        for item in applicable:
            if reason := task.excluded(item):
                counts["excluded", item.category, name, reason] += 1
            else:
                by_category[item.category].append(item)
        if applicable or plan.config.tasks:
            samples = (data.balanced_sample(k, plan.config.limit) for k in by_category.values())
            items_by_task[name] = list(chain.from_iterable(samples))
    for effect in of_settings:
        state = "excluded" if effect.is_excluded else "modified"
        for name in items_by_task:
            if effect.task in ("", name):
                counts[state, effect.category, name, effect.what] += effect.rows
    effects: dict[str, list[dict[str, Any]]] = {"excluded": [], "modified": []}
    for (state, category, name, why), n in counts.items():
        effects[state].append({"category": category, "task": name, "why": why, "items": n})
    used = {id(item) for item in chain.from_iterable(items_by_task.values())}
    return [item for item in items if id(item) in used], items_by_task, effects


def _unsupported(
    plan: Plan, task: str, items: list[Any], mode: AnswerMode | None, abilities: Mapping[str, Any]
) -> str:
    """Return the reason why the model does not support a task; "" if it does."""
    if mode:
        settings = plan.asked["settings"]
        first = plan.benchmark.requests(items, plan.prompt_set, task, mode, settings, 0)
        needed = {request.request_type for request in first if not request.of_judge}
        if needed <= {*abilities["request_types"]}:
            return ""
    chosen = plan.asked["answer_mode"]
    by_mode = f"read as {chosen}, " if chosen else ""
    request_types = plan.benchmark.tasks[task].request_types_for(chosen)
    unsupported = abilities["model"].get("unsupported", {})
    reasons = [text for name, text in unsupported.items() if name in request_types]
    return "; ".join([f"{by_mode}the model has {', '.join(abilities['request_types'])}", *reasons])


def _ungraded(plan: Plan, task: str, judge_request_types: Sequence[str]) -> str:
    """Return the reason why a task that needs a judge has none; "" if it needs none."""
    settings, judge = plan.asked["settings"], plan.asked["judge"]
    judged = plan.benchmark.tasks[task].judged(settings)
    if "generate" in judge_request_types or not (judged == "needed" or (judged and judge)):
        return ""
    if judge:
        return f"judge {judge} has {', '.join(judge_request_types)}"
    return NO_JUDGE + "".join(
        f", or --set {name}={setting.allowed[0]}"
        for name, setting in plan.benchmark.settings.items()
        if setting.task == task and settings[name] == "judge"
    )


class Respondents(dict[str, Model]):
    """The models of a run by role, `model` or `judge`, each loaded when it is first looked up.

    Attributes:
        roles: the name and the options of each model.
    """

    def __init__(self, config: RunConfig, loaded: Loaded | None = None) -> None:
        super().__init__()
        self._loaded = loaded or Loaded()
        names = {"device", "dtype", "batch_tokens", "trust_remote_code", "scheduler", "resources"}
        shared = config.model_dump(include=names)
        # The judge shares the budgets.
        shared["limits"] = config.limits.model_copy(update={"budgets": config.limits.shared()})
        shared["keys"] = key_names.of_run([config.model], config.model, config.judge, config.keys)
        of_model = {
            "label_names": list(config.labels_of(config.model) or ()),
            "base": config.base,
            "as_model": config.as_model,
            "generation": config.generation.changed(),
        }
        self.roles = {"model": (config.model, {**shared, **of_model})}
        if config.judge:
            # Of the options of generation, the judge gets only the limit of a thought.
            thinking = config.thinking_tokens if scorers.writes_replies(config.judge) else None
            generation = Generation(thinking_tokens=thinking).changed()
            of_judge = {"as_model": config.as_judge, "generation": generation}
            self.roles["judge"] = (config.judge, {**shared, **of_judge})
            # A model that judges itself is loaded once.
            if config.judge == config.model and of_judge.items() <= of_model.items():
                self.roles["judge"] = self.roles["model"]

    def __missing__(self, role: str) -> Model:
        model, options = self.roles[role]
        is_model = role == "judge" and self.roles["judge"] is self.roles["model"]
        self[role] = self["model"] if is_model else self._loaded.load(role, model, **options)
        return self[role]


def _check(config: RunConfig) -> None:
    """Refuse unknown models, and options that do not fit together."""
    for role, model in (("model", config.model), ("judge", config.judge)):
        if model:
            # The workers of a cluster have files of their own.
            scorers.check(model, elsewhere=bool(config.scheduler))
        takes = scorers.backend_of(model or "").takes
        if getattr(config, f"as_{role}") and "as_model" not in takes:
            raise BadInput(f"--as-{role}: is for --{role} replay:FILE alone; leave it out")
    if config.keys:
        key_names.check(config.keys, [config.model, config.judge])
    if config.resources and not config.scheduler:
        raise BadInput(
            "--resources: says what workers of a cluster have to offer; give --scheduler too"
        )


def _stages(requests: Sequence[Request]) -> list[list[Request]]:
    """Split requests into stages that need only replies of earlier stages; each asks one role."""
    after = {(request.task, request.request): request.after for request in requests}

    def depth(task: str, name: str) -> int:
        return 1 + depth(task, after[task, name]) if after[task, name] else 0

    stages: dict[tuple[int, bool], list[Request]] = {}
    for request in requests:
        key = depth(request.task, request.request), request.of_judge
        stages.setdefault(key, []).append(request)
    return [stages[key] for key in sorted(stages)]
