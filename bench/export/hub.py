"""Write scores for the page of a model on the Hugging Face Hub.

FOLDER/MODEL/.eval_results/ goes into the model's repository, with a file for each run; see
https://huggingface.co/docs/hub/eval-results.
"""

import math
from pathlib import Path

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from bench import __version__
from bench.benchmarks import get
from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.core.numbers import decimals
from bench.export import OURS, model_id, primary_scores, release
from bench.metrics.table import ALL, join_notes
from bench.run.results import Run


def write(run: Run, out: Path) -> list[Path]:
    """Write the primary metrics of a run over all categories.

    Raises:
        BadInput: the model has no page, or the data are not a dataset of the Hub.
    """
    title, known = get(run.benchmark).metadata.title, get(run.benchmark).metadata.release
    data = run.metadata["data"]
    if "samples" in data["version"]:
        raise BadInput(
            f"{run.folder}: has the package's samples as data, and numbers on them are not results "
            f"of {title}; `bench fetch {run.benchmark}` downloads the data"
        )
    model = model_id(run.metadata["model"])
    if model.startswith(f"{OURS}/"):
        raise BadInput(f"{run.folder}: {run.label} is not a model with a page on the Hub")
    if known.host != "hub":
        raise BadInput(
            f"{run.folder}: the Hub shows results on its own datasets only, and {title} is none; "
            "--as eee writes them for Every Eval Ever"
        )
    dataset = release(run)
    if not dataset:
        raise BadInput(
            f"{run.folder}: {data['folder']} is not known to be {known.repository} at a commit, or "
            f"has changed; ask the data that `bench fetch {run.benchmark}` downloads"
        )
    entries = []
    for primary, row in primary_scores(run):
        if row["category"] == ALL:
            low, high = row["ci_low"], row["ci_high"]
            notes = join_notes(
                primary.title,
                "" if math.isnan(low) else f"95 % interval {low:.6g} to {high:.6g}",
                f"{row['n']:,} answers, {decimals(100 * row['valid_rate'], 1)}% of them readable",
                f"preset {row['preset']}, prompts {run.metadata['asked']['prompts']}",
                f"bias-workbench {__version__}",
                row["note"],
            )
            entry = EvalResultEntry(
                dataset_id=dataset.repository,
                dataset_revision=dataset.commit,
                task_id=f"{primary.task}_{primary.metric}",
                value=round(row["score"], 6),
                date=run.metadata["when"],
                notes=notes,
            )
            entries.append(entry)
    text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
    name = f"{run.benchmark}-{run.metadata['identity']}.yaml"
    path = out.joinpath(*model.split("/"), ".eval_results", name)
    atomic_write(path, text)
    return [path]
