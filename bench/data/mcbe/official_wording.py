"""Read McBE's official prompts from the authors' scripts; the scripts are never run.

A prompt is an f-string; what it fills in becomes a named field. The four prompts of the judge
become one template, with the criteria, maxima and weights in which they differ.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.core.errors import BadInput
from bench.data.official_wording import (
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
    f"take {' and '.join(SCRIPTS)} of github.com/{REPOSITORY} at commit {COMMIT} as they are and "
    "run `bench fetch mcbe --from DIR`"
)

Fields = Mapping[str, str]
ANALYSIS: Fields = {"t.words[0]": "word", "t.sentence.replace('[PLH]', t.words[0])": "sentence"}
JUDGE: Fields = {"analysis": "analysis", "t.explanation": "reference"}
CRITERIA = 4
# Each function with the fields of its prompts, by the expression that the script fills in.
FUNCTIONS: Mapping[str, Sequence[Fields]] = {
    "classification": ({"s.replace('[PLH]', t.words[0])": "text", "all_class": "labels"},),
    "scenario_selection": ({"sentence1": "sentence1", "sentence2": "sentence2"},),
    "bias_analysis": (ANALYSIS, *[JUDGE] * CRITERIA),
    "bias_scoring": ({"sentence": "sentence"},),
    "order_by_LLM": ({"context": "context", "sentence": "sentence"},),
}
# The two lines in which the prompts of the judge differ: up to the maximum, and the criterion.
MAXIMUM, CRITERION = re.compile(r"(.*\D)(\d{1,9})(\D*)"), re.compile(r"([^：]*：)(.+)")
MAXIMUM_LINE, CRITERION_LINE = 2, 3


def is_script(name: str) -> bool:
    """Tell whether a member of an archive is one of the scripts."""
    return name.rsplit("/", 1)[-1] in SCRIPTS


def choices(tables: Iterable[str]) -> tuple[str, ...]:
    """Name the prompt sets to choose from: none, because all tables belong to one set."""
    return ()


def find(folder: Path, above: bool = False) -> Path | None:
    """Find the two scripts: in `folder` or in a folder inside it.

    If only one of the two is found, its folder is returned, and `read` reports the other one.

    Args:
        above: look in the parent of `folder` too.
    """
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    for place in [*places, folder.parent] if above else places:
        if all((place / name).is_file() for name in SCRIPTS):
            return place
    return next((place for place in places if any((place / n).is_file() for n in SCRIPTS)), None)


def read(scripts: Path) -> str:
    """Write the prompts of the scripts as TOML, in tables as the tasks read them.

    The version is the release's, with `+changed` where a prompt is not the released one.

    Args:
        scripts: the folder that holds `eval.py` and `utils.py`.

    Raises:
        BadInput: a script is missing, not Python, or not built as the release's.
    """
    functions: dict[str, tuple[Path, ast.FunctionDef]] = {}
    for path in (scripts / name for name in SCRIPTS):
        if not path.exists():
            raise BadInput(f"{path}: no such file, but the prompts are in both scripts; {REMEDY}")
        for node in ast.walk(parse_script(path, read_script(path, REMEDY), REMEDY)):
            if isinstance(node, ast.FunctionDef):
                functions[node.name] = (path, node)
    prompts: dict[str, list[str]] = {}
    for name, fields in FUNCTIONS.items():
        if name not in functions:
            path = scripts / SCRIPTS[name == "order_by_LLM"]
            raise BadInput(f"{path}: function `{name}` is missing; {REMEDY}")
        prompts[name] = _prompts(*functions[name], fields)
    path, analysis = functions["bias_analysis"]
    first, *judge = prompts["bias_analysis"]
    try:
        template, criteria = _judge(judge)
        weights = _weights(analysis)
    except ValueError as error:
        raise _wrong(path, analysis, str(error)) from None
    tables = {
        "subcategory_classification": {"prompt": prompts["classification"][0]},
        "context_order": {"prompt": prompts["order_by_LLM"][0]},
        "scenario_selection": {"prompt": prompts["scenario_selection"][0]},
        "bias_analysis": {
            "prompt": first,
            "judge": {
                "prompt": template,
                "criteria": [
                    {"text": criterion, "maximum": maximum, "weight": weight}
                    for (criterion, maximum), weight in zip(criteria, weights, strict=True)
                ],
            },
        },
        "bias_scoring": {"prompt": prompts["bias_scoring"][0]},
    }
    return prompts_toml(ABOUT, VERSION, RELEASED, f"github.com/{REPOSITORY}@{COMMIT}", tables)


def _wrong(path: Path, function: ast.FunctionDef, reason: str) -> BadInput:
    return BadInput(f"{path}, function `{function.name}`: {reason}; {REMEDY}")


def _prompts(path: Path, function: ast.FunctionDef, expected: Sequence[Fields]) -> list[str]:
    """Read what the function assigns to `prompt`, in order, as templates."""
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "prompt"
    ]
    values.sort(key=lambda value: value.lineno)
    if len(values) != len(expected):
        reason = f"expected {len(expected)} of `prompt = f-string`, found {len(values)}"
        raise _wrong(path, function, reason)
    try:
        return [_template(value, names) for value, names in zip(values, expected, strict=True)]
    except (ValueError, RecursionError) as error:
        raise _wrong(path, function, str(error)) from None


def _template(value: ast.expr, fields: Fields) -> str:
    """Write an f-string, or several joined by `+`, with the names of its fields.

    Raises:
        ValueError: it is no f-string, or has other fields.
    """
    parts = [
        part
        for joined in summands(value)
        for part in (joined.values if isinstance(joined, ast.JoinedStr) else [joined])
    ]
    found = {_field(part) for part in parts if isinstance(part, ast.FormattedValue)}
    if found != set(fields):
        raise ValueError(
            f"line {value.lineno}: expected an f-string with the fields `{'`, `'.join(fields)}`, "
            f"found `{'`, `'.join(sorted(found))}`"
        )
    return "".join(
        f"{{{fields[_field(part)]}}}"
        if isinstance(part, ast.FormattedValue)
        else escape_braces(_text(part))
        for part in parts
    )


def _field(part: ast.FormattedValue) -> str:
    source = ast.unparse(part.value)
    plain = part.conversion == -1 and part.format_spec is None
    return source if plain else f"{source} with a conversion or format"


def _text(part: ast.expr) -> str:
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return part.value
    raise ValueError(f"line {part.lineno}: expected an f-string, found another expression")


def _judge(prompts: Sequence[str]) -> tuple[str, list[tuple[str, int]]]:
    """Find the template that the judge's prompts share, and each one's criterion and maximum.

    Raises:
        ValueError: they differ in something else.
    """
    templates = set()
    criteria = []
    for prompt in prompts:
        lines = prompt.split("\n")
        maximum = MAXIMUM.fullmatch(lines[MAXIMUM_LINE]) if len(lines) > CRITERION_LINE else None
        criterion = CRITERION.fullmatch(lines[CRITERION_LINE]) if maximum else None
        if not maximum or not criterion:
            raise ValueError(
                f"expected a maximum in line {MAXIMUM_LINE + 1} of the judge's prompts, and a "
                f"criterion after `：` in line {CRITERION_LINE + 1}"
            )
        text = criterion[2].replace("{{", "{").replace("}}", "}")
        criteria.append((text, int(maximum[2])))
        lines[MAXIMUM_LINE] = f"{maximum[1]}{{maximum}}{maximum[3]}"
        lines[CRITERION_LINE] = f"{criterion[1]}{{criterion}}"
        templates.add("\n".join(lines))
    if len(templates) != 1:
        raise ValueError("expected the judge's prompts to differ in maximum and criterion alone")
    return templates.pop(), criteria


def _weights(function: ast.FunctionDef) -> list[float]:
    """Read the numbers of `sub_scores[0] *= 3.5` and so on.

    Raises:
        ValueError: one is missing.
    """
    found = {
        ast.unparse(node.target): node.value.value
        for node in ast.walk(function)
        if isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Mult)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
    }
    names = [f"sub_scores[{k}]" for k in range(CRITERIA)]
    if not set(names) <= set(found):
        raise ValueError(f"expected `{' *= NUMBER`, `'.join(names)} *= NUMBER`")
    return [found[name] for name in names]
