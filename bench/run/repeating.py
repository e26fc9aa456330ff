"""Repeat a run from its `run.json`: its options, the checks, and the comparison of the answers.

We compare data, prompts and models by their hashes before we ask any model. Other versions of
packages, another device or batch size can move numbers a little; we report them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from bench.run.run_json import IDENTITY, ROLES, differences, identity, other_scorer
from bench.scorers.base import Model
from bench.scorers.local import hub

# Options that can differ between repeats; we report the difference.
DEVICE_OPTIONS = ("device", "batch_tokens")


def options(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which `bench.evaluate` repeats this run.

    Of `bench.config.Where` we take `dtype`, for example, but not `trust_remote_code` or `keys`.
    """
    own, prompts, source = metadata["asked"], metadata["wording"], metadata["data"]
    model, judge = metadata["model"], metadata["judge"] or {}
    base = model.get("base") or {}
    # An adapter names its base itself, unless that is a commit of the Hub.
    if not own.get("base") and not hub.COMMIT.fullmatch(base.get("revision", "")):
        base = {}
    wording = prompts["variant"]
    if Path(prompts["file"]).is_file():
        wording = "#".join(filter(None, [prompts["file"], prompts["variant"]]))
    # Without an entry here, we look for the data in the default places.
    data = {FOUND_SAMPLES: OWN_SAMPLES, FOUND_GIVEN: source["folder"]}.get(source["found"])
    given = {**own, **own.get("generation", {})}
    names = RunConfig.model_fields.keys() - Where.model_fields.keys()
    return {
        **{name: value for name, value in given.items() if name in names},
        **{name: model.get(name, judge.get(name)) for name in DEVICE_OPTIONS},
        "dtype": own["dtype"],
        "benchmark": metadata["benchmark"],
        "model": _same_model(own["model"], model),
        "judge": _same_model(own["judge"], judge) if own["judge"] else None,
        "base": _same_model(own.get("base") or base["id"], base) if base else None,
        "name": metadata.get("name"),
        "preset": metadata["preset"],
        "prompts": wording or None,
        "data": data,
        "partial": True,  # The repeat skips the same tasks.
    }


def _same_model(name: str, described: Mapping[str, Any]) -> str:
    """Return the name of a model, with the commit of a Hub model."""
    is_checkpoint = not scorers.split_kind(name)[0]
    return hub.at_commit(name, described.get("revision")) if is_checkpoint else name


def check_plan(metadata: Mapping[str, Any], plan: Plan) -> None:
    """Refuse a plan with other requests than the run of this `run.json`."""
    was = {"preset": metadata["preset"], **identity(metadata)}
    now = {"preset": plan.config.preset, **identity(plan.entries)}
    for name, difference in differences(was, now).items():
        old, new = was.get(name), now.get(name)
        # An older run lacks newer entries, but these two mean "not given".
        is_older = name not in {*was, "label_names", "generation"}
        # `check_scorer` compares models and files that are loaded: they can have moved.
        is_checked = name == "dtype" or (name.endswith("_content") and None in (old, new))
        if name in ("model", "judge", "base") and old and new:
            kinds = {scorers.split_kind(model)[0] for model in (old, new)}
            is_checked = kinds == {""} or (len(kinds) == 1 and scorers.backend_of(new).from_file)
        if not is_older and not is_checked:
            name_of_option = name.replace("_", "-")
            raise BadInput(
                f"--from: {difference.replace(name, name_of_option, 1)}; give the options, the "
                "data and the files of that run, or ask anew without --from"
            )


def check_scorer(metadata: Mapping[str, Any], role: str, scorer: Model) -> None:
    """Refuse a model or judge that is not the run's; only its path may differ."""
    was = metadata[role] or {}
    if other := other_scorer(was, scorer, [*IDENTITY[1:], "labels"]):
        is_dtype = other.startswith("dtype ")
        fix = f"--dtype {was['dtype']}" if is_dtype else f"the same with --{role}"
        raise BadInput(f"--from: the {role} is another one ({other}); give {fix}")


def other_conditions(like: Run, now: Mapping[str, Any]) -> list[str]:
    """List the conditions that changed since the run `like`, or that we cannot check."""
    sentences = [*differences(_conditions(like.metadata), _conditions(now)).values()]
    sentences += [
        f"the {role} is behind {now[role]['url']}, and may have changed there without a trace"
        for role in ROLES
        if "url" in (now[role] or {})
    ]
    return [f"not as in {like.folder}: {sentence}" for sentence in sentences]


def _conditions(metadata: Mapping[str, Any]) -> dict[str, Any]:
    values = {**metadata["packages"], "the workbench's commit": metadata["git_commit"]}
    for role in ROLES:
        for name in DEVICE_OPTIONS:
            if name in (metadata[role] or {}):
                values[f"the {role}'s {name.replace('_', ' ')}"] = metadata[role][name]
    return values


def difference(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Compare the records of two runs over their common requests, in a sentence."""
    both = before.merge(after, on=KEYS, suffixes=("", "_after"))
    # The response of a likelihood is the mean of its tokens, and no answer of its own.
    means = [-np.mean(old) if old is not None and len(old) else np.nan for old in both.logprobs]
    is_likelihood = np.isclose(both.response.map(to_number), means)
    is_same = (both.response == both.response_after) & (both.error == both.error_after)
    differ, largest = (~is_likelihood & ~is_same).sum(), 0.0
    for old, new in zip(both.logprobs, both.logprobs_after, strict=True):
        if old is not None and new is not None and len(old) == len(new):
            with np.errstate(invalid="ignore"):  # impossible options have -inf in both
                largest = max(largest, float(np.nanmax(np.abs(old - new), initial=0)))
    numbers = f", and log-probabilities by at most {largest:.2g} nats" if largest else ""
    if not differ and not numbers:
        return f"all {len(both):,} answers are the same"
    return f"{differ:,} of {len(both):,} answers differ{numbers}"
