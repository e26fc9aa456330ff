"""Ask the requests of a plan that no record answers yet, shard by shard, of the model or the judge.

A request that needs an earlier reply is finished when that reply is on record, so that a run that
was killed between the two continues like one that was not.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from bench import records
from bench.benchmarks import module
from bench.core.errors import CONTINUES, BadInput, BudgetSpent, RunFailed
from bench.core.progress import progress, say
from bench.records import Journal
from bench.run.plan import Plan, Requests
from bench.run.results import short_name
from bench.run.run_json import check_same_scorer
from bench.scorers.base import Answer, Model, checked, digest, is_broken
from bench.tasks.request import Request

if TYPE_CHECKING:
    from tqdm import tqdm

# What the journal keeps of an answer.
ANSWER = ("response", "logprobs", "error", "seconds", "cut")
NOT_ASKED = "not asked: the reply that it is about did not come"
# Replies by task, item, request and repeat; None for one that did not come.
Replies = dict[tuple[Any, ...], str | None]
# Task, item, request and repeat.
Position = tuple[str, str, str, int]
# A request that has to be asked: its shard, its position there, and the request.
Asked = tuple[int, int, Request]


class Lazy:
    """A scorer that is loaded when it is first needed; a complete run needs none."""

    def __init__(self, make: Callable[[], Model]) -> None:
        self._make = make
        self.loaded = False

    def load(self) -> Model:
        if not self.loaded:
            self._scorer = self._make()
            self.loaded = True
        return self._scorer


class Shard(NamedTuple):
    """A shard that has to be asked.

    Attributes:
        planned: its requests, in order.
        finished: the same with the replies that they are about; None where no such reply came.
        answers: by position; those that are known before anything is asked are there at first.
    """

    number: int
    planned: Sequence[Request]
    finished: Sequence[Request | None]
    answers: dict[int, Answer]

    @classmethod
    def of(
        cls,
        number: int,
        planned: Sequence[Request],
        replies: Replies,
        journal: Journal | None,
        recorded: Mapping[Position, Answer],
    ) -> "Shard":
        """Finish requests by `replies`, and take the answers on record and in the journal."""
        finished: list[Request | None] = []
        answers = {}
        for position, request in enumerate(planned):
            complete: Request | None = request
            if request.then:
                key = request.task, request.item_id, request.after, request.repeat
                complete = request.then(request, replies[key])
            finished.append(complete)
            if complete is None:
                answers[position] = Answer("", error=NOT_ASKED)
            elif known := recorded.get(position_of(request)):
                answers[position] = known
            elif journal and (values := journal.get(number, position, digest(complete.text))):
                response, logprobs, *others = values
                logprobs = None if logprobs is None else tuple(logprobs)
                answers[position] = Answer(response, logprobs, *others)
        return cls(number, planned, finished, answers)

    def rows(self, plan: Plan) -> list[dict[str, Any]]:
        """Return its records."""
        parse, rows = module("tasks", plan.benchmark).parse, []
        copied = ("category", "task", "item_id", "request", "repeat", "seed", "prompt_version")
        for position, planned in enumerate(self.planned):
            request, answer = self.finished[position] or planned, self.answers[position]
            parsed = ""
            if not answer.error:
                item = plan.by_id[request.item_id]
                parsed = parse(request.task, request.request, answer.response, item)
            rows.append(
                {
                    "benchmark": plan.benchmark,
                    **{name: getattr(request, name) for name in copied},
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
            )
        return rows


def execute_requests(
    folder: Path,
    plan: Plan,
    about: dict[str, Any],
    requests: Requests,
    model: Lazy,
    judge: Lazy,
    refusal: str,
) -> None:
    """Ask what is missing in a run's folder, and write it unless `refusal` says why not."""
    places = {id(request): place for place, request in enumerate(chain(*requests.stages))}
    stages = requests.shards(about["shard"])
    sizes = {number: len(shard) for stage in stages for number, shard in stage}
    missing = records.missing_shards(folder, sizes)
    if refusal and missing:
        raise BadInput(refusal)
    for number, reason in missing.items():
        if reason:
            records.set_aside(folder, number, reason)
    recorded: dict[Position, Answer] = {}
    again: set[Position] = set()
    if not refusal and len(missing) < len(sizes) and _is_endpoint(about):
        recorded, again = _beside_broken(folder)
    stages = [
        [
            (k, shard)
            for k, shard in stage
            if k in missing or any(position_of(request) in again for request in shard)
        ]
        for stage in stages
    ]
    left = [request for stage in stages for _, shard in stage for request in shard]
    for role, scorer in (("model", model), ("judge", judge)):
        is_needed = any(
            request.of_judge == (role == "judge") and position_of(request) not in recorded
            for request in left
        )
        if is_needed and about[role] and not scorer.loaded:
            check_same_scorer(folder, role, about[role], scorer.load())
    if refusal:
        return
    name = about.get("name") or short_name(plan.asked.get("as_model") or plan.asked["model"])
    title, start = f"asking {name} {plan.benchmark}", time.perf_counter()
    n_done = requests.total - len(left)
    with Journal(folder) as journal, progress(requests.total, title, "requests", n_done) as bar:
        for stage in filter(None, stages):
            needs_replies = any(request.after for _, shard in stage for request in shard)
            replies = replies_of(records.read(folder, prompts=False)) if needs_replies else {}
            shards = [
                Shard.of(number, planned, replies, journal, recorded) for number, planned in stage
            ]
            for shard in _answered(shards, model, judge, journal, bar):
                rows = shard.rows(plan)
                for request, row in zip(shard.planned, rows, strict=True):
                    row["place"] = places[id(request)]
                records.write_shard(folder, shard.number, rows)
    _report_tokens(title, [model, judge], time.perf_counter() - start)
    if left and (cut := records.count_cut_off(folder)):
        by_task = ", ".join(f"{task} {n:,}" for task, n in cut.items())
        say(
            f"{title}: replies that were cut off at their limit of tokens: {by_task}; "
            "--max-new-tokens allows longer ones, --thinking-tokens thoughts before them"
        )


def _is_endpoint(about: Mapping[str, Any]) -> bool:
    """Tell whether a run's model or judge is a service, whose answers can come back broken."""
    return any("url" in (about[role] or {}) for role in ("model", "judge"))


def _beside_broken(folder: Path) -> tuple[dict[Position, Answer], set[Position]]:
    """Return the answers on record, and what is asked again; both are empty if no answer is broken.

    Requests about a reply that did not come are among the latter.
    """
    rows = records.read(folder, prompts=False)
    broken = rows.error.map(is_broken).astype(bool)
    if not broken.any():
        return {}, set()
    say(f"{folder}: {broken.sum():,} answers came back broken; they are asked again")
    recorded: dict[Position, Answer] = {}
    again: set[Position] = set()
    columns = ("task", "item_id", "request", "repeat", *ANSWER)
    for *names, response, logprobs, error, seconds, cut in zip(
        *(rows[name].tolist() for name in columns), strict=True
    ):
        position: Any = tuple(names)
        if is_broken(error) or error == NOT_ASKED:
            again.add(position)
        else:
            values = None if logprobs is None else tuple(logprobs)
            recorded[position] = Answer(response, values, error, seconds, cut)
    return recorded, again


def position_of(request: Request) -> Position:
    """Return what tells a request from the others of its run."""
    return request.task, request.item_id, request.request, request.repeat


def answers(
    plan: Plan, requests: Requests, model: Model, judge: Model | None = None
) -> pd.DataFrame:
    """Ask all requests and return rows as records have them; nothing is written.

    For respondents that answer at once and can be asked again: this cannot be continued.
    """
    rows: list[dict[str, Any]] = []
    scorers = Lazy(lambda: model), Lazy(lambda: judge or model)
    for number, stage in enumerate(requests.stages):
        shards = [Shard.of(number, stage, replies_of(pd.DataFrame(rows)), None, {})]
        for shard in _answered(shards, *scorers):
            rows += shard.rows(plan)
    return pd.DataFrame(rows)


def _answered(
    shards: Sequence[Shard],
    model: Lazy,
    judge: Lazy,
    journal: Journal | None = None,
    bar: "tqdm[Any] | None" = None,
) -> Iterator[Shard]:
    """Ask the model's requests, then the judge's; yield each shard when its answers are complete.

    The journal keeps answers that come one at a time; `bar` counts all.
    """
    missing = {shard.number: shard for shard in shards}

    def complete(numbers: Iterable[int]) -> Iterator[Shard]:
        for number in list(numbers):
            if len(missing[number].answers) == len(missing[number].planned):
                yield missing.pop(number)

    if bar is not None:
        bar.update(sum(len(shard.answers) for shard in shards))
    yield from complete(missing)
    for role, lazy in (("model", model), ("judge", judge)):
        todo = [
            (number, position, request)
            for number, shard in missing.items()
            for position, request in enumerate(shard.finished)
            if request and request.of_judge == (role == "judge") and position not in shard.answers
        ]
        if not todo:
            continue
        scorer = lazy.load()
        if bar is not None:
            bar.unpause()
        streamed = hasattr(scorer, "stream")
        for batch in _explain_failures(role, _ask(scorer, todo)):
            for (number, position, request), new in batch:
                answer = checked(new, request.verb)
                if journal and streamed and not is_broken(answer.error):
                    values = [getattr(answer, name) for name in ANSWER]
                    journal.add(number, position, digest(request.text), values)
                missing[number].answers[position] = answer
            if bar is not None:
                bar.update(len(batch))
            yield from complete({number for (number, *_), _ in batch})


def _ask(scorer: Any, todo: Sequence[Asked]) -> Iterator[list[tuple[Asked, Answer]]]:
    """Yield the answers as they come.

    One at a time where a scorer has `stream`, else those of a shard together; a scorer with
    `answer_shards` gets all shards at once and answers them in any order.
    """
    if hasattr(scorer, "stream"):
        for k, answer in scorer.stream([request for _, _, request in todo]):
            yield [(todo[k], answer)]
        return
    shards = {number: list(group) for number, group in groupby(todo, key=itemgetter(0))}
    requests = {number: [request for _, _, request in shard] for number, shard in shards.items()}
    if hasattr(scorer, "answer_shards"):
        answered = scorer.answer_shards(requests)
    else:
        answered = ((number, scorer.answer(shard)) for number, shard in requests.items())
    for number, answers in answered:
        yield list(zip(shards[number], answers, strict=True))


def _explain_failures(role: str, batches: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from batches
    except BadInput:
        raise
    except RunFailed as error:
        # Failures on a cluster say themselves who did not answer.
        text = str(error) if CONTINUES in str(error) else f"the {role}: {error}; {CONTINUES}"
        raise (BudgetSpent if isinstance(error, BudgetSpent) else RunFailed)(text) from error
    except Exception as error:  # the code of a model or of a plug-in can raise anything
        reason = (str(error).splitlines() or [""])[0]
        if not reason or not isinstance(error, RuntimeError | OSError):
            reason = f"{type(error).__name__} {reason}".strip()
        raise RunFailed(f"the {role} did not answer ({reason}); {CONTINUES}") from error


def replies_of(rows: pd.DataFrame) -> Replies:
    """Return the replies in records by task, item, request and repeat."""
    columns = ("task", "item_id", "request", "repeat", "response", "error")
    values = [rows[name].tolist() if name in rows else [] for name in columns]
    return {
        tuple(key): None if error else response
        for *key, response, error in zip(*values, strict=True)
    }


def _report_tokens(title: str, scorers: Sequence[Lazy], seconds: float) -> None:
    """Print how many tokens were asked and computed, how fast, and what endpoints counted."""
    loaded = [lazy.load() for lazy in dict.fromkeys(scorers) if lazy.loaded]
    for spent in (getattr(scorer, "spent", "") for scorer in loaded):
        if spent:
            say(f"{title}: {spent}")
    tallies = [scorer.tally for scorer in loaded]
    asked, computed = sum(t.asked for t in tallies), sum(t.computed for t in tallies)
    if asked:
        say(
            f"{title}: {asked:,} tokens asked, {computed:,} computed ({computed / asked:.0%}), "
            f"{computed / seconds:,.0f} a second"
        )
