"""Each text has a Chinese translation with its placeholders; Chinese pages have no English."""

import ast
import inspect
import re
from itertools import chain

import nbformat
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from bench import figures, run
from bench.analyses import explore
from bench.benchmarks import module, names
from bench.core import i18n
from bench.core.errors import BadInput
from bench.metrics.headline import findings, sentence, warnings
from bench.metrics.table import Card, Score
from bench.report import build
from bench.run import results
from tests.helpers.drawing import drawn

HOME = i18n.LOCALE.parent
PLACEHOLDER = re.compile(r"\{\w*\}")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
MODELS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2", "simulated:refuse=0.4,seed=3"]
OPTIONS = {
    "mcbe": {"limit": 3, "judge": "simulated:"},
    "cbbq": {"limit": 6, "settings": {"option_order": "rotated"}},
    "nli_coal": {"limit": 40},
}
# Labels, measures and parameters that are data.
DATA_WORDS = re.findall(
    r"\w+",
    "entailment contradiction neutral kappa score accuracy coal position bias simulated tiny seed "
    "refuse answer label nll directional gap balanced robust official paper default lgbtq",
)


def translated():
    """Yield the texts that code, page templates, headlines and notebooks have translated."""
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                text = node.args[0]
                if name in ("_", "N_") and isinstance(text, ast.Constant):
                    yield text.value
    for path in HOME.rglob("*.j2"):
        for found in re.findall(r'\b_\(("(?:[^"\\]|\\.)*")', path.read_text("utf-8")):
            yield ast.literal_eval(found)
    for headline in chain.from_iterable(module("metrics", name).HEADLINES for name in names()):
        yield from (headline.title, headline.finding, headline.baseline, headline.worse)
    books = "".join(path.read_text("utf-8") for path in build.NOTEBOOKS.glob("*.ipynb"))
    named = ("analyses", "verdicts", "severities", "category", "topic", "group")
    for phrase in (*named, "first prompts (paper)", "new prompts (paper)"):
        assert f'\\"{phrase}\\"' in books, phrase
        yield phrase


def prose():
    """Yield the paragraphs of the notebooks, and the captions in their code, as patterns."""
    for path in build.NOTEBOOKS.glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                yield from map(re.escape, cell.source.split("\n\n"))
                continue
            for node in ast.walk(ast.parse(cell.source)):
                is_show = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("show.")
                if is_show and len(node.args) > 2:
                    yield from caption_patterns(node.args[2])
                elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "caption":
                    yield from caption_patterns(node.value)


def caption_patterns(node):
    """Yield a caption as a pattern, in which any text can stand for a value."""
    if isinstance(node, ast.Constant):
        yield re.escape(node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = [getattr(part, "value", None) for part in node.values]
        yield "".join(re.escape(part) if isinstance(part, str) else ".+" for part in parts)


@pytest.fixture
def chinese():
    with i18n.use_language("zh"):
        yield


def test_the_catalogue_has_every_text_and_no_other(chinese):
    assert sorted(i18n.catalogue()) == sorted(set(translated()))
    books = list(build.NOTEBOOKS.glob("*.ipynb"))
    known, patterns = set(i18n.catalogue("prose")), set(prose())
    assert [text for text in patterns if not any(re.fullmatch(text, key) for key in known)] == []
    assert [key for key in known if not any(re.fullmatch(text, key) for text in patterns)] == []
    for path in books:
        assert path.stem in names() or CHINESE.search(i18n.notebook(path.stem)), path.stem
    for name in (*Score._fields, *Card._fields):
        assert i18n.column(name) != name.replace("_", " ") or name in ("n", "ci_low", "ci_high")
    for english, translation in chain(
        *(i18n.catalogue(c).items() for c in (None, "prose", "note"))
    ):
        placeholders = [sorted(PLACEHOLDER.findall(text)) for text in (english, translation)]
        assert placeholders[0] == placeholders[1], english
        if re.search(r"[a-z]{3}", PLACEHOLDER.sub("", english)):
            # Signs between parts of a sentence are Chinese too.
            assert re.search(r"[\u3001\u3002\u4e00-\u9fff]", translation), english


@pytest.mark.parametrize(
    ("note", "translation"),
    [
        # The second note has a semicolon itself, and the last one no translation.
        (
            "unfinished run: 3 of 5 answers; PS and AS are answered alike (en): no direction of "
            "stereotype; a constant answer gets 2/3; something new",
            "运行未完成：5 个回答中已有 3 个；对 PS 与 AS 的回答相同 (en)：没有刻板印象的方向；"
            "固定答案可得 2/3；something new",
        ),
        # A number at the beginning of a note does not include the note before.
        (
            "2 of 11 categories have no number and are left out; 4 of 33 instances have an answer "
            "to every question; longer lists are left out more often and score lower, so compare "
            "by list length",
            "11 个类别中有 2 个没有数字，未计入；33 个实例中有 4 个",
        ),
    ],
)
def test_notes_are_translated_in_pieces(chinese, note, translation):
    assert translation in i18n.note(note)


def test_a_language_ends_with_its_block(refusal):
    with i18n.use_language("zh"):
        assert i18n._("n = {n}", n=3) == "n = 3"
        assert (i18n._("a random answerer"), i18n.tag()) == ("随机作答者", "zh-CN")
    assert (i18n._("a random answerer"), i18n.language()) == ("a random answerer", "en")
    assert i18n.note("no answer could be read; x") == "no answer could be read; x"
    with pytest.raises(BadInput, match="language 'fr' is unknown; allowed: en, zh"):
        i18n.check("fr")


def test_a_finding_in_chinese_is_no_stronger_than_its_interval(chinese):
    headline = module("metrics", "cbbq").HEADLINES[0]
    row = {"model": "m", "score": 0.4, "ci_low": 0.2, "ci_high": 0.6, "baseline": 1 / 3}
    row |= {"n": 1200, "valid_rate": 0.5, "note": ""}
    assert sentence(headline, row) == (
        "m 对 40% 的歧义问题作出了符合刻板印象的回答"
        "（95% 置信区间 20 至 60；随机作答者为 33；n = 1,200）。"
        "仅凭这个数，无法与随机作答者区分。它的回答只有 50% 可以读出。"
    )


def english_words(text):
    """Return the English words of a Chinese text, without names of data."""
    for model in MODELS:
        text = text.replace(model, "")
    rooms = [(module("data", name), module("tasks", name)) for name in names()]
    codes = [code for data, tasks in rooms for code in (*data.CATEGORIES, *tasks.TASKS)]
    allowed = {*DATA_WORDS} | {part for code in codes for part in re.split(r"[_ ]", code)}
    text = re.sub(r"“[^”]*”|\([A-Za-z_ ]+\)", "", text)
    words = re.findall(r"(?<![\w.:=_])[A-Za-z]?[a-z]{2,}(?![\w=:])", text)
    return [word for word in words if word.lower() not in allowed]


def pictures(room, scores):
    """Return what the functions of a room draw that need a table of scores and nothing else."""
    for name, function in inspect.getmembers(room, inspect.isfunction):
        parameters = inspect.signature(function).parameters.values()
        needed = [each.name for each in parameters if each.default is inspect.Parameter.empty]
        if function.__module__ == room.__name__ and name[0] != "_" and needed == ["scores"]:
            yield function(scores)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("mcbe", "nli_coal")]


@pytest.mark.parametrize("benchmark", ["cbbq", *SLOW])
def test_pictures_and_sentences_of_a_benchmark_are_chinese(chinese, tmp_path, benchmark):
    assert english_words("偏见更大 more bias") == ["more"]
    runs = run.evaluate_all(benchmark, MODELS, tmp_path, **OPTIONS[benchmark])
    scores = results.table(runs)
    figs = [fig for _name, fig in figures.by_category(scores, benchmark)]
    figs += [figures.scores_by_model(scores, benchmark)]
    own = pictures(getattr(figures, benchmark), scores)
    figs += [fig for fig in own if isinstance(fig, Figure)]
    assert len(figs) > 3
    for fig in figs:
        label = fig.get_label()
        assert label.endswith("。"), label
        fig.set_label("drawn.")
        texts = [text.get_text() for text in drawn(fig).findobj(Text)]
        assert any(map(CHINESE.search, texts))
        assert [word for text in (*texts, label) for word in english_words(text)] == []
    for text in (*findings(scores, benchmark).sentence, *warnings([each.about for each in runs])):
        assert CHINESE.search(text)
        assert english_words(text) == [], text
        assert not re.search(r"[。；，：] ", text), f"a blank after a sign: {text}"
    answers = explore.Answers(runs)
    assert "提问：" in explore.item(answers, answers.rows.item_id.iloc[0]).page
