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
from bench.scorers.local import file_hash, hub

# Hashes among what was asked, and what to do where one differs.
HASHES = {
    "data_sha256": "the data are others; give the folder of the same data by --data",
    "wording_hash": "the wording is another one; give the file of the same wording by --prompts",
    "model_content": "the model's files or recipe are others; give the folder of the same model "
    "by --model",
    "judge_content": "the judge's files or recipe are others; give the folder of the same judge "
    "by --judge",
}
# Options that can differ between repeats, and are reported then.
DEVICE_OPTIONS = ("device", "batch_tokens")


def options(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which `bench.run.evaluate` asks the same again.

    Whether code that comes with a model may run is never taken from a file.

    Args:
        about: a `run.json`.
    """
    asked, wording, source = about["asked"], about.get("wording", {}), about.get("data", {})
    scorers_of = [about["model"], about.get("judge") or {}]
    start, file = Path(about.get("folder", "")), wording.get("file")
    folder, variant = _from(start, source.get("folder")), wording.get("variant", "")
    prompts = variant
    if file and Path(file).is_file():
        prompts = f"{file}#{variant}" if variant else file
    devices = {
        name: next((one[name] for one in scorers_of if name in one), None)
        for name in DEVICE_OPTIONS
    }
    recorded = {**asked, **asked.get("generation", {}), **devices}
    return {
        **{name: recorded.get(name) for name in RunConfig.model_fields},
        "benchmark": about["benchmark"],
        "model": _model(start, asked["model"], scorers_of[0]),
        "judge": _model(start, asked["judge"], scorers_of[1]) if asked.get("judge") else None,
        "name": about.get("name"),
        "preset": about["preset"],
        "prompts": prompts or None,
        # A folder that is gone is looked for in the usual places.
        "data": OWN_SAMPLES
        if source.get("found") == FOUND_SAMPLES
        else folder
        if folder and Path(folder).is_dir()
        else None,
        # Tasks that were left out are left out again.
        "partial": True,
    }


def check_plan(about: Mapping[str, Any], plan: Plan, preset: str) -> None:
    """Refuse a plan that asks something else than a run.

    Args:
        about: the run's `run.json`.

    Raises:
        BadInput: the first difference, and what to do about it.
    """
    was = {"benchmark": about["benchmark"], "preset": about["preset"], **about["asked"]}
    now = {"benchmark": plan.benchmark, "preset": preset, **plan.asked}
    # An older run lacks what was added later; these two are only there if they are not default.
    for name in [name for name in now if name in was or name in ("label_names", "generation")]:
        old, new = was.get(name), now.get(name)
        if old == new or (name in ("model", "judge") and _may_be_the_same(old, new)):
            continue
        if name == "dtype":  # that of the loaded model is compared
            continue
        if doubt := file_hash.incomparable(old, new):
            raise BadInput(
                f"--from: {doubt} ({name} was {old}, now {new}); ask anew without --from"
            )
        if name in HASHES and None not in (old, new):
            raise BadInput(f"--from: {HASHES[name]} (hash was {old}, now {new})")
        if name in HASHES and name != "data_sha256":
            continue  # a Hub id, and now a folder: the revision of the loaded model is compared
        changed, old, new = first_change({name: old}, {name: new}) or (name, old, new)
        option = changed.replace("_", "-")
        raise BadInput(
            f"--from: {option} was {old}, now {new}; leave it out, or ask anew without --from"
        )


def check_scorer(about: Mapping[str, Any], role: str, described: Mapping[str, Any]) -> None:
    """Refuse another model, or judge, than that of a run.

    Args:
        about: the run's `run.json`.

    Raises:
        BadInput: what differs.
    """
    was = about[role] or {}
    for name in (name for name in (*IDENTITY[1:], "labels") if name in was):
        if was[name] != described.get(name):
            fix = f"give --dtype {was[name]}" if name == "dtype" else f"give the same by --{role}"
            raise BadInput(
                f"--from: the {role} is another one ({name} was {was[name]}, now "
                f"{described.get(name)}); {fix}"
            )


def other_conditions(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """List in sentences what may move numbers a little, or cannot be checked.

    Args:
        was, now: `run.json` of the run and of its repeat.
    """
    old, new = was.get("packages", {}), now.get("packages", {})
    sentences = [
        f"{name} was {old.get(name, 'not there')}, now {new.get(name, 'not there')}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    if was.get("git_commit") != now.get("git_commit"):
        commits = f"{was.get('git_commit')}, now {now.get('git_commit')}"
        sentences.append(f"the workbench's commit was {commits}")
    for role in ("model", "judge"):
        old, new = was.get(role) or {}, now.get(role) or {}
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
        logprob: largest difference of a log-probability, nats; 0 without any.
        nll: largest difference of a mean negative log-likelihood, nats.
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
        comparable = old is not None and new is not None and len(old) == len(new)
        if comparable:
            with np.errstate(invalid="ignore"):  # impossible options have -inf in both
                gaps = np.abs(np.asarray(old, float) - np.asarray(new, float))
            logprob = max(logprob, float(np.nanmax(gaps, initial=0.0, where=~np.isnan(gaps))))
        if comparable and _is_nll(row["response"], old) and _is_nll(row["response_after"], new):
            nll = max(nll, abs(float(row["response"]) - float(row["response_after"])))
        else:
            differ += row["response"] != row["response_after"] or row["error"] != row["error_after"]
    same = len(both) == len(before) == len(after) and all(
        _equal(old, new)
        for name in before.columns.difference([*KEYS, "seconds"])
        for old, new in zip(both[name], both[f"{name}_after"], strict=True)
    )
    return Difference(len(both), differ, logprob, nll, same)


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, np.ndarray | list) and isinstance(new, np.ndarray | list):
        return np.array_equal(np.asarray(old), np.asarray(new), equal_nan=True)
    return bool(old is new or old == new)


def _is_nll(response: str, logprobs: Any) -> bool:
    """Return whether a response is the mean negative log-likelihood of its tokens, not a word."""
    if not len(logprobs):
        return True
    try:
        return bool(np.isclose(float(response), -np.mean(logprobs), equal_nan=True))
    except ValueError:
        return False


def _may_be_the_same(old: Any, new: Any) -> bool:
    """Return whether two models can be the same files, which are compared by their hash."""
    old_kind, new_kind = (scorers.split_kind(str(model))[0] for model in (old, new))
    is_file = not old_kind or old_kind in scorers.FILES
    return None not in (old, new) and old_kind == new_kind and is_file


def _from(start: Path, path: str | None) -> str | None:
    """Return a path, taken from the folder `start` if it exists only there."""
    if not path or Path(path).expanduser().exists() or not (start / path).exists():
        return path
    return str(start / path)


def _model(start: Path, model: str, described: Mapping[str, Any]) -> str:
    """Return a model as it was asked, one of the Hub at the commit that was found."""
    kind, rest = scorers.split_kind(model)
    if kind:
        return f"{kind}:{_from(start, rest)}" if kind in scorers.FILES else model
    return str(_from(start, hub.at_commit(model, described.get("revision"))))
