"""Plan a run: its items, prompts, requests, models and folder."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import data, scorers, tasks
from bench.benchmarks.base import Benchmark
from bench.config import Generation, RunConfig
from bench.core import default_folders
from bench.core.errors import BadInput, NotApplicable
from bench.runs import records
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
        "request_types": model.request_types,
        "answer_modes": model.answer_modes,
        "model": {"unsupported": getattr(model, "unsupported", {})},
        "judge_request_types": judge.request_types if judge else (),
    }


class Requests(NamedTuple):
    """The requests of a run by stage, the answer mode of each task, and why tasks are skipped."""

    stages: list[list[Request]]
    answer_modes: dict[str, AnswerMode]
    skipped: dict[str, str]

    @property
    def total(self) -> int:
        return sum(map(len, self.stages))


class Plan:
    """The options, data and prompts of a run; the items are read when they are first needed.

    Attributes:
        config: its options, with every setting of the benchmark.
        asked: what decides the requests and the answers, as `run.json` keeps it.
        identity: a hash of this. Two runs with one identity are the same run.
        title: the benchmark and the model, for messages.
    """

    def __init__(self, benchmark: Benchmark, config: RunConfig) -> None:
        _check(config)
        # A run that continues keeps its settings and its limit of tokens, whatever the preset.
        before = records.run_json_in(Path(config.out)) if config.out else {}
        recorded = before["asked"] if before.get("benchmark") == benchmark.name else {}
        chosen = {**recorded.get("settings", {}), **(config.settings or {})}
        settings = tasks.settings(benchmark, chosen, config.preset)
        names = tasks.chosen(benchmark, config.tasks)
        is_judged = any(benchmark.tasks[task].judged(settings) for task in names)
        self.benchmark = benchmark
        self.source = data.find(benchmark, config.data)
        self.prompt_set = prompts.load(benchmark, config.prompts, self.source.folder)
        limit = config.max_new_tokens or recorded.get("max_new_tokens")
        if not limit and not recorded and config.preset == "official":
            # This preset takes the limit of the released script.
            limit = benchmark.metadata.release.reply_limit(self.prompt_set.label)
        updates: dict[str, Any] = {"benchmark": benchmark.name, "settings": settings}
        updates["max_new_tokens"] = limit
        if not is_judged:
            updates |= {"judge": None, "as_judge": None}
        self.config = config = config.model_copy(update=updates)
        models = {"model": config.model, "judge": config.judge, "base": config.base}
        self.asked: dict[str, Any] = {
            **config.model_dump(include=ASKED, mode="json"),
            "tasks": names,
            "label_names": list(label_order(config.labels_of(config.model))),
            "generation": config.generation.changed(),
            "prompts": self.prompt_set.label,
            # Earlier versions took every k-th item.
            "sample": "balanced" if config.limit else None,
            "data_sha256": self.source.sha256,
            "prompts_hash": digest(self.prompt_set.tables),
        }
        for role, model in models.items():
            self.asked[f"{role}_content"] = scorers.content(model) if model else None
        self.identity = records.identity(benchmark.name, self.asked)
        name = config.as_model or config.model
        self.title = f"{benchmark.name}, {name}"
        if not config.as_model and records.file_hash(self.asked, "model"):
            kind, path = scorers.split_kind(name)
            # However the path is written, the runs are in one folder.
            name = f"{kind}:{Path(path).expanduser().resolve().name}"
        runs = default_folders.runs() / path_slug(name)
        self.folder = Path(config.out or runs / f"{benchmark.name}-{self.identity[:8]}")

    @cached_property
    def loaded(self) -> data.Loaded:
        """All items of the categories, and the effects of settings on them."""
        of_data = tasks.of_data(self.benchmark, self.asked["settings"])
        return data.read(self.source, self.config.categories, **of_data)

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks that the user named, otherwise those for which the data have items."""
        names: list[str] = self.asked["tasks"]
        if self.config.tasks:
            return names
        of_benchmark = self.benchmark.tasks
        return [name for name in names if any(map(of_benchmark[name].applies, self.loaded.items))]

    @cached_property
    def items_by_task(self) -> dict[str, list[Any]]:
        """The items of each task: at most `limit` of each category."""
        sampled: dict[str, list[Any]] = {}
        for name in self.tasks:
            task = self.benchmark.tasks[name]
            by_category = defaultdict[str, list[Any]](list)
            for item in filter(task.applies, self.loaded.items):
                if not task.excluded(item):
                    by_category[item.category].append(item)
            samples = (data.balanced_sample(k, self.config.limit) for k in by_category.values())
            sampled[name] = list(chain.from_iterable(samples))
        return sampled

    @cached_property
    def items(self) -> pd.DataFrame:
        """The items of this run as a table."""
        used = {id(item) for item in chain.from_iterable(self.items_by_task.values())}
        return data.frame([item for item in self.loaded.items if id(item) in used])

    def effects(self, *, are_excluded: bool) -> list[dict[str, Any]]:
        """Count the excluded, or else the modified, items by category, task and reason."""
        counts = Counter[tuple[str, str, str]]()
        for name in self.tasks if are_excluded else ():
            task = self.benchmark.tasks[name]
            for item in filter(task.applies, self.loaded.items):
                if reason := task.excluded(item):
                    counts[item.category, name, reason] += 1
        for effect in self.loaded.effects:
            for name in self.tasks:
                if effect.is_excluded == are_excluded and effect.task in ("", name):
                    counts[effect.category, name, effect.what] += effect.rows
        names = ("category", "task", "why")
        return [{**dict(zip(names, key, strict=True)), "items": n} for key, n in counts.items()]

    def requests(self, abilities: Mapping[str, Any], partial: bool) -> Requests:
        """Make all requests, stage by stage, repeat by repeat, task by task.

        Without a judge, we skip the tasks that need one, unless the user named them; if `partial`,
        also the tasks that this model does not support.

        Args:
            abilities: of model and judge, see `abilities_of`; or the `run.json` with them.
        """
        asked = self.asked
        answer_modes: dict[str, AnswerMode] = {}
        skipped: dict[str, str] = {}
        refused: list[str] = []
        for task in self.tasks:
            types, modes = abilities["request_types"], abilities["answer_modes"]
            mode = tasks.answer_mode(self.benchmark.tasks[task], asked["answer_mode"], types, modes)
            unsupported = self._unsupported(task, mode, abilities)
            if reason := unsupported or self._ungraded(task, abilities["judge_request_types"]):
                skipped[task] = reason
                refused += [task] if not partial and (unsupported or self.config.tasks) else []
            elif mode:
                answer_modes[task] = mode
        if refused or not answer_modes:
            refused = refused or list(skipped)
            problem = (
                f"task {', '.join(refused)} of {self.benchmark.name} ({skipped[refused[0]]}); "
                f"tasks that remain: {', '.join(answer_modes) or 'none'}"
            )
            if all(skipped[task].startswith(NO_JUDGE) for task in refused):
                raise BadInput(f"cannot ask {problem}")
            raise NotApplicable(f"model {asked['model']}: cannot do {problem}")
        limit, seed, settings = (asked[k] for k in ("max_new_tokens", "seed", "settings"))
        requests = [
            replace(r, repeat=k, seed=seed + k, max_new_tokens=limit or r.max_new_tokens)
            for k in range(asked["repeats"])
            for task, mode in answer_modes.items()
            for r in self.benchmark.requests(
                self.items_by_task[task], self.prompt_set, task, mode, settings, seed + k
            )
            if asked["judge"] or not r.of_judge
        ]
        if not requests:
            raise BadInput(
                f"{self.source.folder}: leaves nothing to ask for tasks {', '.join(self.tasks)}; "
                "choose other --tasks or --categories"
            )
        return Requests(_stages(requests), answer_modes, skipped)

    def _unsupported(self, task: str, mode: AnswerMode | None, abilities: Mapping[str, Any]) -> str:
        """Return the reason why the model does not support a task; "" if it does."""
        if mode:
            items, settings = self.items_by_task[task][:1], self.asked["settings"]
            first = self.benchmark.requests(items, self.prompt_set, task, mode, settings, 0)
            needed = {request.request_type for request in first if not request.of_judge}
            if needed <= {*abilities["request_types"]}:
                return ""
        chosen = self.asked["answer_mode"]
        by_mode = f"read as {chosen}, " if chosen else ""
        request_types = self.benchmark.tasks[task].request_types_for(chosen)
        unsupported = abilities["model"].get("unsupported", {})
        reasons = [text for name, text in unsupported.items() if name in request_types]
        has = f"{by_mode}the model has {', '.join(abilities['request_types'])}"
        return "; ".join([has, *reasons])

    def _ungraded(self, task: str, judge_request_types: Sequence[str]) -> str:
        """Return the reason why a task that needs a judge has none; "" if it needs none."""
        settings, judge = self.asked["settings"], self.asked["judge"]
        judged = self.benchmark.tasks[task].judged(settings)
        if "generate" in judge_request_types or not (judged == "needed" or (judged and judge)):
            return ""
        if judge:
            return f"judge {judge} has {', '.join(judge_request_types)}"
        return NO_JUDGE + "".join(
            f", or --set {name}={setting.allowed[0]}"
            for name, setting in self.benchmark.settings.items()
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
            raise BadInput(
                f"--as-{role}: names whose answers --{role} replay:FILE holds; leave it out"
            )
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
