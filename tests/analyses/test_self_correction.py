"""Self-correction: paired differences between prompt settings, what becomes of the answers, and what may be concluded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench import run
from bench.analyses import prompting
from bench.metrics import self_correction as sc
from bench.metrics.self_correction import AMBIGUOUS, DISAMBIGUOUS, KINDS, SUMS
from bench.metrics.self_correction_findings import (
    CORRECTED,
    LESS_READABLE,
    LESS_RIGHT,
    MORE_BIAS,
    NOTHING,
    SAME,
    UNDEFINED,
    findings,
)
from bench.metrics.table import ALL
from bench.run.results import Run

Refusal = Callable[..., str]
RIGHT = {AMBIGUOUS: "unknown", DISAMBIGUOUS: "other"}


def answers(given: dict[str, list[str]], category: str = "age") -> pd.DataFrame:
    """Answers by task, a template each, by what kind they are of: their first letters are enough."""
    rows = []
    for task, said in given.items():
        for k, letter in enumerate(said):
            kind = next(name for name in KINDS if name[:3] == letter[:3])
            row = dict.fromkeys(SUMS, 0.0) | {"n": 1.0, kind: 1.0}
            row |= {"valid": float(kind != "unreadable")}
            row |= {"decided": float(kind in KINDS[:2]), "correct": float(kind == RIGHT[task])}
            row |= {
                "task": task,
                "item_id": f"{category}:{task}:{k}",
                "request": "answer",
                "repeat": 0,
            }
            rows.append(
                {**row, "category": category, "part": f"{category}|{task}", "cluster": f"t{k}"}
            )
    return pd.DataFrame(rows)


def many(ambiguous: dict[str, int], disambiguous: dict[str, int]) -> pd.DataFrame:
    said = {AMBIGUOUS: ambiguous, DISAMBIGUOUS: disambiguous}
    return answers(
        {task: [kind for kind, n in of.items() for _ in range(n)] for task, of in said.items()}
    )


def verdict(before: pd.DataFrame, after: pd.DataFrame, metric: str = "s_amb") -> tuple[str, str]:
    found = findings(sc.compare({"m": {"Q": before, "Q+IF": after}})).set_index("metric")
    return str(found.verdict[metric]), str(found.sentence[metric]).replace("\u00a0", " ")


def row(table: pd.DataFrame, task: str, metric: str, category: str = ALL) -> pd.Series:
    return table[
        (table.task == task) & (table.metric == metric) & (table.category == category)
    ].iloc[0]


def test_differences_are_those_of_the_shares_and_p_is_of_the_paired_t_test() -> None:
    before = answers(
        {AMBIGUOUS: ["ste", "ste", "ste", "unk", "oth"], DISAMBIGUOUS: ["ste", "oth", "unk"]}
    )
    after = answers(
        {AMBIGUOUS: ["unk", "unk", "ste", "unk", "unr"], DISAMBIGUOUS: ["oth", "oth", "oth"]}
    )
    table = sc.compare({"m": {"Q": before, "Q+IF": after}})
    amb = row(table, AMBIGUOUS, "s_amb")
    assert (amb.before, amb.after, amb.difference) == pytest.approx((3 / 5, 1 / 5, -2 / 5))
    # Of five templates, as large as each other, two change by one answer each. The standard error is by resampling.
    assert amb.p == pytest.approx(stats.ttest_1samp([1, 1, 0, 0, 0], 0).pvalue, abs=0.02)
    assert (amb.n, amb.units) == (5, 5)
    dis = row(
        table, DISAMBIGUOUS, "s_disamb"
    )  # of two answers that decide, one follows the stereotype; of three none
    assert (dis.before, dis.after) == pytest.approx((1 / 2, 0))
    accuracy = row(
        table, ALL, "accuracy"
    )  # 1/5 and 1/3, then 3/5 and 3/3, each context counts alike
    assert (accuracy.before, accuracy.after) == pytest.approx(
        ((1 / 5 + 1 / 3) / 2, (3 / 5 + 1) / 2)
    )
    assert row(table, AMBIGUOUS, "unreadable").difference == pytest.approx(1 / 5)
    assert row(table, DISAMBIGUOUS, "unknown").difference == pytest.approx(-1 / 3)


def test_only_questions_asked_under_both_count_and_categories_alike() -> None:
    small = answers({AMBIGUOUS: ["ste", "ste"], DISAMBIGUOUS: ["oth", "oth"]}, "age")
    large = answers({AMBIGUOUS: ["unk"] * 6, DISAMBIGUOUS: ["oth"] * 6}, "race")
    before, after = pd.concat([small, large]), pd.concat([small.iloc[1:], large])
    table = sc.compare({"m": {"Q": before, "Q+IF": after}})
    assert row(table, AMBIGUOUS, "s_amb", "age").n == 1
    assert row(table, AMBIGUOUS, "s_amb").n == 7
    assert row(table, AMBIGUOUS, "s_amb").before == pytest.approx(1 / 2)  # 1 and 0, not 1 of 7


def test_a_category_without_an_answer_that_decides_is_left_out_of_both() -> None:
    age = answers({AMBIGUOUS: ["unk"] * 4, DISAMBIGUOUS: ["ste", "ste", "oth", "oth"]}, "age")
    race = answers({AMBIGUOUS: ["unk"] * 4, DISAMBIGUOUS: ["ste"] * 4}, "race")
    mute = answers({AMBIGUOUS: ["unk"] * 4, DISAMBIGUOUS: ["unk"] * 4}, "race")
    table = sc.compare({"m": {"Q": pd.concat([age, race]), "Q+IF": pd.concat([age, mute])}})
    dis = row(table, DISAMBIGUOUS, "s_disamb")
    assert (dis.before, dis.after) == pytest.approx((1 / 2, 1 / 2))
    assert dis.note.startswith("without race")
    assert np.isnan(row(table, DISAMBIGUOUS, "s_disamb", "race").difference)
    assert verdict(race, mute, "s_disamb")[0] == UNDEFINED


def test_p_is_adjusted_for_models_and_settings() -> None:
    before = many({"ste": 20, "unk": 20}, {"oth": 20})
    after = many({"ste": 10, "unk": 30}, {"oth": 20})
    table = sc.compare({name: {"Q": before, "Q+IF": after, "Q+IF+CoT": before} for name in "ab"})
    rows = table[(table.category == ALL) & (table.metric == "s_amb")]
    assert sorted(rows.p_holm) == pytest.approx([min(1, 4 * min(rows.p))] * 2 + [1, 1])


def test_what_may_be_concluded() -> None:
    before = many({"ste": 30, "unk": 10}, {"oth": 30, "ste": 10})
    said, told = verdict(before, many({"ste": 5, "unk": 35}, {"oth": 30, "ste": 10}))
    assert said == CORRECTED
    assert told.startswith(
        "m, Q+IF against Q: S_amb falls by 0.62 (0.75 to 0.12; 95 % interval -0."
    )
    assert told.endswith("this is self-correction on these questions.")
    assert "unknown where ambiguous 25% to 88%" in told
    assert (
        verdict(before, many({"unr": 25, "ste": 5, "unk": 10}, {"oth": 30, "ste": 10}))[0]
        == LESS_READABLE
    )
    assert verdict(before, many({"ste": 5, "unk": 35}, {"unk": 30, "ste": 10}))[0] == LESS_RIGHT
    assert verdict(many({"ste": 5, "unk": 35}, {"oth": 40}), before)[0] == MORE_BIAS
    said, told = verdict(before, many({"ste": 29, "unk": 11}, {"oth": 30, "ste": 10}))
    assert said == NOTHING
    assert "no difference in S_amb could be shown" in told
    assert "would have shown one of 0.0" in told
    assert verdict(before, before)[0] == SAME


def test_kinds_add_to_one() -> None:
    before = many({"ste": 1, "unk": 2, "unr": 1}, {"oth": 3, "ste": 1})
    table = sc.kinds({"m": {"Q": before, "Q+IF": before}})
    assert table[list(KINDS)].sum(axis=1).to_numpy() == pytest.approx(np.ones(4))
    assert table.loc[0, list(KINDS)].to_list() == pytest.approx([1 / 4, 0, 1 / 2, 1 / 4])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for setting in ("Q", "Q+IF"):
        for model in ("simulated:bias=0.7", "simulated:bias=0.7,refuse=0.6"):
            given = {"limit": 12, "settings": {"prompting": setting}}
            run.evaluate("cbbq", model, out=folder / setting / run.path_slug(model), **given)  # type: ignore[arg-type]
    return folder


@pytest.mark.slow
def test_measures_are_those_of_the_score_table(runs: Path) -> None:
    asked = prompting.asked([runs / "*" / "*"])
    by_model = prompting.by_model(asked)
    assert {name: list(settings) for name, settings in by_model.items()} == {
        "simulated:bias=0.7": ["Q", "Q+IF"],
        "simulated:bias=0.7,refuse=0.6": ["Q", "Q+IF"],
    }
    compared = sc.compare(prompting.answers(by_model))
    for name, settings in by_model.items():
        scores = settings["Q"].scores().query("category == 'all' and preset == 'robust'")
        scores = scores.set_index(["task", "metric"]).score
        some = compared[compared.model == name]
        for measure in (sc.S_AMB, sc.S_DISAMB, sc.ACCURACY):
            assert row(some, measure.task, measure.metric).before == pytest.approx(
                scores[measure.task, measure.metric]
            )
    assert set(findings(compared).verdict) == {SAME}  # a simulated respondent reads no prompt
    assert set(prompting.scores(by_model).prompting) == {"Q", "Q+IF"}


def test_who_begins_to_refuse_corrects_nothing(runs: Path) -> None:
    biased, refusing = (
        Run.open(runs / "Q" / run.path_slug(f"simulated:bias=0.7{more}"))
        for more in ("", ",refuse=0.6")
    )
    compared = sc.compare(prompting.answers({"m": {"Q": biased, "Q+IF": refusing}}))
    found = findings(compared).set_index("metric").verdict
    assert found["s_amb"] == LESS_READABLE
    assert found["s_disamb"] == NOTHING


def test_a_wording_that_asks_for_fairness_is_a_setting(runs: Path) -> None:
    one = Run.open(runs / "Q" / "simulated_bias=0.7")
    assert prompting.setting_of(one) == "Q"
    fair = Run(one.folder, one.about | {"wording": {"unbiased_instruction": True}})
    assert prompting.setting_of(fair) == "Q+IF"


def test_runs_that_cannot_be_compared_are_refused(runs: Path, refusal: Refusal) -> None:
    q, q_if = (
        prompting.asked([runs / setting / "simulated_bias=0.7"]) for setting in ("Q", "Q+IF")
    )
    assert "was asked under Q in" in refusal(prompting.by_model, q + q)
    assert "no model was asked under Q and another" in refusal(prompting.by_model, q_if)
    other = Run(q_if[0].folder, q_if[0].about | {"data": q_if[0].about["data"] | {"sha256": "0"}})
    assert "different data" in refusal(prompting.by_model, [*q, other])


def test_without_runs_a_demonstration_is_asked_under_each_setting(own_folder: Path) -> None:
    found = prompting.asked([], ["Q", "Q+IF"], demo=["simulated:bias=0.7"], limit=1)
    assert [prompting.setting_of(one) for one in found] == ["Q", "Q+IF"]
