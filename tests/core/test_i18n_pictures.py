"""Pictures and sentences in Chinese: no English is left over but names of models, metrics, labels and data."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from bench import figures, run
from bench.analyses import (
    compare_models,
    explore,
    friedman_test,
    judge_agreement,
    meta_evaluation,
    meta_respondents,
    model_size_trends,
    quality,
    self_correction,
    wordings,
)
from bench.analyses.compare_models import convergence
from bench.analyses.compare_models.convergence import Measure
from bench.analyses.generalisability import generalised
from bench.analyses.judge_agreement import pictures as agreement
from bench.analyses.model_size_trends import pictures as trend_pictures
from bench.analyses.model_size_trends.series import SIMULATED
from bench.benchmarks import module, names
from bench.core.i18n import use_language
from bench.figures import (
    diversity,
    generalisability,
    robustness,
    style,
)
from bench.figures import words as clouds
from bench.metrics import (
    diversity_findings,
    nli_coal,
    robustness_findings,
)
from bench.metrics import robustness as two
from bench.metrics.headline import warnings
from bench.metrics.mcbe import severities
from bench.metrics.words import counts
from bench.run import results
from tests.helpers.drawing import drawn

MODELS = [
    "simulated:bias=0.2,seed=1",
    "simulated:bias=0.8,seed=2",
    "simulated:bias=0.5,refuse=0.4,seed=3",
]
FEW: dict[str, dict[str, Any]] = {
    "mcbe": {"limit": 3, "judge": "simulated:"},
    "cbbq": {"limit": 6, "settings": {"option_order": "rotated"}},
    "nli_coal": {"limit": 40},
}
# Names that are data: labels, measures, tests and tools, and the parameters of a notebook. `ROUGE` and the like are not told apart.
NAMED = {
    "entailment",
    "contradiction",
    "neutral",
    "kappa",
    "score",
    "accuracy",
    "coal",
    "position",
    "bias",
    "one",
    "place",
    "option",
    "simulated",
    "tiny",
    "bench",
    "fetch",
    "data",
    "annotations",
    "people",
    "verdicts",
    "default",
    "reworded",
    "seed",
    "refuse",
    "answer",
    "label",
    "competence",
    "workbench",
    "authors",
    "loop",
    "nll",
    "directional",
    "gap",
    "balanced",
    "minicons",
    "eval",
    "asked",
    "all",
    "ambiguous",
    "disambiguous",
    "token",
    "tokens",
    "robust",
    "official",
    "paper",
    "order",
    "item",
    "text",
    "each",
    "alone",
    "nemenyi",
    "conover",
    "wilcoxon",
    "iman",
    "davenport",
    "landis",
    "koch",
    "sd",
    "fn",
    "lm",
    "lgbtq",
    "nan",
    "pearson",
}


@pytest.fixture(autouse=True)
def chinese():
    with use_language("zh"):
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[results.Run]]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: run.evaluate_all(name, MODELS, folder, **FEW[name]) for name in names()}


def left_over(text: str) -> list[str]:
    """English words in what a Chinese page says."""
    for name in (*MODELS, "one by one"):
        text = text.replace(name, "")
    codes = [
        *(
            one
            for name in names()
            for one in (*module("data", name).CATEGORIES, *module("tasks", name).TASKS)
        )
    ]
    data = {part for one in codes for part in re.split(r"[_ ]", one)}
    found = re.findall(
        r"(?<![\w.:=_])[A-Za-z]?[a-z]{2,}(?![\w=:])", re.sub(r"“[^”]*”|\([A-Za-z_ ]+\)", "", text)
    )
    return [word for word in found if word.lower() not in NAMED | data]


def checked(*found: Figure | None) -> None:
    """Figures that are drawn, have Chinese in them, and no English."""
    for fig in found:
        assert fig is not None
        label = fig.get_label()
        assert label.endswith("。"), label
        fig.set_label("drawn.")
        drawn(fig)
        texts = [text.get_text() for text in fig.findobj(Text)]
        assert any(re.search(r"[\u4e00-\u9fff]", text) for text in texts)
        for text in (*texts, label):
            assert left_over(text) == [], text


def told(*sentences: str) -> None:
    assert sentences
    for sentence in sentences:
        assert re.search(r"[\u4e00-\u9fff]", sentence), sentence
        assert left_over(sentence) == [], sentence
        assert not re.search(r"[。；，：] ", sentence), f"a blank behind a sign: {sentence}"


def test_english_is_found_where_it_is_left_over() -> None:
    assert left_over("偏见更大 more bias") == ["more"]
    assert left_over(f"{MODELS[0]} 的 CoAL 为 0.3，entailment (gender)") == []


# One benchmark is enough to see that pictures are told in Chinese at all.
@pytest.mark.parametrize(
    "benchmark",
    ["cbbq", *(pytest.param(name, marks=pytest.mark.slow) for name in names() if name != "cbbq")],
)
def test_pictures_of_a_benchmark(runs: Any, benchmark: str) -> None:
    some = runs[benchmark]
    scores, room = results.table(some), getattr(figures, benchmark)
    names = results.labels(some)
    checked(
        figures.scores_by_model(scores, benchmark),
        *(fig for _, fig in figures.by_category(scores, benchmark)),
    )
    if benchmark == "mcbe":
        answers = {
            name: severities(one.records, one.items) for name, one in zip(names, some, strict=True)
        }
        checked(
            room.radars(scores),
            room.tasks_by_model(scores),
            room.categories_by_task(scores, names[0]),
            room.list_lengths(scores),
            room.marks(scores),
            room.severities(answers),
            figures.score_and_validity(scores, "mcbe", "ss", "score", "position_bias"),
        )
    elif benchmark == "cbbq":
        from bench.metrics.cbbq import by_name_and_topic

        topics = by_name_and_topic(some[0].records, some[0].items, "robust")
        checked(
            room.category_heatmaps(scores),
            room.accuracy_and_bias(scores),
            room.option_orders(scores),
        )
        fig = room.names_by_topic(topics, "gender", names[0])
        assert left_over(fig.get_suptitle()) == []
    else:
        occupations = nli_coal.by(some[0].records, some[0].items, "occupation")
        checked(
            room.labels_by_set(scores),
            room.directions(scores),
            room.habits(scores, nli_coal.predictors(some[0].items)),
        )
        assert left_over(room.worst_occupations(occupations, "zh", names[0]).get_suptitle()) == []


@pytest.mark.slow
def test_models_against_each_other(runs: Any) -> None:
    result = compare_models.compare(runs["cbbq"])
    args = result.pairs, result.ranks, "cbbq"
    checked(
        compare_models.pictures.ranks_by_model(*args),
        *(fig for _, fig in compare_models.pictures.differences(*args)),
    )
    told(*compare_models.findings(result), *result.pairs.sentence)
    equivalent = compare_models.equivalence.tests(result.pairs, 0.05, "cbbq")
    told(*equivalent.sentence, *compare_models.equivalence.findings(equivalent, "cbbq"))


@pytest.mark.slow
@pytest.mark.parametrize("blocks", ["category", "category x task"])
def test_ranks_over_blocks(runs: Any, blocks: str) -> None:
    result = friedman_test.compare(runs["cbbq"], "cbbq", blocks)
    checked(
        friedman_test.critical_difference_diagram(result),
        friedman_test.ranks_by_block(result, "cbbq"),
    )
    told(*friedman_test.findings(result))


@pytest.mark.slow
def test_two_wordings(runs: Any, tmp_path: Path) -> None:
    again = run.evaluate_all("mcbe", MODELS, tmp_path, **FEW["mcbe"], prompts="reworded")
    pairs, _ = wordings.paired([*runs["mcbe"], *again])
    found = wordings.compare(pairs)
    correlated, limits = two.correlated(found), two.limits(found)
    changes = two.rank_changes(found.table, wordings.headlines(pairs))
    checked(
        robustness.agreement(found.table, correlated, limits), robustness.differences(found.table)
    )
    told(
        *robustness_findings.findings(found.table, correlated, limits, changes),
        *robustness_findings.by_model(found.table),
    )
    study = generalised([*runs["mcbe"], *again])
    checked(generalisability.uncertainty(study.components, study.planned))
    told(*study.findings)


@pytest.mark.slow
def test_benchmarks_against_each_other() -> None:
    every = [
        Measure(
            f"{benchmark} score",
            benchmark,
            trait,
            {str(k): np.array([k * k % 7, k, k]) for k in range(5)},
        )
        for benchmark in ("CBBQ", "McBE")
        for trait in ("grasp", "preference")
    ]
    pairs = convergence.correlate(every)
    checked(convergence.matrix(pairs, convergence.reliabilities(every)))
    told(*convergence.findings(pairs), *convergence.findings(convergence.correlate(every[:2])))


@pytest.mark.slow
def test_asking_for_fairness(tmp_path: Path) -> None:
    biased, refusing = (
        run.evaluate("cbbq", f"simulated:bias=0.8,seed=1{more}", limit=8, out=tmp_path / name)
        for name, more in (("a", ""), ("b", ",refuse=0.5"))
    )
    fairer = run.evaluate("cbbq", "simulated:bias=0.1,seed=1", limit=8, out=tmp_path / "c")
    answers = self_correction.answers(
        {MODELS[0]: {"Q": biased, "Q+IF": refusing, "Q+IF+CoT": fairer}}
    )
    found = self_correction.compare(answers)
    shares = self_correction.answer_shares(answers)
    checked(self_correction.plot_differences(found), self_correction.plot_answers(shares))
    told(*self_correction.findings(found).sentence, self_correction.under("Q"))
    table = results.table([biased]).assign(prompting="Q")
    checked(figures.cbbq.prompt_settings(table.assign(model=MODELS[0])))


@pytest.mark.slow
def test_trends_over_size(tmp_path: Path) -> None:
    asked = run.evaluate_all("mcbe", list(SIMULATED), tmp_path, tasks=["ss", "bs"], limit=4)
    (result,) = model_size_trends.analyse(asked, {"tiny": list(SIMULATED)}).values()
    names = [one.model for models in result.series.values() for one in models]
    pictures = [
        trend_pictures.over_size(result),
        trend_pictures.beside(result),
        trend_pictures.by_category(result, result.headlines[-1]),
    ]
    sentences = [
        text.replace("simulated, as if sizes", "tiny")
        for text in model_size_trends.findings(result)
    ]
    for name in names:
        sentences = [text.replace(name, "m") for text in sentences]
        for fig in filter(None, pictures):
            fig.set_label(fig.get_label().replace(name, "m"))
    for fig in filter(None, pictures):
        fig.legends[0].remove()
    checked(*pictures)
    told(*sentences)


@pytest.mark.slow
def test_judges_and_people(runs: Any) -> None:
    points, severe = (
        judge_agreement.analyses(runs["mcbe"]),
        judge_agreement.severities(runs["mcbe"]),
    )
    for marks, scale, what in (
        (points, judge_agreement.POINTS, "analyses"),
        (severe, judge_agreement.SEVERITY, "severities"),
    ):
        found = judge_agreement.by_category(marks)
        checked(
            agreement.plot_marks(marks, judge_agreement.summary(marks), scale),
            agreement.plot_distances(found, "mcbe", scale),
        )
        told(*judge_agreement.findings(found, scale, what))
    told(*judge_agreement.notes(points, points, "", ""), judge_agreement.above("m", "analyses"))


@pytest.mark.slow
def test_what_a_data_set_holds() -> None:
    looked = quality.looks([])
    rated = quality.annotated(looked)
    told(
        *quality.notes(looked, rated),
        *(text for look in looked for text in look.findings()),
        *(one.sentence() for one in rated),
        *diversity_findings.of_overlaps(quality.against(looked)[0]),
    )
    for look in looked:
        # A topic or a word is data.
        titles = [
            diversity.coverage(look.coverage(by), by, look.benchmark, look.rows).axes[0]
            for by in ("category", "topic", "group")
        ]
        assert [left_over(ax.get_title("left") + ax.get_xlabel()) for ax in titles] == [[], [], []]
        checked(diversity.overlap(look.diversity, look.benchmark))
        cloud = clouds.clouds(counts(look.texts), look.benchmark)
        assert cloud is not None
        assert left_over(cloud.get_suptitle()) == []
    checked(*(diversity.kappas(one.kappas, one.benchmark, one.known) for one in rated))


@pytest.mark.slow
def test_what_measures_react_to() -> None:
    known = meta_respondents.evaluate()
    checked(
        meta_respondents.plot_overview(known),
        *(meta_respondents.plot_bias(known, name) for name in names()),
    )
    summed, confused = meta_respondents.summary(known), meta_respondents.confusion(known)
    told(*meta_respondents.findings(summed, confused))


@pytest.mark.slow
def test_models_of_known_bias() -> None:
    found = meta_evaluation.evaluate(["en", "zh"])
    correlated = meta_evaluation.correlations(found)
    checked(meta_evaluation.plot_rates(found, correlated))
    told(*meta_evaluation.findings(found, correlated))


@pytest.mark.slow
def test_single_answers(runs: Any) -> None:
    answers = explore.Answers(runs["cbbq"])
    page = re.sub(
        r"<pre.*?</pre>|<[^>]+>",
        " ",
        explore.item(answers, answers.rows.item_id.iloc[0]).page,
        flags=re.DOTALL,
    )
    for name in ("提问：", "回答", "读作", "回答的读法："):
        assert name in page
    assert "第 1 至 25 个回答" in explore.table(answers).page
    told(*warnings([one.about for one in runs["cbbq"]]))


def test_a_long_title_is_broken_where_chinese_may_be() -> None:
    title = "斯皮尔曼相关系数在两种措辞之间" * 5 + "（simulated:bias=0.2,seed=1），完。"
    lines = style.wrap_cjk(title, style.WIDTH).split("\n")
    assert len(lines) > 1
    assert "".join(lines) == title
    assert not any(line[0] in "，。；：、）》”" for line in lines)
    assert any("simulated:bias=0.2,seed=1" in line for line in lines), "a name is in one piece"
    with use_language("en"):
        assert style.wrap_cjk("a b " * 60, style.WIDTH) == "a b " * 60
        assert style.wrap_cjk("long title", style.WIDTH, letters=5) == "long\ntitle"
