"""Repeat a run from its `run.json`: its options, the checks, and the comparison of the answers.

Data, prompts and models are compared by their hashes, so that something else is refused before any
model is asked. Other versions of packages, another device or batch size can move numbers a little;
they are reported.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench import scorers
from bench.config import RunConfig, Where
from bench.core.cells import to_number
from bench.core.errors import BadInput
from bench.data import FOUND_GIVEN, FOUND_SAMPLES, OWN_SAMPLES
from bench.records import KEYS
from bench.run.plan import Plan
from bench.run.results import Run
from bench.run.run_json import IDENTITY, options_of, other_scorer
from bench.scorers.base import Model
from bench.scorers.local import hub

# The hashes in `asked`: the part of the run, and the option that gives it.
HASHES = {
    "data_sha256": ("data set", "--data"),
    "wording_hash": ("prompt set", "--prompts"),
    "model_content": ("model (its files or recipe)", "--model"),
    "judge_content": ("judge (its files or recipe)", "--judge"),
    "base_content": ("base model (its files)", "--base"),
}
# Options that can differ between repeats, and are reported then.
DEVICE_OPTIONS = ("device", "batch_tokens")


def options(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which `bench.run.evaluate` asks the same again.

    Of the options in `Where`, such as `trust_remote_code` and `keys`, only those that numbers
    depend on are taken from a `run.json`.
    """
    asked, prompts, source = about["asked"], about["wording"], about["data"]
    model, judge = about["model"], about["judge"] or {}
    base = model.get("base") or {}
    # An adapter names its base itself, unless that is a commit of the Hub.
    if not asked.get("base") and not hub.COMMIT.fullmatch(base.get("revision", "")):
        base = {}
    wording = prompts["variant"]
    if Path(prompts["file"]).is_file():
        wording = "#".join(filter(None, [prompts["file"], prompts["variant"]]))
    # Data of other places are looked for there again.
    data = {FOUND_SAMPLES: OWN_SAMPLES, FOUND_GIVEN: source["folder"]}.get(source["found"])
    given = {**asked, **asked.get("generation", {})}
    names = RunConfig.model_fields.keys() - Where.model_fields.keys()
    return {
        **{name: value for name, value in given.items() if name in names},
        **{name: model.get(name, judge.get(name)) for name in DEVICE_OPTIONS},
        "dtype": asked["dtype"],
        "benchmark": about["benchmark"],
        "model": _same_model(asked["model"], model),
        "judge": _same_model(asked["judge"], judge) if asked["judge"] else None,
        "base": _same_model(asked.get("base") or base["id"], base) if base else None,
        "name": about.get("name"),
        "preset": about["preset"],
        "prompts": wording or None,
        "data": data,
        "partial": True,  # Tasks that were left out are left out again.
    }


def _same_model(name: str, described: Mapping[str, Any]) -> str:
    """Return a model as it was asked, a Hub model at the commit that was found."""
    is_checkpoint = not scorers.split_kind(name)[0]
    return hub.at_commit(name, described.get("revision")) if is_checkpoint else name


def check_plan(about: Mapping[str, Any], plan: Plan) -> None:
    """Refuse a plan that asks something else than the run of this `run.json`."""
    was = {"preset": about["preset"], **options_of(about["benchmark"], about["asked"])}
    now = {"preset": plan.config.preset, **options_of(plan.benchmark, plan.asked)}
    for name, new in now.items():
        old = was.get(name)
        # An older run lacks newer entries; the options among them are there only if given.
        is_older = name not in was and name not in ("label_names", "generation")
        if old == new or is_older or _is_compared_later(name, old, new):
            continue
        if name in HASHES:
            part, option = HASHES[name]
            reason = f"the {part} is another one (hash was {old}, now {new})"
            fix = f"give the same by {option}"
        else:
            reason = f"{name.replace('_', '-')} was {old}, now {new}"
            fix = "leave it out, or ask anew without --from"
        raise BadInput(f"--from: {reason}; {fix}")


def _is_compared_later(name: str, old: Any, new: Any) -> bool:
    """Tell whether the loaded models are compared instead of two options.

    A Hub model has no hash before, and files can have moved.
    """
    if name in ("model", "judge", "base") and None not in (old, new):
        kinds = {scorers.split_kind(model)[0] for model in (old, new)}
        return kinds == {""} or (len(kinds) == 1 and scorers.backend_of(new).from_file)
    is_content = name in ("model_content", "judge_content", "base_content")
    return name == "dtype" or (is_content and None in (old, new))


def check_scorer(about: Mapping[str, Any], role: str, scorer: Model) -> None:
    """Refuse another model, or judge, than that of a run; its path can be another one."""
    was = about[role] or {}
    if other := other_scorer(was, scorer, [*IDENTITY[1:], "labels"]):
        is_dtype = other.startswith("dtype ")
        fix = f"give --dtype {was['dtype']}" if is_dtype else f"give the same by --{role}"
        raise BadInput(f"--from: the {role} is another one ({other}); {fix}")


def other_conditions(like: Run, now: Mapping[str, Any]) -> list[str]:
    """List what may move numbers a little since the run `like`, or cannot be checked."""
    was, commit = like.about, "the workbench's commit"
    old = {**was["packages"], commit: was["git_commit"]}
    new = {**now["packages"], commit: now["git_commit"]}
    sentences = [
        f"{name} was {old.get(name, 'not there')}, now {new.get(name, 'not there')}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    for role in ("model", "judge"):
        old, new = was[role] or {}, now[role] or {}
        sentences += [
            f"the {role}'s {name.replace('_', ' ')} was {old[name]}, now {new[name]}"
            for name in DEVICE_OPTIONS
            if name in old and name in new and old[name] != new[name]
        ]
        if "url" in new:
            sentences.append(
                f"the {role} is behind {new['url']}, and may have changed there without a trace"
            )
    return [f"not as in {like.folder}: {sentence}" for sentence in sentences]


class Difference(NamedTuple):
    """How two runs of the same requests differ.

    Attributes:
        answers: requests that both have.
        differ: replies, choices and labels among them that differ; likelihoods are not counted.
        logprob: largest difference of a log-probability, in nats; 0 without any.
        same: whether both have the same requests, and all columns but `seconds` are equal.
    """

    answers: int
    differ: int
    logprob: float
    same: bool

    def __str__(self) -> str:
        if self.same:
            return f"all {self.answers:,} answers are the same"
        numbers = f", and log-probabilities by at most {self.logprob:.2g}" if self.logprob else ""
        return f"{self.differ:,} of {self.answers:,} answers differ{numbers}"


def difference(before: pd.DataFrame, after: pd.DataFrame) -> Difference:
    """Compare the records of two runs over the requests that both have."""
    both = before.merge(after, on=KEYS, suffixes=("", "_after"))
    logprob, differ = 0.0, 0
    for row in both.to_dict("records"):
        old, new = row["logprobs"], row["logprobs_after"]
        is_likelihood = False
        if old is not None and new is not None and len(old) == len(new):
            with np.errstate(invalid="ignore"):  # impossible options have -inf in both
                gaps = np.abs(np.asarray(old, float) - np.asarray(new, float))
            logprob = max(logprob, float(np.nanmax(gaps, initial=0.0, where=~np.isnan(gaps))))
            # A likelihood's response is the mean of its tokens, and no word.
            mean = to_number(str(row["response"]))
            is_likelihood = not len(old) or bool(np.isclose(mean, -np.mean(old), equal_nan=True))
        names = ("response", "error")
        differ += not is_likelihood and any(row[name] != row[f"{name}_after"] for name in names)
    first, second = (
        frame.drop(columns="seconds").sort_values(KEYS, ignore_index=True)
        for frame in (before, after)
    )
    return Difference(len(both), differ, logprob, first.equals(second))
