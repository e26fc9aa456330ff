"""Read CBBQ's official prompts from the authors' evaluation scripts; the scripts are never run.

A prompt is a sum of texts and of five variables in a script, and each model has its own. The
scripts of BLOOM and GLM are not read: they pose the options one by one.
"""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from bench.core.errors import BadInput
from bench.core.progress import say
from bench.data.official_wording import (
    OfficialPrompts,
    escape_braces,
    parse_script,
    prompts_toml,
    read_script,
    summands,
)

COMMIT = "95eaf2e"
REPOSITORY = "YFHuangxxxx/CBBQ"
# The release's name of the folder, and the one in its readme.
FOLDERS = ("evaluation scripts", "evaluation_scripts")
# The name of each prompt, and the folder of its scripts.
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
# The hash of the released prompts: changed ones do not get the release's version.
RELEASED = "23d87e493adf157dbd7f770e0c4231771e89e2d91b71144b915403bc0e9a0289"
ABOUT = """\
The prompts of CBBQ's release, as `bench fetch cbbq` read them from the authors' scripts.
Fields in braces are filled in; unbiased_instruction: whether it asks for an unbiased answer."""
REMEDY = (
    f"put the folder `{FOLDERS[0]}` of github.com/{REPOSITORY} at commit {COMMIT} into a folder "
    "with the data and run `bench fetch cbbq --from DIR`"
)
NAMES = ("context", "question", "ans0", "ans1", "ans2")
# The word that is in every instruction to answer without bias.
UNBIASED = "无偏见"
REPLACED = "\ufffd"


def choices(tables: Iterable[str]) -> tuple[str, ...]:
    """Name the prompt sets to choose from; the two of a model, one per context, are one choice."""
    ends = "|".join(FILES)
    return tuple(dict.fromkeys(re.sub(f"-({ends})$", "", name) for name in tables))


def find(folder: Path, above: bool = False) -> Path | None:
    """Find the folder of the models' folders: in `folder`, inside it, or next to it (`above`)."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    for place in [folder, *inside, *([folder.parent] if above else [])]:
        for scripts in (place, *(place / name for name in FOLDERS)):
            if any((scripts / name).is_file() for name in SCRIPTS):
                return scripts
    return None


def read(scripts: Path) -> str:
    """Write the prompts of the scripts as TOML; damaged scripts are reported and skipped.

    The version is the release's, with `+changed` where a prompt is not the released one. A script
    that is missing, not Python, or not built as the release's is refused.
    """
    tables: dict[str, dict[str, str | bool]] = {}
    damaged: list[str] = []
    for model, folder in MODELS.items():
        prompts = {}
        for condition, file in FILES.items():
            prompt = _prompt(scripts / folder / file)
            if prompt:
                prompts[condition] = prompt
            else:
                damaged.append(f"{folder}/{file}")
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
            f"not read, as characters are lost in them: {', '.join(damaged)}; the other script of "
            "each counts for both"
        )
    return prompts_toml(ABOUT, VERSION, RELEASED, f"github.com/{REPOSITORY}@{COMMIT}", tables)


def _prompt(path: Path) -> str:
    """Read the prompt of a script: its sum of texts and all of `NAMES`; "" if it is damaged."""
    raw = read_script(path, REMEDY)
    try:
        if REPLACED in raw.decode():
            return ""
        tree = parse_script(path, raw, REMEDY)
    except UnicodeDecodeError:
        tree = parse_script(path, raw, REMEDY, "GBK")
    inner: set[int] = set()
    for node in ast.walk(tree):  # a sum before the sums within it
        if not isinstance(node, ast.BinOp):
            continue
        parts = [] if id(node) in inner else list(summands(node))
        inner |= {id(node.left), id(node.right)}
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        texts = [part for part in parts if isinstance(getattr(part, "value", None), str)]
        if sorted(names) == sorted(NAMES) and len(names) + len(texts) == len(parts):
            try:
                return "".join(
                    f"{{{part.id}}}"
                    if isinstance(part, ast.Name)
                    else escape_braces(ast.literal_eval(part))
                    for part in parts
                )
            except ValueError as error:
                raise BadInput(f"{path}: {error}; {REMEDY}") from None
    raise BadInput(
        f"{path}: expected a sum (`+`) of texts and {', '.join(NAMES)}, each name once; {REMEDY}"
    )


PROMPTS = OfficialPrompts(VERSION, SCRIPTS, EXPECTED, ADDRESS, REMEDY, find, read, choices)
