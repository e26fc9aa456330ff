"""McBE's prompts, read from scripts byte for byte, and what is refused.

The prompts here are invented; the authors' own are read from the shared folder if it is there.
"""

import json
import string
import tomllib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data.mcbe import official_wording as module
from bench.data.mcbe.official_wording import find, read
from bench.data.official_wording import digest

Refusal = Callable[..., str]
Tables = dict[str, Any]

INVENTED: Tables = {
    "subcategory_classification": {"prompt": "读：{text}\n选：{labels}"},
    "context_order": {"prompt": "\n一 {context}\n二 {sentence}\n\n先后？"},
    "scenario_selection": {"prompt": "甲\t{sentence1}\n乙\t{sentence2}\n"},
    "bias_analysis": {
        "prompt": "说说{word}：{sentence}",
        "judge": {
            "prompt": "答 {analysis}\n对照 {reference}\n给 0 到 {maximum} 分，{{整数}}。\n"
            "要点：{criterion}\n完",
            "criteria": [
                {"text": "看得准：细看", "maximum": 13, "weight": 3.5},
                {"text": "看得深", "maximum": 13, "weight": 1},
                {"text": "看{文化}", "maximum": 7, "weight": 2.5},
                {"text": "新意", "maximum": 5, "weight": 0.5},
            ],
        },
    },
    "bias_scoring": {"prompt": "重不重？{sentence}\n{{\"'\\}}\n'''\"\"\"\\"},
}
FIELDS = {
    "text": "s.replace('[PLH]', t.words[0])",
    "labels": "all_class",
    "word": "t.words[0]",
    "analysis": "analysis",
    "reference": "t.explanation",
    **{name: name for name in ("sentence", "sentence1", "sentence2", "context")},
}
# The same name stands for another expression where the sentence is about the first word.
ANALYSIS_FIELDS = {**FIELDS, "sentence": "t.sentence.replace('[PLH]', t.words[0])"}
Style = Callable[[list[str]], str]


def lines(strings: list[str]) -> str:
    """Write a prompt as the authors do: one string per line, in brackets, some f-strings."""
    return "(\n        " + "\n        ".join(strings) + "\n    )"


def joined(strings: list[str]) -> str:
    return " + ".join(strings)


def source(template: str, fields: dict[str, str], style: Style, **literal: Any) -> str:
    """Write a template as Python strings, an f-string for each field; `literal` is filled in."""
    strings, text = [], ""
    for before, name, _, _ in string.Formatter().parse(template):
        text += before
        if name in literal:
            text += str(literal[name])
        elif name is not None:
            doubled = text.replace("{", "{{").replace("}", "}}")
            strings.append(f'f{json.dumps(doubled, ensure_ascii=False)[:-1]}{{{fields[name]}}}"')
            text = ""
    return style([*strings, json.dumps(text, ensure_ascii=False)])


def scripts(folder: Path, tables: Tables, style: Style = lines) -> Path:
    """Write `eval.py` and `utils.py` with the prompts of `tables`; they exit if they are run."""
    judge = tables["bias_analysis"]["judge"]
    prompts = {
        name: source(table["prompt"], ANALYSIS_FIELDS if name == "bias_analysis" else FIELDS, style)
        for name, table in tables.items()
    }
    judging = [
        f"prompt = {source(judge['prompt'], FIELDS, style, criterion=entry['text'], maximum=entry['maximum'])}\n"
        f"    score{number} = glm4(prompt)"
        for number, entry in enumerate(judge["criteria"], start=1)
    ]
    weights = [
        f"sub_scores[{k}] *= {entry['weight']!r}" for k, entry in enumerate(judge["criteria"])
    ]
    bodies = {
        "classification": [f"prompt = {prompts['subcategory_classification']}"],
        "scenario_selection": [
            f"for wp in word_pairs:\n     while True:\n      prompt = {prompts['scenario_selection']}"
        ],
        "bias_analysis": [f"prompt = {prompts['bias_analysis']}", *judging, *weights],
        "bias_scoring": [f"prompt = {prompts['bias_scoring']}"],
    }
    official = 'raise SystemExit("was run")\n\ndef f():\n    pattern = "\\d"\n'
    for name, body in bodies.items():
        official += f"\ndef {name}(category):\n    " + "\n    ".join([*body, "return category\n"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "eval.py").write_bytes(official.encode())
    (folder / "utils.py").write_bytes(
        f"def order_by_LLM(context, sentence):\n    prompt = {prompts['context_order']}\n".encode()
    )
    return folder


def prompt_tables(folder: Path) -> Tables:
    content = tomllib.loads(read(folder))
    assert content.pop("source") == "github.com/VelikayaScarlet/McBE@2a8e8f5"
    assert content.pop("version") == f"{module.VERSION}+changed"
    return content


@pytest.mark.parametrize("style", [lines, joined])
def test_prompts_are_read_in_either_style(tmp_path: Path, style: Style) -> None:
    assert prompt_tables(scripts(tmp_path, INVENTED, style)) == INVENTED


def test_only_the_released_prompts_have_the_released_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts(tmp_path, INVENTED)
    monkeypatch.setattr(module, "RELEASED", digest(INVENTED))
    assert tomllib.loads(read(tmp_path))["version"] == "mcbe-official-2a8e8f5"


def test_line_ends_and_byte_order_mark_of_windows_are_ignored(tmp_path: Path) -> None:
    scripts(tmp_path, INVENTED)
    for name in module.SCRIPTS:
        raw = (tmp_path / name).read_bytes().replace(b"\n", b"\r\n")
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + raw)
    assert prompt_tables(tmp_path) == INVENTED


def test_the_released_prompts_are_read(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "mcbe" / "prompts.toml"
    if not path.is_file():
        pytest.skip("the shared data hold no McBE prompts")
    official = tomllib.loads(path.read_text("utf-8"))
    tables = {name: table for name, table in official.items() if isinstance(table, dict)}
    assert tomllib.loads(read(scripts(tmp_path, tables))) == official


# Characters that mean something to Python, to TOML or to templates, among any others.
ANY = st.text(
    st.sampled_from("{}\"'\\\n\t\r\x7f\0\x85\u2028 nu中。😀")
    | st.characters(exclude_categories=["Cs"])
)


@given(st.lists(ANY, min_size=3, max_size=3), ANY)
def test_any_text_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], criterion: str
) -> None:
    tables = deepcopy(INVENTED)
    first, second, third = (text.replace("{", "{{").replace("}", "}}") for text in texts)
    prompt = f"{first}{{sentence1}}{second}{{sentence2}}{third}"
    tables["scenario_selection"]["prompt"] = prompt
    # A criterion is one line.
    tables["bias_analysis"]["judge"]["criteria"][2]["text"] = "看" + criterion.replace("\n", "：")
    back = prompt_tables(scripts(tmp_path_factory.mktemp("scripts"), tables))
    assert back == tables
    filled = back["scenario_selection"]["prompt"].format(sentence1="一{}", sentence2="二\\")
    assert filled == f"{texts[0]}一{{}}{texts[1]}二\\{texts[2]}"


# What is changed, into what, in which function, and what the message says.
CHANGES = """
def classification | def klass | classification | is missing
    score1 = glm4(prompt) |     prompt = f'' | bias_analysis | expected 5 of `prompt = f-string`
prompt = ( | question = ( | classification | expected 1 of `prompt = f-string`, found 0
{all_class} | {classes} | classification | `all_class`, found `classes`
'[PLH]' | '[plh]' | classification | found `all_class`, `s.replace('[plh]', t.words[0])`
{all_class} | {all_class!r} | classification | `{all_class!r}`
{all_class} | {all_class:>9} | classification | `{all_class:>9}`
prompt = ( | prompt = '%s' % ( | classification | expected an f-string
选： | 选：\\ud83d | classification | found half a character
sub_scores[3] *= 0.5 | pass | bias_analysis | expected `sub_scores[0] *= NUMBER`
sub_scores[3] *= 0.5 | sub_scores[3] *= w | bias_analysis | expected `sub_scores[0] *= NUMBER`
给 0 到 13 | 给 1 到 13 | bias_analysis | to differ in the maximum in line 3
细看 | 细看\\n再看 | bias_analysis | to differ in the maximum in line 3
看得深 |  | bias_analysis | the criterion after `：` in line 4 alone
"""


@pytest.mark.parametrize("case", CHANGES.strip("\n").splitlines())
def test_scripts_built_otherwise_are_refused(tmp_path: Path, refusal: Refusal, case: str) -> None:
    old, new, function, fault = case.split(" | ")
    path = scripts(tmp_path, INVENTED) / "eval.py"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    message = refusal(read, tmp_path)
    assert message.startswith(f"{tmp_path}, function `{function}`: ")
    assert fault in message
    assert message.endswith("at commit 2a8e8f5 as they are and run `bench fetch mcbe --from DIR`")


def test_files_that_are_no_scripts_are_refused(tmp_path: Path, refusal: Refusal) -> None:
    assert refusal(read, tmp_path).startswith(f"{tmp_path / 'eval.py'}: cannot be read")
    scripts(tmp_path, INVENTED)
    (tmp_path / "utils.py").write_bytes("def 次序".encode("gb18030"))
    assert "utils.py: is not UTF-8, at byte 4" in refusal(read, tmp_path)
    for code in ("def f(:\n", "x = 'a\0b'", "(" * 9999, "x = 1" + "+1" * 99999):
        (tmp_path / "utils.py").write_text(code)
        assert "is not Python" in refusal(read, tmp_path)


def test_both_scripts_are_looked_for_in_inside_and_above_a_folder(tmp_path: Path) -> None:
    above, here, inside = tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c"
    inside.mkdir(parents=True)
    (here / "eval.py").write_text("")
    assert find(here, above=True) is None
    scripts(above, INVENTED)
    assert (find(here), find(here, above=True)) == (None, above)
    scripts(inside, INVENTED)
    assert find(here, above=True) == inside
    scripts(here, INVENTED)
    assert find(here, above=True) == here
