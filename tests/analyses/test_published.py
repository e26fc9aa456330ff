"""Numbers that papers print, which notebooks show beside the scores of runs."""

from importlib.resources import files

import pandas as pd
import pytest

from bench.benchmarks.nli_coal import scores as nli_coal
from bench.core.numbers import half_up
from bench.tasks.nli_labels import LABELS

PRINTED = pd.read_csv(files("bench.analyses") / "published.csv")
TABLE_3 = PRINTED[PRINTED.source.str.endswith("Table 3")]


def test_every_published_number_has_its_source_and_setting_once():
    assert PRINTED.source.str.contains("20").all()
    assert PRINTED.setting.notna().all()
    keys = ["benchmark", "model", "category", "task", "metric", "setting"]
    assert not PRINTED.duplicated(keys).any()


def test_series_of_sizes_are_those_of_the_papers():
    series_of = PRINTED.dropna(subset="series").groupby(["benchmark", "metric"])
    qwen = series_of.get_group(("mcbe", "score"))
    series = dict(zip(qwen.billions, qwen.score, strict=True))
    assert series == {0.5: 87.69, 1.5: 80.49, 7: 77.82, 32: 77.11}
    glm = series_of.get_group(("cbbq", "s_amb"))
    assert dict(zip(glm.billions, glm.score, strict=True)) == {0.335: 0.436, 10: 0.480, 130: 0.504}


def test_all_rows_of_nli_coal_s_table_3_are_there(shared):
    given = pd.read_csv(shared / "golden" / "nli_table3.csv")
    by_model = TABLE_3.groupby(["category", "checkpoint"]).score.agg(lambda rows: sorted(rows))
    assert sorted(by_model) == sorted(map(sorted, given.iloc[:, 2:13].to_numpy().tolist()))


@pytest.mark.parametrize(
    ("measure", "differ"),
    [
        ("coal", {}),
        # A misprint, and two shares that were rounded before.
        (
            "fn",
            {"Laboro DistilBERT": 0.597, "Waseda RoBERTa base": 0.55, "Bandai DistilBERT": 0.369},
        ),
    ],
)
def test_table_3_follows_from_its_distributions_of_labels(measure, differ):
    for (language, model), part in TABLE_3.groupby(["category", "model"]):
        value = part.set_index(["task", "metric"]).score
        shares = [[value[name, label] for label in LABELS] for name in ("ps", "as", "ns")]
        fn, coal = nli_coal.scores(shares, (1000, 1000, 3320 if language == "zh" else 3420))
        expected = differ.get(str(model), value["all", measure])
        assert float(half_up({"fn": fn, "coal": coal}[measure], 3)) == pytest.approx(expected), (
            model
        )
        cautioned = part.set_index("metric").caution.notna()[measure]
        assert cautioned == (model in differ)
