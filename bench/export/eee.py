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
from bench.data import by_id
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
    """Yield the defined scores of the primary metrics in the form of the schema."""
    scores, judges = run.scores(), _judges(run)
    data = run.metadata["data"]
    description = {name: data[name] for name in ("version", "licence", "sha256", "note")}
    source = {"dataset_name": data["name"], "source_type": "other"}
    source["additional_details"] = _texts(**description)
    definitions = {card.metric: card.definition for card in run.definition.metrics.cards}
    recorded = run.metadata["asked"]
    options = {"max_tokens": recorded.get("max_new_tokens"), **recorded.get("generation", {})}
    names = ("temperature", "top_p", "max_tokens")
    generation = {name: options[name] for name in names if options.get(name) is not None}
    details = ("preset", "valid_rate", "baseline", "bound_low", "bound_high", "note")
    for primary in run.definition.metrics.primary_metrics:
        modes = run.metadata["answer_mode"].items()
        modes = dict.fromkeys(mode for task, mode in modes if primary.task in (task, ALL))
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
        rows = primary_rows(scores, primary)
        for row in rows[rows.score.notna()].to_dict("records"):
            uncertainty: dict[str, Any] = {"num_samples": int(row["n"])}
            if not math.isnan(row["ci_low"]):
                uncertainty["confidence_interval"] = {
                    "lower": row["ci_low"],
                    "upper": row["ci_high"],
                    "confidence_level": 0.95,
                    "method": f"bootstrap over {run.definition.metadata.units}",
                }
            has_baseline = not math.isnan(row["baseline"])
            baseline_of = (row["baseline_of"] or primary.baseline) if has_baseline else ""
            texts = _texts(baseline_of=baseline_of, **{name: row[name] for name in details})
            score = {"score": row["score"], "details": texts, "uncertainty": uncertainty}
            yield {
                "evaluation_result_id": f"{primary.task}:{primary.metric}:{row['category']}",
                "evaluation_name": _name(run.benchmark, primary.task, row["category"]),
                "source_data": source,
                "metric_config": metric,
                "score_details": score,
                "generation_config": {
                    "generation_args": generation,
                    "additional_details": _texts(answer_mode=", ".join(modes)),
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
        score, means = to_number(row.parsed), "the number read"
        if right:
            score, means = float(row.verdict == "right"), "1 if right"
        elif not math.isfinite(score):
            score, means = 0.0, "none"
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
                **{name: getattr(row, name) for name in ("task", "request", "repeat", "verdict")},
                score_means=means,
                judge_reply=grades.get((row.task, row.item_id, order, row.repeat)),
            ),
        }


def _name(benchmark: str, task: str, category: str) -> str:
    return "/".join([benchmark, *(name for name in (task, category) if name != ALL)])


def _model(described: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Describe a model or judge as the schema does."""
    model_name = model_id(described)
    is_local = "dtype" in described
    is_open = is_local and not model_name.startswith("local/")
    details = {k: v for k, v in described.items() if isinstance(v, str | int | float)}
    details["deployment_type"] = "self_deployed" if is_local else "unknown"
    details["model_availability"] = "open_weights" if is_open else "unknown"
    platform = {"inference_platform": described["host"]} if "host" in described else {}
    return {"name": label, "id": model_name, "additional_details": _texts(**details), **platform}


def model_id(described: Mapping[str, Any]) -> str:
    """Return ORGANISATION/NAME of a model that `run.json` describes.

    A model of the Hub keeps its id. For other models, the organisation is the host of an endpoint,
    `local` for model files, `recorded` for recorded answers, or `bias-workbench` for simulated and
    demonstration models.
    """
    name = described["id"]
    kind, address = split_kind(name)
    organisation = "local" if kind else "recorded"
    if kind == "openai":
        name, organisation = address.partition("@")[0], described.get("host", "unknown")
    elif kind in ("simulated", "tiny"):
        organisation = OURS
    elif kind in ("replay", "predictions"):
        name, organisation = as_path(address).name, "recorded"
    elif not kind and COMMIT.fullmatch(str(described.get("revision"))):
        organisation = "huggingface"
    elif "device" in described or not ID.fullmatch(name):
        name, organisation = as_path(name).name, "local"
    *folders, last = name.split("/")
    parts = [*(folders or [organisation]), last]
    return "/".join(re.sub(r"[^\w.,=+-]|^\.+$", "_", part) for part in parts)


def _judges(run: Run) -> dict[str, dict[str, Any]]:
    """Describe the judge of each task that needs one, with its first prompt."""
    judge, settings = run.metadata["judge"], run.metadata["asked"]["settings"]
    rows = run.records
    rows = rows[rows.request.map(of_judge)].drop_duplicates("task")
    return {
        task: {"judges": [{"model_info": _model(judge, judge["id"])}], "input_prompt": prompt}
        for task, prompt in zip(rows.task, rows.prompt, strict=True)
        if run.definition.tasks[task].judged(settings) == "needed"
    }


def _texts(**values: Any) -> dict[str, str]:
    """Write values as texts; skip undefined and empty ones."""
    texts = {name: str(value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if text not in ("", "None", "nan")}


def _json(content: Any, indent: int | None = None) -> str:
    return json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False)
