"""Write runs for Every Eval Ever, a JSON schema of evaluations that EuroEval writes too.

A run becomes FOLDER/data/BENCHMARK/ORGANISATION/MODEL/ID.json, with its primary metrics for each
category and over all, and ID_samples.jsonl, a line for each answer of the model. In FOLDER,
`every_eval_ever validate` checks them; see https://github.com/evaleval/every_eval_ever.
"""

import hashlib
import json
import math
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import __version__
from bench.core.cells import to_number
from bench.core.files import atomic_write
from bench.data import by_id, readers
from bench.data.manifest import MANIFEST, home
from bench.data.readers import as_path
from bench.metrics.primary import primary_rows
from bench.metrics.table import ALL
from bench.runs.open import Run
from bench.scorers import split_kind
from bench.scorers.local.hub import COMMIT, ID
from bench.tasks.request import of_judge

SCHEMA = "0.3.0"
# The organisation of simulated respondents and demonstration models.
OURS = "bias-workbench"


def write(run: Run, out: Path) -> list[Path]:
    """Write a run's primary metrics and its answers; return both files."""
    metadata = run.metadata
    model = model_id(metadata["model"])
    began = int(datetime.fromisoformat(metadata["when"]).timestamp())
    key = f"{run.benchmark}-{metadata['identity']}/{model}/{began}"
    # The file names depend on the run alone, so that writing it again replaces the files.
    name = uuid.UUID(bytes=hashlib.sha256(key.encode()).digest()[:16], version=4)
    organisation, *names = model.split("/")
    folder = Path("data", run.benchmark, organisation, "_".join(names))
    samples = folder / f"{name}_samples.jsonl"
    shared = {"schema_version": SCHEMA, "evaluation_id": key}
    lines = [_json({**shared, "model_id": model, **sample}) + "\n" for sample in _samples(run)]
    text = "".join(lines)
    content = {
        **shared,
        "evaluation_timestamp": metadata["when"],
        "retrieved_timestamp": str(int(time.time())),
        "source_metadata": {
            "source_name": "bias-workbench",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "bias-workbench",
            "version": metadata["packages"].get("bias-workbench", __version__),
            "additional_details": _texts(
                **metadata["asked"]["settings"],
                preset=metadata["preset"],
                prompts=metadata["asked"]["prompts"],
                scored_by=__version__,
            ),
        },
        "model_info": _model(metadata["model"], run.label),
        "evaluation_results": list(_results(run)),
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(text.encode()).hexdigest(),
            "total_rows": len(lines),
        },
    }
    atomic_write(out / samples, text)
    atomic_write(out / folder / f"{name}.json", _json(content, indent=2) + "\n")
    return [out / folder / f"{name}.json", out / samples]


def _results(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the primary metrics in the form of the schema."""
    metadata = run.metadata
    units = run.definition.metadata.units
    source = _source(run)
    judges = _judges(run)
    options = metadata["asked"]
    generation = {"max_tokens": options.get("max_new_tokens"), **options.get("generation", {})}
    names = ("temperature", "top_p", "max_tokens")
    generation = {name: generation[name] for name in names if generation.get(name) is not None}
    definitions = {card.metric: card.definition for card in run.definition.metrics.cards}
    scores = run.scores()
    defined = [
        (primary, row)
        for primary in run.definition.metrics.primary_metrics
        for row in primary_rows(scores, primary).to_dict("records")
        if not math.isnan(row["score"])
    ]
    for primary, row in defined:
        uncertainty: dict[str, Any] = {"num_samples": int(row["n"])}
        if not math.isnan(row["ci_low"]):
            uncertainty["confidence_interval"] = {
                "lower": row["ci_low"],
                "upper": row["ci_high"],
                "confidence_level": 0.95,
                "method": f"bootstrap over {units}",
            }
        metric: dict[str, Any] = {
            "evaluation_description": definitions.get(primary.metric, primary.title),
            "metric_id": f"{run.benchmark}.{primary.metric}",
            "metric_name": primary.title,
            "metric_unit": "proportion" if primary.share else "points",
            "lower_is_better": primary.biased_is_high,
            "score_type": "continuous",
            "min_score": primary.limits[0],
            "max_score": primary.limits[1],
        }
        if judges and primary.task in (*judges, ALL):
            metric["llm_scoring"] = next(iter(judges.values()))
        details = ("preset", "valid_rate", "baseline", "bound_low", "bound_high", "note")
        of_baseline = "" if math.isnan(row["baseline"]) else row["baseline_of"] or primary.baseline
        modes = [
            mode for task, mode in metadata["answer_mode"].items() if primary.task in (task, ALL)
        ]
        yield {
            "evaluation_result_id": f"{primary.task}:{primary.metric}:{row['category']}",
            "evaluation_name": _name(run.benchmark, primary.task, row["category"]),
            "source_data": source,
            "metric_config": metric,
            "score_details": {
                "score": row["score"],
                "details": _texts(baseline_of=of_baseline, **{name: row[name] for name in details}),
                "uncertainty": uncertainty,
            },
            "generation_config": {
                "generation_args": generation,
                "additional_details": _texts(answer_mode=", ".join(dict.fromkeys(modes))),
            },
        }


def _samples(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the model's answers in the form of the schema."""
    benchmark = run.definition
    rows: Any = run.answers()
    items = by_id(run.items)
    is_judged = rows.request.map(of_judge).astype(bool)
    grades = {
        (row.task, row.item_id, row.request.partition(":")[2], row.repeat): row.response
        for row in rows[is_judged].itertuples()
    }
    for row in rows[~is_judged].itertuples():
        values = benchmark.values(row.task, row.request, items[row.item_id])
        choices = values.choices if isinstance(values.choices, Mapping) else {}
        right = [text for text, value in choices.items() if values.verdict(value) == "right"]
        score = 0.0
        means = "none"
        if right:
            score = float(row.verdict == "right")
            means = "1 if right"
        elif math.isfinite(number := to_number(row.parsed)):
            score = number
            means = "the number read"
        order = row.request.partition(":")[2]
        yield {
            "evaluation_name": _name(run.benchmark, row.task, row.category),
            "sample_id": f"{row.item_id}|{row.request}|{row.repeat}",
            "interaction_type": "single_turn",
            "input": {"raw": row.prompt, "reference": right, "choices": list(choices) or None},
            "output": {"raw": [row.response]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": row.parsed,
                    "extraction_method": f"{benchmark.parse.__module__}.parse",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": score, "is_correct": row.verdict == "right"},
            "error": row.error or None,
            "metadata": _texts(
                task=row.task,
                request=row.request,
                repeat=row.repeat,
                verdict=row.verdict,
                score_means=means,
                judge_reply=grades.get((row.task, row.item_id, order, row.repeat)),
            ),
        }


def _name(benchmark: str, task: str, category: str) -> str:
    return "/".join([benchmark, *(name for name in (task, category) if name != ALL)])


def _model(described: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Describe a model or judge as the schema does."""
    name = model_id(described)
    is_local = "dtype" in described
    details = {k: v for k, v in described.items() if isinstance(v, str | int | float)}
    details["deployment_type"] = "self_deployed" if is_local else "unknown"
    from_hub = is_local and not name.startswith("local/")
    details["model_availability"] = "open_weights" if from_hub else "unknown"
    model = {"name": label, "id": name, "additional_details": _texts(**details)}
    return {**model, "inference_platform": described["host"]} if "host" in described else model


def model_id(described: Mapping[str, Any]) -> str:
    """Return ORGANISATION/NAME of a model that `run.json` describes.

    A model of the Hub keeps its id. For other models, the organisation is the host of an endpoint,
    `local` for model files, `recorded` for recorded answers, or `bias-workbench` for simulated and
    demonstration models.
    """
    name = described["id"]
    revision = str(described.get("revision"))
    kind, address = split_kind(name)
    organisation = "local" if kind or "device" in described else "recorded"
    if kind == "openai":
        name = address.partition("@")[0]
        organisation = described.get("host", "unknown")
    elif kind in ("simulated", "tiny"):
        organisation = OURS
    elif kind in ("replay", "predictions"):
        name = as_path(address).name
        organisation = "recorded"
    elif not kind and COMMIT.fullmatch(revision):
        organisation = "huggingface"
    elif "device" in described or not ID.fullmatch(name):
        name = as_path(name).name
        organisation = "local"
    *folders, last = name.split("/")
    parts = [*(folders or [organisation]), last]
    return "/".join(re.sub(r"[^\w.,=+-]|^\.+$", "_", part) for part in parts)


def _judges(run: Run) -> dict[str, dict[str, Any]]:
    """Describe the judge of each task that needs one."""
    judge = run.metadata["judge"]
    settings = run.metadata["asked"]["settings"]
    tasks = run.definition.tasks
    rows = run.records
    first: Any = rows[rows.request.map(of_judge)].drop_duplicates("task")
    return {
        row.task: {
            "judges": [{"model_info": _model(judge, judge["id"])}],
            "input_prompt": row.prompt,  # the first of the prompts, filled in
        }
        for row in first.itertuples()
        if judge and tasks[row.task].judged(settings) == "needed"
    }


def _source(run: Run) -> dict[str, Any]:
    """Describe the data: a release at its commit, if they were fetched and have not changed."""
    data = run.metadata["data"]
    release = run.definition.metadata.release
    details = {name: data[name] for name in ("version", "licence", "sha256", "note")}
    source = {"dataset_name": data["name"], "source_type": "other"}
    path = home(as_path(data["folder"])) / MANIFEST
    fetched = readers.read_toml(path) if path.is_file() else {}
    is_release = release.repository in str(fetched.get("fetched_from"))
    if is_release and fetched.get("revision") and fetched.get("sha256") == data["sha256"]:
        details["revision"] = fetched["revision"]
        if release.host == "hub":
            source |= {"source_type": "hf_dataset", "hf_repo": release.repository}
    return {**source, "additional_details": _texts(**details)}


def _texts(**values: Any) -> dict[str, str]:
    """Write values as texts; skip undefined and empty ones."""
    texts = {name: str(value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if text not in ("", "None", "nan")}


def _json(content: Any, indent: int | None = None) -> str:
    return json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False)
