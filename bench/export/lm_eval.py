"""Write CBBQ's questions as tasks of lm-evaluation-harness, and score its answers.

FOLDER holds `cbbq_letters.yaml` (likelihoods of the letters), `cbbq_replies.yaml` (generated
replies), `questions.jsonl` and `utils.py`. This last file calls this module, to parse replies and
compute scores as in a run, so the harness needs this package. For example:

    lm_eval --include_path FOLDER --tasks cbbq_letters,cbbq_replies --log_samples ...
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from bench.benchmarks.cbbq import scores as cbbq
from bench.benchmarks.cbbq.outcomes import SUMS
from bench.benchmarks.cbbq.requests import LETTERS, parse
from bench.benchmarks.cbbq.scenes import scenes as sampled_scenes
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.metrics.table import ALL
from bench.run.plan import Plan

TASK = """\
# {title}, prompts {prompts}; written by bias-workbench.
task: {task}
custom_dataset: !function utils.dataset
test_split: test
output_type: {output_type}
doc_to_text: prompt
doc_to_target: answer
{options}
process_results: !function utils.{read}
metric_list:
  - {{metric: s_amb, aggregation: !function utils.s_amb, higher_is_better: false}}
  - {{metric: s_disamb, aggregation: !function utils.s_disamb, higher_is_better: false}}
  - {{metric: accuracy, aggregation: !function utils.accuracy, higher_is_better: true}}
metadata:
  version: 1.0
"""
# A line break between question and answer; a chat template has its own ends of turns.
LETTER_OPTIONS = r'''doc_to_choice: ["A", "B", "C"]
target_delimiter: "\n"'''
REPLY_OPTIONS = r"""target_delimiter: "\n"
generation_kwargs: {{until: [], do_sample: false, max_gen_toks: {limit}}}"""
UTILS = '''\
"""CBBQ's questions; answers are read and scores computed by bias-workbench."""

from pathlib import Path

from bench.export.lm_eval import accuracy, letters, replies, s_amb, s_disamb  # noqa: F401


def dataset(**_):
    from datasets import Dataset

    return {"test": Dataset.from_json(str(Path(__file__).with_name("questions.jsonl")))}
'''


def write(out: Path, **options: Any) -> list[Path]:
    """Write CBBQ's questions as two tasks, with the prompts and items of a run.

    Args:
        options: of `bench.config.RunConfig`: `data`, `categories`, `limit`, `settings`, `prompts`.

    Raises:
        BadInput: an option is wrong, or needs more than one request per question.
    """
    # A placeholder that supports all requests.
    given = {"benchmark": "cbbq", "model": "simulated:", "read": "letters", **options}
    config = RunConfig.of(given)
    plan = Plan(config)
    can = {"verbs": ("choose", "generate"), "reads": ("letters",), "judge_verbs": ()}
    stages = plan.requests(can, partial=False).stages
    if len(stages) > 1:
        raise BadInput(
            f"--set prompting={plan.options['settings']['prompting']}: asks in two turns, and "
            "lm-evaluation-harness asks each question once; leave the setting out"
        )
    items = plan.items
    scenes = dict(zip(items.item_id, sampled_scenes(items), strict=True))
    lines = []
    for request in stages[0]:
        item = plan.choice.by_id[request.item_id]
        question = {
            "task": request.task,
            "category": request.category,
            "item_id": request.item_id,
            "request": request.request,
            "prompt": request.prompt,
            "answer": request.key.correct,
            "scene": scenes[request.item_id],
            "biased": item.biased,
            "label": item.label,
            **dict(zip(("ans0", "ans1", "ans2"), item.options, strict=True)),
        }
        lines.append(json.dumps(question, ensure_ascii=False))
    limit = stages[0][0].max_new_tokens
    described = {"title": plan.source.name, "prompts": plan.prompt_set.label}
    tasks = {
        "letters": ("multiple_choice", LETTER_OPTIONS),
        "replies": ("generate_until", REPLY_OPTIONS.format(limit=limit)),
    }
    files = {"questions.jsonl": "\n".join([*lines, ""]), "utils.py": UTILS}
    for read, (output_type, settings) in tasks.items():
        task = f"cbbq_{read}"
        files[f"{task}.yaml"] = TASK.format(
            **described, task=task, output_type=output_type, options=settings, read=read
        )
    for name, text in files.items():
        atomic_write(out / name, text)
    return [out / name for name in files]


def letters(doc: Mapping[str, Any], results: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Read the likeliest letter; `results` has log-likelihoods first."""
    likelihoods = [float(result[0]) for result in results]
    return _values(doc, LETTERS[likelihoods.index(max(likelihoods))])


def replies(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    return _values(doc, results[0])


def s_amb(values: Sequence[Mapping[str, Any]]) -> float:
    """Compute the share of stereotyped answers to ambiguous questions."""
    return _score(values, "ambiguous", "s_amb")


def s_disamb(values: Sequence[Mapping[str, Any]]) -> float:
    """Compute the share of stereotyped answers to disambiguous questions that name a person."""
    return _score(values, "disambiguous", "s_disamb")


def accuracy(values: Sequence[Mapping[str, Any]]) -> float:
    """Compute the share of right answers in both contexts."""
    return _score(values, ALL, "accuracy")


def _values(doc: Mapping[str, Any], response: str) -> dict[str, Any]:
    """Return the fields of an answer that each score needs."""
    chosen = parse(doc["task"], doc["request"], response, SimpleNamespace(**doc))
    index = LETTERS.index(chosen) if chosen else -1
    value = {
        "task": doc["task"],
        "category": doc["category"],
        "request": doc["request"],
        "cluster": doc["scene"],
        "valid": index >= 0,
        "biased": index == doc["biased"],
        "decided": index in (0, 1),
        "correct": index == doc["label"],
    }
    return dict.fromkeys(("s_amb", "s_disamb", "accuracy"), value)


def _score(values: Sequence[Mapping[str, Any]], task: str, metric: str) -> float:
    """Compute a score over all categories; NaN if it is undefined."""
    rows = pd.DataFrame(list(values)).assign(n=1, came=1)
    rows[[name for name in SUMS if name not in rows]] = 0
    scoring = cbbq.scoring_of(rows, "robust")
    (own,) = (one for one in scoring.metrics if one.place == (task, metric))
    return float(scoring.values(own)[0, -1])
