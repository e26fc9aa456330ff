"""Find CBBQ's official prompts in the authors' evaluation scripts; the scripts are never run.

A prompt is a sum of texts and of five variables in a script, and each model has its own. The
scripts of BLOOM and GLM are not read, because they score the options one by one. Both scripts of a
model have the same prompt, except for BELLE; in the second script of ChatGLM, MOSS and bloomz, the
Chinese characters are broken.
"""

import ast
import re
from pathlib import Path
from typing import Any

from bench.data.official_wording import OfficialPrompts, parse_script, template

# The script of each prompt.
PROMPTS = {
    "chatglm": "ChatGLM/evaluate_amb.py",
    "gpt-3.5": "chatgpt-3.5/evaluate_amb.py",
    "belle-ambiguous": "BELLE/evaluate_amb.py",
    "belle-disambiguous": "BELLE/evaluate_disamb.py",
    "moss": "MOSS/evaluate_amb.py",
    "bloomz": "bloomz/evaluate_amb.py",
}
FIELDS = {f"{{{name}}}" for name in ("context", "question", "ans0", "ans1", "ans2")}
# The word that is in every instruction to answer without bias.
UNBIASED = "无偏见"


def prompts(scripts: Path) -> dict[str, Any]:
    """Return the prompt of each script: the first sum in it that has all of `FIELDS`."""
    tables = {}
    for name, file in PROMPTS.items():
        nodes = ast.walk(parse_script(scripts / file))  # a sum before the sums within it
        sums = [template(node, {}) for node in nodes if isinstance(node, ast.BinOp)]
        text = next((text for text in sums if FIELDS.issubset(re.findall("{.*?}", text))), "")
        tables[name] = {"unbiased_instruction": UNBIASED in text, "prompt": text}
    return tables


OFFICIAL = OfficialPrompts(
    version="cbbq-scripts-95eaf2e",
    source="github.com/YFHuangxxxx/CBBQ@95eaf2e",
    scripts=tuple(PROMPTS.values()),
    # They come with the data.
    address="",
    # BELLE has a prompt for each condition; both together are one choice.
    choices=("chatglm", "gpt-3.5", "belle", "moss", "bloomz"),
    remedy="put the folder `evaluation scripts` of github.com/YFHuangxxxx/CBBQ at commit 95eaf2e "
    "into a folder with the data and run `bench fetch cbbq --from DIR`",
    comment="The prompts of CBBQ's release, as `bench fetch cbbq` read them from the authors' "
    "scripts.\nFields in braces are filled in; unbiased_instruction: whether it asks for an "
    "unbiased answer.",
    tables=prompts,
    sha256="23d87e493adf157dbd7f770e0c4231771e89e2d91b71144b915403bc0e9a0289",
)
