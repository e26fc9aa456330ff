"""Self-correction: paired differences between prompt settings, and what may be concluded."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bench.analyses import self_correction as sc
from bench.analyses.self_correction import AMBIGUOUS, DISAMBIGUOUS, KINDS, SUMS
from bench.metrics.table import ALL
from bench.run import Run
from tests.helpers.drawing import drawn

RIGHT = {AMBIGUOUS: "unknown", DISAMBIGUOUS: "other"}


def answers(ambiguous: str, disambiguous: str, category: str = "age") -> pd.DataFrame:
    """Make answers of one template each: their kinds by first letter, "x" for unreadable."""
    rows = []
    kinds = dict(zip("soux", KINDS, strict=True))
    for task, letters in ((AMBIGUOUS, ambiguous), (DISAMBIGUOUS, disambiguous)):
        for k, letter in enumerate(letters):
            kind = kinds[letter]
            row = dict.fromkeys(SUMS, 0.0) | {"n": 1.0, kind: 1.0}
            row["valid"], row["decided"] = float(letter != "x"), float(letter in "so")
            row["correct"] = float(kind == RIGHT[task])
            keys = {"task": task, "item_id": f"{category}:{task}:{k}", "request": "answer"}
            group = {"category": category, "part": f"{category}|{task}", "cluster": f"t{k}"}
            rows.append({**row, **keys, "repeat": 0, **group})
    return pd.DataFrame(rows)


def compare(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    return sc.compare({"m": {"Q": before, "Q+IF": after}})


def row(table: pd.DataFrame, task: str, metric: str, category: str = ALL) -> pd.Series:
    chosen = (table.task == task) & (table.metric == metric) & (table.category == category)
    return table[chosen].iloc[0]


def test_differences_are_those_of_the_shares_and_p_is_of_the_paired_t_test() -> None:
    table = compare(answers("sssuo", "sou"), answers("uusux", "ooo"))
    amb = row(table, AMBIGUOUS, "s_amb")
    assert (amb.before, amb.after, amb.difference) == pytest.approx((3 / 5, 1 / 5, -2 / 5))
    # Of five templates, as large as each other, two change by one answer each. The standard error
    # is by resampling.
    assert amb.p == pytest.approx(stats.ttest_1samp([1, 1, 0, 0, 0], 0).pvalue, abs=0.02)
    # Of two answers that decide, one follows the stereotype.
    assert row(table, DISAMBIGUOUS, "s_disamb").before == pytest.approx(1 / 2)
    # 1/5 and 1/3: each context counts alike.
    assert row(table, ALL, "accuracy").before == pytest.approx((1 / 5 + 1 / 3) / 2)


def test_p_is_adjusted_for_both_scores_of_bias() -> None:
    table = compare(answers("sssssss", "sssoooo"), answers("uuuusss", "oosoooo"))
    rows = table[(table.category == ALL) & table.metric.isin(["s_amb", "s_disamb"])]
    assert rows.p_holm.to_numpy() == pytest.approx(multipletests(rows.p, method="holm")[1])


def test_only_questions_asked_under_both_count_and_categories_weigh_alike() -> None:
    small, large = answers("ss", "oo"), answers("u" * 6, "o" * 6, "race")
    table = compare(pd.concat([small.iloc[1:], large]), pd.concat([small, large]))
    assert row(table, AMBIGUOUS, "s_amb", "age").n == 1
    assert row(table, AMBIGUOUS, "s_amb").n == 7
    assert row(table, AMBIGUOUS, "s_amb").before == pytest.approx(1 / 2)  # 1 and 0, not 1 of 7
    # A category without an answer that decides is left out of both.
    age, race = answers("uuuu", "ssoo"), answers("uuuu", "ssss", "race")
    mute = answers("uuuu", "uuuu", "race")
    table = compare(pd.concat([age, race]), pd.concat([age, mute]))
    dis = row(table, DISAMBIGUOUS, "s_disamb")
    assert (dis.before, dis.after) == pytest.approx((1 / 2, 1 / 2))
    assert dis.note.startswith("without race")


BIASED = answers("s" * 30 + "u" * 10, "o" * 30 + "s" * 10)
FAIR = answers("s" * 5 + "u" * 35, "o" * 30 + "s" * 10)


def test_a_lower_score_is_self_correction_only_if_the_answers_stay() -> None:
    facts = "o" * 30 + "s" * 10
    for before, after, verdict in (
        (BIASED, FAIR, sc.CORRECTED),
        (BIASED, answers("x" * 25 + "s" * 5 + "u" * 10, facts), sc.LESS_READABLE),
        (BIASED, answers("s" * 5 + "u" * 35, "u" * 30 + "s" * 10), sc.LESS_RIGHT),
        (FAIR, BIASED, sc.MORE_BIAS),
        (BIASED, answers("s" * 29 + "u" * 11, facts), sc.NOTHING),
        (BIASED, BIASED, sc.SAME),
    ):
        assert sc.verdicts(compare(before, after)).set_index("metric").verdict["s_amb"] == verdict


def test_runs_are_paired_by_model_and_setting(own_folder: Path, refusal: Any) -> None:
    biased = "simulated:bias=0.7"
    runs = sc.open_runs([], ["Q", "Q+IF"], demo=[biased], limit=2)
    by_model = sc.by_model(runs)
    assert {name: list(settings) for name, settings in by_model.items()} == {biased: ["Q", "Q+IF"]}
    compared = sc.compare(sc.answers(by_model))
    scores = by_model[biased]["Q"].scores().query("category == 'all' and preset == 'robust'")
    scores = scores.set_index(["task", "metric"]).score
    for measure in sc.BY_CATEGORY:
        before = row(compared[compared.model == biased], measure.task, measure.metric).before
        assert before == pytest.approx(scores[measure.task, measure.metric])
    # A simulated respondent reads no prompt.
    assert set(sc.verdicts(compared).verdict) == {sc.SAME}
    drawn(sc.plot_scores(by_model))
    # A prompt set that asks for fairness is a setting.
    q, q_if = by_model[biased].values()
    fair = Run(q.folder, q.about | {"wording": {"unbiased_instruction": True}})
    assert sc.setting_of(fair) == "Q+IF"
    other = Run(q_if.folder, q_if.about | {"data": q_if.about["data"] | {"sha256": "0"}})
    assert "was asked under Q in both" in refusal(sc.by_model, [q, q])
    assert "no model was asked under Q and another" in refusal(sc.by_model, [q_if])
    assert "different data" in refusal(sc.by_model, [q, other])


def test_pictures_show_the_tables() -> None:
    models = {name: {"Q": BIASED, "Q+IF": FAIR, "Q+IF+CoT": BIASED} for name in "ab"}
    compared, shares = sc.compare(models), sc.answer_shares(models)
    rows = compared[(compared.category == ALL) & (compared.metric == "s_amb")]
    assert sorted(rows.p_holm) == pytest.approx([8 * min(rows.p)] * 2 + [1, 1]), "eight comparisons"
    assert shares.loc[0, list(KINDS)].to_list() == pytest.approx([3 / 4, 0, 1 / 4, 0])
    bars = drawn(sc.plot_answers(shares)).axes[0].patches
    assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(1)
    drawn(sc.plot_differences(compared))
