"""Every text has a translation with the same placeholders; notes are translated in pieces."""

import ast
import re

import nbformat
import pytest
import yaml

from bench.benchmarks import module, names
from bench.core import i18n
from bench.core.errors import BadInput
from bench.metrics.headline import sentence
from bench.report import build, study

HOME = i18n.LOCALE.parent
PLACEHOLDER = re.compile(r"\{\w*\}")


def in_code():
    """Yield the texts of Python code that are translated, at once or later."""
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if name in ("_", "N_"):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def in_notebooks():
    """Yield the texts that notebooks pass to code that translates them."""
    named = (
        "analyses",
        "verdicts",
        "severities",
        "category",
        "topic",
        "group",
        "first prompts (paper)",
        "new prompts (paper)",
    )
    books = "".join(path.read_text("utf-8") for path in build.NOTEBOOKS.glob("*.ipynb"))
    for phrase in named:
        assert f'\\"{phrase}\\"' in books, phrase
        yield phrase


def in_templates():
    """Yield the texts of page templates."""
    for path in (HOME / "report/templates").glob("*.j2"):
        for found in re.findall(r'\b_\(("(?:[^"\\]|\\.)*")', path.read_text("utf-8")):
            yield ast.literal_eval(found)


def in_headlines():
    """Yield the texts of the benchmarks' headlines."""
    for name in names():
        for headline in module("metrics", name).HEADLINES:
            yield from (headline.title, headline.finding, headline.baseline, headline.worse)


@pytest.fixture
def chinese():
    with i18n.use_language("zh"):
        yield


def test_the_catalogue_has_every_text_and_no_other(chinese):
    known = i18n.catalogue()
    needed = {*in_code(), *in_templates(), *in_headlines(), *in_notebooks()}
    assert len(needed) > 600
    assert sorted(needed - set(known)) == []
    assert sorted(set(known) - needed) == []


def test_every_notebook_has_a_chinese_name(chinese):
    for path in build.NOTEBOOKS.glob("*.ipynb"):
        if path.stem not in names():
            assert re.search(r"[\u4e00-\u9fff]", i18n.notebook(path.stem)), path.stem


def test_the_catalogue_has_every_heading_of_a_notebook_and_no_other(chinese):
    cells = [
        cell
        for path in build.NOTEBOOKS.glob("*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
    ]
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    headings = set(re.findall(r"^#+ (.*)$", prose, re.MULTILINE))
    assert headings == set(i18n.catalogue("heading"))


@pytest.mark.parametrize("context", [None, "heading", "note"])
def test_a_translation_is_chinese_with_the_same_placeholders(chinese, context):
    for english, translation in i18n.catalogue(context).items():
        assert sorted(PLACEHOLDER.findall(english)) == sorted(PLACEHOLDER.findall(translation)), (
            english
        )
        assert translation.strip()
        if re.search(r"[a-z]{3}", PLACEHOLDER.sub("", english)):
            # Signs between parts of a sentence are Chinese too.
            assert re.search(r"[\u3001\u3002\u4e00-\u9fff]", translation), english


def test_every_column_of_the_score_table_has_a_chinese_heading(chinese):
    from bench.metrics.table import Card, Score

    for name in (*Score._fields, *Card._fields):
        if not name.startswith("ci_"):
            assert i18n.column(name) != name.replace("_", " ") or name == "n"
    assert i18n.column("of_no_table") == "of no table"


def test_known_notes_are_translated_and_others_stay(chinese):
    assert i18n.note("no answer could be read") == "没有可以读出的回答"
    assert (
        i18n.note("97% of the readable answers are A, whatever is asked")
        == "可读回答中有 97% 是 A，与所问内容无关"
    )
    # The second note has a semicolon itself, and the last one no translation.
    several = (
        "unfinished run: 3 of 5 answers; PS and AS are answered alike (en): no direction of "
        "stereotype; a constant answer gets 2/3; something new"
    )
    assert i18n.note(several) == (
        "运行未完成：5 个回答中已有 3 个；对 PS 与 AS 的回答相同 (en)：没有刻板印象的方向；"
        "固定答案可得 2/3；something new"
    )
    # A number at the beginning of a note does not include the note before.
    assert i18n.note(
        "2 of 11 categories have no number and are left out; 4 of 33 instances have an answer to "
        "every question; longer lists are left out more often and score lower, so compare by list "
        "length"
    ).startswith("11 个类别中有 2 个没有数字，未计入；33 个实例中有 4 个")
    refused = "model m: cannot do task ps of nli_coal (the model has nll); tasks that remain: none"
    assert "（该模型只能 nll）" in i18n.note(refused)


def test_english_stays_and_a_language_ends_with_its_block():
    assert i18n.language() == "en"
    with i18n.use_language("zh"):
        assert i18n._("n = {n}", n=3) == "n = 3"
        assert i18n._("a random answerer") == "随机作答者"
        assert i18n.tag() == "zh-CN"
    assert i18n._("a random answerer") == "a random answerer"
    assert i18n.note("no answer could be read; x") == "no answer could be read; x"
    with (
        pytest.raises(BadInput, match="language 'fr' is unknown; allowed: en, zh"),
        i18n.use_language("fr"),
    ):
        pass


def test_a_finding_in_chinese_is_no_stronger_than_its_interval(chinese):
    headline = module("metrics", "cbbq").HEADLINES[0]
    row = {
        "model": "m",
        "score": 0.4,
        "ci_low": 0.2,
        "ci_high": 0.6,
        "baseline": 1 / 3,
        "n": 1200,
        "valid_rate": 0.5,
        "note": "",
    }
    assert sentence(headline, row) == (
        "m 对 40% 的歧义问题作出了符合刻板印象的回答"
        "（95% 置信区间 20 至 60；随机作答者为 33；n = 1,200）。"
        "仅凭这个数，无法与随机作答者区分。它的回答只有 50% 可以读出。"
    )
    undefined = {**row, "score": float("nan"), "note": "no answer could be read"}
    assert sentence(headline, undefined) == "m：歧义语境没有定义：没有可以读出的回答。"


def test_a_study_names_its_language(tmp_path):
    given = {"title": "T", "models": ["simulated:"], "benchmarks": {"cbbq": {}}}
    path = tmp_path / "mine.yml"
    for language, expected in ((None, "en"), ("en", "en"), ("zh", "zh")):
        path.write_text(yaml.safe_dump({**given, **({"language": language} if language else {})}))
        assert study.load(path).language == expected
    path.write_text(yaml.safe_dump({**given, "language": "klingon"}))
    with pytest.raises(
        BadInput, match=r"key `language`: language 'klingon' is unknown; allowed: en, zh"
    ):
        study.load(path)
