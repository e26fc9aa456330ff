"""Estimate the requests, tokens and costs of a run, without loading its model.

We estimate tokens from characters. The bounds are those of the tokenizers of DeepSeek, Qwen,
GPT-4o, Mistral, Claude 2 and GPT-4 on this package's Chinese and English prompts.
"""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from bench import scorers
from bench.benchmarks import get
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.run import run_json
from bench.run.ask import before_of, key_of, role_of
from bench.run.plan import Respondents, abilities_of, make_requests, plan_run
from bench.runs import records
from bench.scorers.names import short_name
from bench.tasks.request import Request

# Consecutive characters that are as wide as Chinese and Japanese ones.
WIDE = re.compile(r"(?:[\u2e80-\uffef]|[^\u0000-\uffff])+")
# The bounds of tokens per wide character, per other character, and around a conversation.
BOUNDS = {"low": (0.6, 0.2, 4), "high": (1.2, 0.5, 30)}
HOW = (
    "tokens read: 0.6 to 1.2 per Chinese or Japanese character and 0.2 to 0.5 per other one; 4 to "
    "30 more around a conversation; a reply has one token at least, and its limit of tokens at most"
)
# A placeholder for a reply that is not there yet.
REPLY = "。"
TOKENS = ["tokens_in_low", "tokens_in_high", "tokens_out_low", "tokens_out_high"]


class Estimate(NamedTuple):
    """The requests, tokens and costs of a run.

    Attributes:
        parts: one row per task and role (`model` or `judge`): the numbers of `requests` and of
            `recorded` answers, and the bounds of tokens and costs of the remaining requests; costs
            are NaN without a price.
        notes: how tokens were counted, and which tasks are skipped.

    Examples:
        >>> cost = estimate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> cost.parts[["task", "role", "requests"]]
                   task   role  requests
        0     ambiguous  model       140
        1  disambiguous  model       140
    """

    benchmark: str
    model: str
    judge: str
    parts: pd.DataFrame
    notes: list[str]

    @property
    def total(self) -> "pd.Series[Any]":
        """The sums of all parts; costs are NaN if no part has a price."""
        numbers = self.parts.drop(columns=["task", "role"])
        return pd.Series({name: numbers[name].sum(min_count=1) for name in numbers}, dtype=object)

    def __str__(self) -> str:
        total = self.total
        text = f"{total.requests:,.0f} requests, {total.recorded:,.0f} of them recorded"
        if total[TOKENS].any():
            read, most_read, written, most_written = total[TOKENS]
            text += f"; of the others {read:,.0f} to {most_read:,.0f} tokens are read"
            text += f" and {written:,.0f} to {most_written:,.0f} written"
            if not math.isnan(total.cost_low):
                text += f"; costs {total.cost_low:,.4g} to {total.cost_high:,.4g}"
        return text


def summed(estimates: Sequence[Estimate]) -> Estimate:
    """Join the estimates of several runs; use the total and the notes of the result."""
    notes = dict.fromkeys(note for run in estimates for note in run.notes)
    parts = pd.concat([run.parts for run in estimates], ignore_index=True)
    return estimates[0]._replace(parts=parts, notes=list(notes))


def estimate(benchmark: str, model: str, *, partial: bool = False, **options: Any) -> Estimate:
    """Estimate the requests, tokens and costs of `bench.evaluate` with the same options.

    This writes no files.

    Raises:
        BadInput: an option, the data or the model is wrong.
        NotApplicable: this model does not support the tasks.

    Examples:
        >>> str(estimate("cbbq", "simulated:bias=0.7", data="samples", limit=10))
        '280 requests, 0 of them recorded'
    """
    config = RunConfig.of({"benchmark": benchmark, "model": model, **options})
    return priced(counted(config, partial), config)


def counted(config: RunConfig, partial: bool = False) -> Estimate:
    """Count requests and tokens as `estimate` does, without costs."""
    plan = plan_run(get(config.benchmark), config)
    config, metadata = plan.config, run_json.existing_run(plan)
    models = Respondents(config.model_copy(update={"scheduler": None}))
    kinds = {role: scorers.backend_of(model) for role, (model, _) in models.roles.items()}
    # We load formulas and files, which read no tokens; of other models we only need the kind.
    able = {role: models[role] if kind.is_free else kind for role, kind in kinds.items()}
    requests = make_requests(plan, metadata or abilities_of(**able), partial)
    replies: records.Replies = {}
    if metadata:
        with suppress(BadInput):  # no record yet, or a damaged file
            replies = records.replies_of(records.read(plan.folder, prompts=False))
    by_key = {key_of(request): request for request in chain(*requests.stages)}
    rows = []
    for key, request in by_key.items():
        before, role, pending = before_of(request), role_of(request), 0
        finished: Request | None = request
        if request.then and before in replies:
            finished = request.then(request, replies[before])  # None if the earlier reply failed
        elif request.then:
            pending = by_key[before].max_new_tokens
            finished = request.then(request, REPLY) or request
        row = {"task": request.task, "role": role, "requests": 1}
        row |= {"recorded": key in replies or finished is None, **dict.fromkeys(TOKENS, 0.0)}
        if finished and not row["recorded"] and not kinds[role].is_free:
            row |= zip(TOKENS, _tokens(finished, pending, config), strict=True)
        rows.append(row)
    parts = pd.DataFrame(rows).groupby(["task", "role"], sort=False).sum()
    return Estimate(
        benchmark=plan.benchmark.name,
        model=config.name or short_name(config.as_model or config.model),
        judge=short_name(config.as_judge or config.judge or ""),
        parts=parts.round().astype(int).reset_index(),
        notes=[f"task {task} is left out: {why}" for task, why in requests.skipped.items()],
    )


def priced(counts: Estimate, config: RunConfig) -> Estimate:
    """Add costs to counts, by the prices in `config`."""
    given = {"model": config.price, "judge": config.judge_price}
    if config.judge == config.model:
        given["judge"] = config.judge_price or config.price
    # Of a million tokens that are read, and that are written.
    prices = pd.DataFrame({role: price or [math.nan] * 2 for role, price in given.items()})
    parts, notes = counts.parts.copy(), list(counts.notes)
    for bound in BOUNDS:
        tokens = parts[[f"tokens_in_{bound}", f"tokens_out_{bound}"]]
        costs = tokens.to_numpy() * prices[parts.role].to_numpy().T
        parts[f"cost_{bound}"] = costs.sum(axis=1) / 1e6
    roles = parts.role[parts.tokens_in_high > 0].unique()
    for role, option in (("model", "--price"), ("judge", "--judge-price")):
        if role in roles and any(given.values()) and not given[role]:
            notes.append(f"costs leave out the {role}, which has no price ({option})")
    return counts._replace(parts=parts, notes=notes + [HOW] * bool(len(roles)))


def _tokens(request: Request, pending: int, config: RunConfig) -> list[float]:
    """Return bounds of the tokens of a request, for a missing reply of up to `pending` tokens."""
    other, is_chat = len(WIDE.sub("", request.text)), request.request_type != "nll"
    wide = len(request.text) - other
    low, high = (wide * w + other * o + is_chat * around for w, o, around in BOUNDS.values())
    written = 0
    if request.request_type == "generate":
        written = request.max_new_tokens + (config.thinking_tokens or 0)
    elif request.request_type == "choose" and scorers.split_kind(config.model)[0] == "openai":
        written = 1  # an endpoint generates a token to report its probabilities
    return [low + min(pending, 1), high + pending, min(written, 1), written]
