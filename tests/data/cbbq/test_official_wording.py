"""CBBQ's prompts, invented ones and the authors', are read from scripts, others are refused."""

import json
import string
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.benchmarks.cbbq.official_wording import OFFICIAL, PROMPTS
from bench.data.official_wording import digest

Tables = dict[str, Any]
INVENTED: Tables = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
# What the scripts do with a prompt, which stands for `%s`.
USES = {
    "chatglm": "    response, history = model.chat(tokenizer, %s, history=[])\n",
    "gpt-3.5": "    prompt = %s\n    ans = openai_reply(prompt, '')\n",
    "moss": '    #query = "以前" + context\n    query = %s\n    pattern = "\\d"\n',
}
CODE = """raise SystemExit("was run")
count = 0  # 计数
for dic in data:
    context, question = dic["context"], dic["question"]
    f.write(context + ',' + question + answer)
%s
    count += 1
"""


def scripts(folder: Path, tables: Tables) -> Path:
    """Write scripts with the prompts of `tables`; they exit if they are run."""
    for name, file in PROMPTS.items():
        parts = []
        for text, field, _, _ in string.Formatter().parse(tables[name]["prompt"]):
            parts += [json.dumps(text, ensure_ascii=False)] * bool(text)
            parts += [field] * bool(field)
        code = CODE % USES.get(name, "    inputs = %s\n").replace("%s", " + ".join(parts))
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        is_utf8 = name == "gpt-3.5"
        path.write_bytes(code.encode() if is_utf8 else f"# coding=gbk\n{code}".encode("gbk"))
    return folder


def released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the invented prompts count as the released ones."""
    monkeypatch.setattr(OFFICIAL, "sha256", digest(INVENTED))


def test_the_released_prompts_are_read(shared: Path, tmp_path: Path) -> None:
    official = tomllib.loads((shared / "data/cbbq/prompts.toml").read_text("utf-8"))
    found = tomllib.loads(OFFICIAL.read(scripts(tmp_path, official)))
    assert (found, list(found)) == (official, list(official))
    assert found["version"] == OFFICIAL.version


@pytest.mark.parametrize(
    ("old", "new"),
    [("raise SystemExit", "def f(:\nraise SystemExit"), ("ans1 +", ""), ("人：", "人！")],
    ids=["not Python", "no prompt", "another prompt"],
)
def test_other_prompts_than_the_released_ones_are_refused(
    tmp_path: Path,
    refusal: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
) -> None:
    released(monkeypatch)
    path = scripts(tmp_path, INVENTED) / "BELLE/evaluate_amb.py"
    assert {**tomllib.loads(OFFICIAL.read(tmp_path)), **INVENTED} == tomllib.loads(
        OFFICIAL.read(tmp_path)
    )
    before, found, after = path.read_text("gbk").partition(old)
    assert found
    path.write_text(before + new + after, "gbk")
    message = refusal(OFFICIAL.read, tmp_path)
    assert message.startswith(f"{tmp_path}: the prompts in the scripts are not the released ones;")
    assert message.endswith("with the data and run `bench fetch cbbq --from DIR`")
