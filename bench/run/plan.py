"""Plan a run: its items, its prompt set, the requests made of both, and its folder.

`Plan.options` identify a run: two runs with equal `Plan.options` are the same run.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import data, scorers, tasks
from bench.benchmarks import get
from bench.config import RunConfig
from bench.core import places
from bench.core.errors import BadInput, NotApplicable
from bench.scorers.base import digest
from bench.scorers.endpoint import keys as key_names
from bench.scorers.names import path_slug
from bench.tasks import prompts
from bench.tasks.nli_labels import label_order
from bench.tasks.request import AnswerMode, Request

NO_JUDGE = "it needs a judge; give --judge MODEL"
# Options that identify a run as they are.
IDENTIFYING = ("model", "judge", "settings", "limit", "repeats", "seed", "read", "dtype")


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
        options: the options that identify this run, as `run.json` keeps them under `asked`.
        tasks: the tasks that are asked if the model can do them.
        entries: the same options with the benchmark, for `run.json`.
        title: the benchmark and the model, for messages.
    """

    def __init__(self, config: RunConfig, before: Mapping[str, Any] | None = None) -> None:
        """Plan a run; `before` is the `run.json` of the run that it continues or repeats."""
        self.benchmark = benchmark = get(config.benchmark)
        # We keep the settings of a run that continues; another preset changes only its scores.
        recorded = before["asked"] if before and before["benchmark"] == benchmark.name else {}
        given = {**recorded.get("settings", {}), **(config.settings or {})}
        settings = tasks.settings(benchmark, given, config.preset)
        names = tasks.chosen(benchmark, config.tasks)
        is_judged = any(benchmark.tasks[task].judged(settings) for task in names)
        model = config.model
        _check(config)
        self.source = data.find(benchmark, config.data)
        self.prompt_set = prompts.load(benchmark, config.prompts, self.source.folder)
        # Under `official`, replies have the token limit of the released script.
        released = benchmark.metadata.release.reply_limit(self.prompt_set.label)
        is_official = config.preset == "official"
        if recorded:
            is_official = recorded.get("max_new_tokens") == released
        self.config = config = config.model_copy(
            update={
                "benchmark": benchmark.name,
                "judge": config.judge if is_judged else None,
                "settings": settings,
                "max_new_tokens": config.max_new_tokens or (released if is_official else None),
            }
        )
        judge, base = config.judge, config.base
        # Newer options are in the identity if they are no defaults.
        newer = {
            "as_model": config.as_model,
            "as_judge": config.as_judge if judge else None,
            "label_names": list(label_order(config.labels_of(model))),
            "generation": config.generation.changed(),
            "base": base,
            # Earlier versions took every k-th item.
            "sample": "balanced" if config.limit else None,
        }
        self.options: dict[str, Any] = {
            **{name: getattr(config, name) for name in IDENTIFYING},
            "max_new_tokens": config.max_new_tokens,
            "categories": list(config.categories) if config.categories else None,
            "tasks": names,
            "prompts": self.prompt_set.label,
            "wording_hash": digest(self.prompt_set.tables),
            "data_sha256": self.source.sha256,
            "model_content": scorers.content(model),
            "judge_content": scorers.content(judge) if judge else None,
            **{name: value for name, value in newer.items() if value},
            **({"base_content": scorers.content(base)} if base else {}),
        }
        # If a run has all tasks, its data have them too; then we need not read the items.
        same = ("tasks", "data_sha256", "categories", "settings")
        if not config.tasks and any(self.options[key] != recorded.get(key) for key in same):
            items = self.loaded.items
            names = [task for task in names if any(map(benchmark.tasks[task].applies, items))]
        self.tasks = self.options["tasks"] = names
        self.identity = digest([benchmark.name, self.options])[:8]
        self.entries = {
            "benchmark": benchmark.name,
            "asked": self.options,
            "identity": self.identity,
        }
        name = config.as_model or model
        self.title = f"{benchmark.name}, {name}"
        runs = places.reports() / "runs" / path_slug(name)
        self.folder = Path(config.out) if config.out else runs / f"{benchmark.name}-{self.identity}"

    @cached_property
    def loaded(self) -> data.Loaded:
        """All items of the categories, and the effects of settings on them."""
        of_data = tasks.of_data(self.benchmark, self.options["settings"])
        return data.read(self.source, self.config.categories, **of_data)

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
            counts = excluded if effect.left_out else modified
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

    @property
    def items(self) -> pd.DataFrame:
        """The items of this run as a table."""
        return data.frame(list(self.choice.by_id.values()))

    def requests(self, can: Mapping[str, Any], partial: bool) -> Requests:
        """Make all requests, stage by stage, repeat by repeat, task by task.

        Without a judge, we skip the tasks that need one, unless the user named them.

        Args:
            can: as in `run.json`: `verbs` and `reads` (request types and answer modes, the best
                first), `judge_verbs`, and reasons for unsupported types in `model` (`lacks`).
            partial: skip also the tasks that this model does not support.
        """
        options = self.options
        answer_modes: dict[str, AnswerMode] = {}
        skipped: dict[str, str] = {}
        refused: list[str] = []
        for task in self.tasks:
            read, verbs = options["read"], can["verbs"]
            mode = tasks.answer_mode(self.benchmark.tasks[task], read, verbs, can["reads"])
            unsupported = self._unsupported(task, mode, can)
            if reason := unsupported or self._ungraded(task, can["judge_verbs"]):
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
            raise NotApplicable(f"model {options['model']}: cannot do {problem}")
        limit, seed = options["max_new_tokens"], options["seed"]
        requests = [
            replace(r, repeat=k, seed=seed + k, max_new_tokens=limit or r.max_new_tokens)
            for k in range(options["repeats"])
            for task, mode in answer_modes.items()
            for r in self._of_task(task, mode, seed + k)
            if options["judge"] or not r.of_judge
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
        items, settings = self.choice.items[task][:n], self.options["settings"]
        return self.benchmark.requests(items, self.prompt_set, task, mode, settings, seed)

    def _unsupported(self, task: str, mode: AnswerMode | None, can: Mapping[str, Any]) -> str:
        """Return the reason why the model does not support a task; "" if it does."""
        read, known = self.options["read"], can.get("model", {}).get("lacks", {})
        if mode:
            first = self._of_task(task, mode, 0, n=1)
            needed = {request.request_type for request in first if not request.of_judge}
            if needed <= {*can["verbs"]}:
                return ""
        given = f"read as {read}, " if read else ""
        request_types = self.benchmark.tasks[task].request_types_for(read)
        reasons = [known[name] for name in request_types if name in known]
        return "; ".join([f"{given}the model has {', '.join(can['verbs'])}", *reasons])

    def _ungraded(self, task: str, judge_verbs: Sequence[str]) -> str:
        """Return the reason why a task that needs a judge has none; "" if it needs none."""
        settings, judge = self.options["settings"], self.options["judge"]
        judged = self.benchmark.tasks[task].judged(settings)
        if "generate" in judge_verbs or not (judged == "needed" or (judged and judge)):
            return ""
        if judge:
            return f"judge {judge} has {', '.join(judge_verbs)}"
        return NO_JUDGE + "".join(
            f", or --set {name}={setting.allowed[0]}"
            for name, setting in self.benchmark.settings.items()
            if setting.task == task and settings[name] == "judge"
        )


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
    key_names.check(config.keys or {}, [config.model, config.judge])
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
