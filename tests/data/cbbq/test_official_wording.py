"""CBBQ's prompts, read from scripts byte for byte; which are skipped, and what is refused.

The prompts here are invented; the authors' own are read from the shared folder if it is there.
"""

import json
import string
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.cbbq import official_wording as module
from bench.data.cbbq.official_wording import choices, find, is_script, read
from bench.data.official_wording import digest

Refusal = Callable[..., str]
Tables = dict[str, Any]

INVENTED: Tables = {
    "chatglm": {
        "unbiased_instruction": False,
        "prompt": "读{context}。问{question}一{ans0}二{ans1}三{ans2}。",
    },
    "gpt-3.5": {
        "unbiased_instruction": True,
        "prompt": "想得无偏见。{context}{question}：{ans0}{ans1}{ans2}",
    },
    "belle-ambiguous": {
        "unbiased_instruction": False,
        "prompt": "人：{context}\n{question}\n{ans0}{ans1}{ans2}\n\n机：",
    },
    "belle-disambiguous": {
        "unbiased_instruction": True,
        "prompt": "人，无偏见：{context}{question}{ans0}{ans1}{ans2}机：",
    },
    "moss": {
        "unbiased_instruction": False,
        "prompt": "<|我|>{{'\"\\}}{question}\t{context}{ans0}{ans1}{ans2}<|你|>:",
    },
    "bloomz": {
        "unbiased_instruction": False,
        "prompt": "{context}？{question}？{ans2}、{ans1}、{ans0}",
    },
}
# What each model's scripts do with the wording, which stands for `%s`.
USES = {
    "ChatGLM": "    response, history = model.chat(tokenizer, %s, history=[])\n",
    "chatgpt-3.5": "    prompt = %s\n    ans = openai_reply(prompt, '')\n",
    "BELLE": "    inputs = %s\n    answer = tokenizer(inputs, return_tensors='pt').input_ids\n",
    "MOSS": '    #query = "以前" + context\n    query = %s\n    pattern = "\\d"\n',
    "bloomz": "    query = %s\n    inputs = tokenizer(query, return_tensors='pt')\n",
}
# Whose second script was once decoded wrongly and saved so.
DAMAGED = ("ChatGLM", "MOSS", "bloom", "bloomz")
BY_PARTS = {
    "bloom": '    prompt = "读" + context + question\n    choices = ["一" + ans0, "二" + ans1]\n',
    "GLM": '    inputs = tokenizer(["读" + context + question])\n    choices = [["一" + ans0]]\n',
}


def added(template: str) -> str:
    """A template as the authors write it."""
    parts = []
    for text, name, _, _ in string.Formatter().parse(template):
        parts += [json.dumps(text, ensure_ascii=False)] * bool(text) + [name] * bool(name)
    return " + ".join(parts)


def script(use: str, encoding: str = "gbk") -> str:
    header = "" if encoding == "utf-8" else f"# coding={encoding}\n\n"
    return f"""{header}raise SystemExit("was run")
count = 0  # 计数
for dic in data:
    context, question = dic["context"], dic["question"]
    ans0, ans1, ans2 = dic["ans0"], dic["ans1"], dic["ans2"]
{use}
    count += 1
    f.write(answer + "\\n")
"""


def damage(source: str) -> bytes:
    return source.encode("gbk").decode("utf-8", "replace").encode()


def scripts(folder: Path, tables: Tables, damaged: tuple[str, ...] = DAMAGED) -> Path:
    """Write scripts of all models with the prompts of `tables`; they exit if they are run."""
    uses = {(name, condition): use for name, use in BY_PARTS.items() for condition in module.FILES}
    for model, name in module.MODELS.items():
        for condition in module.FILES:
            table = tables.get(f"{model}-{condition}") or tables[model]
            uses[name, condition] = USES[name] % added(table["prompt"])
    for (name, condition), use in uses.items():
        encoding = "utf-8" if name == "chatgpt-3.5" else "gbk"
        source = script(use, encoding)
        path = folder / name / module.FILES[condition]
        path.parent.mkdir(parents=True, exist_ok=True)
        lost = name in damaged and condition == "disambiguous"
        path.write_bytes(damage(source) if lost else source.encode(encoding))
    return folder


def tables(folder: Path) -> Tables:
    content = tomllib.loads(read(folder))
    assert content.pop("source") == "github.com/YFHuangxxxx/CBBQ@95eaf2e"
    assert content.pop("version") in (module.VERSION, f"{module.VERSION}+changed")
    return content


def change(
    folder: Path, old: str, new: str, name: str = "BELLE/evaluate_amb.py", encoding: str = "gbk"
) -> None:
    text = (folder / name).read_text(encoding)
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1), encoding)


def test_prompts_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tables(scripts(tmp_path, INVENTED)) == INVENTED
    lost = ", ".join(f"{name}/evaluate_disamb.py" for name in ("ChatGLM", "MOSS", "bloomz"))
    assert f"not read, as characters are lost in them: {lost};" in capsys.readouterr().err
    # Changed prompts do not have the released version.
    assert tomllib.loads(read(tmp_path))["version"] == "cbbq-scripts-95eaf2e+changed"
    monkeypatch.setattr(module, "RELEASED", digest(INVENTED))
    assert tomllib.loads(read(tmp_path))["version"] == "cbbq-scripts-95eaf2e"


def test_scripts_that_agree_are_one_prompt_and_others_two(tmp_path: Path) -> None:
    scripts(tmp_path, INVENTED, damaged=())
    assert tables(tmp_path) == INVENTED
    change(tmp_path, "？", "！", "bloomz/evaluate_disamb.py")
    found = tables(tmp_path)
    assert list(found)[-3:] == ["moss", "bloomz-ambiguous", "bloomz-disambiguous"]
    assert found["bloomz-ambiguous"] == INVENTED["bloomz"]
    # A damaged first script is skipped as a damaged second one is.
    path = tmp_path / "bloomz/evaluate_amb.py"
    path.write_bytes(damage(path.read_text("gbk")))
    assert tables(tmp_path)["bloomz"] == found["bloomz-disambiguous"]


def test_the_released_prompts_are_read(shared: Path, tmp_path: Path) -> None:
    official = tomllib.loads((shared / "data/cbbq/prompts.toml").read_text("utf-8"))
    prompts = {name: table for name, table in official.items() if isinstance(table, dict)}
    found = tomllib.loads(read(scripts(tmp_path, prompts)))
    assert found == official
    assert list(found) == list(official), "in the same order"


def test_line_ends_byte_order_marks_and_other_sums_are_ignored(tmp_path: Path) -> None:
    scripts(tmp_path, INVENTED)
    change(tmp_path, "    inputs = ", "    print(context + question)\n    inputs = ")
    change(
        tmp_path, "    inputs = ", "    f.write(context + ',' + question + answer)\n    inputs = "
    )
    change(tmp_path, "    inputs = ", "    n = 2 * (count + 1)\n    inputs = ")
    for name in module.SCRIPTS:
        raw = (tmp_path / name).read_bytes().replace(b"\n", b"\r\n")
        (tmp_path / name).write_bytes(raw if b"gbk" in raw else b"\xef\xbb\xbf" + raw)
    assert tables(tmp_path) == INVENTED
    # Saved as UTF-8 by an editor that does not know the first line.
    path = tmp_path / "BELLE" / "evaluate_amb.py"
    path.write_bytes(path.read_text("gbk").encode())
    assert tables(tmp_path) == INVENTED


ANY = st.text(
    st.sampled_from("{}\"'\\\n\t\r\x7f\0\x85\u2028 nu中。😀")
    | st.characters(exclude_categories=["Cs"])
)


@given(st.lists(ANY, min_size=6, max_size=6), st.permutations(module.NAMES))
def test_any_text_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], names: list[str]
) -> None:
    folder = scripts(tmp_path_factory.mktemp("scripts"), INVENTED)
    # What GBK has no character for is written as an escape.
    first, *rest = [ascii(text) for text in texts]
    total = " + ".join(
        [first, *(f"{name} + {part}" for name, part in zip(names, rest, strict=True))]
    )
    source = script(USES["ChatGLM"] % total).encode("gbk")
    (folder / "ChatGLM" / "evaluate_amb.py").write_bytes(source)
    table = tables(folder)["chatglm"]
    filled = {name: f"<{name}{{}}\\>" for name in names}
    pairs = zip(names, texts[1:], strict=True)
    expected = texts[0] + "".join(filled[name] + text for name, text in pairs)
    assert table["prompt"].format(**filled) == expected
    assert table["unbiased_instruction"] == ("无偏见" in "".join(texts))


# What is changed, into what, and what the message says.
@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("raise SystemExit", "def f(:\nraise SystemExit", ", line 3: is not Python ("),
        ("ans1 +", "", ": expected a sum (`+`) of texts and context, question, ans0, "),
        ("ans1 +", "f'{ans1}' +", ": expected a sum"),
        ("ans1 +", "ans1 + ans1 +", ": expected a sum"),
        ("ans1 +", "ans1 + 5 +", ": expected a sum"),
        ("人：", "人\\ud83d：", ": expected text, found half a character (a lone surrogate);"),
    ],
)
def test_scripts_built_otherwise_are_refused(
    tmp_path: Path, refusal: Refusal, old: str, new: str, fault: str
) -> None:
    change(scripts(tmp_path, INVENTED), old, new)
    message = refusal(read, tmp_path)
    assert message.startswith(f"{tmp_path / 'BELLE' / 'evaluate_amb.py'}{fault}")
    assert message.endswith("at commit 95eaf2e as it is and run `bench fetch cbbq --from DIR`")


def test_scripts_without_a_prompt_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    path = scripts(tmp_path, INVENTED) / "MOSS" / "evaluate_amb.py"
    path.write_bytes(script("", "gbk").encode("gbk") + b"#\xff")
    assert refusal(read, tmp_path).startswith(f"{path}: is not GBK, at byte ")
    path.write_bytes(damage(script("", "gbk")))
    lost = f"{path.parent}: characters are lost in both of its scripts; "
    assert refusal(read, tmp_path).startswith(lost)
    path.unlink()
    assert refusal(read, tmp_path).startswith(f"{path}: cannot be read (No such file")


def test_where_scripts_are_looked_for_and_how_they_are_named(tmp_path: Path) -> None:
    assert choices(INVENTED) == ("chatglm", "gpt-3.5", "belle", "moss", "bloomz")
    assert is_script("CBBQ-95eaf2e/evaluation scripts/chatgpt-3.5/evaluate_disamb.py")
    for name in ("GLM/evaluate_amb.py", "evaluate_amb.py", "BELLE/setup.py"):
        assert not is_script(f"evaluation scripts/{name}")
    release = tmp_path / "downloads" / "CBBQ"
    (release / "data" / "age").mkdir(parents=True)
    assert find(release) is None
    for name in module.FOLDERS:
        place = scripts(release / name, INVENTED)
        for folder in (place, release, release.parent):
            assert find(folder) == place
        assert (find(release / "data"), find(release / "data", above=True)) == (None, place)
        place.rename(tmp_path / name)
