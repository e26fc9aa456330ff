"""Repeat a run from its `run.json`: its options, and what has to be the same.

Data, prompts and model are compared by their hashes, so that something else is refused before any
model is asked. Other versions of packages, another device or batch size can move numbers a little;
they are reported.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench import scorers
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.data import FOUND_SAMPLES, OWN_SAMPLES
from bench.run.plan import Plan
from bench.run.results import KEYS
from bench.run.run_json import IDENTITY, first_change
from bench.scorers.local import hub

# Hashes among what was asked: what they are of, and the option that gives it.
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

    Whether code that comes with a model may run is never taken from a `run.json`.
    """
    asked, prompts, source = about["asked"], about["wording"], about["data"]
    roles, start = {"model": about["model"], "judge": about["judge"] or {}}, about["folder"]

    def from_start(path: str | None) -> str | None:
        """Return a path, taken from where the run was begun if it exists only there."""
        moved = Path(start, path or "")
        is_moved = path and not Path(path).expanduser().exists() and moved.exists()
        return str(moved) if is_moved else path

    def model_of(role: str) -> str | None:
        """Return a model as it was asked, one of the Hub at the commit that was found."""
        if not (model := asked[role]):
            return None
        kind, rest = scorers.split_kind(model)
        if kind:
            return f"{kind}:{from_start(rest)}" if kind in scorers.FILES else model
        return from_start(hub.at_commit(model, roles[role].get("revision")))

    # The base of an adapter, at the commit that was found if it is of the Hub.
    base, recorded = asked.get("base"), roles["model"].get("base") or {}
    if base or hub.COMMIT.fullmatch(str(recorded.get("revision"))):
        base = from_start(hub.at_commit(base or recorded["id"], recorded.get("revision")))
    file, variant = prompts["file"], prompts["variant"]
    if Path(file).is_file():
        variant = f"{file}#{variant}" if variant else file
    folder = from_start(source["folder"])
    # A folder that is gone is looked for in the usual places.
    data = folder if folder and Path(folder).is_dir() else None
    devices = {
        name: next((role[name] for role in roles.values() if name in role), None)
        for name in DEVICE_OPTIONS
    }
    recorded = {**asked, **asked.get("generation", {}), **devices}
    return {
        **{name: recorded.get(name) for name in RunConfig.model_fields},
        "benchmark": about["benchmark"],
        "model": model_of("model"),
        "judge": model_of("judge"),
        "base": base,
        "name": about.get("name"),
        "preset": about["preset"],
        "prompts": variant or None,
        "data": OWN_SAMPLES if source["found"] == FOUND_SAMPLES else data,
        # Tasks that were left out are left out again.
        "partial": True,
    }


def check_plan(about: Mapping[str, Any], plan: Plan, preset: str) -> None:
    """Refuse a plan that asks something else than the run of this `run.json`."""
    was = {"benchmark": about["benchmark"], "preset": about["preset"], **about["asked"]}
    now = {"benchmark": plan.benchmark, "preset": preset, **plan.asked}
    # An older run lacks what was added later; these two are only there if they are not default.
    for name in [name for name in now if name in was or name in ("label_names", "generation")]:
        old, new = was.get(name), now.get(name)
        if old == new or name == "dtype":  # that of the loaded model is compared
            continue
        if name in ("model", "base", "judge") and None not in (old, new):
            kinds = {scorers.split_kind(str(model))[0] for model in (old, new)}
            if len(kinds) == 1 and kinds <= {"", *scorers.FILES}:
                continue  # perhaps the same files, which are compared by their hash
        reason, fix = "", "ask anew without --from"
        if name in HASHES and None not in (old, new):
            part, option = HASHES[name]
            reason = f"the {part} is another one (hash was {old}, now {new})"
            fix = f"give the same by {option}"
        elif name not in HASHES or name == "data_sha256":
            changed, old, new = first_change({name: old}, {name: new}) or (name, old, new)
            reason = f"{changed.replace('_', '-')} was {old}, now {new}"
            fix = "leave it out, or ask anew without --from"
        if reason:  # for a Hub id, and now a folder, the revision of the loaded model is compared
            raise BadInput(f"--from: {reason}; {fix}")


def check_scorer(about: Mapping[str, Any], role: str, described: Mapping[str, Any]) -> None:
    """Refuse another model, or judge, than that of a run."""
    was = about[role] or {}
    for name in (name for name in (*IDENTITY[1:], "labels") if name in was):
        if was[name] != described.get(name):
            fix = f"give --dtype {was[name]}" if name == "dtype" else f"give the same by --{role}"
            raise BadInput(
                f"--from: the {role} is another one ({name} was {was[name]}, now "
                f"{described.get(name)}); {fix}"
            )


def other_conditions(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """List what may move numbers a little between two `run.json`, or cannot be checked."""
    commit = "the workbench's commit"
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
    return sentences


class Difference(NamedTuple):
    """How two runs of the same requests differ.

    Attributes:
        answers: requests that both have.
        differ: replies, choices and labels among them that differ; likelihoods are not counted.
        logprob, nll: largest difference of a log-probability, and of a mean negative
            log-likelihood, in nats; 0 without any.
        same: whether both have the same requests, and all columns but `seconds` are equal.
    """

    answers: int
    differ: int
    logprob: float
    nll: float
    same: bool

    def __str__(self) -> str:
        if self.same:
            return f"all {self.answers:,} answers are the same"
        numbers = f", and log-probabilities by at most {self.logprob:.2g}" if self.logprob else ""
        return f"{self.differ:,} of {self.answers:,} answers differ{numbers}"


def difference(before: pd.DataFrame, after: pd.DataFrame) -> Difference:
    """Compare the records of two runs over the requests that both have."""
    both = before.merge(after, on=KEYS, suffixes=("", "_after"))
    logprob = nll = 0.0
    differ = 0
    for row in both.to_dict("records"):
        old, new = row["logprobs"], row["logprobs_after"]
        response, response_after = row["response"], row["response_after"]
        is_comparable = old is not None and new is not None and len(old) == len(new)
        if is_comparable:
            with np.errstate(invalid="ignore"):  # impossible options have -inf in both
                gaps = np.abs(np.asarray(old, float) - np.asarray(new, float))
            logprob = max(logprob, float(np.nanmax(gaps, initial=0.0, where=~np.isnan(gaps))))
        if is_comparable and _is_nll(response, old) and _is_nll(response_after, new):
            nll = max(nll, abs(float(response) - float(response_after)))
        else:
            differ += response != response_after or row["error"] != row["error_after"]
    first, second = (
        frame.drop(columns="seconds").sort_values(KEYS, ignore_index=True)
        for frame in (before, after)
    )
    return Difference(len(both), differ, logprob, nll, first.equals(second))


def _is_nll(response: str, logprobs: Any) -> bool:
    """Return whether a response is the mean negative log-likelihood of its tokens, not a word."""
    try:
        return not len(logprobs) or bool(
            np.isclose(float(response), -np.mean(logprobs), equal_nan=True)
        )
    except ValueError:
        return False
