"""Ask the requests of a plan that no record answers yet, shard by shard, of the model or the judge.

A request that needs an earlier reply is finished when that reply is on record, so that a run that
was killed between the two continues like one that was not.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pandas as pd

from bench import records
from bench.benchmarks import module
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.progress import progress, say
from bench.run.plan import Plan, Requests
from bench.run.run_json import check_same_scorer
from bench.scorers.base import Answer, Model, Scorer, digest
from bench.tasks.request import Request

# What the journal keeps of an answer.
ANSWER = ("response", "logprobs", "error", "seconds", "cut")
NOT_ASKED = "not asked: the reply that it is about did not come"
# Replies by task, item, request and repeat; None for one that did not come.
Replies = dict[tuple[Any, ...], str | None]


class Lazy:
    """A scorer that is loaded when it is first needed; a complete run needs none."""

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
class StreamingScorer(Protocol):
    """A scorer that answers one request at a time, in any order; each with its position."""

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Answer]]: ...


@runtime_checkable
class DistributedScorer(Protocol):
    """A scorer that answers many shards at once, in any order; each with its number."""

    def answer_shards(
        self, shards: Mapping[int, Sequence[Request]]
    ) -> Iterator[tuple[int, list[Answer]]]: ...


class Job(NamedTuple):
    """A shard that has to be asked.

    Attributes:
        number: of the shard.
        planned: its requests, in order.
        finished: the same with the replies that they are about; None where no such reply came.
    """

    number: int
    planned: Sequence[Request]
    finished: Sequence[Request | None]


class Asked(NamedTuple):
    """A request that has to be asked: its shard, its position there, and the request."""

    shard: int
    position: int
    request: Request


def execute_requests(
    folder: Path,
    plan: Plan,
    about: dict[str, Any],
    requests: Requests,
    model: Lazy,
    judge: Lazy,
    refusal: str,
) -> None:
    """Ask what is missing in the folder of a run, and write it.

    Args:
        refusal: why this process may not write there; empty if it may.

    Raises:
        BadInput: the run was begun with another model, or something is missing and this process
            may not write.
        RunFailed: the model or the judge did not answer, or the folder cannot be written.
    """
    places = {id(request): place for place, request in enumerate(chain(*requests.stages))}
    stages = requests.shards(int(about["shard"]), about.get("order", "plan"))
    missing = records.missing_shards(
        folder, {k: len(shard) for stage in stages for k, shard in stage}
    )
    stages = [[(k, shard) for k, shard in stage if k in missing] for stage in stages]
    left = [request for stage in stages for _, shard in stage for request in shard]
    if refusal and left:
        raise BadInput(refusal)
    if not refusal:
        records.remove_drafts(folder)
    for number, reason in missing.items():
        if reason:
            records.set_aside(folder, number, reason)
    for role, scorer in (("model", model), ("judge", judge)):
        is_needed = any(request.of_judge == (role == "judge") for request in left)
        if is_needed and about[role] and not scorer.loaded:
            check_same_scorer(folder, role, about[role], scorer.load())
    if refusal:
        return
    title, start = f"asking {plan.asked['model']} {plan.benchmark}", time.perf_counter()
    n_done = requests.total - len(left)
    with (
        records.Journal(folder) as journal,
        progress(requests.total, title, "requests", n_done) as bar,
    ):
        for stage in filter(None, stages):
            replies = _recorded_replies(folder, [r for _, shard in stage for r in shard])
            jobs = [_job(k, shard, replies) for k, shard in stage]
            for job, answers in _answered(jobs, model, judge, journal, bar.advance):
                rows = _rows(plan, job, answers)
                for request, row in zip(job.planned, rows, strict=True):
                    row["place"] = places[id(request)]
                records.write_shard(folder, job.number, rows)
    _report_tokens(title, [model, judge], time.perf_counter() - start)
    if left and (cut := records.count_cut_off(folder)):
        by_task = ", ".join(f"{task} {n:,}" for task, n in cut.items())
        say(
            f"{title}: replies that were cut off at their limit of tokens: {by_task}; "
            "--max-new-tokens allows longer ones, --thinking-tokens thoughts before them"
        )


def answers(
    plan: Plan, requests: Requests, model: Scorer, judge: Scorer | None = None
) -> pd.DataFrame:
    """Ask all requests and return rows as records have them; nothing is written.

    For respondents that answer at once and can be asked again: this cannot be continued.
    """
    replies: Replies = {}
    rows: list[dict[str, Any]] = []
    scorers = Lazy(lambda: model), Lazy(lambda: judge or model)
    for number, stage in enumerate(requests.stages):
        for job, answers in _answered([_job(number, stage, replies)], *scorers):
            new = _rows(plan, job, answers)
            for row in new:
                key = row["task"], row["item_id"], row["request"], row["repeat"]
                replies[key] = None if row["error"] else row["response"]
            rows += new
    return pd.DataFrame(rows)


def _answered(
    jobs: Sequence[Job],
    model: Lazy,
    judge: Lazy,
    journal: records.Journal | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Iterator[tuple[Job, list[Answer]]]:
    """Ask the model's requests, then the judge's; yield each job when all its answers are there.

    Args:
        journal: has answers that came before, and keeps those that come one at a time.
        advance: is told how many more answers there are.
    """
    missing = {job.number: (job, _known_answers(job, journal)) for job in jobs}

    def complete(number: int) -> Iterator[tuple[Job, list[Answer]]]:
        job, known = missing[number]
        if len(known) == len(job.planned):
            del missing[number]
            yield job, [known[position] for position in range(len(known))]

    for number, (_, known) in list(missing.items()):
        advance(len(known))
        yield from complete(number)
    for role, lazy in (("model", model), ("judge", judge)):
        todo = [
            Asked(number, position, request)
            for number, (job, known) in missing.items()
            for position, request in enumerate(job.finished)
            if request and request.of_judge == (role == "judge") and position not in known
        ]
        if not todo:
            continue
        scorer = lazy.load()
        for batch in _explain_failures(role, _ask(scorer, todo)):
            for (number, position, request), answer in batch:
                if journal and isinstance(scorer, StreamingScorer):
                    values = (getattr(answer, name) for name in ANSWER)
                    journal.add(number, position, digest(request.text), [*values])
                missing[number][1][position] = answer
            advance(len(batch))
            for number in {asked.shard for asked, _ in batch}:
                yield from complete(number)


def _ask(scorer: Scorer, todo: Sequence[Asked]) -> Iterator[list[tuple[Asked, Answer]]]:
    """Yield the answers as they come: one at a time, or those of a shard together."""
    if isinstance(scorer, StreamingScorer):
        for k, answer in scorer.stream([request for _, _, request in todo]):
            yield [(todo[k], answer)]
        return
    shards = {number: list(group) for number, group in groupby(todo, key=lambda a: a.shard)}
    requests = {number: [asked.request for asked in shard] for number, shard in shards.items()}
    if isinstance(scorer, DistributedScorer):
        answered = scorer.answer_shards(requests)
    else:
        answered = ((number, scorer.answer(shard)) for number, shard in requests.items())
    for number, answers in answered:
        yield list(zip(shards[number], answers, strict=True))


def _explain_failures(role: str, batches: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from batches
    except RunFailed as error:
        # Failures on a cluster say themselves who did not answer.
        text = str(error) if CONTINUES in str(error) else f"the {role}: {error}; {CONTINUES}"
        raise RunFailed(text) from error
    except (RuntimeError, OSError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunFailed(f"the {role} did not answer ({first_line}); {CONTINUES}") from error


def _job(number: int, planned: Sequence[Request], replies: Replies) -> Job:
    finished = [
        request.then(request, replies[_key(request, request.after)]) if request.then else request
        for request in planned
    ]
    return Job(number, planned, finished)


def _key(request: Request, name: str) -> tuple[Any, ...]:
    return request.task, request.item_id, name, request.repeat


def _known_answers(job: Job, journal: records.Journal | None) -> dict[int, Answer]:
    """Return by position the answers that are in the journal, or of what is not asked."""
    known = {}
    for position, request in enumerate(job.finished):
        if request is None:
            known[position] = Answer("", error=NOT_ASKED)
        elif journal and (values := journal.get(job.number, position, digest(request.text))):
            answer = dict(zip(ANSWER, values, strict=True))
            if answer["logprobs"] is not None:
                answer["logprobs"] = tuple(answer["logprobs"])
            known[position] = Answer(**answer)
    return known


def _report_tokens(title: str, scorers: Sequence[Lazy], seconds: float) -> None:
    """Print how many tokens were asked and computed, how fast, and what endpoints counted."""
    loaded = [lazy.load() for lazy in dict.fromkeys(scorers) if lazy.loaded]
    for spent in (getattr(scorer, "spent", "") for scorer in loaded):
        if spent:
            say(f"{title}: {spent}")
    tallies = [scorer.tally for scorer in loaded if isinstance(scorer, Model)]
    asked, computed = sum(t.asked for t in tallies), sum(t.computed for t in tallies)
    if asked:
        say(
            f"{title}: {asked:,} tokens asked, {computed:,} computed ({computed / asked:.0%}), "
            f"{computed / seconds:,.0f} a second"
        )


def _recorded_replies(folder: Path, requests: Sequence[Request]) -> Replies:
    """Read the replies that requests need from the records."""
    wanted = {(request.task, request.after) for request in requests if request.after}
    if not wanted:
        return {}
    rows = records.read(folder)
    columns = ("task", "item_id", "request", "repeat", "response", "error")
    return {
        (task, item, name, repeat): None if error else response
        for task, item, name, repeat, response, error in zip(
            *(rows[column] for column in columns), strict=True
        )
        if (task, name) in wanted
    }


def _rows(plan: Plan, job: Job, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    requests = [
        finished or planned for planned, finished in zip(job.planned, job.finished, strict=True)
    ]
    return [_row(plan, request, answer) for request, answer in zip(requests, answers, strict=True)]


def _row(plan: Plan, request: Request, answer: Answer) -> dict[str, Any]:
    parse, item = module("tasks", plan.benchmark).parse, plan.by_id[request.item_id]
    parsed = "" if answer.error else parse(request.task, request.request, answer.response, item)
    same = ("category", "task", "item_id", "request", "repeat", "seed", "prompt_version")
    return {
        "benchmark": plan.benchmark,
        **{name: getattr(request, name) for name in same},
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
