"""Write the requests of a run for a batch service, stage by stage, and check its results."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from bench.config import Generation, RunConfig
from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.core.progress import say
from bench.data.readers import as_path
from bench.run.costs import abilities
from bench.run.execute import Replies, before_of, key_of, role_of
from bench.run.plan import Plan, Requests
from bench.scorers.base import Answer, Model
from bench.scorers.endpoint.batch import Batch
from bench.tasks.request import Request

CHAT = "/v1/chat/completions"
# A placeholder for the model and the judge: this plan does not depend on them.
PLACEHOLDER = "simulated:"


class Written(NamedTuple):
    """A file of requests, its model, and the number of requests by task."""

    path: Path
    model: str
    tasks: Counter[str]


def compare(
    requests: Requests, scorers: Mapping[str, Model | None], again: bool
) -> tuple[list[tuple[Batch, Request]], int]:
    """Return the requests without a result, and how many others wait for replies to these.

    With `again`, a failure of the service counts as no result.
    """
    replies: Replies = {}
    missing, waiting = [], 0
    batches = [one for one in scorers.values() if isinstance(one, Batch)]
    unknown = {key for batch in batches for key in batch.ids}
    for planned in chain(*requests.stages):
        before, key = before_of(planned), key_of(planned)
        if planned.then and before not in replies:
            waiting += 1
            continue
        request = planned.then(planned, replies[before]) if planned.then else planned
        scorer = scorers.get(role_of(planned))
        if request is None:  # the earlier reply failed
            replies[key] = None
        elif isinstance(scorer, Batch):
            unknown.discard(scorer.id_of(request))
            found = scorer.find(request)
            if found is None or (again and not isinstance(found, Answer)):
                missing.append((scorer, request))
            elif isinstance(found, Answer) and not found.error:
                replies[key] = found.response
            else:
                replies[key] = None
    # If another model judges, the requests that follow its verdict are not known yet.
    if unknown and len(batches) == len(scorers):
        raise BadInput(
            f"{batches[0].source}: {len(unknown):,} results, such as {min(unknown)}, answer no "
            "request of this run; give the options of the first `bench requests`, and only its "
            "results"
        )
    return missing, waiting


def check(requests: Requests, scorers: Mapping[str, Model | None]) -> None:
    """Refuse results that lack answers, or that answer other requests."""
    missing, _ = compare(requests, scorers, again=False)
    if missing:
        batch, request = missing[0]
        raise BadInput(
            f"{batch.source}: has no answer to {len(missing):,} requests, such as "
            f"{batch.id_of(request)}; `bench requests` with the same options and --results "
            f"{batch.source} writes the requests that are left"
        )


def write(config: RunConfig, results: str, out: Path, url: str = CHAT) -> tuple[list[Written], int]:
    """Write the requests that can be asked now; also return how many need replies to these.

    Args:
        config: `as_model` and `as_judge` are the names at the service.
        results: a file, or a folder of files, of the results so far; empty for none.
        out: the file for the model, for example `r.jsonl`; the judge gets `r-judge.jsonl`.
    """
    source = as_path(results) if results else None
    if source and not source.exists():
        raise BadInput(f"--results {results}: no such file or folder")
    if source and source.resolve() in (out.resolve(), out.resolve().parent):
        raise BadInput(f"--out {out}: is among the results; give another file, in another folder")
    names = {"model": config.as_model or "", "judge": config.as_judge}
    placeholders = {role: PLACEHOLDER for role, name in names.items() if name}
    plan = Plan(config.model_copy(update={**placeholders, "as_model": None, "as_judge": None}))
    batches = {"model": Batch(source, config.as_model or "", config.generation)}
    if config.as_judge and plan.options["judge"]:
        thinking = Generation(thinking_tokens=config.thinking_tokens)
        batches["judge"] = Batch(source, config.as_judge, thinking)
    plan.options |= names
    spelt = "--judge MODEL", "--as-judge NAME"
    try:
        requests = plan.requests(abilities(**batches), False)
    except BadInput as error:
        raise type(error)(str(error).replace(*spelt)) from None
    for task, reason in requests.skipped.items():
        say(f"task {task} is left out: {reason.replace(*spelt)}")
    missing, waiting = compare(requests, batches, again=True)
    written = []
    for role, batch in batches.items():
        todo = [request for scorer, request in missing if scorer is batch]
        if todo:
            suffix = "" if role == "model" else "-judge"
            path = out.with_name(f"{out.stem}{suffix}{out.suffix or '.jsonl'}")
            lines = (json.dumps(batch.line(request, url), ensure_ascii=False) for request in todo)
            atomic_write(path, "".join(f"{line}\n" for line in lines))
            tasks = Counter(request.task for request in todo)
            written.append(Written(path, batch.chat.name, tasks))
    return written, waiting
