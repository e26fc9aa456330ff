"""Plan a run: the items that are taken, the prompt set, and the requests made of both.

`Plan.asked` holds everything that identifies a run; two runs are the same if it is the same.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

from bench import data, scorers, tasks
from bench.benchmarks import module, resolve
from bench.config import RunConfig
from bench.core.errors import BadInput, NotApplicable
from bench.scorers.base import digest
from bench.tasks import prompts as wording
from bench.tasks.nli_labels import label_order
from bench.tasks.request import Request, Way


class Requests(NamedTuple):
    """All requests of a run in stages, how each task is asked, and why tasks were left out."""

    stages: list[list[Request]]
    ways: dict[str, Way]
    left_out: dict[str, str]

    def shards(self, size: int, order: str) -> list[list[tuple[int, list[Request]]]]:
        """Split each stage into numbered shards, which are recorded together.

        Args:
            order: `prompt` puts requests together whose texts begin alike, which are computed
                together; `plan` leaves them as they were planned, as in older runs.
        """
        stages = self.stages
        if order == "prompt":
            stages = [sorted(stage, key=_by_prompt) for stage in stages]
        numbers = count()
        return [
            [(next(numbers), stage[k : k + size]) for k in range(0, len(stage), size)]
            for stage in stages
        ]

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
    wording: wording.PromptSet
    tasks: tuple[str, ...]
    named: bool
    items: dict[str, list[Any]]
    by_id: dict[str, Any]
    unfit: list[dict[str, Any]]
    touched: list[dict[str, Any]]
    asked: dict[str, Any]

    @classmethod
    def make(cls, config: RunConfig, recorded: Mapping[str, Any] | None = None) -> "Plan":
        """Plan a run.

        Args:
            recorded: what was asked in the run that this one continues or repeats.

        Raises:
            BadInput: an option, the data or the model is wrong.
        """
        for name in ("limit", "repeats", "max_new_tokens"):
            value = getattr(config, name)
            if value is not None and value < 1:
                raise BadInput(f"--{name.replace('_', '-')} {value}: has to be at least 1")
        benchmark, model, judge = resolve(config.benchmark), config.model, config.judge
        names = tasks.chosen(benchmark, config.tasks)
        room = module("tasks", benchmark)
        settings = tasks.settings(benchmark, config.settings or {}, config.preset)
        for name in filter(None, (model, judge)):
            # The workers of a cluster have models of their own.
            scorers.check(name, elsewhere=bool(config.scheduler))
        if not any(room.judged(task, settings) for task in names):
            judge = None
        source = data.find(benchmark, config.data)
        text = wording.load(benchmark, config.prompts, source.folder)
        of_data = tasks.of_data(benchmark, settings)
        items = data.load(source, config.categories, **of_data)
        # A task without items is asked only if it was named.
        names = [
            task
            for task in names
            if config.tasks or any(room.concerns(item, task) for item in items)
        ]
        taken = {task: _take(room, items, task, config.limit) for task in names}
        used = {id(item) for chosen in taken.values() for item in chosen}
        unfit = [entry for task in names for entry in _count_unfit(room, items, task)]
        touched: list[dict[str, Any]] = []
        for effect in module("data", benchmark).touched(
            source.folder, config.categories, **of_data
        ):
            entry = {"category": effect.category, "why": effect.what, "items": effect.rows}
            affected = [task for task in names if effect.task in ("", task)]
            entries = unfit if effect.left_out else touched
            entries.extend({**entry, "task": task} for task in affected)
        label_names = config.labels_of(model)
        generation = config.generation.changed()
        asked = {
            "model": model,
            "judge": judge,
            "categories": list(config.categories) if config.categories else None,
            "tasks": names,
            "settings": settings,
            **{name: getattr(config, name) for name in config.fields_with("asked")},
            "max_new_tokens": _reply_limit(config, text.label, recorded),
            "prompts": text.label,
            "wording_hash": digest(text.tables),
            "data_sha256": source.sha256,
            "model_content": scorers.content(model),
            "judge_content": scorers.content(judge) if judge else None,
            # Newer options are left out at their default, so that older runs stay the same runs.
            **({"label_names": list(label_order(label_names))} if label_names else {}),
            **({"generation": generation} if generation else {}),
        }
        return cls(
            benchmark=benchmark,
            source=source,
            wording=text,
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
        """Return the languages of prompts that are not those of the data, by the data's language.

        Args:
            requests: of the model; only those with a prompt of the prompt set count.
        """
        version = self.wording.label
        asked = dict.fromkeys(r.category for r in requests if r.prompt_version == version)
        return wording.foreign(self.benchmark, self.wording, self.source.language, list(asked))

    @property
    def may_be_judged_later(self) -> bool:
        """Whether a judge can be added to a run: no task is asked otherwise with one."""
        judged, settings = module("tasks", self.benchmark).judged, self.asked["settings"]
        return "needed" not in [judged(task, settings) for task in self.tasks]

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

        Raises:
            NotApplicable: a task that cannot be asked; the message says which remain.
        """
        ways: dict[str, Way] = {}
        left_out: dict[str, str] = {}
        refused: list[str] = []
        for task in self.tasks:
            way = tasks.way(self.benchmark, task, self.asked["read"], verbs, reads)
            if way is None or self._needs_another_verb(task, way, verbs):
                left_out[task] = self._model_lacks(task, verbs, lacks or {})
                refused += [] if partial else [task]
            elif reason := self._judge_lacks(task, judge_verbs):
                left_out[task] = reason
                refused += [task] if self.named and not partial else []
            else:
                ways[task] = way
        if refused or not ways:
            refused = refused or list(left_out)
            raise NotApplicable(
                f"model {self.asked['model']}: cannot do task {', '.join(refused)} of "
                f"{self.benchmark} ({left_out[refused[0]]}); tasks that remain: "
                f"{', '.join(ways) or 'none'}"
            )
        return Requests(_stages(self._all_requests(ways)), ways, left_out)

    def _needs_another_verb(self, task: str, way: Way, verbs: Sequence[str]) -> bool:
        room, asked = module("tasks", self.benchmark), self.asked
        first = room.requests(
            self.items[task][:1], self.wording, task, way, asked["settings"], asked["seed"]
        )
        return any(request.verb not in verbs for request in first if not request.of_judge)

    def _model_lacks(self, task: str, verbs: Sequence[str], lacks: Mapping[str, str]) -> str:
        """Say why a model with these verbs cannot be asked a task."""
        read = self.asked["read"]
        wanted = module("tasks", self.benchmark).verbs(task, read)
        reasons = "".join(f"; {lacks[verb]}" for verb in wanted if verb in lacks)
        how = f"read as {read}, " if read else ""
        return f"{how}the model has {', '.join(verbs)}{reasons}"

    def _judge_lacks(self, task: str, judge_verbs: Sequence[str]) -> str:
        """Say why the judge cannot grade a task, and how to do without one; "" if it can."""
        room, judge, settings = (
            module("tasks", self.benchmark),
            self.asked["judge"],
            self.asked["settings"],
        )
        judged = room.judged(task, settings)
        if "generate" in judge_verbs or not (judged == "needed" or (judged and judge)):
            return ""
        if judge:
            return f"judge {judge} has {', '.join(judge_verbs)}"
        return "it needs a judge; give --judge MODEL" + "".join(
            f", or --set {name}={setting.allowed[0]}"
            for name, setting in room.SETTINGS.items()
            if setting.task == task and settings[name] == "judge"
        )

    def _all_requests(self, ways: Mapping[str, Way]) -> list[Request]:
        """Make the requests of the tasks in `ways`; those of a judge only if there is one."""
        room, asked = module("tasks", self.benchmark), self.asked
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
                self.items[task], self.wording, task, way, asked["settings"], seed
            )
            if asked["judge"] or not request.of_judge
        ]
        if not requests:
            raise BadInput(
                f"{self.source.folder}: leaves nothing to ask for tasks {', '.join(self.tasks)}; "
                "choose other --tasks or --categories"
            )
        return requests


def _reply_limit(
    config: RunConfig, prompt_version: str, recorded: Mapping[str, Any] | None
) -> int | None:
    """Return the limit of tokens per reply; under `official` it is that of the released script."""
    if config.max_new_tokens is not None:
        return config.max_new_tokens
    released = tasks.released_limit(resolve(config.benchmark), prompt_version)
    if recorded:
        return released if recorded.get("max_new_tokens") == released else None
    return released if config.preset == "official" else None


def _by_prompt(request: Request) -> tuple[Any, ...]:
    """Sort what is asked in one call together, and in it requests whose texts begin alike."""
    return request.of_judge, request.verb, len(request.options), request.text


def _stages(requests: Sequence[Request]) -> list[list[Request]]:
    """Split requests so that each needs replies of earlier stages only; the model's stand first."""
    after = {(request.task, request.request): request.after for request in requests}

    def stage(task: str, name: str) -> int:
        return 1 + stage(task, after[task, name]) if after[task, name] else 0

    stages: dict[int, list[Request]] = {}
    for request in requests:
        stages.setdefault(stage(request.task, request.request), []).append(request)
    return [sorted(stages[k], key=lambda request: request.of_judge) for k in sorted(stages)]


def _take(room: Any, items: Sequence[Any], task: str, limit: int | None) -> list[Any]:
    """Take the items that `task` is about, at most `limit` per category."""
    by_category: dict[str, list[Any]] = {}
    for item in items:
        if room.concerns(item, task) and not room.unfit(item, task):
            by_category.setdefault(item.category, []).append(item)
    return [item for part in by_category.values() for item in data.spread_evenly(part, limit)]


def _count_unfit(room: Any, items: Sequence[Any], task: str) -> list[dict[str, Any]]:
    """Count the items that `task` cannot use, by category and reason."""
    counts = Counter(
        (item.category, reason)
        for item in items
        if room.concerns(item, task) and (reason := room.unfit(item, task))
    )
    return [
        {"category": category, "task": task, "why": reason, "items": n}
        for (category, reason), n in counts.items()
    ]
