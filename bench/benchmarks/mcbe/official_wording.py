"""Find McBE's official prompts in the authors' scripts; the scripts are never run.

A prompt is an f-string that a function assigns to `prompt`. The four prompts of the judge become
one template, with the criteria and maxima in which they differ; the weights are those of the score.
"""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from bench.benchmarks.mcbe.requests import CRITERIA
from bench.data.official_wording import OfficialPrompts, parse_script, template

# The description of the released prompts.
RELEASE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# The names of fields by their expressions in the scripts, and the function of each task with one
# prompt.
FIELDS = RELEASE.pop("fields")
FUNCTIONS = RELEASE.pop("functions")
# A prompt of the judge. Line 3 ends with the maximum; in line 4, the criterion follows `：`.
JUDGE_PROMPT = re.compile(r"((?:.*\n){2}.*[^\d\n])(\d{1,9})([^\d\n]*\n[^：\n]*：)(.+)((?s:\n.*)?)")


def prompts(scripts: Path) -> dict[str, Any]:
    """Return the prompts of the scripts, in tables as the tasks read them."""
    nodes = [node for name in RELEASE["scripts"] for node in ast.walk(parse_script(scripts / name))]
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


OFFICIAL = OfficialPrompts(**RELEASE, tables=prompts)
