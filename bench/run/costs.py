"""What a run asks before it is asked: requests, tokens, money, and for local models the time.

Tokens that are read are counted by the model's own tokenizer where it is on this machine. Else they
are estimated from characters: the bounds are those of the tokenizers of DeepSeek, Qwen, GPT-4o,
Mistral, Claude 2 and GPT-4 on this package's own Chinese and English prompts.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench import records, scorers
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.data import spread_evenly
from bench.run import run_json
from bench.run.execute import Replies, answers, replies_of
from bench.run.plan import Plan, Requests
from bench.run.prepare import Prepared, models, prepare
from bench.run.results import KEYS, short_name
from bench.scorers.base import VERBS, Model, Scorer, digest
from bench.scorers.local import hub
from bench.tasks import READ
from bench.tasks.request import Request

# Characters as wide as Chinese and Japanese ones, and the others.
WIDE = re.compile(r"[\u2e80-\uffef]|[^\u0000-\uffff]")
# The least and most tokens of a wide character, of another one, and around a conversation.
WIDE_TOKENS, OTHER_TOKENS, AROUND = (0.6, 1.2), (0.2, 0.5), (4, 30)
# Texts per group whose tokens are counted.
COUNTED = 500
# Requests per group that are asked for the time: more if the fewer took at most so many seconds.
SAMPLES, PATIENCE = (2, 8), 10.0
# Replies from which a mean length is taken.
ENOUGH = 5
# Stands for a reply that is not there yet.
REPLY = "。"
# What an endpoint may be able to do; nobody asks it before the run.
OF_ENDPOINT = ("nll", "choose", "generate"), ("text", "letters")


class Range(NamedTuple):
    """The least and the most of something."""

    low: float
    high: float

    def __mul__(self, n: Any) -> "Range":
        return Range(self.low * n, self.high * n)

    def plus(self, other: "Range") -> "Range":
        """Return the sum of two ranges."""
        return Range(self.low + other.low, self.high + other.high)


NOTHING = Range(0, 0)


class Part(NamedTuple):
    """The requests of a task to the model or to the judge.

    Attributes:
        role: `model` or `judge`.
        requests: all of them; `recorded` have been answered.
        tokens_in, tokens_out: of those that are left.
        seconds: for those that are left; None if unknown.
        cost: of those that are left; None where nobody said the price.
    """

    task: str
    role: str
    requests: int
    recorded: int
    tokens_in: Range
    tokens_out: Range
    seconds: float | None
    cost: Range | None


class Estimate(NamedTuple):
    """What a run would ask.

    Attributes:
        shards: the number of files of records, of which a killed run loses one.
        prices: money per million tokens that are read and written, by role.
        notes: how the numbers came about, and tasks that are left out.
    """

    benchmark: str
    model: str
    judge: str
    repeats: int
    shards: int
    parts: list[Part]
    prices: dict[str, tuple[float, float]]
    notes: list[str]

    def __str__(self) -> str:
        every = self.total
        costs = f"; costs {' to '.join(map(money, every.cost))}" if every.cost else ""
        read, written = every.tokens_in, every.tokens_out
        requests = f"{every.requests:,} requests, {every.recorded:,} of them recorded"
        if not read.high + written.high:
            return requests
        return (
            f"{requests}; of the others {read.low:,.0f} to {read.high:,.0f} tokens are read and "
            f"{written.low:,.0f} to {written.high:,.0f} written{costs}"
        )

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to ask."""
        return all(part.recorded == part.requests for part in self.parts)

    @property
    def total(self) -> Part:
        """The sum of all parts; without its time if that of one is not known."""
        seconds = [part.seconds for part in self.parts]
        costs = [part.cost for part in self.parts if part.cost]
        return Part(
            "all",
            "",
            sum(part.requests for part in self.parts),
            sum(part.recorded for part in self.parts),
            total(part.tokens_in for part in self.parts),
            total(part.tokens_out for part in self.parts),
            None if None in seconds else sum(filter(None, seconds)),
            total(costs) if costs else None,
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
        more = {"shards": self.shards, "prices": self.prices, "parts": parts, "notes": self.notes}
        return {**about, **numbers, **more}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of a table for each part; ranges are two columns."""
        rows = []
        for part in self.parts:
            row: dict[str, Any] = {"benchmark": self.benchmark, "model": self.model}
            for name, value in part._asdict().items():
                if name in ("tokens_in", "tokens_out", "cost"):
                    low, high = value or (math.nan, math.nan)
                    row |= {f"{name}_low": low, f"{name}_high": high}
                else:
                    row[name] = value
            rows.append(row)
        return rows


def money(amount: float) -> str:
    """Write an amount with two places, or with two digits where it is small."""
    return f"{amount:,.2f}" if amount == 0 or amount >= 0.1 else f"{amount:.2g}"


def summed(estimates: Sequence[Estimate]) -> Estimate:
    """Join estimates of several runs."""
    notes = list(dict.fromkeys(note for run in estimates for note in run.notes))
    parts = [part for run in estimates for part in run.parts]
    prices = {role: price for run in estimates for role, price in run.prices.items()}
    return estimates[0]._replace(parts=parts, prices=prices, notes=notes)


def total(ranges: Iterable[Range]) -> Range:
    """Return the sum of ranges."""
    result = NOTHING
    for bounds in ranges:
        result = result.plus(bounds)
    return result


def estimate(
    benchmark: str, model: str, *, partial: bool = False, measure: bool = True, **options: Any
) -> Estimate:
    """Say what `bench.run.evaluate` would ask with the same options; nothing is written.

    No endpoint is asked, and nothing is downloaded.

    Args:
        measure: load a model that is on this machine, count by its tokenizer, and ask it a few
            requests for the time.

    Raises:
        BadInput: an option, the data or the model is wrong.
        NotApplicable: the model cannot be asked the tasks.
    """
    ready = prepare(RunConfig.of(benchmark=benchmark, model=model, **options))
    config, plan, folder = ready
    about = run_json.existing_run(folder, plan, config, "nothing is written") or {}
    specs = {"model": config.model, "judge": plan.asked["judge"]}
    measure = measure and not config.scheduler and not (about and records.is_complete(folder))
    loaded, notes = {}, []
    for role, lazy in zip(specs, models(config, specs["judge"]), strict=True):
        kind = scorers.split_kind(specs[role] or "")[0]
        if lazy and kind in ("simulated", *scorers.FILES):
            loaded[role] = lazy.load()
        elif lazy and kind != "openai" and measure:
            if kind or hub.is_here(specs[role], config.base if role == "model" else None):
                loaded[role] = lazy.load()
            else:
                notes.append(f"{specs[role]} is not on this machine, so it was not measured")
    requests = _requests(plan, about, loaded, specs, partial)
    notes += [f"task {task} is left out: {why}" for task, why in requests.left_out.items()]
    return _Estimator(ready, about, requests, loaded, notes).estimate()


def _requests(
    plan: Plan,
    about: Mapping[str, Any],
    loaded: Mapping[str, Scorer],
    specs: Mapping[str, str | None],
    partial: bool,
) -> Requests:
    """Make the requests of a run, whose model may not be known yet."""
    known = loaded.get("model")
    lacks: Mapping[str, str] = about.get("model", {}).get("lacks", {})
    if about:
        verbs, reads = about["verbs"], about["reads"]
    elif known:
        verbs, reads, lacks = known.verbs, known.reads, known.describe().get("lacks", {})
    else:
        is_endpoint = scorers.split_kind(specs["model"] or "")[0] == "openai"
        verbs, reads = OF_ENDPOINT if is_endpoint else (VERBS, tuple(READ))
    judge = loaded.get("judge")
    judge_verbs = judge.verbs if judge else ("generate",) if specs["judge"] else ()
    return plan.requests(verbs, reads, judge_verbs, partial, lacks)


class Open(NamedTuple):
    """A request that has no answer yet.

    Attributes:
        shown: the request with the reply that it is about, or `REPLY` in its place.
        before: the key of that reply where it is not there yet.
    """

    planned: Request
    shown: Request
    before: tuple[Any, ...] | None


class _Estimator:
    """Estimates one run.

    `loaded` are the model and the judge if they are loaded; None of an endpoint.
    """

    def __init__(
        self,
        ready: Prepared,
        about: Mapping[str, Any],
        requests: Requests,
        loaded: Mapping[str, Scorer],
        notes: list[str],
    ) -> None:
        self.config, self.plan, self.folder = ready
        self.about, self.requests, self.loaded, self.notes = about, requests, loaded, notes
        self.planned = {_key(request): request for stage in requests.stages for request in stage}
        from bench.run import SHARD

        self._shard = int(about.get("shard", SHARD))
        self.open: list[Open] = []
        self.prices = _prices(self.config)
        # Lengths of known replies in tokens, and seconds of measured ones, by group.
        self.lengths: dict[Any, list[Range]] = {}
        self.seconds: dict[Any, list[float]] = {}

    def estimate(self) -> Estimate:
        """Count what is left, ask a sample, and add up."""
        self._find_open()
        self._ask_sample()
        groups: dict[Any, list[Open]] = {}
        for pending in self.open:
            groups.setdefault(_group(pending.planned), []).append(pending)
        everything = Counter((request.task, _role(request)) for request in self.planned.values())
        parts = []
        for (task, role), n in everything.items():
            own = {g: ones for g, ones in groups.items() if (g.task, g.role) == (task, role)}
            seconds = [self._seconds(g, len(ones)) for g, ones in own.items()]
            read = total(self._read(ones) for ones in own.values())
            written = total(self._written(g, ones) for g, ones in own.items())
            cost = None
            if role in self.prices:
                per_read, per_written = self.prices[role]
                cost = (read * (per_read / 1e6)).plus(written * (per_written / 1e6))
            parts.append(
                Part(
                    task,
                    role,
                    n,
                    n - sum(map(len, own.values())),
                    read,
                    written,
                    None if None in seconds else sum(filter(None, seconds)),
                    cost,
                )
            )
        config, judge = self.config, self.plan.asked["judge"]
        return Estimate(
            self.plan.benchmark,
            config.name or short_name(config.as_model or config.model),
            short_name(config.as_judge or judge) if judge else "",
            self.plan.asked["repeats"],
            sum(math.ceil(len(stage) / self._shard) for stage in self.requests.stages),
            parts,
            self.prices,
            [*self.notes, *self._how()],
        )

    def _find_open(self) -> None:
        """Collect the requests without an answer, and the lengths of those that have one."""
        rows = pd.DataFrame(columns=[*KEYS, "response", "error"])
        if self.about:
            with suppress(BadInput):  # no record yet, or a damaged one, which is asked again
                rows = records.read(self.folder, prompts=False)[list(rows)]
        replies = replies_of(rows)
        for *place, response, error in zip(*(rows[name].tolist() for name in rows), strict=True):
            if planned := self.planned.get(tuple(place)):
                self._add_length(planned, response, error)
        journal = records.Journal(self.folder)  # of answers whose file is not complete
        for stage in self.requests.shards(self._shard):
            for number, shard in stage:
                for position, planned in enumerate(shard):
                    key = _key(planned)
                    if key in replies or not (pending := self._shown(planned, replies)):
                        continue
                    if values := journal.get(number, position, digest(pending.shown.text)):
                        response, _, error, *_ = values
                        replies[key] = None if error else response
                        self._add_length(planned, response, error)
                    else:
                        self.open.append(pending)

    def _shown(self, planned: Request, replies: Replies) -> Open | None:
        """Return a request as it will be asked; None if the reply that it is about did not come."""
        if not planned.then:
            return Open(planned, planned, None)
        before = (planned.task, planned.item_id, planned.after, planned.repeat)
        if before not in replies:
            return Open(planned, planned.then(planned, REPLY) or planned, before)
        shown = planned.then(planned, replies[before])
        return Open(planned, shown, None) if shown else None

    def _add_length(self, planned: Request, response: str, error: str) -> None:
        known = self.lengths.setdefault(_group(planned), [])
        if planned.verb == "generate" and not error and len(known) < COUNTED:
            bare = replace(planned, verb="nll", prompt=response, earlier=())
            known += self._count(_role(planned), [bare])

    def _ask_sample(self) -> None:
        """Ask loaded models a few requests of each group, and those that follow."""
        asked = {role for role, scorer in self.loaded.items() if isinstance(scorer, Model)}
        groups: dict[Any, list[Open]] = {}
        for pending in self.open:
            before = pending.before and self.planned[pending.before]
            if _role(pending.planned) in asked and not (before and _role(before) in asked):
                groups.setdefault(_group(pending.planned), []).append(pending)
        if not groups:
            return
        model: Any = self.loaded.get("model")
        judge = self.loaded.get("judge")
        # The first request of a kind takes longer.
        kinds = {(g.role, pending[0].shown.verb): pending[0].shown for g, pending in groups.items()}
        first = [replace(shown, then=None, after="", max_new_tokens=1) for shown in kinds.values()]
        answers(self.plan, Requests([first], {}, {}), model, judge)
        for size in SAMPLES:
            stages = self._sample(groups, size, asked)
            start = time.perf_counter()
            rows = answers(self.plan, Requests(stages, {}, {}), model, judge)
            elapsed = time.perf_counter() - start
            if elapsed > PATIENCE:
                break
        for request, row in zip(chain(*stages), rows.to_dict("records"), strict=True):
            planned = self.planned[_key(request)]
            self.seconds.setdefault(_group(planned), []).append(row["seconds"])
            self._add_length(planned, row["response"], row["error"])
        self.notes.append(
            f"the time is that of {len(rows)} requests, which were asked here in {elapsed:.1f} s; "
            "large batches are faster"
        )

    def _sample(
        self, groups: Mapping["Group", Sequence[Open]], size: int, asked: Collection[str]
    ) -> list[list[Request]]:
        """Choose requests of each group, and return them and those that follow, by stage."""
        chosen = [pending for group in groups.values() for pending in spread_evenly(group, size)]
        stages = [[replace(pending.shown, then=None, after="") for pending in chosen]]
        while stages[-1]:
            last = set(map(_key, stages[-1]))
            stages.append(
                [
                    pending.planned
                    for pending in self.open
                    if pending.before in last and _role(pending.planned) in asked
                ]
            )
        return stages

    def _count(self, role: str, requests: Sequence[Request]) -> list[Range]:
        """Count the tokens of texts, or estimate them from their characters."""
        scorer = self.loaded.get(role)
        if scorer and not isinstance(scorer, Model):
            return [NOTHING] * len(requests)  # a file or a formula reads nothing
        if scorer:
            counts = scorer.count_tokens(requests)  # type: ignore[attr-defined]
            return [Range(n, n) for n in counts]
        around = Range(*AROUND)
        return [
            _characters(request.text).plus(NOTHING if request.verb == "nll" else around)
            for request in requests
        ]

    def _read(self, ones: Sequence[Open]) -> Range:
        """Return the tokens of requests of one group."""
        counted = spread_evenly(ones, COUNTED)
        role = _role(ones[0].planned)
        read = _scaled(self._count(role, [pending.shown for pending in counted]), len(ones))
        # Replies that are not there yet are part of what is read.
        for pending in counted:
            if pending.before:
                before = self.planned[pending.before]
                read = read.plus(self._reply(before) * (len(ones) / len(counted)))
        return read

    def _written(self, group: "Group", ones: Sequence[Open]) -> Range:
        """Return the tokens that are generated for requests of one group."""
        first = ones[0].planned
        if first.verb != "generate":
            # An endpoint generates a token to tell its probabilities.
            is_endpoint = group.role not in self.loaded and first.verb != "classify"
            return Range(1, 1) * (len(ones) * is_endpoint)
        return self._reply(first) * len(ones)

    def _reply(self, request: Request) -> Range:
        """Return the length of a reply, its mean over known ones if there are enough."""
        role = _role(request)
        if role in self.loaded and not isinstance(self.loaded[role], Model):
            return NOTHING
        known = self.lengths.get(_group(request), [])
        # What an endpoint's model thinks is not part of its reply.
        hidden = role not in self.loaded and self.config.thinking_tokens
        most = request.max_new_tokens + (self.config.thinking_tokens or 0)
        if len(known) < ENOUGH or hidden:
            return Range(1, most)
        mean = _scaled(known, 1)
        return Range(min(max(mean.low + 1, 1), most), min(mean.high + 1, most))

    def _seconds(self, group: "Group", n: int) -> float | None:
        scorer, measured = self.loaded.get(group.role), self.seconds.get(group)
        if measured:
            return n * sum(measured) / len(measured)
        return None if scorer is None or isinstance(scorer, Model) else 0.0

    def _how(self) -> list[str]:
        """Say how tokens were counted."""
        roles = dict.fromkeys(_role(pending.planned) for pending in self.open)
        notes = []
        free = {*self.prices, *self.loaded}
        for role in (role for role in roles if self.prices and role not in free):
            option = {"model": "--price", "judge": "--judge-price"}[role]
            notes.append(f"costs are those without the {role}, which has no price ({option})")
        if any(role not in self.loaded for role in roles):
            low, high = zip(WIDE_TOKENS, OTHER_TOKENS, strict=True)
            notes.append(
                f"tokens read are estimated: {low[0]:g} to {high[0]:g} per Chinese or Japanese "
                f"character, {low[1]:g} to {high[1]:g} per other one, {AROUND[0]} to {AROUND[1]} "
                "around a conversation"
            )
        if any(isinstance(self.loaded.get(role), Model) for role in roles):
            notes.append("tokens read are counted by the model's own tokenizer")
        generated = {
            _group(pending.planned) for pending in self.open if pending.planned.verb == "generate"
        }
        known = [len(self.lengths[g]) for g in generated if len(self.lengths.get(g, ())) >= ENOUGH]
        if len(known) < len(generated) and set(roles) - {
            role for role, scorer in self.loaded.items() if not isinstance(scorer, Model)
        }:
            notes.append("a reply has one token at least, and its limit of tokens at most")
        if known and any(known):
            notes.append(f"{sum(known):,} known replies tell how long replies are on average")
        return notes


class Group(NamedTuple):
    """Requests whose replies are about equally long."""

    task: str
    role: str
    follows: bool
    max_new_tokens: int


def _group(request: Request) -> Group:
    return Group(request.task, _role(request), bool(request.after), request.max_new_tokens)


def _key(request: Request) -> tuple[Any, ...]:
    return request.task, request.item_id, request.request, request.repeat


def _role(request: Request) -> str:
    return "judge" if request.of_judge else "model"


def _characters(text: str) -> Range:
    """Estimate the tokens of a text."""
    wide = len(WIDE.findall(text))
    other = len(text) - wide
    return (Range(*WIDE_TOKENS) * wide).plus(Range(*OTHER_TOKENS) * other)


def _scaled(counted: Sequence[Range], n: int) -> Range:
    """Return the sum for `n` texts of which some were counted, two standard errors wider."""
    bounds = []
    for values, sign in zip(zip(*counted, strict=True), (-1, 1), strict=True):
        error = np.std(values) / math.sqrt(len(values)) if len(values) != n else 0.0
        bounds.append(max(0.0, float(n * (np.mean(values) + sign * 2 * error))))
    return Range(*bounds)


def _prices(config: RunConfig) -> dict[str, tuple[float, float]]:
    prices = {}
    for role, option in (("model", "price"), ("judge", "judge_price")):
        if (given := getattr(config, option)) is None:
            continue
        if len(given) != 2 or not all(0 <= number < math.inf for number in given):
            listed = ",".join(f"{number:g}" for number in given)
            spelt = f"--{option.replace('_', '-')}"
            raise BadInput(f"{spelt} {listed}: expected IN,OUT, two numbers like 0.8,2")
        prices[role] = (float(given[0]), float(given[1]))
    return prices
