"""Estimate requests, tokens, money and hours of a run, without loading its model.

We estimate tokens from characters, with the bounds of the tokenizers of DeepSeek, Qwen, GPT-4o,
Mistral, Claude 2 and GPT-4 on this package's Chinese and English prompts.
"""

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench import scorers
from bench.benchmarks import get
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.run import run_json
from bench.run.ask import Replies, before_of, key_of, replies_of, role_of
from bench.run.plan import Plan, Respondents
from bench.runs import records
from bench.scorers.base import Backend, Model
from bench.scorers.names import short_name
from bench.tasks.request import Request

# Runs of characters as wide as Chinese and Japanese ones.
WIDE = re.compile(r"(?:[\u2e80-\uffef]|[^\u0000-\uffff])+")
# Least and most tokens.
WIDE_TOKENS = (0.6, 1.2)  # per wide character
OTHER_TOKENS = (0.2, 0.5)  # per other character
CHAT_TOKENS = (4, 30)  # per conversation
# A placeholder for a reply that is not there yet.
REPLY = "。"
TOKENS = ["tokens_in_low", "tokens_in_high", "tokens_out_low", "tokens_out_high"]
COUNTS = ["requests", "recorded", *TOKENS]
HOW = (
    f"tokens read: {WIDE_TOKENS[0]} to {WIDE_TOKENS[1]} per Chinese or Japanese character and "
    f"{OTHER_TOKENS[0]} to {OTHER_TOKENS[1]} per other one; {CHAT_TOKENS[0]} to {CHAT_TOKENS[1]} "
    "more around a conversation; a reply has one token at least, and its limit of tokens at most"
)


class Estimate(NamedTuple):
    """The requests, tokens and costs of a run.

    Attributes:
        parts: one row per task and role (`model` or `judge`): the numbers of `requests` and of
            `recorded` answers, and bounds of tokens, costs and hours of the other requests; NaN
            without a price or a speed.
        notes: how tokens were counted, and skipped tasks.

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
        """The sums of all parts; costs and hours are NaN if no part has a price or a speed."""
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
                text += f"; costs {money(total.cost_low)} to {money(total.cost_high)}"
            if not math.isnan(total.hours_low):
                text += f"; takes {money(total.hours_low)} to {money(total.hours_high)} hours"
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers for JSON, with null for NaN."""
        parts = json.loads(self.parts.to_json(orient="records"))
        names = {"benchmark": self.benchmark, "model": self.model, "judge": self.judge}
        return {**names, **json.loads(self.total.to_json()), "parts": parts, "notes": self.notes}


def money(amount: float) -> str:
    """Write an amount of money or hours with two places, or with two digits if it is small."""
    return f"{amount:,.2f}" if amount == 0 or amount >= 0.1 else f"{amount:.2g}"


def summed(estimates: Sequence[Estimate]) -> Estimate:
    """Join the estimates of several runs; only the total and the notes hold for all of them.

    Examples:
        >>> limits = [1, 2]
        >>> estimates = [estimate("cbbq", "simulated:", data="samples", limit=n) for n in limits]
        >>> [int(one.parts.requests.sum()) for one in (*estimates, summed(estimates))]
        [28, 56, 84]
    """
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
    """Count requests and tokens as `estimate` does, without costs and hours."""
    plan = Plan(get(config.benchmark), config, run_json.in_folder(config.out))
    config, metadata = plan.config, run_json.existing_run(plan)
    respondents = Respondents(config.model_copy(update={"scheduler": None}))
    kinds = {role: scorers.backend_of(model) for role, (model, _) in respondents.roles.items()}
    # We load formulas and files, which read no tokens; for other models the kind is enough.
    known = {role: respondents[role] if kind.is_free else kind for role, kind in kinds.items()}
    requests = plan.requests(metadata or abilities(**known), partial)
    replies: Replies = {}
    if metadata:
        with suppress(BadInput):  # no record yet, or a damaged file
            replies = replies_of(records.read(plan.folder, prompts=False))

    planned = {key_of(request): request for request in chain(*requests.stages)}
    rows = []
    for key, request in planned.items():
        before, role = before_of(request), role_of(request)
        is_waiting = request.then is not None and before not in replies
        asked: Request | None = request
        if key in replies:
            asked = None
        elif request.then:  # None if the earlier reply failed
            asked = request.then(request, replies.get(before, REPLY))
            asked = asked or (request if is_waiting else None)
        counts: tuple[float, ...] = (0, 0, 0, 0)
        if asked and not kinds[role].is_free:
            counts = _tokens(asked, planned[before].max_new_tokens if is_waiting else 0, config)
        rows.append((request.task, role, 1, asked is None, *counts))
    parts = pd.DataFrame(rows, columns=["task", "role", *COUNTS])
    parts = parts.groupby(["task", "role"], sort=False, as_index=False).sum()
    return Estimate(
        plan.benchmark.name,
        config.name or short_name(config.as_model or config.model),
        short_name(config.as_judge or config.judge or ""),
        parts.round().astype(dict.fromkeys(COUNTS, int)),
        [f"task {task} is left out: {why}" for task, why in requests.skipped.items()],
    )


def priced(counts: Estimate, config: RunConfig) -> Estimate:
    """Add costs and hours to counts, by the prices and the speed in `config`."""
    parts, notes = counts.parts.copy(), list(counts.notes)
    prices = {"model": config.price, "judge": config.judge_price}
    if config.judge == config.model:
        prices["judge"] = config.judge_price or config.price
    speeds = {"model": config.speed}
    unknown = (math.nan, math.nan)
    price = np.array([prices[role] or unknown for role in parts.role], float)
    speed = np.array([speeds.get(role) or unknown for role in parts.role], float)
    for bound in ("low", "high"):
        tokens = parts[[f"tokens_in_{bound}", f"tokens_out_{bound}"]].to_numpy()
        parts[f"cost_{bound}"] = (tokens * price).sum(axis=1) / 1e6
        parts[f"hours_{bound}"] = (tokens / speed).sum(axis=1) / 3600
    roles = parts.role[parts.tokens_in_high > 0].unique()
    for role, option in (("model", "--price"), ("judge", "--judge-price")):
        if role in roles and any(prices.values()) and not prices[role]:
            notes.append(f"costs leave out the {role}, which has no price ({option})")
    return counts._replace(parts=parts, notes=[*notes, *([HOW] if len(roles) else [])])


def abilities(
    model: type[Backend] | Model, judge: type[Backend] | Model | None = None
) -> dict[str, Any]:
    """Return the entries of `run.json` that decide the requests."""
    return {
        "verbs": model.request_types,
        "reads": model.answer_modes,
        "judge_verbs": judge.request_types if judge else (),
        "model": {"lacks": getattr(model, "unsupported", {})},
    }


def _tokens(request: Request, pending: int, config: RunConfig) -> tuple[float, ...]:
    """Bound the tokens of a request that waits for a reply of at most `pending` tokens."""
    wide = sum(map(len, WIDE.findall(request.text)))
    other = len(request.text) - wide
    low = WIDE_TOKENS[0] * wide + OTHER_TOKENS[0] * other
    high = WIDE_TOKENS[1] * wide + OTHER_TOKENS[1] * other
    written = 0
    if request.request_type == "generate":
        written = request.max_new_tokens + (config.thinking_tokens or 0)
    elif request.request_type == "choose" and scorers.split_kind(config.model)[0] == "openai":
        written = 1  # an endpoint generates a token to report its probabilities
    around = CHAT_TOKENS if request.request_type != "nll" else (0, 0)
    return low + around[0] + min(pending, 1), high + around[1] + pending, min(written, 1), written
