"""CBBQ's prompts, invented ones and the authors', read from scripts byte for byte or refused."""

import json
import string
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.benchmarks.cbbq import official_wording as module
from bench.benchmarks.cbbq.official_wording import choices, find, read
from bench.data.official_wording import digest
from tests.data.mcbe.test_official_wording import ANY

Tables = dict[str, Any]
INVENTED: Tables = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
# What each model's scripts do with the prompt, which stands for `%s`.
USES = {
    "ChatGLM": "    response, history = model.chat(tokenizer, %s, history=[])\n",
    "chatgpt-3.5": "    prompt = %s\n    ans = openai_reply(prompt, '')\n",
    "BELLE": "    inputs = %s\n    answer = tokenizer(inputs, return_tensors='pt').input_ids\n",
    "MOSS": '    #query = "以前" + context\n    query = %s\n    pattern = "\\d"\n',
    "bloomz": "    query = %s\n    inputs = tokenizer(query, return_tensors='pt')\n",
}
# Whose second script was once decoded wrongly and saved so.
DAMAGED = ("ChatGLM", "MOSS", "bloomz")
CODE = """raise SystemExit("was run")
count = 0  # 计数
for dic in data:
    context, question = dic["context"], dic["question"]
%s
    count += 1
    f.write(answer + "\\n")
"""


def script(name: str, code: str) -> bytes:
    text = CODE % USES[name].replace("%s", code)
    return text.encode() if name == "chatgpt-3.5" else f"# coding=gbk\n\n{text}".encode("gbk")


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().decode("utf-8", "replace").encode())


def scripts(folder: Path, tables: Tables, damaged: tuple[str, ...] = DAMAGED) -> Path:
    """Write scripts of all models with the prompts of `tables`; they exit if they are run."""
    for model, name in module.MODELS.items():
        for condition, file in module.FILES.items():
            table, parts = tables.get(f"{model}-{condition}") or tables[model], []
            for text, field, _, _ in string.Formatter().parse(table["prompt"]):
                parts += [json.dumps(text, ensure_ascii=False)] * bool(text)
                parts += [field] * bool(field)
            path = folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(script(name, " + ".join(parts)))
            if name in damaged and condition == "disambiguous":
                damage(path)
    return folder


def tables(folder: Path) -> Tables:
    content = tomllib.loads(read(folder))
    assert content.pop("source") == "github.com/YFHuangxxxx/CBBQ@95eaf2e"
    assert content.pop("version") in (module.VERSION, f"{module.VERSION}+changed")
    return content


def change(folder: Path, old: str, new: str, name: str = "BELLE/evaluate_amb.py") -> None:
    text = (folder / name).read_text("gbk")
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1), "gbk")


def test_prompts_are_read_and_damaged_scripts_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tables(scripts(tmp_path, INVENTED)) == INVENTED
    lost = ", ".join(f"{name}/evaluate_disamb.py" for name in DAMAGED)
    assert f"not read, as characters are lost in them: {lost};" in capsys.readouterr().err
    # Two scripts that agree are one prompt, and others two, of which a damaged one is skipped.
    assert tables(scripts(tmp_path, INVENTED, damaged=())) == INVENTED
    change(tmp_path, "？", "！", "bloomz/evaluate_disamb.py")
    found = tables(tmp_path)
    assert list(found)[-3:] == ["moss", "bloomz-ambiguous", "bloomz-disambiguous"]
    damage(tmp_path / "bloomz/evaluate_amb.py")
    assert tables(tmp_path)["bloomz"] == found["bloomz-disambiguous"]
    scripts(tmp_path, INVENTED)
    # Other sums are ignored, as is an editor that saves UTF-8 below the first line.
    for line in ("print(context + question)", "f.write(context + ',' + question + answer)"):
        change(tmp_path, "    inputs = ", f"    {line}\n    n = 2 * (count + 1)\n    inputs = ")
    assert tables(tmp_path) == INVENTED
    path = tmp_path / "BELLE/evaluate_amb.py"
    path.write_bytes(path.read_text("gbk").encode())
    assert tables(tmp_path) == INVENTED
    # Changed prompts do not have the released version.
    assert tomllib.loads(read(tmp_path))["version"] == "cbbq-scripts-95eaf2e+changed"
    monkeypatch.setattr(module, "RELEASED", digest(INVENTED))
    assert tomllib.loads(read(tmp_path))["version"] == "cbbq-scripts-95eaf2e"


def test_the_released_prompts_are_read(shared: Path, tmp_path: Path) -> None:
    official = tomllib.loads((shared / "data/cbbq/prompts.toml").read_text("utf-8"))
    prompts = {name: table for name, table in official.items() if isinstance(table, dict)}
    found = tomllib.loads(read(scripts(tmp_path, prompts)))
    assert found == official
    assert list(found) == list(official), "in the same order"


@given(st.lists(ANY, min_size=6, max_size=6), st.permutations(module.NAMES))
def test_any_text_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], names: list[str]
) -> None:
    folder = scripts(tmp_path_factory.mktemp("scripts"), INVENTED)
    pairs = list(zip(names, texts[1:], strict=True))
    # What GBK has no character for is written as an escape.
    code = ascii(texts[0]) + "".join(f" + {name} + {text!a}" for name, text in pairs)
    (folder / "ChatGLM/evaluate_amb.py").write_bytes(script("ChatGLM", code))
    filled = {name: f"<{name}{{}}\\>" for name in names}
    expected = texts[0] + "".join(filled[name] + text for name, text in pairs)
    assert tables(folder)["chatglm"]["prompt"].format(**filled) == expected


# What is changed, into what, and what the message says.
@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("raise SystemExit", "def f(:\nraise SystemExit", ", line 3: is not Python ("),
        ("ans1 +", "", ": expected a sum (`+`) of texts and context, question, ans0, "),
        ("ans1 +", "ans1 + ans1 + 5 +", ": expected a sum"),
        ("人：", "人\\ud83d：", ": expected text, found half a character (a lone surrogate);"),
    ],
)
def test_scripts_built_otherwise_are_refused(
    tmp_path: Path, refusal: Callable[..., str], old: str, new: str, fault: str
) -> None:
    change(scripts(tmp_path, INVENTED), old, new)
    message = refusal(read, tmp_path)
    path = tmp_path / "BELLE/evaluate_amb.py"
    assert message.startswith(f"{path}{fault}")
    assert message.endswith("with the data and run `bench fetch cbbq --from DIR`")
    path.write_bytes(script("BELLE", "").partition(b"count")[0] + b"#\xff")
    assert refusal(read, tmp_path).startswith(f"{path}: is not GBK, at byte ")
    damage(path)
    damage(path.with_name("evaluate_disamb.py"))
    lost = f"{path.parent}: characters are lost in both of its scripts; "
    assert refusal(read, tmp_path).startswith(lost)
    path.unlink()
    assert refusal(read, tmp_path).startswith(f"{path}: cannot be read (No such file")


def test_where_scripts_are_looked_for_and_how_they_are_named(tmp_path: Path) -> None:
    assert choices(INVENTED) == ("chatglm", "gpt-3.5", "belle", "moss", "bloomz")
    release = tmp_path / "downloads" / "CBBQ"
    (release / "data" / "age").mkdir(parents=True)
    assert find(release) is None
    for name in module.FOLDERS:
        place = scripts(release / name, INVENTED)
        assert {find(folder) for folder in (place, release, release.parent)} == {place}
        assert (find(release / "data"), find(release / "data", above=True)) == (None, place)
        place.rename(tmp_path / name)
