"""Find McBE's official prompts in the authors' scripts; the scripts are never run.

A prompt is an f-string that a function assigns to `prompt`. The four prompts of the judge become
one template, with the criteria, maxima and weights in which they differ.
"""

import ast
import re
from pathlib import Path
from typing import Any

from bench.benchmarks.mcbe.requests import CRITERIA
from bench.data.official_wording import OfficialPrompts, parse_script, template

SCRIPTS = ("eval.py", "utils.py")
# The names of fields by their expressions in the scripts, if these differ.
FIELDS = {
    "s.replace('[PLH]', t.words[0])": "text",
    "all_class": "labels",
    "t.words[0]": "word",
    "t.sentence.replace('[PLH]', t.words[0])": "sentence",
    "t.explanation": "reference",
}
# The function of each task with one prompt.
FUNCTIONS = {
    "subcategory_classification": "classification",
    "context_order": "order_by_LLM",
    "scenario_selection": "scenario_selection",
    "bias_scoring": "bias_scoring",
}
# A prompt of the judge. Line 3 ends with the maximum; in line 4, the criterion follows `：`.
JUDGE_PROMPT = re.compile(r"((?:.*\n){2}.*[^\d\n])(\d{1,9})([^\d\n]*\n[^：\n]*：)(.+)((?s:\n.*)?)")


def prompts(scripts: Path) -> dict[str, Any]:
    """Return the prompts of the scripts, in tables as the tasks read them."""
    nodes = [node for name in SCRIPTS for node in ast.walk(parse_script(scripts / name))]
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    analysis, *judging = _prompts(functions["bias_analysis"])
    criteria = []
    judges = set()
    matches = filter(None, map(JUDGE_PROMPT.fullmatch, judging))
    for match, criterion in zip(matches, CRITERIA, strict=True):
        text = match[4].replace("{{", "{").replace("}}", "}")
        criteria.append({"text": text, "maximum": int(match[2]), "weight": criterion.weight})
        judges.add(f"{match[1]}{{maximum}}{match[3]}{{criterion}}{match[5]}")
    (judge,) = judges
    tables: dict[str, Any] = {
        task: {"prompt": _prompts(functions[function])[0]} for task, function in FUNCTIONS.items()
    }
    judge_table = {"prompt": judge, "criteria": criteria}
    return tables | {"bias_analysis": {"prompt": analysis, "judge": judge_table}}


def _prompts(function: ast.FunctionDef) -> list[str]:
    """Read the f-strings that a function assigns to `prompt`, in order, as templates."""
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "prompt"
    ]
    return [template(value, FIELDS) for value in sorted(values, key=lambda value: value.lineno)]


OFFICIAL = OfficialPrompts(
    version="mcbe-official-2a8e8f5",
    source="github.com/VelikayaScarlet/McBE@2a8e8f5",
    scripts=SCRIPTS,
    # The Hub has only the data.
    address="https://raw.githubusercontent.com/VelikayaScarlet/McBE/2a8e8f5",
    # All tables belong to one prompt set.
    choices=(),
    remedy="put eval.py and utils.py of github.com/VelikayaScarlet/McBE at commit 2a8e8f5 into a "
    "folder with the data and run `bench fetch mcbe --from DIR`",
    comment="The prompts of McBE's release, read by `bench fetch mcbe` from the authors' scripts "
    "(Apache-2.0).\nFields in braces are filled in; {labels} is the list of labels as Python "
    "prints it.",
    tables=prompts,
    sha256="56cd11aa000f0fcff7c8d5d00a2504bdb5a1beb851abe83e4148ff69c2ec24b2",
)
