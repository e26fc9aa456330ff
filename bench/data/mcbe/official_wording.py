"""McBE's official wording, read from the authors' two scripts by their syntax tree. The scripts are never run.

A prompt there is an assignment to the name `prompt` whose value is an f-string; what the f-string fills in becomes a
named field. Four prompts for the judge become one template, with the criteria, maxima and weights in which they differ.
"""

import ast
import math
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from bench.core.errors import BadInput
from bench.data.official_wording import (
    escape_braces,
    parse_script,
    prompts_toml,
    read_script,
    show_code,
    summands,
)

COMMIT = "2a8e8f5"
REPOSITORY = "VelikayaScarlet/McBE"
SCRIPTS = ("eval.py", "utils.py")
EXPECTED = f"the scripts {' and '.join(SCRIPTS)}"
# The Hub has the data alone.
ADDRESS = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}"
VERSION = f"mcbe-official-{COMMIT}"
# What the tables of the release hash to, so that a changed wording does not bear the release's version.
RELEASED = "56cd11aa000f0fcff7c8d5d00a2504bdb5a1beb851abe83e4148ff69c2ec24b2"
ABOUT = """\
The wording of McBE's release, as `bench fetch mcbe` read it from the authors' scripts (Apache-2.0).
Fields in braces are filled in; {labels} is the list of labels as Python prints it."""
REMEDY = f"take {' and '.join(SCRIPTS)} of github.com/{REPOSITORY} at commit {COMMIT} as they are and run `bench fetch mcbe --from DIR`"

Fields = Mapping[str, str]
# Per function, in order of appearance: the fields of each prompt, by the expression that the script fills in.
TEXT: Fields = {"s.replace('[PLH]', t.words[0])": "text", "all_class": "labels"}
SCENARIOS: Fields = {"sentence1": "sentence1", "sentence2": "sentence2"}
ANALYSIS: Fields = {"t.words[0]": "word", "t.sentence.replace('[PLH]', t.words[0])": "sentence"}
JUDGE: Fields = {"analysis": "analysis", "t.explanation": "reference"}
SCORING: Fields = {"sentence": "sentence"}
ORDER: Fields = {"context": "context", "sentence": "sentence"}
CRITERIA = 4


@dataclass(frozen=True)
class _Function:
    """A function of a script, and how its faults are told."""

    path: Path
    node: ast.FunctionDef

    def wrong(self, line: int, fault: str) -> BadInput:
        return BadInput(f"{self.path}, function `{self.node.name}`, line {line}: {fault}; {REMEDY}")


def is_script(name: str) -> bool:
    """Whether a member of an archive is one of the scripts."""
    return name.rsplit("/", 1)[-1] in SCRIPTS


def choices(tables: Iterable[str]) -> tuple[str, ...]:
    """Which wordings one may choose from: none, all tables are parts of one."""
    return ()


def find(folder: Path, above: bool = False) -> Path | None:
    """Where the two scripts lie: `folder`, a folder right inside, or with `above` the one that `folder` lies in.

    Where one of the two is nowhere, the place of the other, of which `read` says what is missing.
    """
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    for place in [*places, folder.parent] if above else places:
        if all((place / name).is_file() for name in SCRIPTS):
            return place
    return next(
        (place for place in places if any((place / name).is_file() for name in SCRIPTS)), None
    )


def read(scripts: Path) -> str:
    """The wording as TOML, in tables as the tasks read them, from the folder that holds `eval.py` and `utils.py`.

    Its version is the release's, or that with `+changed` where the wording is not the released one.

    Raises:
        BadInput: a script is missing or not Python, or is not built as the release's: with file, function and line.
    """
    evaluation, utilities = (_parse(scripts / name) for name in SCRIPTS)
    classification, scenarios, analysis, scoring = (
        _function(scripts / "eval.py", evaluation, name)
        for name in ("classification", "scenario_selection", "bias_analysis", "bias_scoring")
    )
    order = _function(scripts / "utils.py", utilities, "order_by_LLM")
    [first, *judge] = _prompts(analysis, ANALYSIS, *[JUDGE] * CRITERIA)
    [text], [pair], [severity], [context] = (
        _prompts(function, fields)
        for function, fields in (
            (classification, TEXT),
            (scenarios, SCENARIOS),
            (scoring, SCORING),
            (order, ORDER),
        )
    )
    template, criteria = _judge(analysis, judge)
    weights = _weights(analysis)
    tables = {
        "subcategory_classification": {"prompt": text.template},
        "context_order": {"prompt": context.template},
        "scenario_selection": {"prompt": pair.template},
        "bias_analysis": {
            "prompt": first.template,
            "judge": {
                "prompt": template,
                "criteria": [
                    {"text": criterion, "maximum": maximum, "weight": weight}
                    for (criterion, maximum), weight in zip(criteria, weights, strict=True)
                ],
            },
        },
        "bias_scoring": {"prompt": severity.template},
    }
    return prompts_toml(ABOUT, VERSION, RELEASED, f"github.com/{REPOSITORY}@{COMMIT}", tables)


def _parse(path: Path) -> ast.Module:
    if not path.exists():
        raise BadInput(f"{path}: no such file, but the wording stands in both scripts; {REMEDY}")
    return parse_script(path, read_script(path, REMEDY), REMEDY)


def _function(path: Path, tree: ast.Module, name: str) -> _Function:
    found = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    if len(found) != 1:
        number = "is missing" if not found else f"is defined {len(found)} times"
        raise BadInput(f"{path}: function `{name}` {number}, expected one `def {name}`; {REMEDY}")
    return _Function(path, found[0])


@dataclass(frozen=True)
class _Prompt:
    line: int
    template: str


def _prompts(function: _Function, *wanted: Fields) -> list[_Prompt]:
    """The values of the assignments to `prompt` as templates, the n-th with the fields of the n-th `wanted`."""
    values = {
        id(target): node.value
        for node in ast.walk(function.node)
        for target in _targets(node)
        if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    stored = [
        node
        for node in ast.walk(function.node)
        if isinstance(node, ast.Name) and node.id == "prompt" and isinstance(node.ctx, ast.Store)
    ]
    stored.sort(key=lambda node: (node.lineno, node.col_offset))
    if len(stored) != len(wanted):
        lines = f", at lines {', '.join(str(node.lineno) for node in stored)}" if stored else ""
        fault = f"expected {len(wanted)} of `prompt = f-string`, found {len(stored)}{lines}"
        raise function.wrong(function.node.lineno, fault)
    prompts = []
    for name, fields in zip(stored, wanted, strict=True):
        value = values.get(id(name))
        if value is None:
            raise function.wrong(
                name.lineno, "expected `prompt = f-string`, found another way to set `prompt`"
            )
        prompts.append(_Prompt(name.lineno, _template(function, value, fields)))
    return prompts


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def _template(function: _Function, value: ast.expr, fields: Fields) -> str:
    names = {_normal(ast.parse(source, mode="eval").body): name for source, name in fields.items()}
    used: set[str] = set()
    written = ""
    for piece in _pieces(function, value):
        if isinstance(piece, str):
            written += piece
            continue
        name = names.get(_normal(piece.value), "")
        if not name:
            raise function.wrong(
                piece.lineno,
                f"expected the fields {_quoted(fields)}, found the field {show_code(piece.value)}",
            )
        if piece.conversion != -1 or piece.format_spec is not None:
            raise function.wrong(
                piece.lineno,
                f"expected the field {show_code(piece.value)} alone, found a conversion or format behind it",
            )
        used.add(name)
        written += f"{{{name}}}"
    missing = [source for source, name in fields.items() if name not in used]
    if missing:
        raise function.wrong(
            value.lineno,
            f"expected an f-string with the fields {_quoted(fields)}, found none of {_quoted(missing)}",
        )
    return written


def _pieces(function: _Function, value: ast.expr) -> Iterator[str | ast.FormattedValue]:
    """What the f-string is made of, in its order; several, joined by `+`, are one."""
    for part in summands(value):
        for node in part.values if isinstance(part, ast.JoinedStr) else [part]:
            if isinstance(node, ast.FormattedValue):
                yield node
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                try:
                    yield escape_braces(node.value)
                except ValueError as error:
                    raise function.wrong(node.lineno, str(error)) from None
            else:
                raise function.wrong(node.lineno, f"expected an f-string, found {show_code(node)}")


def _normal(node: ast.expr) -> str:
    """The same for all ways to write an expression: of quotes, blanks, brackets and prefixes."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant):
            inner.kind = None
    try:
        return ast.dump(node)
    except RecursionError:  # so deep that it is none of the fields
        return ""


def _judge(function: _Function, prompts: Sequence[_Prompt]) -> tuple[str, list[tuple[str, int]]]:
    """The template that the judge's prompts share, and the criterion and the maximum of each."""
    rows = [prompt.template.split("\n") for prompt in prompts]
    told = f"the judge's prompts of lines {', '.join(str(prompt.line) for prompt in prompts)}"
    if len({len(row) for row in rows}) > 1:
        counts = ", ".join(str(len(row)) for row in rows)
        raise function.wrong(
            prompts[0].line, f"expected {told} to have equally many lines of text, found {counts}"
        )
    columns = list(zip(*rows, strict=True))
    varying = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    maxima = {place: found for place in varying if (found := _maxima(columns[place]))}
    criteria = {
        place: split
        for place in varying
        if place not in maxima and (split := _criteria(columns[place]))
    }
    if len(varying) != 2 or len(maxima) != 1 or len(criteria) != 1:
        other = [
            place for place in varying if place not in maxima and place not in criteria
        ] or varying
        differences = (
            " and ".join(_difference(place + 1, columns[place]) for place in other) or "nothing"
        )
        raise function.wrong(
            prompts[0].line,
            f"expected {told} to differ in a number (the maximum) and in what follows the label of another line "
            f"(the criterion), and in nothing else; found that they differ in {differences}",
        )
    [(at, (before, numbers, after))], [(place, (label, texts))] = maxima.items(), criteria.items()
    common = list(rows[0])
    common[at], common[place] = f"{before}{{maximum}}{after}", f"{label}{{criterion}}"
    return "\n".join(common), list(zip(texts, numbers, strict=True))


def _maxima(lines: Sequence[str]) -> tuple[str, list[int], str] | None:
    """Where lines are equal but for one number: what stands before it, the numbers, what stands behind it."""
    parts = [re.split(r"([0-9]+)", line) for line in lines]
    if len({len(part) for part in parts}) > 1:
        return None
    varying = [
        place for place, column in enumerate(zip(*parts, strict=True)) if len(set(column)) > 1
    ]
    # The odd places are the numbers.
    if len(varying) != 1 or varying[0] % 2 == 0:
        return None
    numbers = [part[varying[0]] for part in parts]
    if any(len(number) > 9 or str(int(number)) != number for number in numbers):
        return None
    head, tail = parts[0][: varying[0]], parts[0][varying[0] + 1 :]
    return "".join(head), [int(number) for number in numbers], "".join(tail)


def _criteria(lines: Sequence[str]) -> tuple[str, list[str]] | None:
    """Where lines are equal up to their first colon, the label: that, and what follows it in each."""
    found = re.match(r"[^：:]*[：:]", lines[0])
    if not found or not all(line.startswith(found[0]) and line != found[0] for line in lines):
        return None
    texts = [line.removeprefix(found[0]) for line in lines]
    if any(name is not None for text in texts for _, name, _, _ in string.Formatter().parse(text)):
        return None
    return found[0], [text.format() for text in texts]


def _difference(number: int, lines: Sequence[str]) -> str:
    other = next(line for line in lines if line != lines[0])
    at = next(
        (place for place, (a, b) in enumerate(zip(lines[0], other, strict=False)) if a != b),
        min(len(lines[0]), len(other)),
    )
    return f"their line {number} ({lines[0][at : at + 12]!r} and {other[at : at + 12]!r})"


def _weights(function: _Function) -> list[float]:
    """The numbers of `sub_scores[0] *= 3.5` and so on."""
    wanted = f"expected one `sub_scores[k] *= NUMBER` for each k from 0 to {CRITERIA - 1}"
    statements = {
        id(node.target): node
        for node in ast.walk(function.node)
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult)
    }
    found: dict[int, float] = {}
    for node in ast.walk(function.node):
        if not isinstance(node, ast.Subscript) or isinstance(node.ctx, ast.Load):
            continue
        if not isinstance(node.value, ast.Name) or node.value.id != "sub_scores":
            continue
        statement = statements.get(id(node))
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        weight = (
            statement.value.value
            if statement and isinstance(statement.value, ast.Constant)
            else None
        )
        if (
            type(place) is not int
            or place not in range(CRITERIA)
            or place in found
            or not _is_weight(weight)
        ):
            raise function.wrong(node.lineno, f"{wanted}, found {show_code(statement or node)}")
        found[place] = weight
    missing = [f"k = {place}" for place in range(CRITERIA) if place not in found]
    if missing:
        raise function.wrong(function.node.lineno, f"{wanted}, found none for {', '.join(missing)}")
    return [found[place] for place in range(CRITERIA)]


def _is_weight(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _quoted(sources: Iterator[str] | Sequence[str] | Fields) -> str:
    return " and ".join(f"`{source}`" for source in sources)
