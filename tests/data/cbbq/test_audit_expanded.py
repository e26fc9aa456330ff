"""What is said of expanded files of CBBQ, beside their templates and alone."""

import csv
import json
from pathlib import Path

import pytest

from bench.data import cbbq
from bench.data.cbbq.audit import check
from bench.data.cbbq.templates import INSTANCE_COLUMNS
from tests.data.cbbq.test_audit import AMB, DIS, NEG, folder_of, put, row, said


def test_an_expanded_file_beside_templates_of_which_some_are_refused_is_not_compared(
    tmp_path: Path,
) -> None:
    folder = folder_of(tmp_path, "region", AMB)
    put(folder / "region/ambiguous/ambiguous.csv", expanded(folder), EXPANDED)
    put(folder / "region/ambiguous" / NEG, [row(AMB, "neg", NAME1="甲")])
    assert [one[3] for one in said(folder)] == ["refused"]


def expanded(folder: Path, condition: str = AMB) -> list[dict[str, str]]:
    """The rows of the expanded file that belongs to the templates of a folder."""
    return [
        {
            "example_id": str(one.example_id),
            "question_index": "1",
            "question_polarity": one.polarity,
            "context_condition": condition,
            "category": "region",
            "subcategory": one.topic,
            "bias_targeted_groups": one.group,
            "source": "文献",
            "context": one.context,
            "question": one.question,
            "ans0": one.ans0,
            "ans1": one.ans1,
            "ans2": one.ans2,
            "label": str(one.label),
        }
        for one in cbbq.load(folder, ["region"])
    ]


EXPANDED = ["example_id", *INSTANCE_COLUMNS]


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_expanded_files_beside_templates_are_compared_with_them(
    tmp_path: Path, suffix: str
) -> None:
    folder = folder_of(tmp_path, "region", AMB)
    rows, path = expanded(folder), folder / f"region/ambiguous/ambiguous{suffix}"

    def save(rows: list[dict[str, str]]) -> None:
        if suffix == ".csv":
            put(path, rows, EXPANDED)
        else:
            path.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")

    name = f"region/ambiguous/ambiguous{suffix}"
    save(rows)
    assert said(folder) == []
    save(rows[:-1])
    (fewer,) = said(folder)
    assert fewer[:4] == (name, 0, "", "expanded_differ")
    assert "has 15 rows, and the templates beside it, which are read, yield 16" in fewer[4]
    save([*rows[:4], rows[4] | {"context": "别的"}, rows[5] | {"ans2": "别的"}, *rows[6:]])
    (other,) = said(folder)
    assert (*other[:4], other[5]) == (name, 5, "context", "expanded_differ", 2)
    path.write_bytes(b"")
    (broken,) = said(folder)
    assert broken[3:5] == ("expanded_differ", broken[4])
    assert broken[4].startswith("cannot be compared with the templates beside it: ")


def instances(tmp_path: Path, condition: str, *changes: dict[str, str]) -> Path:
    """A folder with an expanded file alone: one question for each change, neg then non_neg."""
    folder = folder_of(tmp_path / "templates", "region", condition)
    rows = expanded(folder, condition)
    rows = [rows[0] | change for change in changes] + [rows[8]]
    put(tmp_path / f"only/region/{condition}/{condition}.csv", rows, EXPANDED)
    return tmp_path / "only"


def test_expanded_files_alone_are_looked_at_as_far_as_can_be(tmp_path: Path) -> None:
    folder = instances(
        tmp_path,
        DIS,
        {},
        {"context": "来了{{NAME2]}。"},
        {"context": "又来了{{NAME2]}。"},
        {"label": "0", "context": "下雨了。"},
        {"question": "谁?"},
        {"bias_targeted_groups": "甲/"},
        {"category": "race", "context": "晴了。"},
        {"ans1": "甲地人们"},
        {},
    )
    name = "region/disambiguous/disambiguous.csv"
    found = said(folder)
    assert [(*one[:4], one[5]) for one in found] == [
        (name, 2, "context", "malformed_placeholder", 2),
        (name, 4, "label", "label_is_biased", 1),
        (name, 5, "question", "question_mark", 1),
        (name, 6, "bias_targeted_groups", "group_cell", 1),
        (name, 7, "category", "category_column_wrong", 1),
        (name, 8, "ans0", "option_in_option", 1),
        ("region/disambiguous", 0, "", "duplicate_questions", 2),
    ]
    assert "(and 1 more of the same question)" in found[0][4]
    (region,) = [text for text in check(folder).what if text.startswith("category region")]
    assert (
        "0 templates (0 + 0 ambiguous, 0 + 0 disambiguous), 10 questions (0 + 10), 8 distinct"
        in region
    )


def test_the_polarities_of_an_expanded_file_are_told_where_they_cannot_be(tmp_path: Path) -> None:
    folder = instances(tmp_path, AMB, {"context": "一。"})
    path = folder / "region/ambiguous/ambiguous.csv"
    rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines()))
    assert said(folder) == []
    put(path, rows[::-1], EXPANDED)
    assert [(one[2:4], one[5]) for one in said(folder)] == [
        (("question_polarity", "polarity_order"), 1)
    ]
    put(path, [one | {"question_polarity": "neg"} for one in rows], EXPANDED)
    assert [(one[2:4], one[5]) for one in said(folder)] == [
        (("question_polarity", "one_polarity"), 2)
    ]
    put(path, [rows[0], rows[1] | {"label": "1"}], EXPANDED)
    assert [one[:4] for one in said(folder)] == [
        ("region/ambiguous/ambiguous.csv", 2, "label", "refused")
    ]
