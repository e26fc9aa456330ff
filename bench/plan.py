"""What a run is to ask: the items that are taken, the wording, and the requests made of both.

Everything that makes a run the run it is stands in `Plan.asked`; two runs are the same where it is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import data, scorers, tasks
from bench.benchmarks import module, resolve
from bench.errors import BadInput, NotApplicable
from bench.scorers.base import digest
from bench.tasks import wording
from bench.tasks.request import Request


@dataclass(frozen=True)
class Plan:
    """What is to be asked: everything that makes a run the run it is."""

    benchmark: str
    source: data.Source
    wording: wording.Wording
    tasks: tuple[str, ...]
    items: dict[str, list[Any]]
    by_id: dict[str, Any]
    asked: dict[str, Any]

    @classmethod
    def make(
        cls, benchmark: str, model: str, categories: Sequence[str] | None, chosen: Sequence[str] | None, limit: int | None,
        repeats: int, seed: int, read: str | None, prompts: str | None, folder: str | Path | None, dtype: str | None,
    ) -> "Plan":  # fmt: skip
        benchmark = resolve(benchmark)
        for name, value in (("limit", limit), ("repeats", repeats)):
            if value is not None and value < 1:
                raise BadInput(f"--{name} {value}: has to be at least 1")
        names = tasks.chosen(benchmark, chosen)
        text = wording.load(benchmark, prompts)
        scorers.check(model)
        source = data.find(benchmark, folder)
        items = data.load(source, categories)
        taken = {task: _taken(module("tasks", benchmark), items, task, limit) for task in names}
        used = {id(item): item for some in taken.values() for item in some}
        by_id = {item.item_id: item for item in items if id(item) in used}
        asked = {
            "model": model, "categories": list(categories) if categories else None, "tasks": names, "limit": limit,
            "repeats": repeats, "seed": seed, "read": read, "prompts": text.label, "wording_hash": digest(text.tables),
            "data_sha256": source.sha256, "dtype": dtype, "model_content": scorers.content(model),
        }  # fmt: skip
        return cls(benchmark, source, text, tuple(names), taken, by_id, asked)

    @property
    def identity(self) -> str:
        return digest([self.benchmark, self.asked])[:8]

    def requests(self, verbs: Sequence[str], partial: bool) -> list[Request]:
        """All requests, task by task and repeat by repeat.

        Raises:
            BadInput: a task that a model with `verbs` cannot be asked; the message says which remain.
        """
        room = module("tasks", self.benchmark)
        chosen = {task: tasks.verb(self.benchmark, task, self.asked["read"], verbs) for task in self.tasks}
        able = {task: verb for task, verb in chosen.items() if verb}
        refused = [task for task in chosen if task not in able]
        if refused and not (partial and able):
            how = f" read as {self.asked['read']}" if self.asked["read"] else ""
            raise NotApplicable(
                f"model {self.asked['model']}: cannot do task {', '.join(refused)} of {self.benchmark}{how} "
                f"(it has {', '.join(verbs)}); tasks that remain: {', '.join(able) or 'none'}"
            )
        once = [
            request
            for task, verb in able.items()
            for request in room.requests(self.items[task], self.wording, task, verb)
        ]
        if not once:
            raise BadInput(
                f"{self.source.folder}: leaves nothing to ask for tasks {', '.join(self.tasks)}; choose other --tasks or --categories"
            )
        seed = self.asked["seed"]
        return [
            replace(request, repeat=k, seed=seed + k)
            for k in range(self.asked["repeats"])
            for request in once
        ]


def _taken(room: Any, items: Sequence[Any], task: str, limit: int | None) -> list[Any]:
    """The items that `task` asks about, at most `limit` a category."""
    about = [item for item in items if room.concerns(item, task)]
    by_category: dict[str, list[Any]] = {}
    for item in about:
        by_category.setdefault(item.category, []).append(item)
    return [item for some in by_category.values() for item in data.evenly(some, limit)]
