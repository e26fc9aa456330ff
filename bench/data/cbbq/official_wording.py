"""CBBQ's official wordings, read from the authors' evaluation scripts by their syntax tree. The scripts are never run.

A wording there is a sum of texts and of the names of what the texts surround, and each model has its own. BLOOM's and
GLM's scripts are not among those read: they pose the options one by one, which is no whole wording.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeGuard

from bench.core.errors import BadInput
from bench.core.progress import say
from bench.data.official_wording import (
    escape_braces,
    parse_script,
    prompts_toml,
    read_script,
    show_code,
    summands,
)

COMMIT = "95eaf2e"
REPOSITORY = "YFHuangxxxx/CBBQ"
# The release's name, and the one that its readme has.
FOLDERS = ("evaluation scripts", "evaluation_scripts")
# What a wording is called here, and the folder of its scripts.
MODELS = {
    "chatglm": "ChatGLM",
    "gpt-3.5": "chatgpt-3.5",
    "belle": "BELLE",
    "moss": "MOSS",
    "bloomz": "bloomz",
}
FILES = {"ambiguous": "evaluate_amb.py", "disambiguous": "evaluate_disamb.py"}
SCRIPTS = tuple(f"{folder}/{file}" for folder in MODELS.values() for file in FILES.values())
EXPECTED = f"the scripts of {', '.join(MODELS.values())} in `{FOLDERS[0]}`"
# The scripts come with the data.
ADDRESS = ""
VERSION = f"cbbq-scripts-{COMMIT}"
# What the tables of the release hash to, so that a changed wording does not bear the release's version.
RELEASED = "23d87e493adf157dbd7f770e0c4231771e89e2d91b71144b915403bc0e9a0289"
ABOUT = """\
The wordings of CBBQ's release, as `bench fetch cbbq` read them from the authors' scripts; one a table.
Fields in braces are filled in; unbiased_instruction says whether a wording asks for an unbiased answer."""
REMEDY = f"take the folder `{FOLDERS[0]}` of github.com/{REPOSITORY} at commit {COMMIT} as it is and run `bench fetch cbbq --from DIR`"

NAMES = ("context", "question", "ans0", "ans1", "ans2")
# The word that is in every instruction to answer without bias.
UNBIASED = "无偏见"
# In the first line, by which Python decodes a script.
GBK = re.compile(rb"#.*coding[:=][ \t]*gbk", re.IGNORECASE)
REPLACED = "\ufffd"
WANTED = f"expected one sum (`+`) of texts and {', '.join(f'`{name}`' for name in NAMES)}, each name once"


def is_script(name: str) -> bool:
    """Whether a member of an archive is one of the scripts."""
    return "/".join(name.split("/")[-2:]) in SCRIPTS


def choices(tables: Iterable[str]) -> tuple[str, ...]:
    """Which wordings one may choose from; the two of a model, for either context, are one choice."""
    ends = "|".join(FILES)
    return tuple(dict.fromkeys(re.sub(f"-({ends})$", "", name) for name in tables))


def find(folder: Path, above: bool = False) -> Path | None:
    """Which folder holds the models' folders: `folder`, one right inside, or one in these or, with `above`, beside `folder`."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    for place in [folder, *inside, *([folder.parent] if above else [])]:
        for scripts in (place, *(place / name for name in FOLDERS)):
            if any((scripts / name).is_file() for name in SCRIPTS):
                return scripts
    return None


def read(scripts: Path) -> str:
    """The wordings as TOML, from the folder that holds the models' folders; scripts that are damaged are told and skipped.

    Its version is the release's, or that with `+changed` where a wording is not the released one.

    Raises:
        BadInput: a script is missing or not Python, or is not built as the release's: with file and line.
    """
    tables: dict[str, dict[str, str | bool]] = {}
    damaged: list[str] = []
    for model, folder in MODELS.items():
        prompts: dict[str, str] = {}
        for condition, file in FILES.items():
            path = scripts / folder / file
            if not path.exists():
                raise BadInput(
                    f"{path}: no such file, but the wordings stand in {EXPECTED}; {REMEDY}"
                )
            raw = read_script(path, REMEDY)
            if _is_damaged(raw):
                damaged.append(f"{folder}/{file}")
            else:
                prompts[condition] = _prompt(path, raw)
        if not prompts:
            raise BadInput(
                f"{scripts / folder}: characters are lost in both of its scripts; {REMEDY}"
            )
        if len(set(prompts.values())) == 1:
            prompts = {"": next(iter(prompts.values()))}
        for condition, prompt in prompts.items():
            name = f"{model}-{condition}" if condition else model
            tables[name] = {"unbiased_instruction": UNBIASED in prompt, "prompt": prompt}
    if damaged:
        say(
            f"not read, as characters are lost in them: {', '.join(damaged)}; the other script of each counts for both"
        )
    return prompts_toml(ABOUT, VERSION, RELEASED, f"github.com/{REPOSITORY}@{COMMIT}", tables)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_damaged(raw: bytes) -> bool:
    """Whether characters were lost, as in four scripts of the release that were once decoded wrongly and saved so."""
    return _is_utf8(raw) and REPLACED in raw.decode()


class _Sum(NamedTuple):
    """A sum that adds up at least one of the names: where it stands, and its parts."""

    line: int
    parts: list[ast.expr]

    @property
    def names(self) -> Counter[str]:
        return Counter(part.id for part in self.parts if _is_name(part))

    @property
    def fault(self) -> str:
        """Why it is no whole wording, or ""."""
        if missing := [f"`{name}`" for name in NAMES if name not in self.names]:
            return f"found none of {', '.join(missing)}"
        if twice := [f"`{name}` {count} times" for name, count in self.names.items() if count > 1]:
            return f"found {', '.join(twice)}"
        for part in self.parts:
            if not _is_name(part) and not (
                isinstance(part, ast.Constant) and isinstance(part.value, str)
            ):
                return f"found {show_code(part)} in it"
        return ""


def _is_name(part: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(part, ast.Name) and part.id in NAMES


def _prompt(path: Path, raw: bytes) -> str:
    """The one wording in a script, as a template."""
    # An editor may have saved as UTF-8 what still says GBK; GBK's Chinese is never UTF-8 by chance, over a whole file.
    encoding = "GBK" if GBK.match(raw) and not _is_utf8(raw) else "UTF-8"
    sums = _sums(parse_script(path, raw, REMEDY, encoding))
    if not sums:
        raise BadInput(f"{path}: {WANTED}, found none; {REMEDY}")
    whole = [one for one in sums if not one.fault]
    if not whole:
        nearest = max(sums, key=lambda one: len(one.names))
        raise BadInput(f"{path}, line {nearest.line}: {WANTED}, {nearest.fault}; {REMEDY}")
    first, *more = [_template(path, one) for one in whole]
    for one, template in zip(whole[1:], more, strict=True):
        if template != first:
            fault = f"found another one than at line {whole[0].line}"
            raise BadInput(f"{path}, line {one.line}: {WANTED}, {fault}; {REMEDY}")
    return first


def _sums(tree: ast.Module) -> list[_Sum]:
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    ]
    # A sum of three is a sum in a sum.
    inner = {id(side) for node in nodes for side in (node.left, node.right)}
    sums = [_Sum(node.lineno, list(summands(node))) for node in nodes if id(node) not in inner]
    return sorted((one for one in sums if one.names), key=lambda one: one.line)


def _template(path: Path, one: _Sum) -> str:
    written = ""
    for part in one.parts:
        if _is_name(part):
            written += f"{{{part.id}}}"
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            try:
                written += escape_braces(part.value)
            except ValueError as error:
                raise BadInput(f"{path}, line {part.lineno}: {error}; {REMEDY}") from None
    return written
