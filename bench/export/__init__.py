"""Results and questions in the formats of other programs: one module a format.

`eee` writes runs for Every Eval Ever, `hub` for the Hugging Face Hub, and `lm_eval` questions for
lm-evaluation-harness.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.benchmarks import get
from bench.benchmarks.base import Release
from bench.core.errors import BadInput, expected
from bench.data import readers
from bench.data.dataset import MANIFEST, home
from bench.data.readers import as_path
from bench.metrics.primary import primary_rows
from bench.metrics.table import PrimaryMetric
from bench.run.results import Run
from bench.scorers import split_kind
from bench.scorers.local.hub import COMMIT, ID

FORMATS = ("eee", "hub")
# The organisation of simulated respondents and demonstration models.
OURS = "bias-workbench"


def write_runs(folders: Sequence[str | Path], form: str, out: Path) -> list[Path]:
    """Write runs in a format, `eee` or `hub`, to a folder; return the files.

    Raises:
        BadInput: the format is unknown, or does not allow a run.
    """
    if form not in FORMATS:
        raise BadInput("--as: " + expected(form, (*FORMATS, "lm-eval"), "format"))
    module = import_module(f"bench.export.{form}")
    return [path for folder in folders for path in module.write(Run.open(folder), out)]


def primary_scores(run: Run) -> Iterator[tuple[PrimaryMetric, dict[str, Any]]]:
    """Yield the defined primary metrics of a run, for each category and over all."""
    scores = run.scores()
    for primary in get(run.benchmark).metrics.primary_metrics:
        rows = primary_rows(scores, primary)
        for row in rows[rows.score.notna()].to_dict("records"):
            yield primary, {str(name): value for name, value in row.items()}


def model_id(described: Mapping[str, Any]) -> str:
    """Return ORGANISATION/NAME of a model that `run.json` describes.

    For a model of the Hub, this is its id. Otherwise the organisation is the host of an endpoint,
    `local` for files of a model, `recorded` for answers, or `bias-workbench` for simulated
    respondents and demonstration models.
    """
    name = described["id"]
    kind, rest = split_kind(name)
    organisation = "local" if kind else "recorded"
    if kind == "openai":
        name, organisation = rest.partition("@")[0], described["host"]
    elif kind in ("simulated", "tiny"):
        organisation = OURS
    elif kind in ("replay", "predictions", "lm-eval"):
        name, organisation = as_path(rest).name, "recorded"
    elif not kind and COMMIT.fullmatch(str(described.get("revision"))):
        organisation = "huggingface"
    elif not kind and ("device" in described or not ID.fullmatch(name)):
        name, organisation = as_path(name).name, "local"
    given, _, last = name.rpartition("/")
    parts = [*(given or organisation).split("/"), last]
    return "/".join(re.sub(r"[^\w.,=+-]|^\.+$", "_", part) for part in parts)


def release(run: Run) -> Release | None:
    """Return the release of a run's data, by the manifest of `bench fetch`; None for other data."""
    data, known = run.metadata["data"], get(run.benchmark).metadata.release
    path = home(as_path(data["folder"])) / MANIFEST
    fetched = readers.read_toml(path) if path.is_file() else {}
    commit, origin = str(fetched.get("revision", "")), str(fetched.get("fetched_from"))
    is_same = fetched.get("sha256") == data["sha256"] and known.repository in origin
    return replace(known, commit=commit) if commit and is_same else None
