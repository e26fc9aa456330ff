"""What a run is to ask: the items that are taken, the wording, and the requests made of both.

Everything that makes a run the run it is stands in `Plan.asked`; two runs are the same where it is the same.
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

# Options that `Plan.asked` keeps as they were given.
AS_GIVEN = ("limit", "repeats", "seed", "read", "dtype")


class Requests(NamedTuple):
    """All requests of a run, in the order in which they are asked; how each task is asked; those left out, and why."""

    stages: list[list[Request]]
    ways: dict[str, Way]
    left_out: dict[str, str]

    def shards(self, size: int, order: str) -> list[list[tuple[int, list[Request]]]]:
        """The requests of each stage in numbered portions that are recorded together.

        Args:
            order: `prompt` puts those together whose texts begin alike, which are computed together; `plan` leaves them as
                they were planned, as older runs have them.
        """
        stages = [
            sorted(stage, key=_prompt) if order == "prompt" else stage for stage in self.stages
        ]
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
    """What is to be asked: everything that makes a run the run it is."""

    benchmark: str
    source: data.Source
    wording: wording.Wording
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
        benchmark, model, judge = resolve(config.benchmark), config.model, config.judge
        categories, limit = config.categories, config.limit
        for name in ("limit", "repeats", "max_new_tokens"):
            value = getattr(config, name)
            if value is not None and value < 1:
                raise BadInput(f"--{name.replace('_', '-')} {value}: has to be at least 1")
        names = tasks.chosen(benchmark, config.tasks)
        room, data_room = module("tasks", benchmark), module("data", benchmark)
        whole = tasks.settings(benchmark, config.settings or {}, config.preset)
        generation = config.generation.changed()
        elsewhere = bool(config.scheduler)  # the workers of a cluster have the models
        scorers.check(model, elsewhere)
        if judge:
            scorers.check(judge, elsewhere)
        # Whoever would not be asked is no part of the run.
        judge = judge if any(room.judged(task, whole) for task in names) else None
        source = data.find(benchmark, config.data)
        text = wording.load(benchmark, config.prompts, source.folder)
        of_data = tasks.of_data(benchmark, whole)
        items = data.load(source, categories, **of_data)
        # A task that the data have no items for is none of theirs: it is asked only where it was named.
        names = [
            task
            for task in names
            if config.tasks or any(room.concerns(item, task) for item in items)
        ]
        taken = {task: _taken(room, items, task, limit) for task in names}
        unfit = [entry for task in names for entry in _unfit(room, items, task)]
        touched: list[dict[str, Any]] = []
        for one in data_room.touched(source.folder, categories, **of_data):
            entry = {"category": one.category, "why": one.what, "items": one.rows}
            about = [task for task in names if one.task in ("", task)]
            (unfit if one.left_out else touched).extend({**entry, "task": task} for task in about)
        used = {id(item): item for some in taken.values() for item in some}
        by_id = {item.item_id: item for item in items if id(item) in used}
        label_names = config.labels_of(model)
        # Under `official` a reply may be as long as the released script lets it be.
        released = tasks.released_limit(benchmark, text.label)
        max_new_tokens = config.max_new_tokens
        if max_new_tokens is None and recorded:
            before = recorded.get("max_new_tokens")
            max_new_tokens = before if before == released else None
        elif max_new_tokens is None and config.preset == "official":
            max_new_tokens = released
        asked = {
            "model": model,
            "judge": judge,
            "categories": list(categories) if categories else None,
            "tasks": names,
            "settings": whole,
            **{name: getattr(config, name) for name in AS_GIVEN},
            "max_new_tokens": max_new_tokens,
            "prompts": text.label,
            "wording_hash": digest(text.tables),
            "data_sha256": source.sha256,
            "model_content": scorers.content(model),
            "judge_content": scorers.content(judge) if judge else None,
            # Later options are left out where they have their default, so that older runs stay the same runs.
            **({"label_names": list(label_order(label_names))} if label_names else {}),
            **({"generation": generation} if generation else {}),
        }
        named = bool(config.tasks)
        return cls(
            benchmark, source, text, tuple(names), named, taken, by_id, unfit, touched, asked
        )

    @property
    def identity(self) -> str:
        return digest([self.benchmark, self.asked])[:8]

    @property
    def known(self) -> set[str]:
        """The ids of all items of the categories asked, whether taken or not, read as here and as is the default."""
        found: set[str] = set()
        for settings in (tasks.of_data(self.benchmark, self.asked["settings"]), {}):
            with suppress(BadInput):  # what the default reads need not be there
                some = data.load(self.source, self.asked["categories"], **settings)
                found |= {item.item_id for item in some}
        return found

    def foreign(self, requests: Sequence[Request]) -> dict[str, list[str]]:
        """Where data are asked about in a language that is not theirs: by the data's language, those of the wording.

        Args:
            requests: those of the model; only what is asked in words counts.
        """
        asked = dict.fromkeys(
            one.category for one in requests if one.prompt_version == self.wording.label
        )
        return wording.foreign(self.benchmark, self.wording, self.source.language, list(asked))

    @property
    def may_be_judged_later(self) -> bool:
        """Whether replies that were recorded without a judge can be shown to one: no task is asked otherwise with one."""
        judged = [
            module("tasks", self.benchmark).judged(task, self.asked["settings"])
            for task in self.tasks
        ]
        return "needed" not in judged

    def requests(
        self,
        verbs: Sequence[str],
        reads: Sequence[str],
        judge_verbs: Sequence[str],
        partial: bool,
        lacks: Mapping[str, str] | None = None,
    ) -> Requests:
        """All requests, stage by stage, task by task, repeat by repeat.

        A task that needs a judge where there is none is left out, unless it was named.

        Args:
            verbs, reads: what the model can do, and how its choices can be read, the best way first.
            judge_verbs: what the judge can do (nothing where there is none).
            partial: leave out also the tasks that the model cannot be asked.
            lacks: why the model has not a verb that others of its kind have, where more is known than that.

        Raises:
            NotApplicable: a task that cannot be asked; the message says which remain.
        """
        chosen: dict[str, Way] = {}
        left_out: dict[str, str] = {}
        refused: list[str] = []
        for task in self.tasks:
            way = tasks.way(self.benchmark, task, self.asked["read"], verbs, reads)
            judged = module("tasks", self.benchmark).judged(task, self.asked["settings"])
            lacking = self._lacking(task, way, verbs) if way else "an answer"
            if way is None or lacking:
                how = f"read as {self.asked['read']}, " if self.asked["read"] else ""
                wanted = module("tasks", self.benchmark).verbs(task, self.asked["read"])
                why = "".join(
                    f"; {(lacks or {})[verb]}" for verb in wanted if verb in (lacks or {})
                )
                left_out[task] = f"{how}the model has {', '.join(verbs)}{why}"
                refused += [] if partial else [task]
            elif (
                judged == "needed" or (judged and self.asked["judge"])
            ) and "generate" not in judge_verbs:
                left_out[task] = (
                    f"judge {self.asked['judge']} has {', '.join(judge_verbs)}"
                    if self.asked["judge"]
                    else "it needs a judge; give --judge MODEL" + self._way_out(task)
                )
                refused += [task] if self.named and not partial else []
            else:
                chosen[task] = way
        if refused or not chosen:
            refused = refused or list(left_out)
            raise NotApplicable(
                f"model {self.asked['model']}: cannot do task {', '.join(refused)} of {self.benchmark} "
                f"({left_out[refused[0]]}); tasks that remain: {', '.join(chosen) or 'none'}"
            )
        return Requests(_staged(self._repeated(chosen)), chosen, left_out)

    def _way_out(self, task: str) -> str:
        """How `task` can do without a judge, where it can."""
        return "".join(
            f", or --set {name}={setting.allowed[0]}"
            for name, setting in module("tasks", self.benchmark).SETTINGS.items()
            if setting.task == task and self.asked["settings"][name] == "judge"
        )

    def _lacking(self, task: str, way: Way, verbs: Sequence[str]) -> str:
        """A verb that some request of `task` needs besides, and the model has not; "" where there is none."""
        room, asked = module("tasks", self.benchmark), self.asked
        some = room.requests(
            self.items[task][:1], self.wording, task, way, asked["settings"], asked["seed"]
        )
        wanted = [request.verb for request in some if not request.of_judge]
        return next((verb for verb in wanted if verb not in verbs), "")

    def _repeated(self, chosen: Mapping[str, Way]) -> list[Request]:
        """The requests of the `chosen` tasks, repeat by repeat; those of a judge only where there is one."""
        room, asked = module("tasks", self.benchmark), self.asked
        requests = [
            replace(
                request,
                repeat=k,
                seed=seed,
                max_new_tokens=asked["max_new_tokens"] or request.max_new_tokens,
            )
            for k, seed in enumerate(range(asked["seed"], asked["seed"] + asked["repeats"]))
            for task, way in chosen.items()
            for request in room.requests(
                self.items[task], self.wording, task, way, asked["settings"], seed
            )
            if asked["judge"] or not request.of_judge
        ]
        if not requests:
            raise BadInput(
                f"{self.source.folder}: leaves nothing to ask for tasks {', '.join(self.tasks)}; choose other --tasks or --categories"
            )
        return requests


def _prompt(request: Request) -> tuple[Any, ...]:
    """What is asked in one call stands together, and in it what begins alike side by side, the repeats of a request too."""
    return request.of_judge, request.verb, len(request.options), request.text


def _staged(requests: Sequence[Request]) -> list[list[Request]]:
    """Requests in stages: each needs the replies of earlier stages alone. Within one, those of the model stand first."""
    after = {(request.task, request.request): request.after for request in requests}

    def stage(task: str, name: str) -> int:
        return 1 + stage(task, after[task, name]) if after[task, name] else 0

    stages: dict[int, list[Request]] = {}
    for request in requests:
        stages.setdefault(stage(request.task, request.request), []).append(request)
    return [sorted(stages[k], key=lambda request: request.of_judge) for k in sorted(stages)]


def _taken(room: Any, items: Sequence[Any], task: str, limit: int | None) -> list[Any]:
    """The items that `task` asks about, at most `limit` a category."""
    about = [item for item in items if room.concerns(item, task) and not room.unfit(item, task)]
    by_category: dict[str, list[Any]] = {}
    for item in about:
        by_category.setdefault(item.category, []).append(item)
    return [item for some in by_category.values() for item in data.spread_evenly(some, limit)]


def _unfit(room: Any, items: Sequence[Any], task: str) -> list[dict[str, Any]]:
    """Items that have no place in `task`, counted by category and reason."""
    counts = Counter(
        (item.category, why)
        for item in items
        if room.concerns(item, task) and (why := room.unfit(item, task))
    )
    return [
        {"category": category, "task": task, "why": why, "items": n}
        for (category, why), n in counts.items()
    ]
