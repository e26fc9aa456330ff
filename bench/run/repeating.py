"""What repeats a run: the options in its `run.json`, and what has to be the same for its answers to come back.

Data, wording and model are compared by their hashes, so that a repeat of something else is refused before anyone is
asked. Other versions of packages, another device or batch size may move numbers a little; they are told.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench import scorers
from bench.core.errors import BadInput
from bench.data import FOUND_SAMPLES, OWN_SAMPLES
from bench.run.plan import Plan
from bench.scorers.local import file_hash, hub

KEY = ["task", "item_id", "request", "repeat"]
# What has no place in the comparison of two plans: the path to a model, whose content is compared, and the dtype, which
# is that of the loaded model.
NOT_OF_THE_PLAN = ("model", "judge", "dtype")
# Hashes among what was asked, in words.
HASHES = {
    "data_sha256": "the data are others; give the folder of the same data by --data",
    "wording_hash": "the wording is another one; give the file of the same wording by --prompts",
    "model_content": "the model's files or recipe are others; give the folder of the same model by --model",
    "judge_content": "the judge's files or recipe are others; give the folder of the same judge by --judge",
}
OF_A_SCORER = ("revision", "base", "dtype", "tokenizer_hash", "chat_template_hash", "labels")
OF_A_PLACE = ("device", "batch_tokens")
# What was asked is there only where it is not the default.
LATER = ("label_names", "generation")


class Difference(NamedTuple):
    """How far two runs over the same requests part.

    Attributes:
        answers: requests that both have.
        differ: of these, replies, choices and labels that are others; likelihoods, which are numbers, are not counted.
        logprob: largest difference of a log-probability, nats; 0 where there is none.
        nll: largest difference of a mean negative log-likelihood, nats.
        same: whether every column but `seconds` is the same, and no request is in one run alone.
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


def options(about: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with which `bench.run.evaluate` asks again what `about` (a `run.json`) says was asked.

    Whether code that comes with a model may run is never taken from a file.
    """
    asked, wording, source = about["asked"], about.get("wording", {}), about.get("data", {})
    placed = [about["model"], about.get("judge") or {}]
    home = Path(about.get("folder", ""))
    file, folder = wording.get("file"), _from(home, source.get("folder"))
    samples = source.get("found") == FOUND_SAMPLES
    return {
        "benchmark": about["benchmark"],
        "model": _model(home, asked["model"], placed[0]),
        "judge": _model(home, asked["judge"], placed[1]) if asked.get("judge") else None,
        **{
            name: asked.get(name)
            for name in ("categories", "tasks", "limit", "read", "max_new_tokens", "dtype")
        },
        **asked.get("generation", {}),
        "name": about.get("name"),
        **{name: asked[name] for name in ("repeats", "seed") if name in asked},
        "settings": asked.get("settings"),
        "label_names": asked.get("label_names"),
        "preset": about["preset"],
        "prompts": _prompts(file, wording.get("variant", "")),
        # A folder that is gone is looked for where data are looked for without one.
        "data": OWN_SAMPLES if samples else folder if folder and Path(folder).is_dir() else None,
        **{name: next((one[name] for one in placed if name in one), None) for name in OF_A_PLACE},
        # Tasks that were left out are left out again.
        "partial": True,
    }


def check_plan(before: Mapping[str, Any], plan: Plan, preset: str) -> None:
    """Refuse a plan that asks something else than `before` (a `run.json`) says was asked.

    Raises:
        BadInput: the first difference, and what to do about it.
    """
    was = {"benchmark": before["benchmark"], "preset": before["preset"], **before["asked"]}
    now = {"benchmark": plan.benchmark, "preset": preset, **plan.asked}
    # An older run does not know of what was added since.
    for name in [name for name in now if name in was or name in LATER]:
        old, new = was.get(name), now.get(name)
        if old == new or (name in NOT_OF_THE_PLAN and _may_lie_elsewhere(old, new, name)):
            continue
        if doubt := file_hash.incomparable(old, new):
            raise BadInput(
                f"--from: {doubt} ({name} was {old}, now {new}); ask anew without --from"
            )
        if name in HASHES and None not in (old, new):
            raise BadInput(f"--from: {HASHES[name]} (hash was {old}, now {new})")
        if name in HASHES and name != "data_sha256":
            continue  # a name of the Hub then, and a folder now: the revision decides once it is loaded
        if name == "settings" and isinstance(old, dict) and isinstance(new, dict):
            name = next(one for one in {**old, **new} if old.get(one) != new.get(one))
            old, new = old.get(name), new.get(name)
        option = name.replace("_", "-")
        raise BadInput(
            f"--from: {option} was {old}, now {new}; leave it out, or ask anew without --from"
        )


def check_scorer(before: Mapping[str, Any], role: str, now: Mapping[str, Any]) -> None:
    """Refuse a model (or judge) that is another than the one in `before` (a `run.json`).

    Raises:
        BadInput: what differs.
    """
    was = before[role] or {}
    for name in (name for name in OF_A_SCORER if name in was):
        if was[name] != now.get(name):
            way = (
                f"give --dtype {was[name]}" if name == "dtype" else f"give the same one by --{role}"
            )
            raise BadInput(
                f"--from: the {role} is another one ({name} was {was[name]}, now {now.get(name)}); {way}"
            )


def told(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What may move numbers a little, or cannot be checked: a sentence each."""
    found = []
    was, are = before.get("packages", {}), now.get("packages", {})
    for name in {**was, **are}:
        if was.get(name) != are.get(name):
            found.append(
                f"{name} was {was.get(name, 'not there')}, now {are.get(name, 'not there')}"
            )
    if before.get("git_commit") != now.get("git_commit"):
        found.append(
            f"the workbench's commit was {before.get('git_commit')}, now {now.get('git_commit')}"
        )
    for role in ("model", "judge"):
        old, new = before.get(role) or {}, now.get(role) or {}
        found += [
            f"the {role}'s {name.replace('_', ' ')} was {old[name]}, now {new[name]}"
            for name in OF_A_PLACE
            if name in old and name in new and old[name] != new[name]
        ]
        if "url" in new:
            found.append(
                f"the {role} is behind {new['url']}, and may have changed there without a trace"
            )
    return found


def difference(before: pd.DataFrame, after: pd.DataFrame) -> Difference:
    """How the records of two runs differ over the requests that both have."""
    names = [name for name in before if name not in (*KEY, "seconds")]
    both = before.merge(after, on=KEY, suffixes=("", "_after"))
    logprob = nll = 0.0
    differ = 0
    for row in both.to_dict("records"):
        old, new = row["logprobs"], row["logprobs_after"]
        numbers = old is not None and new is not None and len(old) == len(new)
        if numbers:
            logprob = max(logprob, _largest(old, new))
        if numbers and _is_mean(row["response"], old) and _is_mean(row["response_after"], new):
            nll = max(nll, abs(float(row["response"]) - float(row["response_after"])))
        else:
            differ += row["response"] != row["response_after"] or row["error"] != row["error_after"]
    same = len(both) == len(before) == len(after) and all(
        _equal(old, new)
        for name in names
        for old, new in zip(both[name], both[f"{name}_after"], strict=True)
    )
    return Difference(len(both), differ, logprob, nll, same)


def _largest(old: Any, new: Any) -> float:
    with np.errstate(invalid="ignore"):  # of options that cannot be, both are -inf
        gaps = np.abs(np.asarray(old, float) - np.asarray(new, float))
    return float(np.nanmax(gaps, initial=0.0, where=~np.isnan(gaps)))


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, np.ndarray | list) and isinstance(new, np.ndarray | list):
        return np.array_equal(np.asarray(old), np.asarray(new), equal_nan=True)
    return bool(old is new or old == new)


def _is_mean(response: str, logprobs: Any) -> bool:
    """Whether a response is the mean negative log-likelihood of its tokens, and no word."""
    try:
        return (
            bool(np.isclose(float(response), -np.mean(logprobs), equal_nan=True))
            if len(logprobs)
            else True
        )
    except ValueError:
        return False


def _may_lie_elsewhere(old: Any, new: Any, name: str) -> bool:
    """Whether two spellings may mean the same: another path to a model's files, which are compared by their hash."""
    if name == "dtype":
        return True
    kinds = [scorers.split_kind(str(one))[0] for one in (old, new)]
    return (
        None not in (old, new)
        and kinds[0] == kinds[1]
        and (not kinds[0] or kinds[0] in scorers.FILES)
    )


def _from(home: Path, place: str | None) -> str | None:
    """A path as it was meant from the folder `home`, where it leads nowhere from here."""
    if not place or Path(place).expanduser().exists() or not (home / place).exists():
        return place
    return str(home / place)


def _model(home: Path, model: str, described: Mapping[str, Any]) -> str:
    """A model as it was asked, one of the Hub at the commit that was found."""
    kind, rest = scorers.split_kind(model)
    if kind:
        return f"{kind}:{_from(home, rest)}" if kind in scorers.FILES else model
    return str(_from(home, hub.at_commit(model, described.get("revision"))))


def _prompts(file: str | None, variant: str) -> str | None:
    """The wording's file where it is still there, else the name of the variant, whose hash is compared."""
    if file and Path(file).is_file():
        return f"{file}#{variant}" if variant else file
    return variant or None
