"""Requests for a batch service, written a stage at a time, and a check of what came back."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.config import Generation, RunConfig
from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.core.progress import say
from bench.data.readers import as_path
from bench.run.execute import Replies
from bench.run.plan import Plan, Requests
from bench.scorers.base import Scorer
from bench.scorers.endpoint.batch import Batch, listed
from bench.tasks.request import Request

# Services take up to so many requests in a file, all for one model.
MOST = 50_000
CHAT = "/v1/chat/completions"
# Stands for whoever answers, of which requests do not depend.
ANYBODY = "simulated:"


class Progress(NamedTuple):
    """How far results answer the requests of a run.

    Attributes:
        missing: requests that can be asked and have no answer, with who is asked.
        waiting: how many requests need replies that are not there yet.
        unknown: ids of results that belong to no request.
    """

    missing: list[tuple[Batch, Request]]
    waiting: int
    unknown: list[str]


class Written(NamedTuple):
    """A file of requests, the model that is asked, and the number of requests by task."""

    path: Path
    model: str
    tasks: Counter[str]


def compare(
    requests: Requests, model: Scorer | None, judge: Scorer | None, again: bool = False
) -> Progress:
    """Compare results with requests; nothing is known of a scorer that holds no results.

    `again` counts what the service failed to answer as missing, else as answered by an error.
    """
    replies: Replies = {}
    missing: list[tuple[Batch, Request]] = []
    asked: set[str] = set()
    waiting = 0
    for planned in (request for stage in requests.stages for request in stage):
        names = planned.task, planned.item_id
        request: Request | None = planned
        if planned.then:
            before = (*names, planned.after, planned.repeat)
            if before not in replies:
                waiting += 1
                continue
            request = planned.then(planned, replies[before])
        key = (*names, planned.request, planned.repeat)
        if request is None:  # what it is about did not come
            replies[key] = None
            continue
        scorer = judge if request.of_judge else model
        if not isinstance(scorer, Batch):
            continue
        result = scorer.find(request)
        asked.add(result.custom_id)
        if result.answer is None or (result.failure and again):
            missing.append((scorer, request))
        else:
            replies[key] = None if result.answer.error else result.answer.response
    known: set[str] = set()
    for scorer in (model, judge):
        known |= scorer.ids if isinstance(scorer, Batch) else set()
    return Progress(missing, waiting, sorted(known - asked))


def check(requests: Requests, model: Scorer | None, judge: Scorer | None) -> None:
    """Refuse results that lack answers, or that answer something else."""
    given = [scorer for scorer in (model, judge) if isinstance(scorer, Batch)]
    if not given:
        return
    state = compare(requests, model, judge)
    # Where somebody else judges, what follows the verdict is not known yet.
    unknown = state.unknown if state.missing or not state.waiting else []
    problems = []
    if state.missing:
        ids = [batch.find(request).custom_id for batch, request in state.missing]
        problems.append(listed("requests without an answer", ids))
    if unknown:
        problems.append(listed("answers to no request of this run", unknown))
    if problems:
        source = ", ".join(dict.fromkeys(str(batch.source) for batch in given))
        hint = "give the options that `bench requests` had, and its results alone"
        if not unknown:
            hint = f"`bench requests` with --results {source} writes what is left to ask"
        raise BadInput(f"{source}: {'; '.join([*problems, hint])}")


def write(
    config: RunConfig, results: str, out: Path, url: str = CHAT
) -> tuple[list[Written], Progress]:
    """Write the requests that can be asked now, and say how far the run is.

    Model and judge have files of their own, and so has every part of at most `MOST` requests.

    Args:
        config: `as_model`, and `as_judge` if there is one, are the names at the service.
        results: a file, or a folder of files, of what came back so far; empty for none.
        out: the file; parts have a number, and a judge's the word judge, at the end of the name.

    Raises:
        BadInput: an option or a result is wrong; nothing is written.
        NotApplicable: a batch cannot do a task.
    """
    name = config.as_model or ""
    judged = {"judge": ANYBODY} if config.as_judge else {}
    nobody = {"model": ANYBODY, **judged, "as_model": None, "as_judge": None}
    plan = Plan.make(config.model_copy(update=nobody))
    source = as_path(results) if results else None
    if source and not source.exists():
        raise BadInput(f"--results {results}: no such file or folder")
    if source and source.resolve() in (out.resolve(), out.resolve().parent):
        raise BadInput(f"--out {out}: is among the results; give another file, in another folder")
    model = Batch(source, name, config.generation)
    judge = None
    if config.as_judge and plan.asked["judge"]:
        thinking = Generation(thinking_tokens=config.thinking_tokens)
        judge = Batch(source, config.as_judge, thinking)
    plan = replace(plan, asked={**plan.asked, "model": name, "judge": config.as_judge})
    verbs = Batch.verbs if judge else ()
    spelt = "--judge MODEL", "--as-judge NAME"
    try:
        requests = plan.requests(Batch.verbs, Batch.reads, verbs, False, model.lacks)
    except BadInput as error:
        raise type(error)(str(error).replace(*spelt)) from None
    for task, reason in requests.left_out.items():
        say(f"task {task} is left out: {reason.replace(*spelt)}")
    state = compare(requests, model, judge, again=True)
    if state.unknown:
        raise BadInput(
            f"{results}: {listed('answers to no request of this run', state.unknown)}; give the "
            "same options every time, and the results of these requests alone"
        )
    written = []
    for batch in filter(None, (model, judge)):
        asked = [request for scorer, request in state.missing if scorer is batch]
        suffix = "-judge" if batch is judge else ""
        parts = [asked[k : k + MOST] for k in range(0, len(asked), MOST)]
        for k, part in enumerate(parts, start=1):
            number = f"-{k}" if len(parts) > 1 else ""
            path = out.with_name(f"{out.stem}{suffix}{number}{out.suffix or '.jsonl'}")
            lines = (json.dumps(batch.line(request, url), ensure_ascii=False) for request in part)
            with explain_write_errors(path):
                atomic_write(path, "".join(f"{line}\n" for line in lines))
            written.append(
                Written(path, batch.chat.name, Counter(request.task for request in part))
            )
    return written, state
