"""CBBQ's questions: the samples, expansion by the release's rules, settings, and wrong files."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench import data
from bench.data import cbbq
from bench.data.cbbq import templates as cbbq_templates
from bench.data.cbbq.templates import CATEGORIES, CONDITIONS, FILES, INSTANCE_COLUMNS
from tests.helpers.recorded import FACTS, TEMPLATE, templates

A, D = CONDITIONS
CONTEXT = "{{NAME1}}和{{NAME2}}来了。{{NAME2}}说{{NAME1}}累了。"


def load(folder: Path, *categories: str, **settings: str) -> list[cbbq.Question]:
    return data.load(data.find("cbbq", folder), categories, **settings)


def test_the_samples_are_2160_sound_questions() -> None:
    items = load(data.SAMPLES / "cbbq")
    # Two names per slot are four pairs, in two orders except for disease; ten templates each.
    assert Counter((item.category, item.condition) for item in items) == {
        (name, condition): 40 if name == "disease" else 80
        for name in CATEGORIES
        for condition in CONDITIONS
    }
    assert len(items) == len({item.item_id for item in items}) == len({item.text for item in items})
    assert Counter(item.polarity for item in items) == {"neg": 1080, "non_neg": 1080}
    for item in items:
        assert item.polarity == item.polarity_column
        # Facts go against the stereotype.
        assert item.label == (2 if item.condition == A else 1 - item.biased)
        assert not set("{}NAME") & set("".join(item.text))
        assert len(set(item.options)) == 3
    assert len(items) == 2160


# The rules of the release, by hand: the contexts of 甲 x 丙 and 乙 x 丙.
ALL = [
    "甲和丙来了。丙说甲累了。",
    "丙和甲来了。甲说丙累了。",
    "乙和丙来了。丙说乙累了。",
    "丙和乙来了。乙说丙累了。",
]
FIRST = [
    "甲和丙来了。丙说甲累了。",
    "丙和甲来了。丙说甲累了。",
    "乙和丙来了。丙说乙累了。",
    "丙和乙来了。丙说乙累了。",
]
RULES = {
    **{(name, A): ALL for name in CATEGORIES},
    **{(name, D): FIRST for name in CATEGORIES},
    ("educational_qualification", D): ALL,
    ("disease", A): ALL[::2],
    ("disease", D): ALL[::2],
}


@pytest.mark.parametrize(("category", "condition"), RULES)
def test_a_template_is_expanded_by_its_categorys_rule(
    tmp_path: Path, category: str, condition: str
) -> None:
    changed = {"context": CONTEXT, "bias_targeted_groups": "某组"}
    folder = templates(
        tmp_path, changed, changed, non_neg=[changed], category=category, condition=condition
    )
    items = load(folder)
    assert [item.context for item in items] == RULES[category, condition] * 3
    assert [item.example_id for item in items] == list(range(1, len(items) + 1))
    # Options and labels are never swapped.
    assert {(item.ans0 in "甲乙", item.ans1, item.ans2) for item in items} == {
        (True, "丙", "不知道")
    }
    label = {A: (2, 2), D: (1, 0)}[condition]
    expected = {
        ("neg:1", "neg", label[0]),
        ("neg:2", "neg", label[0]),
        ("non_neg:1", "non_neg", label[1]),
    }
    assert {(item.template, item.polarity, item.label) for item in items} == expected
    assert {(item.polarity, item.biased == item.target) for item in items} == {
        ("neg", True),
        ("non_neg", False),
    }


def test_only_the_first_introduction_is_swapped_where_a_slot_stands_thrice() -> None:
    text = "{{NAME1}}，{{NAME2}}。{{NAME1}}、{{NAME2}}、{{NAME1}}"
    assert cbbq_templates.contexts("gender", D, text, "男", "女") == [
        "男，女。男、女、男",
        "女，男。男、女、男",
    ]


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("[甲, 乙]", ["甲", "乙"]),
        (" [甲,乙 ] ", ["甲", "乙"]),
        ("[德国, 德国]", ["德国", "德国"]),
        ("[ Z 世代 ,00 后]", ["Z世代", "00后"]),
        *(
            (cell, None)
            for cell in ("", "甲, 乙", "[甲, 乙", "甲, 乙]", "[]", "[甲, ]", "[甲、乙]", "[甲，乙]")
        ),
        *((cell, None) for cell in ("[甲-乙]", "[甲·乙]", "[甲(乙)]", "['甲']", "［丙］")),
    ],
)
def test_names_are_read_as_the_release_reads_them(cell: str, names: list[str] | None) -> None:
    if names is None:
        with pytest.raises(ValueError, match=r"square brackets|not a name"):
            cbbq_templates.names(cell)
    else:
        assert cbbq_templates.names(cell) == names


# Settings

# What the settings affect, by words of its description.
POLARITY, COLUMN, BIASED, SWAPPED, MISSPELT, TWICE = (
    "(polarity=file)",
    "(polarity=column)",
    "the stereotyped answer for its label",
    "facts that are swapped in part",
    "a placeholder that is misspelt",
    "occurs before",
)
EVERY = range(1, 25)


# Settings, numbers of the questions that remain, and what is affected or, with a minus, left out.
@pytest.mark.parametrize(
    ("given", "numbers", "affected"),
    [
        ("", [*EVERY], {POLARITY: 4, BIASED: 4, SWAPPED: 2, MISSPELT: 4}),
        ("polarity=column", [*EVERY], {COLUMN: 4, BIASED: 4, SWAPPED: 2, MISSPELT: 4}),
        # Of the third template, 9 to 12, the second of each pair is the swapped one.
        (
            "labels=audited",
            [1, 2, 3, 4, 9, 11, *range(13, 25)],
            {POLARITY: 4, BIASED: -4, SWAPPED: -2, MISSPELT: 2},
        ),
        (
            "labels=audited expansion=repair",
            [1, 2, 3, 4, *range(9, 25)],
            {POLARITY: 4, BIASED: -4},
        ),
        ("expansion=repair", [*EVERY], {POLARITY: 4, BIASED: 4}),
        (
            "dedupe=yes",
            [*range(1, 13), *range(17, 25)],
            {POLARITY: 4, BIASED: 4, SWAPPED: 2, MISSPELT: 4, TWICE: -4},
        ),
        (
            "dedupe=yes labels=audited",
            [1, 2, 3, 4, 9, 11, *range(17, 25)],
            {POLARITY: 4, BIASED: -4, SWAPPED: -2, MISSPELT: 2, TWICE: -4},
        ),
    ],
)
def test_what_the_settings_leave_and_affect_by_hand(
    tmp_path: Path, given: str, numbers: list[int], affected: dict[str, int]
) -> None:
    folder = templates(
        tmp_path,
        {},
        {"label": "0", "question": "谁没带伞？"},
        {"context": FACTS.replace("{{NAME1}}", "{{NAME1]}", 1), "question": "谁没有伞？"},
        {},
        non_neg=[{}, {"question_polarity": "neg", "question": "谁有伞？"}],
        condition=D,
    )
    settings = dict(pair.split("=") for pair in given.split())
    questions = load(folder, **settings)
    assert [one.example_id for one in questions] == numbers
    found: Counter[str] = Counter()
    for effect in cbbq.touched(folder, None, **settings):
        (words,) = (
            word
            for word in (POLARITY, COLUMN, BIASED, SWAPPED, MISSPELT, TWICE)
            if word in effect.what
        )
        found[words] += -effect.rows if effect.left_out else effect.rows
    assert found == affected
    for one in questions:
        wrong_column = one.template == "non_neg:2"
        assert one.polarity_column == ("neg" if wrong_column else one.template.partition(":")[0])
        by_column = wrong_column and "polarity" in settings
        assert one.polarity == ("neg" if by_column else one.template.partition(":")[0])
        against = one.template in ("neg:2", "non_neg:1", "non_neg:2")
        assert one.label == one.label_column == (0 if against else 1)
        assert "expansion" in settings or ("{" in one.context) == (one.template == "neg:3")
    templates(folder, category="race")
    assert cbbq.touched(folder, ["race"]) == []
    assert load(folder, "race") == [one for one in load(folder) if one.category == "race"]


def test_a_label_that_can_be_told_from_the_facts_is_corrected(tmp_path: Path) -> None:
    cells = {"ans0": "学历低的人", "ans1": "学历高的人", "NAME1": "[硕士]", "NAME2": "[中专生]"}
    wrong = {"category": "educational_qualification", "condition": D}
    folder = templates(
        tmp_path, {**cells, "label": "0"}, non_neg=[{**cells, "label": "1"}], **wrong
    )
    assert [one.label for one in load(folder)] == [0, 0, 1, 1]
    found = load(folder, labels="audited")
    assert [(one.example_id, one.label, one.label_column, one.swapped) for one in found] == [
        (1, 1, 0, False),
        (3, 0, 1, False),
    ]
    effects = cbbq.touched(folder, None, labels="audited")
    assert {(one.rows, one.left_out, one.what.partition(",")[0]) for one in effects} == {
        (2, False, "label corrected"),
        (2, True, "each has facts that support the stereotype"),
    }


def test_one_prompt_with_two_labels_is_left_out_under_audited_labels(tmp_path: Path) -> None:
    late = {"question": "谁迟到？"}
    folder = templates(tmp_path / "a", {}, late, non_neg=[late], condition=D)
    assert len(load(folder)) == 12
    assert len(load(folder, dedupe="yes")) == 12, "they have another label"
    assert {one.question for one in load(folder, labels="audited")} == {"谁忘了伞？"}
    (one,) = cbbq.touched(folder, None, labels="audited")
    assert (one.rows, one.left_out) == (8, True)
    assert "with both labels" in one.what
    # Where ambiguous, the one label is unknown.
    same = [{"question": "谁忘了伞？"}]
    folder = templates(tmp_path / "b", {"NAME1": "[甲, 甲]"}, non_neg=same)
    assert len(load(folder, labels="audited")) == 8
    # 甲 twice, and in the other file as well; 乙 is new there.
    assert [one.example_id for one in load(folder, dedupe="yes")] == [1, 2, 7, 8]


# Wrong files

# Condition, column, wrong cell, and words of the message.
WRONG = """
ambiguous | NAME1 | 甲, 乙 | expected names in square brackets, like [甲, 乙]
ambiguous | NAME1 | [甲, , 乙] | '' is not a name of letters and digits: '[甲, , 乙]'
ambiguous | NAME2 | | is empty
ambiguous | ans0 | {{NAME2}} | other option's placeholder {{NAME2}}
ambiguous | ans1 | {{NAME1}}的人 | other option's placeholder {{NAME1}}
ambiguous | context | 没有人。 | no placeholder
ambiguous | question_polarity | Neg | 'Neg' is unknown; allowed: neg, non_neg
ambiguous | context_condition | disambiguous | 'disambiguous' is unknown; allowed: ambiguous
ambiguous | category | regoin | 'regoin' is unknown; allowed: SES, age
ambiguous | label | 2.0 | '2.0' is unknown; allowed: 2
disambiguous | label | 2 | '2' is unknown; allowed: 0, 1
ambiguous | source | | is empty
"""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_a_wrong_cell_is_refused_with_file_row_and_column(
    tmp_path: Path, refusal: Any, case: str
) -> None:
    condition, column, cell, said = (part.strip() for part in case.split("|"))
    templates(tmp_path / "a", {}, {column: cell}, condition=condition)
    sources = [tmp_path / f"a/region/{condition}/templates_generate_neg.csv"]
    if column in INSTANCE_COLUMNS and "placeholder" not in said:
        sources += [
            expanded(tmp_path / form, form, condition, **{column: cell}) for form in ("csv", "json")
        ]
    for path in sources:
        message = refusal(load, path.parents[2])
        assert message.startswith(f"{path}, row 2")
        assert f"column `{column}`" in message
        assert said in message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("question_index", "x", ", row 1 (header): column `question_index` is missing"),
        ("NAME2", "NAME1", ", row 1 (header): column `NAME2` is missing"),
        ("谁忘了伞", "谁\0", ", line 2: holds a NUL character"),
        ("2\n", "2\n8,neg\n", ", row 2: has 2 cells, the header has 15"),
    ],
)
def test_a_broken_template_file_is_refused_with_the_place(
    tmp_path: Path, refusal: Any, old: str, new: str, said: str
) -> None:
    path = templates(tmp_path) / "region/ambiguous/templates_generate_neg.csv"
    path.write_text(path.read_text("utf-8-sig").replace(old, new, 1), "utf-8")
    assert f"{path}{said}" in refusal(load, tmp_path)


def test_folders_that_are_no_categories_are_refused(tmp_path: Path, refusal: Any) -> None:
    (tmp_path / "region" / "ambiguous").mkdir(parents=True)
    message = refusal(load, tmp_path)
    assert message.startswith(f"{tmp_path}: holds no data of CBBQ (--data); expected CATEGORY/amb")
    for name in FILES.values():
        path = templates(tmp_path) / "region/ambiguous" / name
        path.unlink()
        assert refusal(load, tmp_path).startswith(f"{path}: is missing beside ")
    templates(templates(tmp_path), category="regions")
    message = refusal(load, tmp_path)
    assert f"{tmp_path / 'regions'}: category 'regions' is unknown" in message
    assert "[categories.regions]" in message


# Expanded files


def expanded(root: Path, form: str, condition: str = A, **change: Any) -> Path:
    """An expanded file of two rows, the second with `change`."""
    plain = {name: TEMPLATE[name] for name in INSTANCE_COLUMNS} | {
        "context": "甲和丙来了。",
        "ans0": "甲",
        "ans1": "丙",
        "context_condition": condition,
        "label": "2" if condition == A else "1",
    }
    rows = [{"example_id": "1", **plain}, {"example_id": "2", **plain, **change}]
    path = root / "region" / condition / f"{condition}.{form}"
    path.parent.mkdir(parents=True)
    if form == "csv":
        pd.DataFrame(rows).to_csv(path, index=False, encoding="utf-8-sig")
    else:  # with the byte order mark in its first key, as released
        rows = [
            {"\ufeffexample_id" if k == "example_id" else k: row[k] for k in row} for row in rows
        ]
        path.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    return path


@pytest.mark.parametrize("form", ["csv", "json"])
def test_expanded_files_are_read_where_there_are_no_templates(tmp_path: Path, form: str) -> None:
    expanded(tmp_path, form, context="丙和甲来了。")
    found = load(tmp_path)
    assert [(item.item_id, item.context, item.label, item.template) for item in found] == [
        ("region:ambiguous:1", "甲和丙来了。", 2, "neg:1"),
        ("region:ambiguous:2", "丙和甲来了。", 2, "neg:1"),
    ]


def test_values_of_json_are_texts_or_numbers(tmp_path: Path, refusal: Any) -> None:
    expanded(tmp_path / "good", "json", label=2)
    assert [one.label for one in load(tmp_path / "good")] == [2, 2]
    for name, value in (("label", True), ("context", None), ("ans0", ["甲"])):
        path = expanded(tmp_path / name, "json", **{name: value})
        message = f"{path}, row 2, field `{name}`: {value!r} is not a text"
        assert refusal(load, tmp_path / name) == message


@pytest.mark.parametrize(
    "change",
    [
        {"template": "neg:0"},
        {"template": "negative:1"},
        {"swapped": "yes"},
        {"example_id": "0"},
        {"example_id": "1"},
        {"name1": None},
    ],
)
def test_our_own_columns_of_expanded_files_are_checked(
    tmp_path: Path, refusal: Any, change: dict[str, str]
) -> None:
    own = dict(zip(cbbq.KEPT, ("甲", "丙", "False", "neg:1", "甲"), strict=True))
    path = expanded(tmp_path, "json")
    rows = json.loads(path.read_text("utf-8"))
    rows = [{"example_id": str(k), **row, **own} for k, row in enumerate(rows, 1)]
    path.write_text(json.dumps(rows), "utf-8")
    assert [one.template for one in load(tmp_path)] == ["neg:1", "neg:1"]
    rows[1] = {key: value for key, value in (rows[1] | change).items() if value is not None}
    path.write_text(json.dumps(rows), "utf-8")
    assert refusal(load, tmp_path).startswith(f"{path}, row 2: ")
