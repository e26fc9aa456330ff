"""Read McBE's official prompts from the authors' scripts; the scripts are never run.

A prompt is an f-string; what it fills in becomes a named field. The four prompts of the judge
become one template, with the criteria, maxima and weights in which they differ.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput
from bench.data.official_wording import (
    OfficialPrompts,
    escape_braces,
    parse_script,
    prompts_toml,
    read_script,
    summands,
)

COMMIT = "2a8e8f5"
REPOSITORY = "VelikayaScarlet/McBE"
SCRIPTS = ("eval.py", "utils.py")
EXPECTED = f"the scripts {' and '.join(SCRIPTS)}"
# The Hub has the data alone.
ADDRESS = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}"
VERSION = f"mcbe-official-{COMMIT}"
# The hash of the released prompts: changed ones do not get the release's version.
RELEASED = "56cd11aa000f0fcff7c8d5d00a2504bdb5a1beb851abe83e4148ff69c2ec24b2"
ABOUT = """\
The prompts of McBE's release, read by `bench fetch mcbe` from the authors' scripts (Apache-2.0).
Fields in braces are filled in; {labels} is the list of labels as Python prints it."""
REMEDY = (
    f"put {' and '.join(SCRIPTS)} of github.com/{REPOSITORY} at commit {COMMIT} into a folder with "
    "the data and run `bench fetch mcbe --from DIR`"
)

# The prompts that a function assigns, in order, each with its fields by the expression in the code.
JUDGE = {"analysis": "analysis", "t.explanation": "reference"}
CRITERIA = 4
FUNCTIONS: Mapping[str, Sequence[Mapping[str, str]]] = {
    "classification": [{"s.replace('[PLH]', t.words[0])": "text", "all_class": "labels"}],
    "order_by_LLM": [{"context": "context", "sentence": "sentence"}],
    "scenario_selection": [{"sentence1": "sentence1", "sentence2": "sentence2"}],
    "bias_analysis": [
        {"t.words[0]": "word", "t.sentence.replace('[PLH]', t.words[0])": "sentence"},
        *[JUDGE] * CRITERIA,
    ],
    "bias_scoring": [{"sentence": "sentence"}],
}
# A prompt of the judge: the maximum ends the numbers of line 3, the criterion follows `：` in 4.
JUDGE_PROMPT = re.compile(r"((?:.*\n){2}.*[^\d\n])(\d{1,9})([^\d\n]*\n[^：\n]*：)(.+)((?s:\n.*)?)")


def choices(tables: Iterable[str]) -> tuple[str, ...]:
    """Name the prompt sets to choose from: none, because all tables belong to one set."""
    return ()


def find(folder: Path, above: bool = False) -> Path | None:
    """Find the folder with both scripts: `folder`, one inside it, or with `above` its parent."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    places = [folder, *inside, *([folder.parent] if above else [])]
    return next((p for p in places if all((p / name).is_file() for name in SCRIPTS)), None)


def read(scripts: Path) -> str:
    """Write the prompts of the scripts as TOML, in tables as the tasks read them.

    The version is the release's, with `+changed` where a prompt is not the released one.

    Args:
        scripts: the folder that holds `eval.py` and `utils.py`.

    Raises:
        BadInput: a script is missing, not Python, or not built as the release's.
    """
    functions = {
        node.name: node
        for path in (scripts / name for name in SCRIPTS)
        for node in ast.walk(parse_script(path, read_script(path, REMEDY), REMEDY))
        if isinstance(node, ast.FunctionDef)
    }
    prompts: dict[str, list[str]] = {}
    judge: dict[str, Any] = {}
    for name, fields in FUNCTIONS.items():
        try:
            if name not in functions:
                raise ValueError("is missing")
            prompts[name] = _prompts(functions[name], fields)
            if name == "bias_analysis":
                judge = _judge(functions[name], prompts[name][1:])
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{scripts}, function `{name}`: {error}; {REMEDY}") from None
    tables = {
        "subcategory_classification": {"prompt": prompts["classification"][0]},
        "context_order": {"prompt": prompts["order_by_LLM"][0]},
        "scenario_selection": {"prompt": prompts["scenario_selection"][0]},
        "bias_analysis": {"prompt": prompts["bias_analysis"][0], "judge": judge},
        "bias_scoring": {"prompt": prompts["bias_scoring"][0]},
    }
    return prompts_toml(ABOUT, VERSION, RELEASED, f"github.com/{REPOSITORY}@{COMMIT}", tables)


def _prompts(function: ast.FunctionDef, expected: Sequence[Mapping[str, str]]) -> list[str]:
    """Read what the function assigns to `prompt`, in order, as templates with named fields."""
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "prompt"
    ]
    if len(values) != len(expected):
        raise ValueError(f"expected {len(expected)} of `prompt = f-string`, found {len(values)}")
    templates = []
    for value, fields in zip(sorted(values, key=lambda v: v.lineno), expected, strict=True):
        text, sources = "", set()
        for summand in summands(value):
            for part in summand.values if isinstance(summand, ast.JoinedStr) else [summand]:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    text += escape_braces(part.value)
                    continue
                # Anything but a plain `{expression}` is named as it is written, and not expected.
                source = ast.unparse(part)
                if isinstance(part, ast.FormattedValue) and part.conversion == -1:
                    source = source if part.format_spec else ast.unparse(part.value)
                sources.add(source)
                text += f"{{{fields.get(source, '')}}}"
        if sources != set(fields):
            raise ValueError(
                f"line {value.lineno}: expected an f-string with the fields "
                f"`{'`, `'.join(fields)}`, found `{'`, `'.join(sorted(sources))}`"
            )
        templates.append(text)
    return templates


def _judge(function: ast.FunctionDef, prompts: Sequence[str]) -> dict[str, Any]:
    """Join the judge's prompts to one template, with the criteria and their weights."""
    matches = [match for prompt in prompts if (match := JUDGE_PROMPT.fullmatch(prompt))]
    templates = {f"{match[1]}{{maximum}}{match[3]}{{criterion}}{match[5]}" for match in matches}
    if len(matches) != CRITERIA or len(templates) != 1:
        raise ValueError(
            "expected the judge's prompts to differ in the maximum in line 3, and in the criterion "
            "after `：` in line 4 alone"
        )
    # `sub_scores[0] *= 3.5` and so on.
    weights = {
        ast.unparse(node.target): node.value.value
        for node in ast.walk(function)
        if isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Mult)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
    }
    names = [f"sub_scores[{k}]" for k in range(CRITERIA)]
    if not set(names) <= set(weights):
        raise ValueError(f"expected `{' *= NUMBER`, `'.join(names)} *= NUMBER`")
    return {
        "prompt": templates.pop(),
        "criteria": [
            {
                "text": match[4].replace("{{", "{").replace("}}", "}"),
                "maximum": int(match[2]),
                "weight": weights[name],
            }
            for match, name in zip(matches, names, strict=True)
        ],
    }


PROMPTS = OfficialPrompts(VERSION, SCRIPTS, EXPECTED, ADDRESS, REMEDY, find, read, choices)
