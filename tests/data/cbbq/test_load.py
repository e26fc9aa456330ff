"""CBBQ's templates: expansion by the release's rules, the samples, and wrong files."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from bench import data
from bench.data import cbbq
from bench.data.cbbq import targets
from bench.data.cbbq import templates as cbbq_templates

CATEGORIES = cbbq_templates.CATEGORIES
HEADER = [*cbbq_templates.INSTANCE_COLUMNS[:8], "NAME1", "NAME2"]
HEADER += cbbq_templates.INSTANCE_COLUMNS[8:]
FILES = {"neg": "templates_generate_neg.csv", "non_neg": "templates_generate_nonneg.csv"}
CONTEXT = "{{NAME1}}和{{NAME2}}来了。{{NAME2}}说{{NAME1}}累了。"


def template(condition: str, polarity: str, **change: str) -> dict[str, str]:
    return {
        "question_index": "7",
        "question_polarity": polarity,
        "context_condition": condition,
        "category": "age",
        "subcategory": "题目",
        "bias_targeted_groups": "甲组",
        "source": "文献",
        "context": CONTEXT,
        "NAME1": "[甲, 乙]",
        "NAME2": "[丙]",
        "question": "谁累了？",
        "ans0": "{{NAME1}}",
        "ans1": "{{NAME2}}",
        "ans2": "不知道",
        "label": "2" if condition == "ambiguous" else "0",
        **change,
    }


def write(path: Path, rows: list[dict[str, str]], header: list[str] = HEADER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, header, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def folder_of(root: Path, category: str, condition: str, **change: str) -> Path:
    """Write a good template and, in the negative file, one with `change`; return that file."""
    paths = {
        polarity: write(
            root / category / condition / name,
            [
                template(condition, polarity),
                template(condition, polarity, **(change if polarity == "neg" else {})),
            ],
        )
        for polarity, name in FILES.items()
    }
    return paths["neg"]


def load(folder: Path, *categories: str) -> list[cbbq.Question]:
    return data.load(data.find("cbbq", folder), categories)


@pytest.fixture(scope="module")
def samples() -> list[cbbq.Question]:
    return load(data.SAMPLES / "cbbq")


def test_the_samples_have_fourteen_categories_of_five_templates_a_file() -> None:
    found = {}
    for path in (data.SAMPLES / "cbbq").glob("*/*/*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            found[path.parent.parent.name, path.parent.name, path.name] = sum(
                1 for _ in csv.DictReader(stream)
            )
    wanted = [
        (category, condition, name)
        for category in CATEGORIES
        for condition in ("ambiguous", "disambiguous")
        for name in FILES.values()
    ]
    assert found == dict.fromkeys(wanted, 5)


def test_the_samples_expand_to_2160_questions(samples: list[cbbq.Question]) -> None:
    # Two names per slot are four pairs, in two orders except for disease; ten templates each.
    counts = Counter((item.category, item.condition) for item in samples)
    assert counts == {
        (name, condition): 40 if name == "disease" else 80
        for name in CATEGORIES
        for condition in ("ambiguous", "disambiguous")
    }
    assert len(samples) == len({item.item_id for item in samples}) == 2160


def test_in_the_samples_the_facts_always_go_against_the_stereotype(
    samples: list[cbbq.Question],
) -> None:
    for item in samples:
        assert (
            item.label == 2 if item.condition == "ambiguous" else item.label == 1 - item.biased
        ), item.item_id


def test_in_the_samples_half_of_the_templates_ask_negatively(samples: list[cbbq.Question]) -> None:
    assert Counter(item.polarity for item in samples) == {"neg": 1080, "non_neg": 1080}
    assert all(item.polarity == item.polarity_column for item in samples)


def test_in_the_samples_nothing_stays_unfilled_and_no_question_is_there_twice(
    samples: list[cbbq.Question],
) -> None:
    texts = [(item.context, item.question, item.ans0, item.ans1, item.ans2) for item in samples]
    assert not any(brace in "".join(text) for text in texts for brace in ("{", "}", "NAME"))
    assert len(set(texts)) == 2160
    assert all(len(set(text[2:])) == 3 for text in texts)


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
NONE = ["甲和丙来了。丙说甲累了。", "乙和丙来了。丙说乙累了。"]


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("condition", ["ambiguous", "disambiguous"])
def test_a_template_is_expanded_by_its_category_s_rule(
    tmp_path: Path, category: str, condition: str
) -> None:
    expected = FIRST if condition == "disambiguous" else ALL
    if category == "educational_qualification":
        expected = ALL
    if category == "disease":
        expected = NONE
    folder_of(tmp_path, category, condition)
    found = [item.context for item in load(tmp_path)]
    assert found == expected * 4  # two templates of each polarity


def test_options_and_label_are_never_swapped_and_ids_run_over_both_files(tmp_path: Path) -> None:
    folder_of(tmp_path, "region", "disambiguous", label="1")
    rows = [
        (
            item.example_id,
            item.ans0,
            item.ans1,
            item.ans2,
            item.label,
            item.swapped,
            item.template,
            item.polarity,
        )
        for item in load(tmp_path)
    ]
    names = [("甲", False), ("甲", True), ("乙", False), ("乙", True)]
    templates = [
        ("neg:1", "neg", 0),
        ("neg:2", "neg", 1),
        ("non_neg:1", "non_neg", 0),
        ("non_neg:2", "non_neg", 0),
    ]
    wanted = [
        (name, "丙", "不知道", label, swapped, number, polarity)
        for number, polarity, label in templates
        for name, swapped in names
    ]
    assert rows == [(k, *row) for k, row in enumerate(wanted, start=1)]


def test_the_polarity_is_the_file_s_and_the_column_is_kept_beside_it(tmp_path: Path) -> None:
    folder_of(tmp_path, "region", "ambiguous", question_polarity="non_neg")
    columns = {item.template: (item.polarity, item.polarity_column) for item in load(tmp_path)}
    assert columns["neg:2"] == ("neg", "non_neg")
    assert columns["non_neg:1"] == ("non_neg", "non_neg")


def test_the_first_introduction_alone_is_swapped_where_a_slot_stands_thrice() -> None:
    text = "{{NAME1}}，{{NAME2}}。{{NAME1}}、{{NAME2}}、{{NAME1}}"
    assert cbbq_templates.contexts("gender", "disambiguous", text, "男", "女") == [
        "男，女。男、女、男",
        "女，男。男、女、男",
    ]


def test_malformed_slots_of_the_release_stay_in_the_text(tmp_path: Path) -> None:
    folder_of(tmp_path, "gender", "ambiguous", context="{{NAME1]}和{{NAME2}}。")
    contexts = [item.context for item in load(tmp_path) if item.template == "neg:2"]
    assert contexts == ["{{NAME1]}和丙。", "{{NAME1]}和甲。", "{{NAME1]}和丙。", "{{NAME1]}和乙。"]


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("[甲, 乙]", ["甲", "乙"]),
        (" [甲,乙 ] ", ["甲", "乙"]),
        ("[德国, 德国]", ["德国", "德国"]),
        ("[ Z 世代 ,00 后]", ["Z世代", "00后"]),
        ("[甲]", ["甲"]),
    ],
)
def test_names_are_read_as_the_release_reads_them(cell: str, wanted: list[str]) -> None:
    assert cbbq_templates.names(cell) == wanted


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "甲, 乙",
        "[甲, 乙",
        "甲, 乙]",
        "[]",
        "[甲, ]",
        "[甲、乙]",
        "[甲，乙]",
        "[甲-乙]",
        "[甲·乙]",
        "[甲(乙)]",
        "['甲']",
    ],
)
def test_a_cell_that_is_no_list_of_names_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match=r"square brackets|not a name"):
        cbbq_templates.names(cell)


@pytest.mark.parametrize(
    ("category", "group", "ans0", "target"),
    [
        ("region", "河南人", "河南人", 0),
        ("disease", "病人", "患者", 0),
        ("educational_qualification", "低学历", "学历较低的人", 0),
        ("gender", "女性", "男生", 1),
        ("gender", "跨性别者", "变性女生", 0),
        ("gender", "跨性别者", "变性女孩", 0),
        ("physical_appearance", "长相一般的人", "长相出众的人", 1),
        ("age", "老年人", "年轻人", 1),
        ("age", "老龄人", "青年", 1),
        ("age", "老年人", "外婆", 0),
        ("age", "年轻人", "年轻人", 0),
        ("age", "00后/年轻人", "00后", 0),
    ],
)
def test_the_target_is_the_option_of_the_stereotyped_group(
    category: str, group: str, ans0: str, target: int
) -> None:
    options = (frozenset([ans0]), frozenset(["别的人"]))
    assert targets.target_option(category, group, options, None) == target


def test_the_biased_answer_is_the_target_of_a_negative_question_and_the_other_of_a_non_negative_one(
    tmp_path: Path,
) -> None:
    folder_of(tmp_path, "gender", "ambiguous", bias_targeted_groups="女性")
    assert {(item.polarity, item.target, item.biased) for item in load(tmp_path)} == {
        ("neg", 1, 1),
        ("non_neg", 1, 0),
    }


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_expanded_files_are_read_where_there_are_no_templates(tmp_path: Path, suffix: str) -> None:
    columns = ["example_id", *(name for name in HEADER if name not in ("NAME1", "NAME2"))]
    rows = [
        template("ambiguous", "neg", example_id=str(k), context=text, ans0="甲", ans1="丙")
        for k, text in enumerate(ALL, 1)
    ]
    path = write(tmp_path / "age" / "ambiguous" / "ambiguous.csv", rows, columns)
    if suffix == ".json":  # with the byte order mark in its first key, as released
        path.unlink()
        objects = [
            {"\ufeffexample_id" if name == "example_id" else name: row[name] for name in columns}
            for row in rows
        ]
        path.with_suffix(".json").write_text(json.dumps(objects, ensure_ascii=False), "utf-8")
    found = load(tmp_path)
    assert [(item.item_id, item.context, item.label) for item in found] == [
        (f"age:ambiguous:{k}", text, 2) for k, text in enumerate(ALL, 1)
    ]
    assert {item.template for item in found} == {"neg:1"}


# Condition, column, wrong cell, and words of the message.
WRONG = """
ambiguous | NAME1 | 甲, 乙 | expected names in square brackets, like [甲, 乙]
ambiguous | NAME1 | [甲, , 乙] | '' is not a name of letters and digits: '[甲, , 乙]'
ambiguous | NAME2 | [甲、乙] | '甲、乙' is not a name
ambiguous | NAME2 | ［丙］ | expected names in square brackets, like [甲, 乙]: '［丙］'
ambiguous | NAME2 | | is empty
ambiguous | ans0 | {{NAME2}} | other option's placeholder {{NAME2}}
ambiguous | ans1 | {{NAME1}}的人 | other option's placeholder {{NAME1}}
ambiguous | context | 没有人。 | no placeholder
ambiguous | question_polarity | Neg | 'Neg' is unknown; allowed: neg, non_neg
ambiguous | context_condition | disambiguous | 'disambiguous' in a folder 'ambiguous'
ambiguous | label | 0 | '0' is unknown; allowed: 2
ambiguous | label | 2.0 | '2.0' is unknown; allowed: 2
disambiguous | label | 2 | '2' is unknown; allowed: 0, 1
disambiguous | label | A | 'A' is unknown; allowed: 0, 1
"""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_a_wrong_cell_is_refused_with_file_row_and_column(
    tmp_path: Path, refusal, case: str
) -> None:
    condition, column, cell, said = (part.strip() for part in case.split("|"))
    path = folder_of(tmp_path, "race", condition, **{column: cell})
    message = refusal(load, tmp_path)
    assert message.startswith(f"{path}, row 2")
    assert f"column `{column}`" in message
    assert said in message


@pytest.mark.parametrize("missing", ["NAME1", "context", "label", "source"])
def test_a_missing_column_is_named(tmp_path: Path, refusal, missing: str) -> None:
    path = folder_of(tmp_path, "race", "ambiguous")
    write(path, [template("ambiguous", "neg")], [name for name in HEADER if name != missing])
    assert f"{path}, row 1 (header): column `{missing}` is missing" in refusal(load, tmp_path)


@pytest.mark.parametrize(
    ("spoil", "place", "said"),
    [
        (lambda raw: b"", "", "is empty"),
        (lambda raw: raw.decode("utf-8-sig").encode("gbk"), ", line 2", "GBK"),
        (lambda raw: raw + b"\0", ", line 4", "NUL"),
        (lambda raw: raw + b"8,neg\n", ", row 3", "has 2 cells, the header has 15"),
        (lambda raw: raw.replace(b"NAME2", b"NAME1", 1), ", row 1", "column `NAME2` is missing"),
    ],
)
def test_a_broken_template_file_is_refused_with_the_place(
    tmp_path: Path, refusal, spoil, place: str, said: str
) -> None:
    path = folder_of(tmp_path, "race", "ambiguous")
    path.write_bytes(spoil(path.read_bytes()))
    message = refusal(load, tmp_path)
    assert f"{path}{place}" in message
    assert said in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected a JSON array of objects"),
        ("[{", "line 1: not JSON"),
        ('[{"a": 1, "a": 2}]', "field 'a' occurs more than once"),
        ('{"a": 1}', "expected a JSON array of objects"),
        ("[1, 2]", "expected a JSON array of objects"),
        ('[{"a": ' + "[" * 100_000, "nested too deeply"),
        ('[{"context": "x"}]', "row 1: field `question_index` is missing"),
        ("", "expected a JSON array of objects"),
    ],
)
def test_a_broken_expanded_json_file_is_refused(
    tmp_path: Path, refusal, text: str, said: str
) -> None:
    path = tmp_path / "age" / "ambiguous" / "ambiguous.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    message = refusal(load, tmp_path)
    assert str(path) in message
    assert said in message


@pytest.mark.parametrize("gone", FILES.values())
def test_one_polarity_without_the_other_is_refused(tmp_path: Path, refusal, gone: str) -> None:
    path = folder_of(tmp_path, "race", "ambiguous").parent / gone
    path.unlink()
    assert refusal(load, tmp_path).startswith(f"{path}: is missing beside ")


def test_a_folder_of_an_unknown_category_is_refused(tmp_path: Path, refusal) -> None:
    folder_of(tmp_path, "age", "ambiguous")
    folder_of(tmp_path, "ages", "ambiguous")
    message = refusal(load, tmp_path)
    assert f"{tmp_path / 'ages'}: category 'ages' is unknown" in message
    assert "age, disability" in message
    assert "[categories.ages]" in message
