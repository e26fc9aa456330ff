"""Official prompts, invented ones and the authors', are read from scripts, others are refused."""

import json
import re
import string
import tomllib
from pathlib import Path

import pytest

from bench.benchmarks.cbbq import official_wording as cbbq
from bench.benchmarks.mcbe import official_wording as mcbe
from bench.data.official_wording import digest

OFFICIAL = {"cbbq": cbbq.OFFICIAL, "mcbe": mcbe.OFFICIAL}
INVENTED = {
    name: tomllib.loads((Path(__file__).parent / name / "prompts.toml").read_text("utf-8"))
    for name in OFFICIAL
}
# What the scripts of CBBQ do with a prompt, which stands for `%s`.
USES = {
    "chatglm": "    response, history = model.chat(tokenizer, %s, history=[])\n",
    "gpt-3.5": "    prompt = %s\n    ans = openai_reply(prompt, '')\n",
    "moss": '    #query = "以前" + context\n    query = %s\n    pattern = "\\d"\n',
}
CBBQ = """raise SystemExit("was run")
count = 0  # 计数
for dic in data:
    context, question = dic["context"], dic["question"]
    f.write(context + ',' + question + answer)
%s
    count += 1
"""
MCBE = {
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


def write_scripts(benchmark, folder, tables=None):
    """Write scripts with the prompts of `tables`, or invented ones; they exit if they are run."""
    tables = tables or INVENTED[benchmark]
    files = cbbq_scripts(tables) if benchmark == "cbbq" else mcbe_scripts(tables)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def cbbq_scripts(tables):
    files = {}
    for name, file in cbbq.PROMPTS.items():
        parts = []
        for text, field, _, _ in string.Formatter().parse(tables[name]["prompt"]):
            parts += [json.dumps(text, ensure_ascii=False)] * bool(text)
            parts += [field] * bool(field)
        code = CBBQ % USES.get(name, "    inputs = %s\n").replace("%s", " + ".join(parts))
        is_utf8 = name == "gpt-3.5"
        files[file] = code.encode() if is_utf8 else f"# coding=gbk\n{code}".encode("gbk")
    return files


def mcbe_scripts(tables):
    expressions = {name: code for code, name in mcbe.FIELDS.items()}

    def code(prompt, *fields):
        for name in fields:
            prompt = re.sub(rf"(?<!\{{)\{{{name}}}", f"{{{expressions[name]}}}", prompt)
        lines = prompt.splitlines(keepends=True) or [""]
        return f"({' '.join('f' + json.dumps(line, ensure_ascii=False) for line in lines)})"

    names = ("text", "labels", "word", "reference")
    tables = {name: table for name, table in tables.items() if isinstance(table, dict)}
    prompts = {name: code(table["prompt"], *names) for name, table in tables.items()}
    analysis = tables["bias_analysis"]
    prompts["bias_analysis"] = code(analysis["prompt"], *names, "sentence")
    judging = []
    for k, entry in enumerate(analysis["judge"]["criteria"]):
        criterion = entry["text"].replace("{", "{{").replace("}", "}}")
        prompt = analysis["judge"]["prompt"].replace("{maximum}", str(entry["maximum"]))
        judging.append(f"prompt = {code(prompt.replace('{criterion}', criterion), *names)}")
        judging.append(f"sub_scores[{k}] *= {entry['weight']!r}")
    prompts["judge"] = "\n    ".join(judging)
    return {name: script.format(**prompts).encode() for name, script in MCBE.items()}


def release(monkeypatch, benchmark):
    """Let the invented prompts count as the released ones."""
    monkeypatch.setattr(OFFICIAL[benchmark], "sha256", digest(INVENTED[benchmark]))


@pytest.mark.parametrize("benchmark", OFFICIAL)
def test_the_released_prompts_are_read(shared, tmp_path, benchmark):
    text = (shared / f"data/{benchmark}/prompts.toml").read_text("utf-8")
    released, official = tomllib.loads(text), OFFICIAL[benchmark]
    found = tomllib.loads(official.read(write_scripts(benchmark, tmp_path, released)))
    assert (found, found["version"]) == (released, official.version)
    assert benchmark == "mcbe" or list(found) == list(released)


@pytest.mark.parametrize(
    ("benchmark", "old", "new"),
    [
        ("cbbq", "raise SystemExit", "def f(:\nraise SystemExit"),
        ("cbbq", "ans1 +", ""),
        ("cbbq", "人：", "人！"),
        ("mcbe", "{all_class}", "{classes}"),
        ("mcbe", "选：", "选：\\ud83d"),
        ("mcbe", "sub_scores[3] *= 0.5", "sub_scores[3] *= w"),
        ("mcbe", "给 0 到 13", "给 1 到 13"),
        ("mcbe", "看得深", ""),
        ("mcbe", "raise", "def f(:\nraise"),
    ],
)
def test_other_prompts_than_the_released_ones_are_refused(
    tmp_path, refusal, monkeypatch, benchmark, old, new
):
    release(monkeypatch, benchmark)
    read, invented = OFFICIAL[benchmark].read, INVENTED[benchmark]
    write_scripts(benchmark, tmp_path)
    found = tomllib.loads(read(tmp_path))
    assert {**found, **invented} == found
    is_cbbq = benchmark == "cbbq"
    path = tmp_path / ("BELLE/evaluate_amb.py" if is_cbbq else "eval.py")
    encoding = "gbk" if is_cbbq else "utf-8"
    before, found, after = path.read_text(encoding).partition(old)
    assert found
    path.write_text(before + new + after, encoding)
    message = refusal(read, tmp_path)
    assert message.startswith(f"{tmp_path}: the prompts in the scripts are not the released ones;")
    assert message.endswith(f"with the data and run `bench fetch {benchmark} --from DIR`")
