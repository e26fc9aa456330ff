"""In Chinese, an analysis says nothing in English but names, and its pictures draw."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from bench.analyses import (
    compare_models,
    friedman_test,
    judge_agreement,
    judge_injection,
    model_size_trends,
    prompt_robustness,
)
from bench.analyses.compare_models import convergence, equivalence
from bench.analyses.compare_models.pictures import differences, ranks_by_model
from bench.analyses.model_size_trends import pictures as of_sizes
from bench.analyses.prompt_robustness import pictures as of_prompts
from bench.analyses.prompt_robustness.study import generalise
from bench.analyses.published import published_summary
from bench.core.i18n import use_language
from bench.run import Run, evaluate_all
from tests.helpers.drawing import drawn

MODELS = ["simulated:bias=0.1", "simulated:answer=A", "simulated:bias=0.9,refuse=0.4,seed=3"]
# Names of models, series and papers may stand in a Chinese sentence as they are.
NAMES = r"simulated, as if sizes|simulated:\S+|Qwen2.5 \(Lan et al., 2025\)"
ENGLISH = re.compile(r"[A-Za-z]{2,}(?: [A-Za-z]{2,}){2,}")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        run
        for prompts in (None, "reworded")
        for run in evaluate_all("cbbq", MODELS, folder / str(prompts), prompts=prompts, limit=3)
    ]


def of_answers(runs: list[Run]) -> Iterator[Iterable[str] | Figure | None]:
    """Yield what the analyses of these runs say and draw."""
    moved = prompt_robustness.compare(prompt_robustness.pair_runs(runs)[0])
    study = generalise(runs)
    yield from (prompt_robustness.findings(moved), study.findings)
    yield from (of_prompts.agreement(moved), of_prompts.differences(moved))
    yield of_prompts.uncertainty(study.components, study.planned)
    first = runs[: len(MODELS)]
    result = compare_models.compare(first)
    yield compare_models.findings([result, compare_models.compare(first[::2])])
    yield equivalence.findings(equivalence.tests(result.pairs, 0.05, "cbbq"), "cbbq")
    yield convergence.findings(convergence.correlate(convergence.measure({"cbbq": first})))
    yield ranks_by_model(result.pairs, result.ranks, "cbbq")
    yield from (figure for _name, figure in differences(result.pairs, result.ranks, "cbbq"))
    ranked = friedman_test.compare(first, "cbbq")
    yield friedman_test.findings(ranked)
    yield friedman_test.critical_difference_diagram(ranked)
    yield friedman_test.ranks_by_block(ranked, "cbbq")
    yield [published_summary(published, first) for published in [moved.table[:0], moved.table]]


def of_sizes_and_judges(folder: Path) -> Iterator[Iterable[str] | Figure | None]:
    """Yield what the analyses with respondents of their own say and draw."""
    sized = evaluate_all("mcbe", list(model_size_trends.SIMULATED), folder, tasks=["ss"], limit=4)
    for part in (sized, sized[:2]):
        (result,) = model_size_trends.analyse(part).values()
        yield model_size_trends.findings(result)
    yield from (of_sizes.over_size(result), of_sizes.beside(result))
    options = {"mcbe": {"tasks": ["ba", "bs"], "categories": ["age"]}}
    judged = judge_agreement.judged(
        [], demo=MODELS[::2], judges=["simulated:competence=1,seed=5"], options=options
    )
    marks = judge_agreement.analyses(judged)
    compared = judge_agreement.by_category(marks)
    yield judge_agreement.findings(compared, judge_agreement.POINTS, "analyses")
    yield judge_agreement.notes(marks, marks, "", "")
    yield judge_agreement.winner_findings(judge_agreement.winners(marks))
    carried = judge_injection.carried()
    summed = judge_injection.summary(carried)
    yield judge_injection.findings(summed, judge_injection.compare(carried, "ours"))
    yield judge_injection.notes("")
    yield judge_injection.plot_kinds(summed, summed.judge[0], "mcbe")


def texts(part: Iterable[str] | Figure | None) -> list[str]:
    """Return sentences, or all that a figure shows or has as its alternative text."""
    if not isinstance(part, Figure):
        return [] if part is None else list(part)
    shown = [str(text.get_text()) for text in drawn(part).findobj(Text)]
    return [str(part.get_label()), *shown]


@pytest.mark.parametrize("group", ["answers", "sizes and judges"])
def test_no_english_sentence_is_left(group: str, runs: list[Run], own_folder: Path) -> None:
    with use_language("zh"):
        parts = of_answers(runs) if group == "answers" else of_sizes_and_judges(own_folder)
        lines = [line.replace("\n", " ") for part in parts for line in texts(part)]
    assert len(lines) > 30
    left = [line for line in lines if ENGLISH.search(re.sub(NAMES, "", line))]
    assert not left
