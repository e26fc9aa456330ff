"""Count requests, tokens and money of a run before it is asked. No model is loaded or asked.

Tokens are counted by the model's own tokenizer if it is on this machine. Else they are estimated
from characters: the bounds are those of the tokenizers of DeepSeek, Qwen, GPT-4o, Mistral, Claude 2
and GPT-4 on this package's own Chinese and English prompts.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from bench import records, scorers
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.data import spread_evenly
from bench.run import run_json
from bench.run.execute import Replies, replies_of
from bench.run.plan import Plan, Requests
from bench.run.prepare import models, prepare
from bench.run.results import short_name
from bench.scorers.base import VERBS, Scorer
from bench.scorers.local import hub
from bench.tasks import READ
from bench.tasks.request import Request

# Characters as wide as Chinese and Japanese ones.
WIDE = re.compile(r"[\u2e80-\uffef]|[^\u0000-\uffff]")
# The least and most tokens of a wide character, of another one, and around a conversation.
WIDE_TOKENS = (0.6, 1.2)
OTHER_TOKENS = (0.2, 0.5)
AROUND = (4, 30)
# Texts that a tokenizer splits, from which its tokens per character are taken.
SAMPLE = 500
# Stands for a reply that is not there yet.
REPLY = "。"
# What an endpoint may be able to do; nobody asks it before the run.
OF_ENDPOINT = ("nll", "choose", "generate"), ("text", "letters")
PRICE_OPTIONS = {"model": "price", "judge": "judge_price"}

Range = tuple[float, float]


class Part(NamedTuple):
    """The requests of a task to the model or to the judge.

    Attributes:
        role: `model` or `judge`.
        requests: all of them; `recorded` have been answered.
        tokens_in, tokens_out: the least and the most for those that are left.
        cost: of those that are left; None without a price.
    """

    task: str
    role: str
    requests: int
    recorded: int
    tokens_in: Range
    tokens_out: Range
    cost: Range | None


class Estimate(NamedTuple):
    """What a run would ask.

    Attributes:
        prices: money per million tokens that are read and written, by role.
        notes: how the numbers came about, and tasks that are left out.
    """

    benchmark: str
    model: str
    judge: str
    repeats: int
    parts: list[Part]
    prices: dict[str, Range]
    notes: list[str]

    def __str__(self) -> str:
        every = self.total
        costs = f"; costs {' to '.join(map(money, every.cost))}" if every.cost else ""
        read, written = every.tokens_in, every.tokens_out
        requests = f"{every.requests:,} requests, {every.recorded:,} of them recorded"
        if not read[1] + written[1]:
            return requests
        return (
            f"{requests}; of the others {read[0]:,.0f} to {read[1]:,.0f} tokens are read and "
            f"{written[0]:,.0f} to {written[1]:,.0f} written{costs}"
        )

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to ask."""
        return all(part.recorded == part.requests for part in self.parts)

    @property
    def total(self) -> Part:
        """The sum of all parts."""
        costs = [part.cost for part in self.parts if part.cost]
        return Part(
            "all",
            "",
            sum(part.requests for part in self.parts),
            sum(part.recorded for part in self.parts),
            _sum([part.tokens_in for part in self.parts]),
            _sum([part.tokens_out for part in self.parts]),
            _sum(costs) if costs else None,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers for JSON; ranges are lists of two numbers."""
        *parts, every = [
            {
                **part._asdict(),
                "tokens_in": [round(bound) for bound in part.tokens_in],
                "tokens_out": [round(bound) for bound in part.tokens_out],
            }
            for part in (*self.parts, self.total)
        ]
        about = {name: getattr(self, name) for name in ("benchmark", "model", "judge", "repeats")}
        numbers = {name: value for name, value in every.items() if name not in ("task", "role")}
        return {**about, **numbers, "prices": self.prices, "parts": parts, "notes": self.notes}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of a table for each part; ranges are two columns."""
        rows = []
        for part in self.parts:
            row: dict[str, Any] = {"benchmark": self.benchmark, "model": self.model}
            for name, value in part._asdict().items():
                if name in ("tokens_in", "tokens_out", "cost"):
                    row[f"{name}_low"], row[f"{name}_high"] = value or (math.nan, math.nan)
                else:
                    row[name] = value
            rows.append(row)
        return rows


def money(amount: float) -> str:
    """Write an amount with two places, or with two digits if it is small."""
    return f"{amount:,.2f}" if amount == 0 or amount >= 0.1 else f"{amount:.2g}"


def summed(estimates: Sequence[Estimate]) -> Estimate:
    """Join estimates of several runs."""
    notes = list(dict.fromkeys(note for run in estimates for note in run.notes))
    parts = [part for run in estimates for part in run.parts]
    prices = {role: price for run in estimates for role, price in run.prices.items()}
    return estimates[0]._replace(parts=parts, prices=prices, notes=notes)


@dataclass
class _Count:
    """Sums over the requests of a task to the model or to the judge."""

    requests: int = 0
    recorded: int = 0
    wide: int = 0  # characters that are read
    other: int = 0
    conversations: int = 0
    replies: int = 0  # the most tokens of replies that are read, and are not there yet
    pending: int = 0  # the number of such replies
    written: Range = (0, 0)


def estimate(benchmark: str, model: str, *, partial: bool = False, **options: Any) -> Estimate:
    """Count what `bench.run.evaluate` would ask with the same options; nothing is written.

    Raises:
        BadInput: an option, the data or the model is wrong.
        NotApplicable: the model cannot be asked the tasks.
    """
    config, plan, folder = prepare(
        RunConfig.of({"benchmark": benchmark, "model": model, **options})
    )
    about = run_json.existing_run(folder, plan, config, "nothing is written") or {}
    specs = {"model": config.model, "judge": plan.asked["judge"]}
    # Formulas and files, which read no tokens.
    free: dict[str, Scorer] = {}
    for role, lazy in zip(specs, models(config, specs["judge"]), strict=True):
        if lazy and scorers.split_kind(specs[role])[0] in ("simulated", *scorers.FILES):
            free[role] = lazy.load()
    requests = _requests(plan, about, free, specs, partial)
    replies = _recorded_replies(folder) if about else {}
    planned = {_key(request): request for request in chain(*requests.stages)}
    counts: dict[tuple[str, str], _Count] = {}
    texts: dict[str, list[str]] = {}
    for key, request in planned.items():
        role = _role(request)
        count = counts.setdefault((request.task, role), _Count())
        count.requests += 1
        shown = None if key in replies else _shown(request, replies)
        if shown is None:
            count.recorded += 1
        elif role not in free:
            before = planned[_before(request)] if request.after else None
            if before and _before(request) not in replies and _role(before) not in free:
                count.pending += 1
                count.replies += before.max_new_tokens
            _add(count, shown, config)
            texts.setdefault(role, []).append(shown.text)
    prices = _prices(config)
    notes = [f"task {task} is left out: {why}" for task, why in requests.left_out.items()]
    rates = {}
    for role, own in texts.items():
        rates[role] = _tokens_per_character(
            str(specs[role]), config.base if role == "model" else None, own
        )
    parts = [
        _part(task, role, count, rates.get(role), prices.get(role))
        for (task, role), count in counts.items()
    ]
    judge = plan.asked["judge"]
    return Estimate(
        plan.benchmark,
        config.name or short_name(config.as_model or config.model),
        short_name(config.as_judge or judge) if judge else "",
        plan.asked["repeats"],
        parts,
        prices,
        [*notes, *_how(rates, prices, counts)],
    )


def _requests(
    plan: Plan,
    about: Mapping[str, Any],
    free: Mapping[str, Scorer],
    specs: Mapping[str, str | None],
    partial: bool,
) -> Requests:
    """Make the requests of a run, whose model is not known yet."""
    lacks: Mapping[str, str] = about.get("model", {}).get("lacks", {})
    if about:
        verbs, reads = about["verbs"], about["reads"]
    elif known := free.get("model"):
        verbs, reads, lacks = known.verbs, known.reads, known.describe().get("lacks", {})
    else:
        is_endpoint = scorers.split_kind(specs["model"] or "")[0] == "openai"
        verbs, reads = OF_ENDPOINT if is_endpoint else (VERBS, tuple(READ))
    judge = free.get("judge")
    judge_verbs = judge.verbs if judge else ("generate",) if specs["judge"] else ()
    return plan.requests(verbs, reads, judge_verbs, partial, lacks)


def _recorded_replies(folder: Any) -> Replies:
    """Return the replies that a run has."""
    with suppress(BadInput):  # no record yet, or a damaged file, which is asked again
        return replies_of(records.read(folder, prompts=False))
    return {}


def _shown(request: Request, replies: Replies) -> Request | None:
    """Return a request as it will be asked; None if the reply that it is about did not come."""
    if not request.then:
        return request
    if _before(request) in replies:
        return request.then(request, replies[_before(request)])
    return request.then(request, REPLY) or request


def _add(count: _Count, shown: Request, config: RunConfig) -> None:
    """Count the characters of a request, and the tokens that may be written."""
    wide = len(WIDE.findall(shown.text))
    count.wide += wide
    count.other += len(shown.text) - wide
    count.conversations += shown.verb != "nll"
    low, high = count.written
    if shown.verb == "generate":
        count.written = low + 1, high + shown.max_new_tokens + (config.thinking_tokens or 0)
    elif shown.verb == "choose" and scorers.split_kind(config.model)[0] == "openai":
        # An endpoint generates a token to tell its probabilities.
        count.written = low + 1, high + 1


def _tokens_per_character(model: str, base: str | None, texts: Sequence[str]) -> float | None:
    """Measure a tokenizer on some texts; None if it is not on this machine."""
    if scorers.split_kind(model)[0] or not hub.is_here(model, base):
        return None
    from bench.scorers.local.checkpoint import tokenizer_of

    try:
        files = hub.locate(model)
        files = hub.base_of(model, files, base) or files
        tokenizer, _ = tokenizer_of(files.path, files.options)
    except Exception:  # files of others can be wrong in any way, as the run will say
        return None
    sample = spread_evenly(texts, SAMPLE)
    tokens = sum(map(len, tokenizer(sample, add_special_tokens=False)["input_ids"]))
    return float(tokens / sum(map(len, sample)))


def _part(task: str, role: str, count: _Count, rate: float | None, price: Range | None) -> Part:
    bounds = []
    for k in (0, 1):
        characters = WIDE_TOKENS[k] * count.wide + OTHER_TOKENS[k] * count.other
        if rate is not None:
            characters = rate * (count.wide + count.other)
        pending = (count.pending, count.replies)[k]
        bounds.append(characters + AROUND[k] * count.conversations + pending)
    read, written = (bounds[0], bounds[1]), count.written
    cost = None
    if price:
        low, high = ((price[0] * read[k] + price[1] * written[k]) / 1e6 for k in (0, 1))
        cost = low, high
    return Part(task, role, count.requests, count.recorded, read, written, cost)


def _how(
    rates: Mapping[str, float | None],
    prices: Mapping[str, Range],
    counts: Mapping[tuple[str, str], _Count],
) -> list[str]:
    """Say how tokens were counted."""
    notes = []
    for role in (role for role in rates if prices and role not in prices):
        option = f"--{PRICE_OPTIONS[role].replace('_', '-')}"
        notes.append(f"costs are those without the {role}, which has no price ({option})")
    around = f"{AROUND[0]} to {AROUND[1]} around a conversation"
    if None in rates.values():
        notes.append(
            f"tokens read are estimated: {WIDE_TOKENS[0]:g} to {WIDE_TOKENS[1]:g} per Chinese or "
            f"Japanese character, {OTHER_TOKENS[0]:g} to {OTHER_TOKENS[1]:g} per other one, "
            f"{around}"
        )
    if any(rates.values()):
        notes.append(
            f"tokens read are those of the model's own tokenizer on at most {SAMPLE} of the "
            f"texts, and {around}"
        )
    if any(count.written[0] < count.written[1] for count in counts.values()):
        notes.append("a reply has one token at least, and its limit of tokens at most")
    return notes


def _key(request: Request) -> tuple[Any, ...]:
    return request.task, request.item_id, request.request, request.repeat


def _before(request: Request) -> tuple[Any, ...]:
    return request.task, request.item_id, request.after, request.repeat


def _role(request: Request) -> str:
    return "judge" if request.of_judge else "model"


def _sum(ranges: Sequence[Range]) -> Range:
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


def _prices(config: RunConfig) -> dict[str, Range]:
    prices = {}
    for role, option in PRICE_OPTIONS.items():
        if (given := getattr(config, option)) is None:
            continue
        if len(given) != 2 or not all(0 <= number < math.inf for number in given):
            listed = ",".join(f"{number:g}" for number in given)
            spelt = f"--{option.replace('_', '-')}"
            raise BadInput(f"{spelt} {listed}: expected IN,OUT, two numbers like 0.8,2")
        prices[role] = (float(given[0]), float(given[1]))
    return prices
