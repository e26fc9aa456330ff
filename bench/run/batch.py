"""Write the requests of a run as files of a batch service, stage by stage."""

import json
from collections import defaultdict
from itertools import chain
from pathlib import Path

from bench.benchmarks import get
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.core.progress import say
from bench.data.readers import as_path
from bench.run.ask import NOT_ASKED, before_of, key_of, role_of
from bench.run.plan import abilities_of, make_requests, plan_run
from bench.runs.records import Replies
from bench.scorers.base import Answer
from bench.scorers.endpoint.batch import Batch
from bench.scorers.endpoint.chat import Chat


def write(config: RunConfig, results: str, out: Path) -> tuple[dict[Path, int], int]:
    """Write the requests that can be asked now and have no answer yet.

    Args:
        config: the options of the run, with `as_model` and `as_judge` as the service names them.
        results: the file, or a folder of files, with the results so far; empty for none.
        out: the file for the model, for example `r.jsonl`; the judge gets `r-judge.jsonl`.

    Returns:
        The number of requests in each file, and the number of requests that wait for replies.
    """
    source = as_path(results) if results else None
    if source and not source.exists():
        raise BadInput(f"--results {results}: no such file or folder")
    if source and source.resolve() in (out.resolve(), out.resolve().parent):
        raise BadInput(f"--out {out}: is among the results; give another file, in another folder")
    names = {"model": config.as_model, "judge": config.as_judge}
    chats = {
        role: Chat(name, config.generation, config.limits.leave_out)
        for role, name in names.items()
        if name
    }
    # Ids do not depend on the fields that are left out.
    batches = {role: Batch(source, chat.name, config.generation) for role, chat in chats.items()}
    # The plan does not depend on the model and the judge.
    updates = {**dict.fromkeys(batches, "simulated:"), "as_model": None, "as_judge": None}
    plan = plan_run(get(config.benchmark), config.model_copy(update=updates))
    plan.asked.update(names)
    option, ours = "--judge MODEL", "--as-judge NAME"
    try:
        requests = make_requests(plan, abilities_of(**batches), False)
    except BadInput as error:
        raise type(error)(str(error).replace(option, ours)) from None
    for task, reason in requests.skipped.items():
        say(f"task {task} is left out: {reason.replace(option, ours)}")
    paths = {"model": out, "judge": out.with_stem(f"{out.stem}-judge")}
    lines = defaultdict[Path, list[str]](list)
    replies: Replies = {}
    waiting = 0
    for planned in chain(*requests.stages):
        before, role = before_of(planned), role_of(planned)
        if planned.then and before not in replies:
            waiting += 1
            continue
        request = planned.then(planned, replies[before]) if planned.then else planned
        answer = batches[role].find(request) if request else Answer("", error=NOT_ASKED)
        if isinstance(answer, Answer):
            replies[key_of(planned)] = None if answer.error else answer.response
        elif request:
            line = {
                "custom_id": batches[role].id_of(request),
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": chats[role].body(request),
            }
            lines[paths[role]].append(f"{json.dumps(line, ensure_ascii=False)}\n")
    for path, texts in lines.items():
        atomic_write(path, "".join(texts))
    return {path: len(texts) for path, texts in lines.items()}, waiting
