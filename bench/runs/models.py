"""The models of some runs in one frame: size, family, and the settings of their runs."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from bench.runs.open import Run, labels, open_runs
from bench.scorers.names import short_name

# Billions or millions in a name, for example 30 in Qwen3-30B-A3B, but no number in 8x7B.
SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[ _-]?([BbMm])(?![A-Za-z0-9])")


def models(*runs: Run | str | Path) -> pd.DataFrame:
    """List the models of some runs, one row per run.

    Args:
        runs: runs, their folders, or patterns of folders, for example `reports/runs/*/cbbq-*`.

    Returns:
        `model` and `benchmark`, as in `bench.score`; `asked_as` (the user's name of this model),
        `family` (its name without the size), `billions` of parameters and their source
        `size_from` (we counted them, or they are in its name, which can be rounded; NaN if
        unknown), `kind`, and the settings of this run: revision, data, prompts, preset and so on.

    Raises:
        BadInput: a folder or pattern without a run.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> bench.models(run)[["model", "benchmark", "family", "billions", "kind"]]
                        model benchmark     family  billions                  kind
        0  simulated:bias=0.7      cbbq  simulated       NaN  simulated respondent
    """
    all_runs = open_runs(runs)
    rows = []
    for run, name in zip(all_runs, labels(all_runs), strict=True):
        model, data, options = (run.metadata[part] for part in ("model", "data", "asked"))
        billions, size_from = size(run)
        row = {
            "model": name,
            "benchmark": run.benchmark,
            "asked_as": run.model,
            "family": family(run.label if size_in(run.label) else run.model),
            "billions": billions,
            "size_from": size_from,
            "kind": run.kind,
            **{name: model.get(name, "") for name in ("revision", "dtype", "device")},
            **({"base": "{id} {revision}".format(**model["base"])} if model.get("base") else {}),
            **({"quantized": model["quantized"]} if "quantized" in model else {}),
            "data": f"{data['name']} {data['version']}",
            "data_sha256": data["sha256"][:12],
            "adds_bos": model.get("adds_bos", ""),
            "prompts": options["prompts"],
            "preset": run.metadata["preset"],
            "seed": options["seed"],
            "repeats": options["repeats"],
            "judge": short_name(run.judge),
            "settings": ", ".join(f"{key}={value}" for key, value in options["settings"].items()),
            "when": run.metadata["when"],
        }
        rows.append(row)
    return pd.DataFrame(rows)


def size(run: Run) -> tuple[float, str]:
    """Return the billions of parameters of a run's model, NaN if unknown, and their source."""
    parameters = run.metadata["model"].get("parameters")
    if isinstance(parameters, int) and parameters > 0:
        return parameters / 1e9, "counted"
    if isinstance(parameters, Mapping) and {"hidden", "layers"} <= set(parameters):
        # A tiny model: four square matrices and three of twice the width, biases and norms.
        hidden, layers = int(parameters["hidden"]), int(parameters["layers"])
        parameters = layers * (10 * hidden**2 + 5 * hidden) + hidden
        return parameters / 1e9, "counted in its layers, without embeddings"
    billions = size_in(run.label) or size_in(run.model)
    return (billions, "its name") if billions else (np.nan, "")


def size_in(model: str) -> float | None:
    """Read the billions of parameters from the name of a model; None if it has no such number.

    Examples:
        >>> size_in("Qwen/Qwen2.5-0.5B-Instruct"), size_in("GLM-335M"), size_in("Mixtral-8x7B")
        (0.5, 0.335, None)
    """
    match = SIZE.search(short_name(model))
    return float(match[1]) / (1 if match[2] in "Bb" else 1000) if match else None


def family(model: str) -> str:
    """Return the name of a model without its size; simulated respondents are one family."""
    name = short_name(model)
    kind, _colon, options = name.partition(":")
    if kind == "simulated":
        return kind
    if kind == "tiny":
        return ":".join(filter(None, [kind, options.partition(",")[2]]))
    return re.sub(r"[-_ ]{2,}", "-", SIZE.sub("", name)).strip("-_ ") or name
