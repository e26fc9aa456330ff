"""Published numbers: what papers print, and how scores of runs are compared with them."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench import run
from bench.analyses import published as papers
from bench.analyses.published import COLUMNS, published
from bench.metrics.table import ALL


def test_numbers_are_those_of_the_papers(shared: Path) -> None:
    for benchmark in ("mcbe", "cbbq", "nli_coal"):
        table = published(benchmark)
        assert table.source.str.contains("20").all()
        assert (table.setting != "").all()
        assert not table.duplicated(["model", "category", "task", "metric", "setting"]).any()
    qwen = published("mcbe").query("series != ''")
    series = dict(zip(qwen.billions, qwen.score, strict=True))
    assert series == {0.5: 87.69, 1.5: 80.49, 7: 77.82, 32: 77.11}
    cbbq = published("cbbq")
    glm = cbbq[cbbq.series != ""].pivot_table(index="billions", columns="metric", values="score")
    assert glm.s_amb.to_dict() == {0.335: 0.436, 10: 0.480, 130: 0.504}
    sizes = cbbq[cbbq.task == "data"].pivot_table(
        index="category", columns="metric", values="score"
    )
    parts, whole = sizes.drop(index=ALL).sum(), sizes.loc[ALL]
    for name, n in (("templates", 3039), ("questions", 106588)):
        assert parts[name] == whole[name] == n
    given = pd.read_csv(shared / "golden" / "nli_table3_en.csv")
    table = published("nli_coal").query("category == 'en' and source.str.endswith('Table 3')")
    assert sorted(table.score[table.metric == "coal"]) == sorted(given.coal_printed)
    assert len(table) == 11 * len(given)
    misprint = published("nli_coal").query("category == 'ja' and source.str.endswith('Table 3')")
    assert "0.597" in misprint.caution.item()


def test_a_run_is_compared_with_the_same_model_alone(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    row = "cbbq,,{},{},,all,ambiguous,s_amb,0.25,all items,a paper of 2026,"
    models = [("Habit", "lab/habit-1"), ("Habit large", "lab/habit-10"), ("Other", "")]
    lines = [",".join(COLUMNS), *(row.format(*model) for model in models)]
    own.write_text("\n".join(lines), "utf-8")
    asked = [
        run.evaluate("cbbq", "simulated:answer=A", name=name, limit=2, out=tmp_path / name)
        for name in ("Habit-1 (chat)", "my habit-1")
    ]
    scores = run.table(asked)
    (found,) = papers.compare_with_published(asked, scores, own).itertuples()
    assert (found.model, found.published_model) == ("Habit-1 (chat)", "Habit")
    assert found.difference == pytest.approx(found.score - 0.25)
    assert "samples" in found.own_setting
    assert found.published_setting == "all items"
    assert papers.compare_with_published(asked[1:], scores[scores.model == "my habit-1"]).empty
    counts = papers.compare_data_sizes(asked[0].items).set_index("category")
    assert counts.loc["gender", ["published_templates", "questions"]].tolist() == [464, 4]


def test_a_bad_table_is_refused_with_its_place(tmp_path: Path, refusal: Any) -> None:
    path = tmp_path / "own.csv"
    plain = dict.fromkeys(COLUMNS, "x") | {"benchmark": "cbbq", "score": "0.1", "billions": ""}
    for column, value in (("score", "much"), ("score", ""), ("billions", "7B")):
        pd.DataFrame([plain | {column: value}]).to_csv(path, index=False)
        assert f"row 1, column `{column}`: '{value}'" in refusal(published, "cbbq", path)
    pd.DataFrame([plain | {"benchmark": "bbq"}]).to_csv(path, index=False)
    assert "row 1, column `benchmark`" in refusal(published, "cbbq", path)
    path.write_text("model,score\na,1\n", "utf-8")
    assert "header" in refusal(published, "cbbq", path)
