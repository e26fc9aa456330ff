"""McBE's wording from scripts: in whichever way they are written, byte for byte; and what is refused.

The wording here is invented; the authors' own is read from the shared folder where that is there.
"""

import ast
import json
import string
import tomllib
from collections.abc import Callable, Iterator
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
            "prompt": "答 {analysis}\n对照 {reference}\n给 0 到 {maximum} 分，{{整数}}。\n要点：{criterion}\n完",
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
Pieces = list[tuple[str, str]]  # text, and the expression behind it or ""
Style = Callable[[Pieces], str]


def quoted(text: str, prefix: str = "") -> str:
    doubled = text.replace("{", "{{").replace("}", "}}") if prefix else text
    return prefix + json.dumps(doubled, ensure_ascii=False)


def lines(pieces: Pieces) -> str:
    """As the authors write it: a string a line, in brackets; an f where there is something to fill in."""
    written = [
        f'f{quoted(text, "f")[1:-1]}{{{source}}}"' if source else quoted(text)
        for text, source in pieces
    ]
    return "(\n        " + "\n        ".join(written) + "\n    )"


def plus(pieces: Pieces) -> str:
    return lines(pieces).replace("\n        ", "\n        + ").replace("+ ", "", 1)


def triple(pieces: Pieces) -> str:
    """One literal over several lines, with other quotes and blanks in what it fills in."""
    written = ""
    for text, source in pieces:
        for plain, escaped in (
            ("\\", "\\\\"),
            ('"', '\\"'),
            ("\r", "\\r"),
            ("{", "{{"),
            ("}", "}}"),
        ):
            text = text.replace(plain, escaped)
        spaced = (
            source.replace("'", '"').replace(".", " . ").replace("[0]", "[ 0 ]").replace("(", "( ")
        )
        written += text + (f"{{ ({spaced} ) }}" if source else "")
    return f'f"""{written}"""'


def unparsed(pieces: Pieces) -> str:
    values: list[ast.expr] = []
    for text, source in pieces:
        values.append(ast.Constant(text))
        if source:
            values.append(ast.FormattedValue(ast.parse(source, mode="eval").body, conversion=-1))
    return ast.unparse(ast.JoinedStr(values))


STYLES = [lines, plus, triple, unparsed]


def pieces(template: str, fields: dict[str, str], literal: dict[str, Any] | None = None) -> Pieces:
    found: Pieces = []
    text = ""
    for before, name, _, _ in string.Formatter().parse(template):
        text += before
        if name is None:
            continue
        if literal and name in literal:
            text += str(literal[name])
            continue
        found.append((text, fields[name]))
        text = ""
    return [*found, (text, "")]


def scripts(folder: Path, tables: Tables, style: Style = lines) -> Path:
    """`eval.py` and `utils.py` with the wording of `tables`, which end the program if they are ever run."""
    judge = tables["bias_analysis"]["judge"]
    prompts = {
        name: style(pieces(table["prompt"], FIELDS))
        for name, table in tables.items()
        if name != "bias_analysis"
    }
    analysis = style(pieces(tables["bias_analysis"]["prompt"], ANALYSIS_FIELDS))
    judging = "".join(
        f"""
    prompt = {style(pieces(judge["prompt"], FIELDS, {"maximum": entry["maximum"], "criterion": entry["text"]}))}
    score{number} = glm4(prompt)
"""
        for number, entry in enumerate(judge["criteria"], start=1)
    )
    weights = "\n".join(
        f"    sub_scores[{number}] *= {entry['weight']!r}"
        for number, entry in enumerate(judge["criteria"])
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "eval.py").write_bytes(
        f"""from utils import *
raise SystemExit("was run")

def preference_computation(category, model_name):
    pattern = "\\d"
    return category

def classification(category, model_name):
    prompt = {prompts["subcategory_classification"]}
    return prompt

def scenario_selection(category, model_name):
    if category:
     for wp in word_pairs:
      while True:
       prompt = {prompts["scenario_selection"]}

def bias_analysis(category, model_name):
    prompt = {analysis}
    analysis = qwen2(prompt)
{judging}
    sub_scores = process_list_num([score1, score2, score3, score4])
{weights}

def bias_scoring(category, model_name):
    prompt = {prompts["bias_scoring"]}
    return prompt
""".encode()
    )
    (folder / "utils.py").write_bytes(
        f"""def glm4(prompt):
    return prompt

def order_by_LLM(context, sentence):
    prompt = {prompts["context_order"]}
    return glm4(prompt)
""".encode()
    )
    return folder


def wording(folder: Path) -> Tables:
    content = tomllib.loads(read(folder))
    assert content.pop("source") == "github.com/VelikayaScarlet/McBE@2a8e8f5"
    assert content.pop("version") in (module.VERSION, f"{module.VERSION}+changed")
    return content


@pytest.mark.parametrize("style", STYLES)
def test_the_wording_is_read_in_whichever_style_it_is_written(tmp_path: Path, style: Style) -> None:
    assert wording(scripts(tmp_path, INVENTED, style)) == INVENTED


def test_a_wording_that_is_not_the_released_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts(tmp_path, INVENTED)
    assert tomllib.loads(read(tmp_path))["version"] == "mcbe-official-2a8e8f5+changed"
    monkeypatch.setattr(module, "RELEASED", digest(INVENTED))
    assert tomllib.loads(read(tmp_path))["version"] == "mcbe-official-2a8e8f5"


def test_the_file_can_be_read_by_people(tmp_path: Path) -> None:
    text = read(scripts(tmp_path, INVENTED))
    assert '[subcategory_classification]\nprompt = """\n读：{text}\n选：{labels}"""\n' in text


def test_line_ends_and_byte_order_mark_of_windows(tmp_path: Path) -> None:
    scripts(tmp_path, INVENTED, triple)
    for name in module.SCRIPTS:
        raw = (tmp_path / name).read_bytes().replace(b"\n", b"\r\n")
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + raw)
    assert wording(tmp_path) == INVENTED


def test_weights_in_another_order(tmp_path: Path) -> None:
    scripts(tmp_path, INVENTED)
    change(
        tmp_path,
        "sub_scores[0] *= 3.5\n    sub_scores[1] *= 1\n",
        "sub_scores[1] *= 1\n    sub_scores[0] *= 3.5\n",
    )
    assert wording(tmp_path) == INVENTED


@pytest.mark.parametrize("style", STYLES)
def test_the_released_wording(shared: Path, tmp_path: Path, style: Style) -> None:
    path = shared / "data" / "mcbe" / "prompts.toml"
    if not path.is_file():
        pytest.skip("the shared data hold no McBE wording")
    official = tomllib.loads(path.read_text("utf-8"))
    tables = {name: table for name, table in official.items() if isinstance(table, dict)}
    assert tomllib.loads(read(scripts(tmp_path, tables, style))) == official


# Characters that mean something to Python, to TOML or to templates, among any others.
ANY = st.text(
    st.sampled_from("{}\"'\\\n\t\r\x7f\0\x85\u2028 nu中。😀")
    | st.characters(exclude_categories=["Cs"])
)


def escaped(pieces: Pieces) -> str:
    """`unparsed`, or `lines` where Python 3.11 cannot write the f-string back, or writes another one."""
    try:
        source = unparsed(pieces)
        back = ast.parse(source, mode="eval").body
    except (ValueError, SyntaxError):
        return lines(pieces)
    plain = [node.value for node in getattr(back, "values", []) if isinstance(node, ast.Constant)]
    return source if plain == [text for text, _ in pieces if text] else lines(pieces)


@given(st.lists(ANY, min_size=3, max_size=3), st.lists(ANY, min_size=3, max_size=3), ANY)
def test_any_text_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, pair: list[str], about: list[str], criterion: str
) -> None:
    tables = deepcopy(INVENTED)

    def doubled(text: str) -> str:
        return text.replace("{", "{{").replace("}", "}}")

    tables["scenario_selection"]["prompt"] = (
        "{sentence1}".join(map(doubled, pair[:2])) + "{sentence2}" + doubled(pair[2])
    )
    tables["bias_analysis"]["prompt"] = (
        "{word}".join(map(doubled, about[:2])) + "{sentence}" + doubled(about[2])
    )
    # A criterion is one line, and not one that differs in a number alone.
    tables["bias_analysis"]["judge"]["criteria"][2]["text"] = "看" + criterion.replace("\n", "：")
    folder = tmp_path_factory.mktemp("scripts")
    for style in (escaped, lines):
        back = wording(scripts(folder, tables, style))
        assert back == tables
    filled = back["scenario_selection"]["prompt"].format(sentence1="一{}", sentence2="二\\")
    assert filled == f"{pair[0]}一{{}}{pair[1]}二\\{pair[2]}"
    assert (
        back["bias_analysis"]["prompt"].format(word="<", sentence=">")
        == f"{about[0]}<{about[1]}>{about[2]}"
    )


def change(folder: Path, old: str, new: str, name: str = "eval.py") -> None:
    text = (folder / name).read_text("utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1), "utf-8")


CHANGES: list[tuple[str, str, str, str]] = [
    # what is changed, into what, in which function that is told, and what is said
    (
        "def classification",
        "def klass",
        "classification",
        "is missing, expected one `def classification`",
    ),
    ("def preference_computation", "def bias_scoring", "bias_scoring", "is defined 2 times"),
    (
        "    score1 = glm4(prompt)",
        "    prompt = f''",
        "bias_analysis",
        "expected 5 of `prompt = f-string`, found 6, at lines ",
    ),
    ("prompt = (", "question = (", "classification", "expected 1 of `prompt = f-string`, found 0"),
    (
        "{all_class}",
        "{classes}",
        "classification",
        "`s.replace('[PLH]', t.words[0])` and `all_class`, found the field `classes`",
    ),
    ("'[PLH]'", "'[plh]'", "classification", "found the field `s.replace('[plh]', t.words[0])`"),
    ("{all_class}", "all_class", "classification", "found none of `all_class`"),
    ("{all_class}", "{all_class!r}", "classification", "found a conversion or format behind it"),
    ("{all_class}", "{all_class:>9}", "classification", "found a conversion or format behind it"),
    ("{all_class}", "{all_class=}", "classification", "found a conversion or format behind it"),
    ("prompt = (", "prompt = '%s' % (", "classification", "expected an f-string, found `'%s' % "),
    ("prompt = (", "prompt = str(", "classification", "expected an f-string, found `str("),
    ("prompt = (", "prompt += (", "classification", "found another way to set `prompt`"),
    ("prompt = (", "other = prompt = (", "classification", "found another way to set `prompt`"),
    (
        "return prompt",
        "prompt: str",
        "classification",
        "expected 1 of `prompt = f-string`, found 2",
    ),
    ("选：", "选：\\ud83d", "classification", "found half a character"),
    ("sub_scores[3] *= 0.5", "pass", "bias_analysis", "found none for k = 3"),
    (
        "sub_scores[3] *= 0.5",
        "sub_scores[2] *= 0.5",
        "bias_analysis",
        "for each k from 0 to 3, found `sub_scores[2] *= 0.5`",
    ),
    ("sub_scores[3] *= 0.5", "sub_scores[3] /= 0.5", "bias_analysis", "found `sub_scores[3]`"),
    (
        "sub_scores[3] *= 0.5",
        "sub_scores[4] *= 0.5",
        "bias_analysis",
        "found `sub_scores[4] *= 0.5`",
    ),
    (
        "sub_scores[3] *= 0.5",
        "sub_scores[k] *= 0.5",
        "bias_analysis",
        "found `sub_scores[k] *= 0.5`",
    ),
    ("sub_scores[3] *= 0.5", "sub_scores[3] *= w", "bias_analysis", "found `sub_scores[3] *= w`"),
    (
        "sub_scores[3] *= 0.5",
        "sub_scores[3] *= True",
        "bias_analysis",
        "found `sub_scores[3] *= True`",
    ),
    (
        "sub_scores[3] *= 0.5",
        "sub_scores[3] *= 1e999",
        "bias_analysis",
        "found `sub_scores[3] *= 1e309`",
    ),
    (
        "答 ",
        "作答 ",
        "bias_analysis",
        "found that they differ in their line 1 ('作答 {analysis' and '答 {analysis}'); take",
    ),
    ("到 13", "到 013", "bias_analysis", "found that they differ in their line 3"),
    ("给 0 到 13", "给 1 到 13", "bias_analysis", "found that they differ in their line 3"),
    (
        "要点：",
        "重点：",
        "bias_analysis",
        "found that they differ in their line 4 ('重点：看得准：细看' and '要点：看得深'); ",
    ),
    ("细看", "细看\\n再看", "bias_analysis", "equally many lines of text, found 6, 5, 5, 5"),
    ("看得深", "", "bias_analysis", "found that they differ in their line 4"),
]


@pytest.mark.parametrize(("old", "new", "function", "fault"), CHANGES)
def test_scripts_built_otherwise_are_refused(
    tmp_path: Path, refusal: Refusal, old: str, new: str, function: str, fault: str
) -> None:
    scripts(tmp_path, INVENTED)
    change(tmp_path, old, new)
    message = refusal(read, tmp_path)
    assert message.startswith(f"{tmp_path / 'eval.py'}")
    assert f"function `{function}`" in message
    assert fault in message
    assert message.endswith("at commit 2a8e8f5 as they are and run `bench fetch mcbe --from DIR`")


def test_the_line_of_a_fault(tmp_path: Path, refusal: Refusal) -> None:
    scripts(tmp_path, INVENTED)
    change(tmp_path, "prompt = (", "prompt = None and (", "utils.py")
    assert f"{tmp_path / 'utils.py'}, function `order_by_LLM`, line 5: " in refusal(read, tmp_path)


def same(number: int, what: str) -> Tables:
    tables = deepcopy(INVENTED)
    for entry in tables["bias_analysis"]["judge"]["criteria"]:
        entry[what] = INVENTED["bias_analysis"]["judge"]["criteria"][number][what]
    return tables


def test_judge_prompts_that_do_not_differ_enough(tmp_path: Path, refusal: Refusal) -> None:
    message = refusal(read, scripts(tmp_path, same(0, "maximum")))
    assert "found that they differ in their line 4 (" in message
    assert "found that they differ in their line 3 (" in refusal(
        read, scripts(tmp_path, same(0, "text"))
    )
    tables = same(0, "text")
    for entry in tables["bias_analysis"]["judge"]["criteria"]:
        entry["maximum"] = 1
    assert "found that they differ in nothing" in refusal(read, scripts(tmp_path, tables))


def test_files_that_are_no_scripts(tmp_path: Path, refusal: Refusal) -> None:
    message = refusal(read, tmp_path)
    assert message.startswith(
        f"{tmp_path / 'eval.py'}: no such file, but the wording stands in both scripts"
    )
    scripts(tmp_path, INVENTED)
    (tmp_path / "utils.py").write_bytes("def 次序".encode("gb18030"))
    assert "utils.py: is not UTF-8, at byte 4" in refusal(read, tmp_path)
    for source in (
        "def f(:\n",
        "x = 'a\0b'",
        "(" * 9999,
        "x = " + "-" * 99999 + "1",
        "x = 1" + "+1" * 99999,
    ):
        (tmp_path / "utils.py").write_text(source)
        assert "is not Python" in refusal(read, tmp_path)
    (tmp_path / "utils.py").unlink()
    (tmp_path / "utils.py").mkdir()
    assert "utils.py: cannot be read (" in refusal(read, tmp_path)


def test_long_sums_of_strings_and_deep_fields(tmp_path: Path, refusal: Refusal) -> None:
    scripts(tmp_path, INVENTED)
    change(tmp_path, "prompt = (", "prompt = " + "'' + " * 500 + "(")
    assert wording(tmp_path) == INVENTED
    change(tmp_path, "{all_class}", "{all_class" + ".x" * 900 + "}")
    assert "found the field `" in refusal(read, tmp_path)


def places(tmp_path: Path) -> Iterator[Path]:
    yield from (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c")


def test_where_scripts_are_looked_for(tmp_path: Path) -> None:
    above, here, inside = places(tmp_path)
    inside.mkdir(parents=True)
    assert find(here, above=True) is None
    scripts(above, INVENTED)
    assert (find(here), find(here, above=True)) == (None, above)
    (here / "eval.py").write_text("")
    assert (find(here), find(here, above=True)) == (here, above), (
        "both count for more than one nearby"
    )
    scripts(inside, INVENTED)
    assert find(here, above=True) == inside
    scripts(here, INVENTED)
    assert find(here, above=True) == here
