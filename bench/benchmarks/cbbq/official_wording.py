"""Read CBBQ's official prompts from the authors' evaluation scripts; the scripts are never run.

A prompt is a sum of texts and of five variables in a script, and each model has its own. The
scripts of BLOOM and GLM are not read: they pose the options one by one. Both scripts of a model
ask alike except for BELLE's; the second ones of ChatGLM, MOSS and bloomz have lost their
characters.
"""

import ast
from pathlib import Path

from bench.data.official_wording import (
    OfficialPrompts,
    digest,
    other_scripts,
    parse_script,
    prompts_toml,
    template,
)

COMMIT = "95eaf2e"
REPOSITORY = "YFHuangxxxx/CBBQ"
# The name of the folder in the release, and in its readme.
FOLDERS = ("", "evaluation scripts", "evaluation_scripts")
# The script of each prompt.
PROMPTS = {
    "chatglm": "ChatGLM/evaluate_amb.py",
    "gpt-3.5": "chatgpt-3.5/evaluate_amb.py",
    "belle-ambiguous": "BELLE/evaluate_amb.py",
    "belle-disambiguous": "BELLE/evaluate_disamb.py",
    "moss": "MOSS/evaluate_amb.py",
    "bloomz": "bloomz/evaluate_amb.py",
}
SCRIPTS = tuple(PROMPTS.values())
# The prompt sets to choose from; the two of BELLE are one choice.
CHOICES = ("chatglm", "gpt-3.5", "belle", "moss", "bloomz")
# The scripts come with the data.
ADDRESS = ""
VERSION = f"cbbq-scripts-{COMMIT}"
# The hash of the released prompts.
RELEASED = "23d87e493adf157dbd7f770e0c4231771e89e2d91b71144b915403bc0e9a0289"
ABOUT = """\
The prompts of CBBQ's release, as `bench fetch cbbq` read them from the authors' scripts.
Fields in braces are filled in; unbiased_instruction: whether it asks for an unbiased answer."""
REMEDY = (
    f"put the folder `evaluation scripts` of github.com/{REPOSITORY} at commit {COMMIT} into a "
    "folder with the data and run `bench fetch cbbq --from DIR`"
)
NAMES = ("context", "question", "ans0", "ans1", "ans2")
# The word that is in every instruction to answer without bias.
UNBIASED = "无偏见"


def read(scripts: Path) -> str:
    """Write the prompts of the scripts as TOML.

    Raises:
        BadInput: these are not the released scripts.
    """
    try:
        texts = {name: _prompt(scripts / file) for name, file in PROMPTS.items()}
    except (ValueError, SyntaxError):
        raise other_scripts(scripts, REMEDY) from None
    tables = {
        name: {"unbiased_instruction": UNBIASED in text, "prompt": text}
        for name, text in texts.items()
    }
    if digest(tables) != RELEASED:
        raise other_scripts(scripts, REMEDY)
    return prompts_toml(ABOUT, VERSION, f"github.com/{REPOSITORY}@{COMMIT}", tables)


def _prompt(path: Path) -> str:
    """Read the prompt of a script: the first sum in it that has all of `NAMES`."""
    for node in ast.walk(parse_script(path)):  # a sum before the sums within it
        if isinstance(node, ast.BinOp):
            text = template(node, {})
            if all(f"{{{name}}}" in text for name in NAMES):
                return text
    raise ValueError("no prompt")


OFFICIAL = OfficialPrompts(VERSION, SCRIPTS, FOLDERS, ADDRESS, CHOICES, REMEDY, read)
