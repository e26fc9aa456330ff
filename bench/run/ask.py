"""Ask the model and the judge the requests that have no recorded answer, stage by stage.

Some requests contain an earlier reply. We write their text only when this reply is on record, so
that a killed run continues like an uninterrupted one.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import pyarrow as pa

from bench.core.errors import CONTINUES, BadInput, BudgetSpent, RunFailed, explain_others
from bench.core.progress import progress, say
from bench.run.plan import Plan, Requests
from bench.run.run_json import broken, has_endpoint, other_scorer
from bench.runs import records
from bench.runs.records import Replies
from bench.scorers.base import FEWEST_TOGETHER, Answer, Model, checked, digest
from bench.scorers.names import short_name
from bench.tasks.request import Request

# The most requests that a local model gets at a time. It gets fewer if these take a minute.
BLOCK_REQUESTS = 256
NOT_ASKED = "not asked: the reply that it is about did not come"
Batch = list[tuple[Request, Answer]]


def ask_requests(
    plan: Plan, metadata: dict[str, Any], requests: Requests, scorers: dict[str, Model]
) -> None:
    """Ask the requests without an answer; `scorers` loads the model of a role on first use."""
    folder = plan.folder
    every_request = list(chain(*requests.stages))
    rows = records.reopen(folder)
    if has_endpoint(metadata):
        is_broken = broken(rows)
        if is_broken.any():
            say(f"{folder}: {is_broken.sum():,} answers came back broken; they are asked again")
        rows = rows[~is_broken]
    replies = records.replies_of(rows)
    # If an earlier reply changes, so does a prompt with it, and the old answer does not count.
    hashes = dict(zip(replies, rows.prompt_hash.tolist(), strict=True))
    unanswered = (request for request in every_request if key_of(request) not in replies)
    for role in dict.fromkeys(map(role_of, unanswered)):
        if role not in scorers and (other := other_scorer(metadata[role], scorers[role])):
            raise BadInput(
                f"{folder}: was begun with another {role} ({other}); give the same one, or "
                "another --out"
            )
    name = metadata.get("name") or short_name(plan.config.as_model or plan.config.model)
    title, start = f"asking {name} {plan.benchmark.name}", time.perf_counter()
    with progress(requests.total, title, "requests", len(replies)) as bar:

        def record(batch: Batch) -> None:
            replies.update({key_of(r): None if a.error else a.response for r, a in batch})
            records.add(folder, [_row(plan, *answered) for answered in batch])
            bar.update(len(batch))

        for stage in requests.stages:
            role, batch = role_of(stage[0]), Batch()
            blocks, unanswerable, answered = _sort(stage, replies, hashes)
            if unanswerable:
                record(unanswerable)
            if not blocks:
                continue
            model = scorers[role]
            model.answered = {**answered, **model.answered}
            try:
                for batch in _answers(role, model, blocks):
                    record(batch)
            except KeyboardInterrupt:
                # `batch` may be recorded twice; then its last lines count.
                record([*batch, *((r, checked(a, r.request_type)) for r, a in model.waiting())])
                raise
    # A model of another package can leave out a request.
    in_order = {key: replies.get(key) for key in map(key_of, every_request)}
    answers = records.finish(folder, metadata, in_order, plan.benchmark)
    _report(title, answers, scorers, time.perf_counter() - start)


def _sort(
    stage: Sequence[Request], replies: Replies, hashes: Mapping[tuple[Any, ...], str]
) -> tuple[list[list[Request]], Batch, dict[str, Request]]:
    """Sort the requests of a stage.

    Args:
        hashes: the hashes of the prompts of recorded answers.

    Returns:
        Blocks of requests for the model; requests that contain a reply that did not come, with
        this error; and one answered request of each type.
    """
    blocks = defaultdict[tuple[str, int], list[Request]](list)
    unanswerable: Batch = []
    answered: dict[str, Request] = {}
    n_of_type = Counter[str]()
    # Similar requests follow each other, so that models reuse common prefixes.
    for request in sorted(stage, key=lambda r: (r.request_type, len(r.options), r.text)):
        n_of_type[request.request_type] += 1
        finished: Request | None = request
        if request.then:
            finished = request.then(request, replies.get(before_of(request)))
        key = key_of(request)
        if key in hashes and hashes[key] == digest((finished or request).text):
            if finished and replies[key] is not None:
                answered[finished.request_type] = finished
        elif finished:
            # The first requests show how long others will take.
            number = n_of_type[request.request_type] - 1 - FEWEST_TOGETHER
            blocks[request.request_type, number // BLOCK_REQUESTS].append(finished)
        else:
            unanswerable.append((request, Answer("", error=NOT_ASKED)))
    return list(blocks.values()), unanswerable, answered


def _answers(role: str, model: Model, blocks: list[list[Request]]) -> Iterator[Batch]:
    """Yield checked answers as they come; explain failures."""
    try:
        for batch in model.stream(blocks):
            yield [(request, checked(answer, request.request_type)) for request, answer in batch]
    except BadInput:
        raise
    except RunFailed as error:
        text = str(error) if CONTINUES in str(error) else f"the {role}: {error}; {CONTINUES}"
        raise (BudgetSpent if isinstance(error, BudgetSpent) else RunFailed)(text) from error
    except (Exception, SystemExit):  # code of others can raise anything
        with explain_others(RunFailed, f"the {role} did not answer (", f"); {CONTINUES}"):
            raise


def _row(plan: Plan, request: Request, answer: Answer) -> dict[str, Any]:
    names = ("category", "task", "item_id", "request", "repeat", "seed", "prompt_version")
    return {
        "benchmark": plan.benchmark.name,
        **{name: getattr(request, name) for name in names},
        "prompt_hash": digest(request.text),
        "prompt": request.text,
        **asdict(answer),
    }


def key_of(request: Request) -> tuple[Any, ...]:
    """Return the values of `bench.runs.records.KEYS`, which identify a request in its run."""
    return request.task, request.item_id, request.request, request.repeat


def before_of(request: Request) -> tuple[Any, ...]:
    """Return the key of the earlier request, for a request that contains its reply."""
    return request.task, request.item_id, request.after, request.repeat


def role_of(request: Request) -> str:
    return "judge" if request.of_judge else "model"


def _report(title: str, answers: pa.Table, scorers: Mapping[str, Model], seconds: float) -> None:
    """Print the numbers of tokens, tokens per second, and replies that were cut off."""
    loaded = list(dict.fromkeys(scorers.values()))
    for scorer in loaded:
        if spent := getattr(scorer, "spent", ""):
            say(f"{title}: {spent}")
    n_asked, n_computed = (sum(getattr(s.tally, n) for s in loaded) for n in ("asked", "computed"))
    if n_asked:
        say(
            f"{title}: {n_asked:,} tokens asked, {n_computed:,} computed, "
            f"{n_computed / seconds:,.0f} a second"
        )
    if cut := Counter(answers["task"].filter(answers["cut"]).to_pylist()):
        by_task = ", ".join(f"{task} {n:,}" for task, n in cut.items())
        say(
            f"{title}: replies that were cut off at their limit of tokens: {by_task}; "
            "--max-new-tokens allows longer ones, --thinking-tokens thoughts before them"
        )
