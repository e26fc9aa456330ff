"""Plan a run: its items, its prompt set, the requests made of both, its models and its folder."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import pandas as pd

from bench import data, scorers, tasks
from bench.benchmarks.base import Benchmark
from bench.config import Generation, RunConfig
from bench.core import default_folders
from bench.core.errors import BadInput, NotApplicable
from bench.runs import records
from bench.scorers import Loaded, Model
from bench.scorers.base import digest
from bench.scorers.budget import budgets_of
from bench.scorers.endpoint import keys as key_names
from bench.scorers.names import path_slug
from bench.tasks import prompts
from bench.tasks.nli_labels import label_order
from bench.tasks.request import AnswerMode, Request

NO_JUDGE = "it needs a judge; give --judge MODEL"
# Options that decide the requests and the answers.
ASKED = {"model", "judge", "as_model", "as_judge", "base", "dtype", "settings", "tasks"}
ASKED |= {"categories", "limit", "repeats", "seed", "answer_mode", "max_new_tokens"}


class Abilities(NamedTuple):
    """The request types and answer modes of a model, the best first, and those of its judge.

    Attributes:
        unsupported: reasons why the model lacks a request type.
    """

    request_types: Sequence[str]
    answer_modes: Sequence[str]
    judge_request_types: Sequence[str]
    unsupported: Mapping[str, str]

    @classmethod
    def of(cls, model: type[Model] | Model, judge: type[Model] | Model | None = None) -> Self:
        of_judge = judge.request_types if judge else ()
        unsupported = getattr(model, "unsupported", {})
        return cls(model.request_types, model.answer_modes, of_judge, unsupported)

    @classmethod
    def recorded(cls, metadata: Mapping[str, Any]) -> Self:
        """Read the abilities in a `run.json`."""
        return cls(
            metadata["request_types"],
            metadata["answer_modes"],
            metadata["judge_request_types"],
            metadata["model"].get("unsupported", {}),
        )


class Requests(NamedTuple):
    """All requests of a run in stages, the answer mode of each task, and why tasks are skipped."""

    stages: list[list[Request]]
    answer_modes: dict[str, AnswerMode]
    skipped: dict[str, str]

    @property
    def total(self) -> int:
        return sum(map(len, self.stages))


class Choice(NamedTuple):
    """The items of each task, and numbers of excluded and of modified items by reason."""

    items: dict[str, list[Any]]
    by_id: dict[str, Any]
    excluded: list[dict[str, Any]]
    modified: list[dict[str, Any]]


class Plan:
    """The options, data and prompts of a run; its items are read when they are first needed.

    Attributes:
        config: its options, with every setting of the benchmark.
        asked: what decides the requests and the answers, as `run.json` keeps it.
        identity: a hash of this. Two runs with one identity are the same run.
        title: the benchmark and the model, for messages.
    """

    def __init__(
        self, benchmark: Benchmark, config: RunConfig, before: Mapping[str, Any] | None = None
    ) -> None:
        """Plan a run.

        Args:
            before: the `run.json` of the run that this one continues. It keeps the settings and the
                limit of tokens of that run; another preset changes only its scores.
        """
        _check(config)
        recorded = before["asked"] if before and before["benchmark"] == benchmark.name else {}
        given = {**recorded.get("settings", {}), **(config.settings or {})}
        settings = tasks.settings(benchmark, given, config.preset)
        names = tasks.chosen(benchmark, config.tasks)
        is_judged = any(benchmark.tasks[task].judged(settings) for task in names)
        self.benchmark = benchmark
        self.source = data.find(benchmark, config.data)
        self.prompt_set = prompts.load(benchmark, config.prompts, self.source.folder)
        limit = config.max_new_tokens
        if limit is None and recorded:
            limit = recorded.get("max_new_tokens")
        elif limit is None and config.preset == "official":
            # Replies have the limit of the released script.
            limit = benchmark.metadata.release.reply_limit(self.prompt_set.label)
        updates = {
            "benchmark": benchmark.name,
            "judge": config.judge if is_judged else None,
            "as_judge": config.as_judge if is_judged else None,
            "settings": settings,
            "max_new_tokens": limit,
        }
        self.config = config.model_copy(update=updates)
        self.asked = self._asked(names)
        self.identity = records.identity(benchmark.name, self.asked)
        name = config.as_model or config.model
        self.title = f"{benchmark.name}, {name}"
        if not config.as_model and records.file_hash(self.asked, "model"):
            kind, path = scorers.split_kind(name)
            # Its runs are in one folder, however its path is written.
            name = f"{kind}:{Path(path).expanduser().resolve().name}"
        runs = default_folders.runs() / path_slug(name)
        self.folder = Path(config.out or runs / f"{benchmark.name}-{self.identity[:8]}")

    def _asked(self, task_names: Sequence[str]) -> dict[str, Any]:
        """Return what decides the requests and the answers."""
        config = self.config
        models = {"model": config.model, "judge": config.judge, "base": config.base}
        return {
            **config.model_dump(include=ASKED, mode="json"),
            "tasks": list(task_names),
            "label_names": list(label_order(config.labels_of(config.model))),
            "generation": config.generation.changed(),
            "prompts": self.prompt_set.label,
            # Earlier versions took every k-th item.
            "sample": "balanced" if config.limit else None,
            "data_sha256": self.source.sha256,
            "prompts_hash": digest(self.prompt_set.tables),
            **{
                f"{role}_content": model and scorers.content(model)
                for role, model in models.items()
            },
        }

    @property
    def entries(self) -> dict[str, Any]:
        """The entries of `run.json` that say which run this is."""
        return {"benchmark": self.benchmark.name, "asked": self.asked, "identity": self.identity}

    @cached_property
    def loaded(self) -> data.Loaded:
        """All items of the categories, and the effects of settings on them."""
        of_data = tasks.of_data(self.benchmark, self.asked["settings"])
        return data.read(self.source, self.config.categories, **of_data)

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks that the user named, or else those that the data have items of."""
        names: list[str] = self.asked["tasks"]
        if self.config.tasks:
            return names
        has_items = {
            name: any(map(self.benchmark.tasks[name].applies, self.loaded.items)) for name in names
        }
        return [name for name in names if has_items[name]]

    @cached_property
    def choice(self) -> Choice:
        """The items of this run, at most `limit` of each category and task."""
        parts = defaultdict[tuple[str, str], list[Any]](list)
        excluded, modified = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
        for name in self.tasks:
            task = self.benchmark.tasks[name]
            for item in filter(task.applies, self.loaded.items):
                if reason := task.excluded(item):
                    excluded[item.category, name, reason] += 1
                else:
                    parts[name, item.category].append(item)
        for effect in self.loaded.effects:
            counts = excluded if effect.is_excluded else modified
            for name in self.tasks:
                if effect.task in ("", name):
                    counts[effect.category, name, effect.what] += effect.rows
        taken: dict[str, list[Any]] = {name: [] for name in self.tasks}
        for (name, _category), items in parts.items():
            taken[name] += data.balanced_sample(items, self.config.limit)
        used = {id(item) for chosen in taken.values() for item in chosen}
        by_id = {item.item_id: item for item in self.loaded.items if id(item) in used}
        of_run_json = (
            [{"category": c, "task": task, "why": why, "items": n} for (c, task, why), n in counts]
            for counts in (excluded.items(), modified.items())
        )
        return Choice(taken, by_id, *of_run_json)

    @cached_property
    def items(self) -> pd.DataFrame:
        """The items of this run as a table."""
        return data.frame(list(self.choice.by_id.values()))

    def requests(self, abilities: Abilities, partial: bool) -> Requests:
        """Make all requests, stage by stage, repeat by repeat, task by task.

        Without a judge, we skip the tasks that need one, unless the user named them; if `partial`,
        also the tasks that this model does not support.
        """
        asked = self.asked
        answer_modes: dict[str, AnswerMode] = {}
        skipped: dict[str, str] = {}
        refused: list[str] = []
        for task in self.tasks:
            types, modes = abilities.request_types, abilities.answer_modes
            mode = tasks.answer_mode(self.benchmark.tasks[task], asked["answer_mode"], types, modes)
            unsupported = self._unsupported(task, mode, abilities)
            if reason := unsupported or self._ungraded(task, abilities.judge_request_types):
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
        limit, seed = asked["max_new_tokens"], asked["seed"]
        requests = [
            replace(r, repeat=k, seed=seed + k, max_new_tokens=limit or r.max_new_tokens)
            for k in range(asked["repeats"])
            for task, mode in answer_modes.items()
            for r in self._of_task(task, mode, seed + k)
            if asked["judge"] or not r.of_judge
        ]
        if not requests:
            raise BadInput(
                f"{self.source.folder}: leaves nothing to ask for tasks {', '.join(self.tasks)}; "
                "choose other --tasks or --categories"
            )
        return Requests(_stages(requests), answer_modes, skipped)

    def _of_task(
        self, task: str, mode: AnswerMode, seed: int, n: int | None = None
    ) -> Iterator[Request]:
        """Make the requests about the first `n` items of a task, by default about all."""
        items, settings = self.choice.items[task][:n], self.asked["settings"]
        return self.benchmark.requests(items, self.prompt_set, task, mode, settings, seed)

    def _unsupported(self, task: str, mode: AnswerMode | None, abilities: Abilities) -> str:
        """Return the reason why the model does not support a task; "" if it does."""
        if mode:
            first = self._of_task(task, mode, 0, n=1)
            needed = {request.request_type for request in first if not request.of_judge}
            if needed <= {*abilities.request_types}:
                return ""
        chosen = self.asked["answer_mode"]
        by_mode = f"read as {chosen}, " if chosen else ""
        request_types = self.benchmark.tasks[task].request_types_for(chosen)
        reasons = [text for name, text in abilities.unsupported.items() if name in request_types]
        has = f"{by_mode}the model has {', '.join(abilities.request_types)}"
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
    """The loaded models of a run by role; looking up `model` or `judge` loads it.

    Attributes:
        roles: `model`, and `judge` if the run has one.
    """

    def __init__(self, config: RunConfig, loaded: Loaded | None = None) -> None:
        super().__init__()
        self._loaded = loaded or Loaded()
        names = ["device", "dtype", "batch_tokens", "trust_remote_code", "scheduler", "resources"]
        shared = {name: getattr(config, name) for name in names}
        # The judge shares the budgets.
        shared["limits"] = config.limits.model_copy(update={"budgets": budgets_of(config.limits)})
        shared["keys"] = key_names.of_run([config.model], config.model, config.judge, config.keys)
        of_model = {
            "label_names": list(config.labels_of(config.model) or ()),
            "base": config.base,
            "as_model": config.as_model,
            "generation": config.generation.changed(),
        }
        self.roles = {"model": (config.model, {**shared, **of_model})}
        if config.judge:
            # We give the judge the same thinking budget, and no other option of generation.
            thinking = config.thinking_tokens if scorers.writes_replies(config.judge) else None
            generation = Generation(thinking_tokens=thinking).changed()
            own = {"as_model": config.as_judge, "generation": generation}
            is_model = config.judge == config.model and own.items() <= of_model.items()
            self.roles["judge"] = (
                self.roles["model"] if is_model else (config.judge, {**shared, **own})
            )

    def __missing__(self, role: str) -> Model:
        model, options = self.roles[role]
        if role == "judge" and self.roles["model"] is self.roles["judge"]:
            self[role] = self["model"]  # load a model that judges itself once
        else:
            self[role] = self._loaded.load(role, model, **options)
        return self[role]


def _check(config: RunConfig) -> None:
    """Refuse unknown models, and options that do not fit together."""
    for role, model in (("model", config.model), ("judge", config.judge)):
        if model:
            # Workers of a cluster load their own files.
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
    """Split requests so that each needs replies of earlier stages only; a stage has one role."""
    after = {(request.task, request.request): request.after for request in requests}

    def depth(task: str, name: str) -> int:
        return 1 + depth(task, after[task, name]) if after[task, name] else 0

    stages: dict[tuple[int, bool], list[Request]] = {}
    for request in requests:
        place = depth(request.task, request.request), request.of_judge
        stages.setdefault(place, []).append(request)
    return [stages[place] for place in sorted(stages)]
