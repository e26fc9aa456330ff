"""Plan a run: the items that are taken, the prompt set, and the requests made of both.

`Plan.asked` holds everything that identifies a run; two runs are the same if it is the same.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bench import data, scorers, tasks
from bench.benchmarks import module, resolve
from bench.config import RunConfig
from bench.core.errors import BadInput, NotApplicable
from bench.scorers.base import digest
from bench.tasks import prompts
from bench.tasks.nli_labels import label_order
from bench.tasks.request import Request, Way


class Requests(NamedTuple):
    """All requests of a run in stages, how each task is asked, and why tasks were left out."""

    stages: list[list[Request]]
    ways: dict[str, Way]
    left_out: dict[str, str]

    @property
    def total(self) -> int:
        return sum(map(len, self.stages))


@dataclass(frozen=True)
class Plan:
    """What a run asks.

    Attributes:
        named: whether its tasks were named; otherwise those that cannot be asked are left out.
        items: of each task; `by_id` has all of them.
        unfit: items that were left out, counted by category, task and reason.
        touched: items that a setting of the data changed, counted in the same way.
        asked: what identifies the run, as `run.json` keeps it.
    """

    benchmark: str
    source: data.Source
    prompt_set: prompts.PromptSet
    tasks: tuple[str, ...]
    named: bool
    items: dict[str, list[Any]]
    by_id: dict[str, Any]
    unfit: list[dict[str, Any]]
    touched: list[dict[str, Any]]
    asked: dict[str, Any]

    @classmethod
    def make(cls, config: RunConfig, recorded: Mapping[str, Any] | None = None) -> "Plan":
        """Plan a run; `recorded` is what was asked in the run that it continues or repeats."""
        benchmark, model, judge = resolve(config.benchmark), config.model, config.judge
        base = config.base
        names = tasks.chosen(benchmark, config.tasks)
        room = module("tasks", benchmark)
        settings = tasks.settings(benchmark, config.settings or {}, config.preset)
        for role, given in (("model", model), ("judge", judge)):
            # The workers of a cluster have models of their own.
            if given:
                scorers.check(given, elsewhere=bool(config.scheduler))
            if getattr(config, f"as_{role}") and scorers.split_kind(given or "")[0] != "replay":
                raise BadInput(
                    f"--as-{role}: names whose answers --{role} replay:FILE holds; leave it out"
                )
        if not any(room.judged(task, settings) for task in names):
            judge = None
        source = data.find(benchmark, config.data)
        prompt_set = prompts.load(benchmark, config.prompts, source.folder)
        of_data = tasks.of_data(benchmark, settings)
        items = data.load(source, config.categories, **of_data)
        # A task without items is asked only if it was named.
        names = [
            task
            for task in names
            if config.tasks or any(room.concerns(item, task) for item in items)
        ]
        taken: dict[str, list[Any]] = {}
        unfit: list[dict[str, Any]] = []
        touched: list[dict[str, Any]] = []
        for task in names:
            by_category: dict[str, list[Any]] = {}
            reasons: Counter[tuple[str, str]] = Counter()
            for item in items:
                if room.concerns(item, task):
                    if reason := room.unfit(item, task):
                        reasons[item.category, reason] += 1
                    else:
                        by_category.setdefault(item.category, []).append(item)
            parts = [data.spread_evenly(part, config.limit) for part in by_category.values()]
            taken[task] = [item for part in parts for item in part]
            unfit += [
                {"category": category, "task": task, "why": reason, "items": n}
                for (category, reason), n in reasons.items()
            ]
        used = {id(item) for chosen in taken.values() for item in chosen}
        for effect in module("data", benchmark).touched(
            source.folder, config.categories, **of_data
        ):
            entry = {"category": effect.category, "why": effect.what, "items": effect.rows}
            affected = [task for task in names if effect.task in ("", task)]
            entries = unfit if effect.left_out else touched
            entries.extend({**entry, "task": task} for task in affected)
        # The limit of tokens per reply; under `official` it is that of the released script.
        max_new_tokens = config.max_new_tokens
        if max_new_tokens is None:
            released = tasks.released_limit(benchmark, prompt_set.label)
            has_released = config.preset == "official"
            if recorded:
                has_released = recorded.get("max_new_tokens") == released
            max_new_tokens = released if has_released else None
        label_names = config.labels_of(model)
        generation = config.generation.changed()
        asked = {
            "model": model,
            "judge": judge,
            "categories": list(config.categories) if config.categories else None,
            "tasks": names,
            "settings": settings,
            "limit": config.limit,
            "repeats": config.repeats,
            "seed": config.seed,
            "read": config.read,
            "dtype": config.dtype,
            "max_new_tokens": max_new_tokens,
            "prompts": prompt_set.label,
            "wording_hash": digest(prompt_set.tables),
            "data_sha256": source.sha256,
            "model_content": scorers.content(model),
            "judge_content": scorers.content(judge) if judge else None,
            # Newer options are left out at their default, so that older runs stay the same runs.
            **{
                role: name
                for role, given in (("as_model", model), ("as_judge", judge))
                if given and (name := getattr(config, role))
            },
            **({"label_names": list(label_order(label_names))} if label_names else {}),
            **({"generation": generation} if generation else {}),
            **({"base": base, "base_content": scorers.content(base)} if base else {}),
        }
        return cls(
            benchmark=benchmark,
            source=source,
            prompt_set=prompt_set,
            tasks=tuple(names),
            named=bool(config.tasks),
            items=taken,
            by_id={item.item_id: item for item in items if id(item) in used},
            unfit=unfit,
            touched=touched,
            asked=asked,
        )

    @property
    def identity(self) -> str:
        return digest([self.benchmark, self.asked])[:8]

    @property
    def known(self) -> set[str]:
        """The ids of all items of the categories, under the run's settings and the default ones."""
        ids: set[str] = set()
        for settings in (tasks.of_data(self.benchmark, self.asked["settings"]), {}):
            with suppress(BadInput):  # what the defaults need may be missing
                items = data.load(self.source, self.asked["categories"], **settings)
                ids |= {item.item_id for item in items}
        return ids

    def foreign(self, requests: Sequence[Request]) -> dict[str, list[str]]:
        """Return by the data's language those of the prompt set that differ from it."""
        version = self.prompt_set.label
        asked = dict.fromkeys(r.category for r in requests if r.prompt_version == version)
        return prompts.foreign(self.benchmark, self.prompt_set, self.source.language, list(asked))

    def requests(
        self,
        verbs: Sequence[str],
        reads: Sequence[str],
        judge_verbs: Sequence[str],
        partial: bool,
        lacks: Mapping[str, str] | None = None,
    ) -> Requests:
        """Make all requests, stage by stage, repeat by repeat, task by task.

        A task that needs a judge, where there is none, is left out unless it was named.

        Args:
            verbs, reads: what the model can do, and how its choices can be read, the best first.
            judge_verbs: what the judge can do; nothing without one.
            partial: leave out also the tasks that the model cannot be asked.
            lacks: why the model has not a verb that others of its kind have, if that is known.
        """
        room, asked = module("tasks", self.benchmark), self.asked
        settings, read, judge = asked["settings"], asked["read"], asked["judge"]
        ways: dict[str, Way] = {}
        left_out: dict[str, str] = {}
        refused: list[str] = []
        judgeless: set[str] = set()
        for task in self.tasks:
            way = tasks.way(self.benchmark, task, read, verbs, reads)
            judged = room.judged(task, settings)
            first = self.items[task][:1]
            needed = (
                room.requests(first, self.prompt_set, task, way, settings, asked["seed"])
                if way
                else ()
            )
            if way is None or {r.verb for r in needed if not r.of_judge} - set(verbs):
                reasons = [f"{f'read as {read}, ' if read else ''}the model has {', '.join(verbs)}"]
                wanted = room.verbs(task, read)
                reasons += [lacks[verb] for verb in wanted if lacks and verb in lacks]
                left_out[task] = "; ".join(reasons)
                refused += [] if partial else [task]
            elif "generate" not in judge_verbs and (judged == "needed" or (judged and judge)):
                left_out[task] = f"judge {judge} has {', '.join(judge_verbs)}"
                if not judge:
                    judgeless.add(task)
                    left_out[task] = "it needs a judge; give --judge MODEL" + "".join(
                        f", or --set {name}={setting.allowed[0]}"
                        for name, setting in room.SETTINGS.items()
                        if setting.task == task and settings[name] == "judge"
                    )
                refused += [task] if self.named and not partial else []
            else:
                ways[task] = way
        if refused or not ways:
            refused = refused or list(left_out)
            what = (
                f"task {', '.join(refused)} of {self.benchmark} ({left_out[refused[0]]}); tasks "
                f"that remain: {', '.join(ways) or 'none'}"
            )
            if judgeless >= set(refused):  # which no model can do
                raise BadInput(f"cannot ask {what}")
            raise NotApplicable(f"model {asked['model']}: cannot do {what}")
        requests = [
            replace(
                request,
                repeat=repeat,
                seed=seed,
                max_new_tokens=asked["max_new_tokens"] or request.max_new_tokens,
            )
            for repeat, seed in enumerate(range(asked["seed"], asked["seed"] + asked["repeats"]))
            for task, way in ways.items()
            for request in room.requests(
                self.items[task], self.prompt_set, task, way, settings, seed
            )
            if judge or not request.of_judge
        ]
        if not requests:
            raise BadInput(
                f"{self.source.folder}: leaves nothing to ask for tasks {', '.join(self.tasks)}; "
                "choose other --tasks or --categories"
            )
        return Requests(_stages(requests), ways, left_out)


def _stages(requests: Sequence[Request]) -> list[list[Request]]:
    """Split requests so that each needs replies of earlier stages only; the model's stand first."""
    after = {(request.task, request.request): request.after for request in requests}

    def stage(task: str, name: str) -> int:
        return 1 + stage(task, after[task, name]) if after[task, name] else 0

    stages: dict[int, list[Request]] = {}
    for request in requests:
        stages.setdefault(stage(request.task, request.request), []).append(request)
    return [sorted(stages[k], key=lambda request: request.of_judge) for k in sorted(stages)]
