"""How CBBQ's settings change what is read, on a few templates and on the release."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench import data
from bench.data import cbbq
from bench.data.cbbq.templates import INSTANCE_COLUMNS
from tests.helpers.recorded import FACTS, TEMPLATE, templates

A, D = "ambiguous", "disambiguous"
BROKEN = FACTS.replace("{{NAME1}}", "{{NAME1]}", 1)


def load(folder: Path, *categories: str, **settings: str) -> list[cbbq.Question]:
    return data.load(data.find("cbbq", folder), categories, **settings)


def touched(folder: Path, **settings: str) -> dict[tuple[str, bool], int]:
    """Count what the settings affect, by its first words, and whether it is left out."""
    found: Counter[tuple[str, bool]] = Counter()
    for one in cbbq.touched(folder, None, **settings):
        (word,) = (word for word in WORDS if word in one.what)
        found[word, one.left_out] += one.rows
    return dict(found)


POLARITY_FILE, POLARITY_COLUMN = "(polarity=file)", "(polarity=column)"
BIASED, SWAPPED, TWICE, MISSPELT = (
    "the stereotyped answer for its label",
    "facts that are swapped in part",
    "occurs before",
    "a placeholder that is misspelt",
)
WORDS = (POLARITY_FILE, POLARITY_COLUMN, BIASED, SWAPPED, TWICE, MISSPELT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write six templates: good, biased label, broken swap, the first again; good, wrong column."""
    return templates(
        tmp_path / "d",
        {},
        {"label": "0", "question": "谁没带伞？"},
        {"context": BROKEN, "question": "谁没有伞？"},
        {},
        non_neg=[{}, {"question_polarity": "neg", "question": "谁有伞？"}],
        condition=D,
    )


EVERY = range(1, 25)
FILE, COLUMN = (POLARITY_FILE, False), (POLARITY_COLUMN, False)
LABEL, HALF, TOKEN = (BIASED, False), (SWAPPED, False), (MISSPELT, False)
LABEL_OUT, HALF_OUT, TWICE_OUT = (BIASED, True), (SWAPPED, True), (TWICE, True)
# Settings, numbers of the questions that remain, and what is affected or left out.
CASES: list[tuple[str, list[int], dict[tuple[str, bool], int]]] = [
    ("", [*EVERY], {FILE: 4, LABEL: 4, HALF: 2, TOKEN: 4}),
    ("polarity=column", [*EVERY], {COLUMN: 4, LABEL: 4, HALF: 2, TOKEN: 4}),
    # Of the third template, 9 to 12, the second of each pair is the swapped one.
    (
        "labels=audited",
        [1, 2, 3, 4, 9, 11, *range(13, 25)],
        {FILE: 4, LABEL_OUT: 4, HALF_OUT: 2, TOKEN: 2},
    ),
    (
        "labels=audited expansion=repair",
        [1, 2, 3, 4, *range(9, 25)],
        {FILE: 4, LABEL_OUT: 4},
    ),
    ("expansion=repair", [*EVERY], {FILE: 4, LABEL: 4}),
    (
        "dedupe=yes",
        [*range(1, 13), *range(17, 25)],
        {FILE: 4, LABEL: 4, HALF: 2, TOKEN: 4, TWICE_OUT: 4},
    ),
    (
        "dedupe=yes labels=audited",
        [1, 2, 3, 4, 9, 11, *range(17, 25)],
        {FILE: 4, LABEL_OUT: 4, HALF_OUT: 2, TOKEN: 2, TWICE_OUT: 4},
    ),
]


@pytest.mark.parametrize(("given", "numbers", "affected"), CASES)
def test_what_the_settings_leave_and_affect_by_hand(
    folder: Path, given: str, numbers: list[int], affected: dict[tuple[str, bool], int]
) -> None:
    settings = dict(pair.split("=") for pair in given.split())
    questions = load(folder, **settings)
    assert [one.example_id for one in questions] == numbers
    assert touched(folder, **settings) == affected
    for one in questions:
        polarity = one.template.partition(":")[0]
        wrong_column = one.template == "non_neg:2"
        assert one.polarity_column == ("neg" if wrong_column else polarity)
        by_column = wrong_column and settings.get("polarity") == "column"
        assert one.polarity == ("neg" if by_column else polarity)
        against = one.template in ("neg:2", "non_neg:1", "non_neg:2")
        assert one.label == one.label_column == (0 if against else 1)
        repaired = settings.get("expansion") == "repair"
        assert repaired or ("{" in one.context) == (one.template == "neg:3")


def test_a_category_that_is_not_read_touches_nothing(folder: Path) -> None:
    templates(folder, category="race")
    assert load(folder, "race") == [one for one in load(folder) if one.category == "race"]
    assert cbbq.touched(folder, ["race"]) == []
    assert {one.category for one in cbbq.touched(folder, None)} == {"region"}


def test_a_label_that_can_be_told_from_the_facts_is_corrected(tmp_path: Path) -> None:
    cells = {"ans0": "学历低的人", "ans1": "学历高的人", "NAME1": "[硕士]", "NAME2": "[中专生]"}
    category = "educational_qualification"
    folder = templates(
        tmp_path,
        {**cells, "label": "0"},
        non_neg=[{**cells, "label": "1"}],
        condition=D,
        category=category,
    )
    assert [one.label for one in load(folder)] == [0, 0, 1, 1]
    found = load(folder, labels="audited")
    assert [(one.example_id, one.label, one.label_column, one.swapped) for one in found] == [
        (1, 1, 0, False),
        (3, 0, 1, False),
    ]
    whats = {
        (one.rows, one.left_out, one.what.partition(",")[0])
        for one in cbbq.touched(folder, None, labels="audited")
    }
    assert whats == {
        (2, False, "label corrected"),
        (2, True, "each has facts that support the stereotype"),
    }


def test_one_prompt_with_two_labels_is_left_out_under_audited_labels(tmp_path: Path) -> None:
    folder = templates(
        tmp_path, {}, {"question": "谁迟到？"}, non_neg=[{"question": "谁迟到？"}], condition=D
    )
    assert len(load(folder)) == 12
    assert {one.question for one in load(folder, labels="audited")} == {"谁忘了伞？"}
    (one,) = cbbq.touched(folder, None, labels="audited")
    assert (one.rows, one.left_out) == (8, True)
    assert "with both labels" in one.what
    # Where ambiguous, the one label is unknown.
    folder = templates(tmp_path / "amb", {}, non_neg=[{"question": "谁忘了伞？"}])
    assert len(load(folder, labels="audited")) == 8


def test_dedupe_keeps_what_stands_there_with_another_label(tmp_path: Path) -> None:
    folder = templates(
        tmp_path, {"question": "谁迟到？"}, non_neg=[{"question": "谁迟到？"}], condition=D
    )
    assert len(load(folder, dedupe="yes")) == 8
    folder = templates(
        tmp_path / "amb", {"NAME1": "[甲, 甲]"}, non_neg=[{"question": "谁忘了伞？"}]
    )
    # 甲 twice, and in the other file as well; 乙 alone is new there.
    assert [one.example_id for one in load(folder, dedupe="yes")] == [1, 2, 7, 8]


# Section 5.4 of the specification. Ethnicity's 18, which are in both polarities, follow from its
# section 1.6: 1,942 of 1,960 texts are distinct.
DUPLICATES = {
    ("age", A): 360,
    ("age", D): 268,
    ("disability", A): 32,
    ("educational_qualification", A): 34,
    ("educational_qualification", D): 16,
    ("ethnicity", A): 18,
    ("gender", A): 32,
    ("gender", D): 8,
    ("nationality", A): 3066,
    ("nationality", D): 342,
    ("physical_appearance", A): 256,
    ("sexual_orientation", A): 16,
}
# Section 5.3: questions that show a misspelt placeholder.
UNFILLED = {
    ("disability", A): 128,
    ("disease", D): 8,
    ("educational_qualification", A): 40,
    ("educational_qualification", D): 40,
    ("gender", A): 76,
    ("gender", D): 68,
    ("household_registration", A): 1000,
    ("household_registration", D): 1000,
    ("nationality", A): 756,
    ("nationality", D): 756,
    ("physical_appearance", A): 512,
    ("physical_appearance", D): 592,
    ("sexual_orientation", A): 48,
    ("sexual_orientation", D): 48,
}


@pytest.mark.slow
def test_the_settings_touch_as_many_released_questions_as_the_specification_counts(
    shared: Path,
) -> None:
    folder = shared / "data/cbbq"
    kept = Counter((one.category, one.condition) for one in load(folder, dedupe="yes"))
    before = Counter((one.category, one.condition) for one in load(folder))
    assert {
        key: before[key] - kept[key] for key in before if before[key] != kept[key]
    } == DUPLICATES
    counts: dict[str, dict[tuple[str, str], int]] = {}
    for one in cbbq.touched(folder, None, dedupe="yes"):
        for word in (TWICE, MISSPELT, POLARITY_FILE):
            if word in one.what:
                counts.setdefault(word, {})[one.category, one.task] = one.rows
    assert counts == {
        TWICE: DUPLICATES,
        MISSPELT: UNFILLED,
        POLARITY_FILE: {("educational_qualification", A): 696},
    }


def test_the_polarity_column_is_the_released_one_where_it_is_asked_for(shared: Path) -> None:
    found = load(shared / "data/cbbq", "educational_qualification", polarity="column")
    counts = Counter((one.condition, one.polarity) for one in found)
    assert counts == {(A, "neg"): 1392, (D, "neg"): 696, (D, "non_neg"): 696}


@pytest.mark.parametrize(
    "column", [name for name in TEMPLATE if name not in ("NAME1", "NAME2", "question")]
)
def test_an_empty_cell_of_any_column_is_refused(tmp_path: Path, refusal, column: str) -> None:
    folder = templates(tmp_path, {}, {column: " \n"})
    path = folder / "region/ambiguous/templates_generate_neg.csv"
    assert refusal(load, folder) == f"{path}, row 2, column `{column}`: is empty"


def instances(root: Path, form: str, condition: str = A, **change: Any) -> Path:
    """An expanded file of two rows, the second with `change`."""
    plain = {name: TEMPLATE[name] for name in INSTANCE_COLUMNS} | {
        "context": "甲和丙来了。",
        "ans0": "甲",
        "ans1": "丙",
    }
    rows = [
        {
            "example_id": str(k),
            **plain,
            "context_condition": condition,
            "label": "2" if condition == A else "1",
        }
        for k in (1, 2)
    ]
    rows[1] |= change
    path = root / "region" / condition / f"{condition}.{form}"
    path.parent.mkdir(parents=True)
    if form == "json":
        path.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
        return path
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize(
    ("condition", "change", "said"),
    [
        (A, {"label": "0"}, "'0' is unknown; allowed: 2"),
        (D, {"label": "2"}, "'2' is unknown; allowed: 0, 1"),
        (A, {"ans1": ""}, "column `ans1`: is empty"),
        (A, {"question_polarity": "nonneg"}, "'nonneg' is unknown; allowed: neg, non_neg"),
        (D, {"context_condition": A}, "'ambiguous' in a folder 'disambiguous'"),
        (A, {"category": "regoin"}, "'regoin' is unknown; allowed: SES"),
    ],
)
def test_a_wrong_cell_of_an_expanded_file_is_told_too(
    tmp_path: Path, refusal, form: str, condition: str, change: dict[str, str], said: str
) -> None:
    path = instances(tmp_path, form, condition, **change)
    message = refusal(load, tmp_path)
    assert message.startswith(f"{path}, row 2")
    assert said in message


def test_json_may_have_its_label_as_a_number_but_no_other_kind_of_value(
    tmp_path: Path, refusal
) -> None:
    instances(tmp_path / "good", "json", label=2)
    assert [one.label for one in load(tmp_path / "good")] == [2, 2]
    for name, value in (("label", True), ("context", None), ("ans0", ["甲"])):
        path = instances(tmp_path / name, "json", **{name: value})
        assert (
            refusal(load, tmp_path / name)
            == f"{path}, row 2, field `{name}`: {value!r} is not a text"
        )


def test_a_folder_with_neither_templates_nor_questions_is_refused(tmp_path: Path, refusal) -> None:
    (tmp_path / "region" / "ambiguous").mkdir(parents=True)
    message = refusal(load, tmp_path)
    assert message.startswith(
        f"{tmp_path}: holds no data of CBBQ (--data); expected CATEGORY/ambiguous/"
    )
    assert "templates_generate_neg.csv" in message
