"""Published numbers: what papers print, and how scores of runs are compared with them."""

from pathlib import Path

import pandas as pd
import pytest

from bench import run
from bench.analyses import published as papers
from bench.analyses.published import COLUMNS, published
from bench.benchmarks.nli_coal import scores as nli_coal
from bench.core.numbers import half_up
from bench.tasks.nli_labels import LABELS


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_every_published_number_has_its_source_and_setting_once(benchmark):
    table = published(benchmark)
    assert table.source.str.contains("20").all()
    assert (table.setting != "").all()
    assert not table.duplicated(["model", "category", "task", "metric", "setting"]).any()


def test_series_of_sizes_are_those_of_the_papers():
    qwen = published("mcbe").query("series != ''")
    series = dict(zip(qwen.billions, qwen.score, strict=True))
    assert series == {0.5: 87.69, 1.5: 80.49, 7: 77.82, 32: 77.11}
    glm = published("cbbq").query("series != '' and metric == 's_amb'")
    assert dict(zip(glm.billions, glm.score, strict=True)) == {0.335: 0.436, 10: 0.480, 130: 0.504}


def test_all_rows_of_nli_coal_s_table_3_are_there(shared):
    given = pd.read_csv(shared / "golden" / "nli_table3.csv")
    table = published("nli_coal").query("source.str.endswith('Table 3')")
    by_model = table.groupby(["category", "checkpoint"]).score.agg(lambda rows: sorted(rows))
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
    table = published("nli_coal").query("source.str.endswith('Table 3')")
    for (language, model), part in table.groupby(["category", "model"]):
        value = part.set_index(["task", "metric"]).score
        shares = [[value[name, label] for label in LABELS] for name in ("ps", "as", "ns")]
        fn, coal = nli_coal.scores(shares, (1000, 1000, 3320 if language == "zh" else 3420))
        expected = differ.get(str(model), value["all", measure])
        assert float(half_up({"fn": fn, "coal": coal}[measure], 3)) == pytest.approx(expected), (
            model
        )
        cautioned = part.set_index("metric").caution[measure] != ""
        assert cautioned == (model in differ)


@pytest.mark.parametrize(
    ("name", "published_model"),
    [
        ("hfl/chinese-roberta-wwm-ext-large", "HFL RoBERTa large (wwm)"),
        ("hfl/chinese-roberta-wwm-ext", "HFL RoBERTa base (wwm)"),
        ("models/cl-tohoku/bert-base-japanese-v2", "Tohoku BERT base"),
    ],
)
def test_a_run_is_compared_with_the_model_whose_name_it_shares_most_of(
    tmp_path, name, published_model
):
    own = run.evaluate(
        "nli_coal", "simulated:", name=name, categories=["zh"], limit=2, out=tmp_path
    )
    scores = own.scores().assign(category="ja" if "japanese" in name else "zh", model=name)
    compared = papers.compare_with_published([own], scores)
    assert set(compared.published_model) == {published_model}


def test_a_run_is_compared_with_the_same_model_alone(tmp_path):
    printed = Path(__file__).with_name("printed.csv")
    asked = [
        run.evaluate("cbbq", "simulated:answer=A", name=name, limit=2, out=tmp_path / name)
        for name in ("Habit-1 (chat)", "my habit-1")
    ]
    scores = run.table(asked)
    (found,) = papers.compare_with_published(asked, scores, printed).itertuples()
    assert (found.model, found.published_model) == ("Habit-1 (chat)", "Habit")
    assert found.difference == pytest.approx(found.score - 0.25)
    assert "samples" in found.own_setting
    assert found.published_setting == "all items"
    assert papers.compare_with_published(asked[1:], scores[scores.model == "my habit-1"]).empty


@pytest.mark.parametrize(
    ("column", "value"),
    [("score", "much"), ("score", ""), ("billions", "big"), ("benchmark", "bbq")],
)
def test_a_bad_table_is_refused_with_its_place(tmp_path, refusal, column, value):
    plain = dict.fromkeys(COLUMNS, "x") | {"benchmark": "cbbq", "score": "0.1", "billions": ""}
    path = tmp_path / "own.csv"
    pd.DataFrame([plain | {column: value}]).to_csv(path, index=False)
    assert f"row 1, column `{column}`" in refusal(published, "cbbq", path)
