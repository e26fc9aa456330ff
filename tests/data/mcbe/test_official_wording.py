"""McBE's prompts, invented ones and the authors', are read from scripts, others are refused."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.benchmarks.mcbe.official_wording import FIELDS, OFFICIAL
from bench.data.official_wording import digest

Tables = dict[str, Any]
INVENTED: Tables = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
CODE = {
    "eval.py": """raise SystemExit("was run")
pattern = "\\d"
def classification(category):
    prompt = {subcategory_classification}
def scenario_selection(category):
    while True:
        prompt = {scenario_selection}
def bias_analysis(category):
    prompt = {bias_analysis}
    {judge}
def bias_scoring(category):
    prompt = {bias_scoring}
""",
    "utils.py": "def order_by_LLM(context, sentence):\n    prompt = {context_order}\n",
}


def scripts(folder: Path, tables: Tables) -> Path:
    """Write both scripts with the prompts of `tables`; they exit if they are run."""
    expressions = {name: code for code, name in FIELDS.items()}

    def code(prompt: str, *fields: str) -> str:
        for name in fields:
            prompt = re.sub(rf"(?<!\{{)\{{{name}}}", f"{{{expressions[name]}}}", prompt)
        lines = prompt.splitlines(keepends=True) or [""]
        return f"({' '.join('f' + json.dumps(line, ensure_ascii=False) for line in lines)})"

    names = ("text", "labels", "word", "reference")
    prompts = {name: code(table["prompt"], *names) for name, table in tables.items()}
    analysis = tables["bias_analysis"]
    prompts["bias_analysis"] = code(analysis["prompt"], *names, "sentence")
    judging = []
    for k, entry in enumerate(analysis["judge"]["criteria"]):
        criterion = entry["text"].replace("{", "{{").replace("}", "}}")
        prompt = analysis["judge"]["prompt"].replace("{maximum}", str(entry["maximum"]))
        judging.append(f"prompt = {code(prompt.replace('{criterion}', criterion), *names)}")
        judging.append(f"sub_scores[{k}] *= {entry['weight']!r}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in CODE.items():
        text = script.format(**prompts, judge="\n    ".join(judging))
        (folder / name).write_bytes(text.encode())
    return folder


def released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the invented prompts count as the released ones."""
    monkeypatch.setattr(OFFICIAL, "sha256", digest(INVENTED))


def test_the_released_prompts_are_read(shared: Path, tmp_path: Path) -> None:
    official = tomllib.loads((shared / "data/mcbe/prompts.toml").read_text("utf-8"))
    tables = {name: table for name, table in official.items() if isinstance(table, dict)}
    found = tomllib.loads(OFFICIAL.read(scripts(tmp_path, tables)))
    assert (found, found["version"]) == (official, OFFICIAL.version)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{all_class}", "{classes}"),
        ("选：", "选：\\ud83d"),
        ("sub_scores[3] *= 0.5", "sub_scores[3] *= w"),
        ("给 0 到 13", "给 1 到 13"),
        ("看得深", ""),
        ("raise", "def f(:\nraise"),
    ],
)
def test_other_prompts_than_the_released_ones_are_refused(
    tmp_path: Path,
    refusal: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
) -> None:
    released(monkeypatch)
    path = scripts(tmp_path, INVENTED) / "eval.py"
    before, found, after = path.read_text("utf-8").partition(old)
    assert found
    path.write_text(before + new + after, "utf-8")
    message = refusal(OFFICIAL.read, tmp_path)
    assert message.startswith(f"{tmp_path}: the prompts in the scripts are not the released ones;")
    assert message.endswith("with the data and run `bench fetch mcbe --from DIR`")
