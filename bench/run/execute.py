"""Asking: the requests of a plan that no record answers yet, shard by shard, of the model or of the judge.

A request that needs an earlier reply is finished when that reply is on record, so a run that was killed between the two
goes on like one that was not.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pandas as pd

from bench import records
from bench.benchmarks import module
from bench.core.errors import CONTINUES, RunFailed
from bench.core.progress import progress, say
from bench.journal import Journal
from bench.lock import Hold
from bench.run.plan import Plan, Requests
from bench.run.run_json import check_same_scorer
from bench.scorers.base import Answer, Model, Scorer, digest
from bench.tasks.request import Request

NOT_ASKED = "not asked: the reply that it is about did not come"


class Lazy:
    """A scorer that is loaded when it is first needed, because a complete run needs none."""

    def __init__(self, make: Callable[[], Scorer]) -> None:
        self._make = make
        self._scorer: Scorer | None = None

    @property
    def loaded(self) -> bool:
        return self._scorer is not None

    def load(self) -> Scorer:
        if self._scorer is None:
            self._scorer = self._make()
        return self._scorer


@runtime_checkable
class Streams(Protocol):
    """A scorer whose answers come one at a time, in any order: each by its request's position."""

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]: ...


@runtime_checkable
class Spreads(Protocol):
    """A scorer that is asked in many places: each shard's answers by its number, in any order."""

    def spread(
        self, shards: Mapping[int, Sequence[Request]]
    ) -> Iterator[tuple[int, list[Answer]]]: ...


class Job(NamedTuple):
    """A shard that is to be asked.

    Attributes:
        number: the shard's.
        planned: its requests, in its order.
        finished: the same with the replies that they are about put in; None where there is no such reply.
    """

    number: int
    planned: Sequence[Request]
    finished: Sequence[Request | None]


# Yields each job with its answers when it has them all, and tells how many answers more have come.
Asker = Callable[[Sequence[Job], Callable[[int], None]], Iterator[tuple[Job, list[Answer]]]]


def execute_requests(
    folder: Path,
    plan: Plan,
    about: dict[str, Any],
    requests: Requests,
    model: Lazy,
    judge: Lazy,
    hold: Hold,
) -> None:
    """Ask what is missing in `folder`, and write it.

    Raises:
        BadInput: the model is another one than that with which the run was begun, or another process is writing there.
        RunFailed: the model or the judge did not answer, or the folder cannot be written.
    """
    places = {id(request): place for place, request in enumerate(chain(*requests.stages))}
    stages = requests.shards(int(about["shard"]), about.get("order", "plan"))
    lacking = records.lacking(folder, {k: len(some) for stage in stages for k, some in stage})
    missing = [[(k, some) for k, some in stage if k in lacking] for stage in stages]
    left = [request for stage in missing for _, some in stage for request in some]
    if left:
        hold.need()
    if not hold.why_not:
        records.sweep(folder)
    for number, why in lacking.items():
        if why:
            records.put_aside(folder, number, why)
    for role, scorer in (("model", model), ("judge", judge)):
        wanted = any(request.of_judge == (role == "judge") for request in left)
        if wanted and about[role] and not scorer.loaded:
            check_same_scorer(folder, role, about[role], scorer.load())
    if not left and hold.why_not:
        return
    what, began = f"asking {plan.asked['model']} {plan.benchmark}", time.perf_counter()
    with (
        Journal.of(folder) as journal,
        progress(requests.total, what, "requests", requests.total - len(left)) as bar,
    ):
        answered = here(model, judge, journal)
        for stage in filter(None, missing):
            replies = _replies(folder, {(one.task, one.after) for _, some in stage for one in some})
            jobs = [_job(k, some, replies) for k, some in stage]
            for job, answers in answered(jobs, bar.advance):
                rows = _rows(plan, job, answers)
                for request, row in zip(job.planned, rows, strict=True):
                    row["place"] = places[id(request)]
                records.write_shard(folder, job.number, rows)
    _tell(what, [model, judge], time.perf_counter() - began)
    if left and (cut := records.cut(folder)):
        by_task = ", ".join(f"{task} {n:,}" for task, n in cut.items())
        say(
            f"{what}: replies that were cut off at their limit of tokens: {by_task}; "
            "--max-new-tokens allows longer ones, --thinking-tokens thoughts before them"
        )


def answers(
    plan: Plan, requests: Requests, model: Scorer, judge: Scorer | None = None
) -> pd.DataFrame:
    """What `model` and `judge` say to all requests, as records have it; nothing is written.

    For respondents that answer at once and can be asked again: a run on disk can be continued, this cannot.
    """
    answered = here(Lazy(lambda: model), Lazy(lambda: judge or model))
    replies: dict[tuple[Any, ...], str | None] = {}
    found: list[dict[str, Any]] = []
    for number, stage in enumerate(requests.stages):
        for job, some in answered([_job(number, stage, replies)], lambda _: None):
            rows = _rows(plan, job, some)
            for row in rows:
                key = row["task"], row["item_id"], row["request"], row["repeat"]
                replies[key] = None if row["error"] else row["response"]
            found += rows
    return pd.DataFrame(found)


def here(model: Lazy, judge: Lazy, journal: Journal | None = None) -> Asker:
    """Asks from this process: all that is the model's, shard by shard or as answers come, then all that is the judge's.

    Args:
        journal: keeps answers that come one at a time until their shard is whole, and knows those that had come before.
    """

    def answered(
        jobs: Sequence[Job], advance: Callable[[int], None]
    ) -> Iterator[tuple[Job, list[Answer]]]:
        missing = {job.number: (job, _without_asking(job, journal)) for job in jobs}

        def whole(number: int) -> Iterator[tuple[Job, list[Answer]]]:
            job, some = missing[number]
            if len(some) == len(job.planned):
                del missing[number]
                yield job, [some[i] for i in range(len(some))]

        for number, (_, some) in list(missing.items()):
            advance(len(some))
            yield from whole(number)
        for of_judge, lazy, who in ((False, model, "model"), (True, judge, "judge")):
            todo = [
                (number, i, request)
                for number, (job, some) in missing.items()
                for i, request in enumerate(job.finished)
                if request and request.of_judge == of_judge and i not in some
            ]
            if not todo:
                continue
            scorer = lazy.load()
            for came in _blaming(who, _asked(scorer, todo)):
                for (number, i, request), answer in came:
                    if journal and isinstance(scorer, Streams):
                        journal.add(number, i, digest(request.text), answer)
                    missing[number][1][i] = answer
                advance(len(came))
                for number in {number for (number, _, _), _ in came}:
                    yield from whole(number)

    return answered


# A request that is to be asked: the number of its shard, its place in it, and the request.
Asked = tuple[int, int, Request]


def _asked(scorer: Scorer, todo: Sequence[Asked]) -> Iterator[list[tuple[Asked, Answer]]]:
    """The answers to `todo`: each as it comes, or those of a shard together, asked here or on a cluster."""
    if isinstance(scorer, Streams):
        for k, answer in scorer.stream([request for _, _, request in todo]):
            yield [(todo[k], answer)]
        return
    shards = {number: list(group) for number, group in groupby(todo, key=lambda one: one[0])}
    bare = {number: [request for _, _, request in some] for number, some in shards.items()}
    each = scorer.spread(bare) if isinstance(scorer, Spreads) else _in_turn(scorer, bare)
    for number, answers in each:
        yield list(zip(shards[number], answers, strict=True))


def _in_turn(
    scorer: Scorer, shards: Mapping[int, Sequence[Request]]
) -> Iterator[tuple[int, Sequence[Answer]]]:
    for number, requests in shards.items():
        yield number, scorer.answer(requests)


def _blaming(who: str, asked: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from asked
    except RunFailed as error:
        # What comes from a cluster says it itself.
        told = str(error) if CONTINUES in str(error) else f"the {who}: {error}; {CONTINUES}"
        raise RunFailed(told) from error
    except (RuntimeError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunFailed(f"the {who} did not answer ({first}); {CONTINUES}") from error


def _job(
    number: int, planned: Sequence[Request], replies: dict[tuple[Any, ...], str | None]
) -> Job:
    finished = [
        request.then(request, replies[_earlier(request)]) if request.then else request
        for request in planned
    ]
    return Job(number, planned, finished)


def _without_asking(job: Job, journal: Journal | None) -> dict[int, Answer]:
    """Answers that need nobody, by the place in the job: those in the journal, and to what cannot be asked."""
    found = {}
    for i, request in enumerate(job.finished):
        if request is None:
            found[i] = Answer("", error=NOT_ASKED)
        elif journal and (known := journal.known(job.number, i, digest(request.text))):
            found[i] = known
    return found


def _tell(what: str, scorers: Sequence[Lazy], seconds: float) -> None:
    """How many tokens were asked about, how many were computed, and how fast; what was sent elsewhere."""
    loaded = [lazy.load() for lazy in dict.fromkeys(scorers) if lazy.loaded]
    for spent in (getattr(scorer, "spent", "") for scorer in loaded):
        if spent:
            say(f"{what}: {spent}")
    tallies = [scorer.tally for scorer in loaded if isinstance(scorer, Model)]
    asked, computed = (
        sum(getattr(tally, name) for tally in tallies) for name in ("asked", "computed")
    )
    if asked:
        say(
            f"{what}: {asked:,} tokens asked, {computed:,} computed ({computed / asked:.0%}), {computed / seconds:,.0f} a second"
        )


def _earlier(request: Request) -> tuple[Any, ...]:
    return request.task, request.item_id, request.after, request.repeat


def _replies(folder: Path, wanted: set[tuple[str, str]]) -> dict[tuple[Any, ...], str | None]:
    """The recorded replies to the requests of `wanted` (task and name), None where there is none."""
    wanted = {(task, name) for task, name in wanted if name}
    if not wanted:
        return {}
    rows = records.read(folder)
    names = zip(
        rows.task, rows.item_id, rows.request, rows.repeat, rows.response, rows.error, strict=True
    )
    return {
        (task, item, name, repeat): None if error else response
        for task, item, name, repeat, response, error in names
        if (task, name) in wanted
    }


def _rows(plan: Plan, job: Job, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    return [
        _row(plan, finished or planned, answer)
        for planned, finished, answer in zip(job.planned, job.finished, answers, strict=True)
    ]


def _row(plan: Plan, request: Request, answer: Answer) -> dict[str, Any]:
    room, item = module("tasks", plan.benchmark), plan.by_id[request.item_id]
    parsed = (
        "" if answer.error else room.parse(request.task, request.request, answer.response, item)
    )
    return {
        "benchmark": plan.benchmark,
        "category": request.category,
        "task": request.task,
        "item_id": request.item_id,
        "request": request.request,
        "repeat": request.repeat,
        "seed": request.seed,
        "prompt_version": request.prompt_version,
        "prompt_hash": digest(request.text),
        "prompt": request.text,
        "response": answer.response,
        "logprobs": None if answer.logprobs is None else list(answer.logprobs),
        "parsed": parsed,
        "valid": bool(parsed),
        "error": answer.error,
        "seconds": answer.seconds,
        "cut": answer.cut,
    }
