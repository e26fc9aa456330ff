"""Read McBE's official prompts from the authors' scripts; the scripts are never run.

A prompt is an f-string that a function assigns to `prompt`. The four prompts of the judge become
one template, with the criteria, maxima and weights in which they differ.
"""

import ast
import re
from pathlib import Path

from bench.data.official_wording import (
    OfficialPrompts,
    digest,
    other_scripts,
    parse_script,
    prompts_toml,
    template,
)

COMMIT = "2a8e8f5"
REPOSITORY = "VelikayaScarlet/McBE"
FOLDERS = ("",)
SCRIPTS = ("eval.py", "utils.py")
# All tables belong to one prompt set.
CHOICES = ()
# The address of the scripts; the Hub has only the data.
ADDRESS = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}"
VERSION = f"mcbe-official-{COMMIT}"
# The hash of the released prompts.
RELEASED = "56cd11aa000f0fcff7c8d5d00a2504bdb5a1beb851abe83e4148ff69c2ec24b2"
ABOUT = """\
The prompts of McBE's release, read by `bench fetch mcbe` from the authors' scripts (Apache-2.0).
Fields in braces are filled in; {labels} is the list of labels as Python prints it."""
REMEDY = (
    f"put {' and '.join(SCRIPTS)} of github.com/{REPOSITORY} at commit {COMMIT} into a folder with "
    "the data and run `bench fetch mcbe --from DIR`"
)
# The names of fields by their expressions in the scripts, if these differ.
FIELDS = {
    "s.replace('[PLH]', t.words[0])": "text",
    "all_class": "labels",
    "t.words[0]": "word",
    "t.sentence.replace('[PLH]', t.words[0])": "sentence",
    "t.explanation": "reference",
}
# A prompt of the judge: the maximum ends the numbers of line 3, the criterion follows `：` in 4.
JUDGE_PROMPT = re.compile(r"((?:.*\n){2}.*[^\d\n])(\d{1,9})([^\d\n]*\n[^：\n]*：)(.+)((?s:\n.*)?)")


def read(scripts: Path) -> str:
    """Write the prompts of the scripts as TOML, in tables as the tasks read them.

    Raises:
        BadInput: these are not the released scripts.
    """
    functions: dict[str, ast.FunctionDef] = {}
    try:
        for name in SCRIPTS:
            for node in ast.walk(parse_script(scripts / name)):
                if isinstance(node, ast.FunctionDef):
                    functions[node.name] = node
        analysis, *judging = _prompts(functions["bias_analysis"])
        matches = [JUDGE_PROMPT.fullmatch(prompt) for prompt in judging]
        # `sub_scores[0] *= 3.5` and so on.
        weights = [
            ast.literal_eval(node.value)
            for node in ast.walk(functions["bias_analysis"])
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult)
        ]
        criteria = [
            {
                "text": match[4].replace("{{", "{").replace("}}", "}"),
                "maximum": int(match[2]),
                "weight": weight,
            }
            for match, weight in zip(filter(None, matches), weights, strict=True)
        ]
        (judge,) = {
            f"{match[1]}{{maximum}}{match[3]}{{criterion}}{match[5]}" for match in matches if match
        }
        (classification,) = _prompts(functions["classification"])
        (order,) = _prompts(functions["order_by_LLM"])
        (selection,) = _prompts(functions["scenario_selection"])
        (scoring,) = _prompts(functions["bias_scoring"])
    except (LookupError, ValueError, SyntaxError):
        raise other_scripts(scripts, REMEDY) from None
    tables = {
        "subcategory_classification": {"prompt": classification},
        "context_order": {"prompt": order},
        "scenario_selection": {"prompt": selection},
        "bias_analysis": {
            "prompt": analysis,
            "judge": {"prompt": judge, "criteria": criteria},
        },
        "bias_scoring": {"prompt": scoring},
    }
    if digest(tables) != RELEASED:
        raise other_scripts(scripts, REMEDY)
    return prompts_toml(ABOUT, VERSION, f"github.com/{REPOSITORY}@{COMMIT}", tables)


def _prompts(function: ast.FunctionDef) -> list[str]:
    """Read the f-strings that a function assigns to `prompt`, in order, as templates."""
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "prompt"
    ]
    return [template(value, FIELDS) for value in sorted(values, key=lambda value: value.lineno)]


OFFICIAL = OfficialPrompts(VERSION, SCRIPTS, FOLDERS, ADDRESS, CHOICES, REMEDY, read)
