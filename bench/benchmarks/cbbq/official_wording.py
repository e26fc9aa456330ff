"""Find CBBQ's official prompts in the authors' evaluation scripts; the scripts are never run.

A prompt is a sum of texts and of five variables in a script, and each model has its own. The
scripts of BLOOM and GLM are not read, because they score the options one by one. Both scripts of a
model have the same prompt, except for BELLE; in the second script of ChatGLM, MOSS and bloomz, the
Chinese characters are broken.
"""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from bench.data.official_wording import OfficialPrompts, parse_script, template

# The description of the released prompts.
RELEASE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# The script of each prompt.
PROMPTS = RELEASE.pop("prompts")
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


OFFICIAL = OfficialPrompts(**RELEASE, scripts=tuple(PROMPTS.values()), tables=prompts)
