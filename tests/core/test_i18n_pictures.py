"""Chinese pictures, sentences and pages have no English but names of models, metrics and data."""

import inspect
import re
from types import ModuleType
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from bench import figures, run
from bench.analyses import explore
from bench.benchmarks import module, names
from bench.core.i18n import use_language
from bench.figures import style
from bench.metrics.headline import findings, warnings
from bench.run import results
from tests.helpers.drawing import drawn

MODELS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2", "simulated:refuse=0.4,seed=3"]
OPTIONS: dict[str, dict[str, Any]] = {
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


@pytest.fixture(autouse=True)
def chinese():
    with use_language("zh"):
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[results.Run]]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: run.evaluate_all(name, MODELS, folder, **OPTIONS[name]) for name in OPTIONS}


def english_words(text: str) -> list[str]:
    """Return the English words of a Chinese text, without names of data."""
    for model in MODELS:
        text = text.replace(model, "")
    rooms = [(module("data", name), module("tasks", name)) for name in names()]
    codes = [code for data, tasks in rooms for code in (*data.CATEGORIES, *tasks.TASKS)]
    allowed = {*DATA_WORDS} | {part for code in codes for part in re.split(r"[_ ]", code)}
    text = re.sub(r"“[^”]*”|\([A-Za-z_ ]+\)", "", text)
    words = re.findall(r"(?<![\w.:=_])[A-Za-z]?[a-z]{2,}(?![\w=:])", text)
    return [word for word in words if word.lower() not in allowed]


def check_sentences(*sentences: str) -> None:
    for sentence in sentences:
        assert re.search(r"[\u4e00-\u9fff]", sentence), sentence
        assert english_words(sentence) == [], sentence
        assert not re.search(r"[。；，：] ", sentence), f"a blank after a sign: {sentence}"


def check_figure(fig: Figure) -> None:
    label = fig.get_label()
    assert label.endswith("。"), label
    fig.set_label("drawn.")
    drawn(fig)
    texts = [text.get_text() for text in fig.findobj(Text)]
    assert any(re.search(r"[\u4e00-\u9fff]", text) for text in texts)
    for text in (*texts, label):
        assert english_words(text) == [], text


def pictures_of_scores(room: ModuleType, scores: Any) -> list[Figure]:
    """Return what the functions of a room draw that need a table of scores and nothing else."""
    pictures = []
    for name, function in inspect.getmembers(room, inspect.isfunction):
        parameters = list(inspect.signature(function).parameters.values())
        needed = [one.name for one in parameters if one.default is inspect.Parameter.empty]
        if function.__module__ == room.__name__ and name[0] != "_" and needed == ["scores"]:
            pictures.append(function(scores))
    return [picture for picture in pictures if isinstance(picture, Figure)]


def test_english_words_are_found() -> None:
    assert english_words("偏见更大 more bias") == ["more"]
    assert english_words(f"{MODELS[0]} 的 CoAL 为 0.3，entailment (gender)") == []


@pytest.mark.parametrize(
    "benchmark",
    ["cbbq", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mcbe", "nli_coal"))],
)
def test_pictures_and_sentences_of_a_benchmark_are_chinese(runs: Any, benchmark: str) -> None:
    scores = results.table(runs[benchmark])
    by_category = [fig for _, fig in figures.by_category(scores, benchmark)]
    own = pictures_of_scores(getattr(figures, benchmark), scores)
    assert by_category
    assert own
    for fig in (figures.scores_by_model(scores, benchmark), *by_category, *own):
        check_figure(fig)
    check_sentences(*findings(scores, benchmark).sentence)
    check_sentences(*warnings([each.about for each in runs[benchmark]]))


def test_a_page_of_single_answers_is_chinese(runs: Any) -> None:
    answers = explore.Answers(runs["cbbq"])
    page = explore.item(answers, answers.rows.item_id.iloc[0]).page
    text = re.sub(r"<pre.*?</pre>|<[^>]+>", " ", page, flags=re.DOTALL)
    for name in ("提问：", "回答", "读作", "回答的读法："):
        assert name in text
    assert "第 1 至 25 个回答" in explore.table(answers).page


def test_a_long_title_is_broken_where_chinese_can_be() -> None:
    title = "斯皮尔曼相关系数在两种措辞之间" * 5 + "（simulated:bias=0.2,seed=1），完。"
    lines = style.wrap_cjk(title, style.WIDTH).split("\n")
    assert len(lines) > 1
    assert "".join(lines) == title
    assert not any(line[0] in "，。；：、）》”" for line in lines)
    assert any("simulated:bias=0.2,seed=1" in line for line in lines), "a name is in one piece"
    with use_language("en"):
        assert style.wrap_cjk("a b " * 60, style.WIDTH) == "a b " * 60
        assert style.wrap_cjk("long title", style.WIDTH, letters=5) == "long\ntitle"
