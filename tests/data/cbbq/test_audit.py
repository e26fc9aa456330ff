"""What is said of a folder of CBBQ: each fault by a small template of our own."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.core.errors import BadInput
from bench.data import SAMPLES, cbbq
from bench.data.cbbq.audit import FAULTS, check, summary
from bench.data.cbbq.templates import CATEGORIES, COLUMNS, FILES, INSTANCE_COLUMNS

HEADER = [*INSTANCE_COLUMNS[:8], "NAME1", "NAME2", *INSTANCE_COLUMNS[8:]]
NEG, NONNEG = FILES.values()
MEETING = "门口来了一位{{NAME1}}和一位{{NAME2}}，其中一位没有伞。"
FACTS = "{{NAME2}}忘了带伞；{{NAME1}}带了两把。"


def row(condition: str, polarity: str, **change: str) -> dict[str, str]:
    """A template of which nothing can be said: two names a slot, eight questions."""
    disambiguous = condition == "disambiguous"
    return {
        "question_index": "1",
        "question_polarity": polarity,
        "context_condition": condition,
        "category": "region",
        "subcategory": "记性",
        "bias_targeted_groups": "甲地人",
        "source": "文献",
        "context": MEETING + FACTS * disambiguous,
        "NAME1": "[甲地人, 甲城客]",
        "NAME2": "[乙地人, 乙城客]",
        "question": "谁忘了带伞？" if polarity == "neg" else "谁带了伞？",
        "ans0": "{{NAME1}}",
        "ans1": "{{NAME2}}",
        "ans2": "不知道",
        "label": "2" if not disambiguous else "1" if polarity == "neg" else "0",
        **change,
    }


def put(
    path: Path, rows: list[dict[str, str]], header: list[str] = HEADER, encoding: str = "utf-8-sig"
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, header, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def folder_of(
    root: Path,
    category: str = "region",
    condition: str = "ambiguous",
    neg: tuple[dict[str, str], ...] = (),
    nonneg: tuple[dict[str, str], ...] = (),
) -> Path:
    """Write one condition: in each file a good template, and one for each change."""
    for name, polarity, changes in ((NEG, "neg", neg), (NONNEG, "non_neg", nonneg)):
        rows = [
            row(condition, polarity, **{"category": category, "question_index": str(k), **change})
            for k, change in enumerate(
                (
                    {"context": MEETING + f"第{polarity}个。" + FACTS * (condition != "ambiguous")},
                    *changes,
                ),
                1,
            )
        ]
        put(root / category / condition / name, rows)
    return root


def said(folder: Path, **settings: str) -> list[tuple[str, int, str, str, str, int]]:
    """(file, row, column, fault, what, questions) of all but the counts."""
    found = check(folder, **settings).query("kind != 'count'")
    return list(
        found[["file", "row", "column", "fault", "what", "questions"]].itertuples(
            index=False, name=None
        )
    )


def test_a_sound_folder_has_nothing_but_its_numbers(tmp_path: Path) -> None:
    folder_of(tmp_path, "region", "ambiguous")
    folder_of(tmp_path, "region", "disambiguous")
    found = check(tmp_path)
    assert list(found.columns) == [
        "file",
        "row",
        "column",
        "kind",
        "what",
        "value",
        "fault",
        "questions",
    ]
    assert list(found.kind) == ["count"] * 15
    assert (found.row == 0).all()
    (region,) = [what for what in found.what if what.startswith("category region: ")]
    assert region == (
        "category region: 4 templates (1 + 1 ambiguous, 1 + 1 disambiguous), 32 questions "
        "(16 + 16), 32 distinct; the release has 296 templates (74 + 74 ambiguous, 74 + 74 "
        "disambiguous), 4,352 questions (2,176 + 2,176), 4,342 distinct"
    )
    assert found.what.iloc[-1].startswith("all categories: 4 templates (1 + 1 ambiguous, 1 + 1")
    assert found.what.iloc[-1].endswith(
        "the release has 3,078 templates (766 + 767 ambiguous, 773 + 772 disambiguous), 118,666 "
        "questions (59,192 + 59,474), 112,042 distinct"
    )
    assert list(summary(found).columns) == ["fault", "what", "files", "templates", "questions"]
    assert len(summary(found)) == 0


def test_the_samples_have_no_fault() -> None:
    assert set(check(SAMPLES / "cbbq").kind) == {"count"}


AMB, DIS = "ambiguous", "disambiguous"
CONDITIONS = {"amb": AMB, "dis": DIS}
# Condition, change, column, fault, words of the finding, and questions touched of eight, or as
# many as the names yield.
ODD = """
amb | question_polarity=non_neg | question_polarity | polarity_column_wrong | is not 'neg' as i | 8
amb | category=religion | category | category_column_wrong | is not 'region' as its folder says | 8
dis | label=0 | label | label_is_biased | in its 8 questions, each has the stereotyped answer | 8
dis | context=门口来了{{NAME1}}和{{NAME2}}。 | label | no_disambiguating_facts | `--set labels= | 8
dis | context=MEETING{{NAME1}}有伞。{{NAME1}}则没有。 | label | swap_breaks_facts | the wrong | 8
amb | question=谁忘了带伞? | question | question_mark | ends in an ASCII `?` | 8
amb | question=谁忘了带伞 | question | question_mark | does not end in `？` | 8
amb | question=谁忘了伞？/谁没带伞？ | question | two_wordings | has two wordings | 8
amb | bias_targeted_groups=甲地人/ | bias_targeted_groups | group_cell | separators or blanks | 8
amb | bias_targeted_groups=甲地人  | bias_targeted_groups | group_cell | separators or blanks | 8
amb | ans1={{NAME2}}中的一位 | ans0 | slot_attribute_not_swapped | has other words beside the n | 8
amb | context={{NAME1}}女人和{{NAME2}}男人。 | context | slot_attribute_not_swapped | of which | 8
amb | context=来了{{NAME1}}的小王和{{NAME2}}的小李。 | context | person_not_swapped | a person | 8
amb | context=小王是{{NAME1}}，小李是{{NAME2}}。 | context | person_not_swapped | a person | 8
amb | context=来了一个{{NAME1}}人和一个{{NAME2}}人。 | context | doubled_character | in 6 of its | 6
amb | ans0={{NAME1}}人&ans1={{NAME2}}人 | context | doubled_character | comes out with 人人 in | 6
amb | NAME1=[甲]&NAME2=[甲丙] | ans0 | option_in_option | in its 2 questions: a reply | 2
amb | context=来了{{NAME1}}和{{NAME1}}。 | context | group_not_named | never names NAME2, and N | 8
amb | context=与{他人来了{{NAME1}}和{{NAME2}}。 | context | malformed_placeholder | has { for a | 8
amb | context={{NAM1}}、{{NAME1}}和{{NAME2}} | context | malformed_placeholder | has {{NAM1}} | 8
"""


def cells_of(text: str) -> dict[str, str]:
    """Read `column=value&column=value`, with the names of texts above."""
    text = text.replace("MEETING", MEETING).replace("FACTS", FACTS)
    return dict(pair.split("=", 1) for pair in text.split("&"))


@pytest.mark.parametrize(
    ("context", "told"),
    [
        ("小王（{{NAME1}}）和小李（{{NAME2}}）来了。", True),
        ("小王和小李分别来自{{NAME1}}和{{NAME2}}。", True),
        ("小王老家在{{NAME1}}，小李的在{{NAME2}}。", True),
        ("小王和小李是朋友。一个是{{NAME1}}，一个是{{NAME2}}。", False),
        ("小王遇到了一位{{NAME1}}和一位{{NAME2}}。", False),
        ("{{NAME1}}的小孩和{{NAME2}}的老师来了。", False),
    ],
)
def test_a_person_is_told_only_where_it_belongs_to_a_slot(
    tmp_path: Path, context: str, told: bool
) -> None:
    found = said(folder_of(tmp_path, "region", AMB, neg=({"context": context},)))
    assert [one[3] for one in found] == ["person_not_swapped"] * told


@pytest.mark.parametrize("case", ODD.strip().splitlines())
def test_an_odd_template_is_reported_once_with_its_place(tmp_path: Path, case: str) -> None:
    condition, change, column, fault, what, questions = case.split(" | ")
    place = CONDITIONS[condition]
    found = said(folder_of(tmp_path, "region", place, neg=(cells_of(change),)))
    assert [one[:4] for one in found] == [(f"region/{place}/{NEG}", 2, column, fault)]
    assert what in found[0][4]
    assert found[0][5] == int(questions)


# Condition, change, and all its faults with the number of questions.
SEVERAL = """
amb | context={{NAME1}{{NAME2]}。 | malformed_placeholder=8&group_not_named=8&duplicate_questions=4
amb | context=来了{{NAME1}}和{{NAME2]}。 | malformed_placeholder=8&group_not_named=8
dis | context=来了{{NAME1}}和{{NAME2]}。FACTS | malformed_placeholder=8&swap_breaks_facts=4
amb | NAME1=[甲, 丙]&NAME2=[甲, 丁] | name_in_both_lists=2&options_equal=2&duplicate_questions=1
amb | NAME2=[乙地人, 乙地人] | duplicate_names=4&duplicate_questions=4
amb | NAME1=[甲地人, 甲城客, 甲地人] | duplicate_names=4&duplicate_questions=4
amb | ans0={{NAME1]} | malformed_placeholder=8
"""


@pytest.mark.parametrize("case", SEVERAL.strip().splitlines())
def test_faults_that_come_together_are_each_reported(tmp_path: Path, case: str) -> None:
    condition, change, faults = case.split(" | ")
    found = said(folder_of(tmp_path, "region", CONDITIONS[condition], neg=(cells_of(change),)))
    assert sorted(f"{one[3]}={one[5]}" for one in found) == sorted(faults.split("&"))
    for one in found:
        if one[3] == "swap_breaks_facts":
            assert "in 4 of its 8 questions" in one[4]
            assert one[4].endswith("`--set expansion=repair` fixes the text")


def test_both_halves_of_educational_qualification_are_told(tmp_path: Path) -> None:
    change = {
        "ans0": "学历低的人",
        "ans1": "学历高的人",
        "context": MEETING + "{{NAME1}}忘了伞；{{NAME2}}带了。",
    }
    found = said(
        folder_of(tmp_path, "educational_qualification", DIS, neg=({**change, "label": "0"},))
    )
    of_row = {fault: (what, count) for _, number, _, fault, what, count in found if number == 2}
    what, count = of_row["label_wrong_in_unswapped_half"]
    assert "in 4 of its 8 questions" in what
    assert what.endswith("`--set labels=audited` gives them label 1")
    assert (count, of_row["facts_support_stereotype"][1]) == (4, 4)


def test_a_patient_in_the_second_slot_is_told(tmp_path: Path) -> None:
    change = {
        "bias_targeted_groups": "感冒患者",
        "NAME1": "[健康的]",
        "NAME2": "[感冒的]",
        "ans0": "患者",
        "ans1": "别人",
    }
    found = said(folder_of(tmp_path, "disease", DIS, neg=(change,)))
    assert [(*one[1:4], one[5]) for one in found] == [(2, "label", "label_contradicts_facts", 1)]
    assert "in its 1 question, each has facts that support the stereotype" in found[0][4]
    assert found[0][4].endswith("leaves it out")


@pytest.mark.parametrize(
    ("category", "group", "name"), [("age", "老年人", "奶奶"), ("gender", "变性人", "变性女生")]
)
def test_names_in_the_other_slot_are_told(
    tmp_path: Path, category: str, group: str, name: str
) -> None:
    names = {"NAME1": f"[{name}]", "NAME2": "[某甲]"}
    found = said(
        folder_of(tmp_path, category, AMB, neg=({"bias_targeted_groups": group, **names},))
    )
    of_row = [(*one[1:4], one[5]) for one in found if one[1] == 2]
    assert of_row == [(2, "NAME1", "roles_reversed_vs_category", 2)]


def test_a_template_that_repeats_another_is_told(tmp_path: Path) -> None:
    changes = ({"context": "来了{{NAME1}}和{{NAME2}}。"},) * 2 + (
        {"context": "来了{{NAME1}}和{{NAME2}}。 ", "ans2": "不清楚"},
    )
    found = said(folder_of(tmp_path, "region", AMB, neg=changes))
    of_rows = [(one[1], one[4], one[5]) for one in found if one[3] == "duplicate_template"]
    assert of_rows == [(3, "repeats row 2", 8), (4, "repeats row 2, with another third option", 8)]
    (twice,) = [one for one in found if one[3] == "duplicate_questions"]
    assert twice[:2] == ("region/ambiguous", 0)
    assert "8 of its 40 questions repeat an earlier one" in twice[4]


def test_a_question_of_both_polarities_is_told_with_its_opposite_labels(tmp_path: Path) -> None:
    change = {"question": "谁有伞？", "context": MEETING + FACTS}
    folder_of(tmp_path, "region", DIS, neg=(change,), nonneg=(change,))
    found = said(folder_of(tmp_path, "region", AMB, neg=({}, change), nonneg=(change,)))
    both = [
        (one[0], one[1], one[5]) for one in found if one[3] == "same_question_in_both_polarities"
    ]
    assert both == [
        (f"region/ambiguous/{NEG}", 3, 8),
        (f"region/ambiguous/{NONNEG}", 2, 8),
        (f"region/disambiguous/{NEG}", 2, 8),
        (f"region/disambiguous/{NONNEG}", 2, 8),
    ]
    whats = [one[4] for one in found if one[3] == "same_question_in_both_polarities"]
    assert "file, row 2: one" in whats[0]
    assert "file, row 3: one" in whats[1]
    opposite = [(one[0], one[4], one[5]) for one in found if one[3] == "opposite_labels"]
    # An ambiguous one has the same label in both.
    assert opposite == [("region/disambiguous", "8 prompts occur with opposite labels", 16)]


@pytest.mark.parametrize(
    ("column", "cells", "told"),
    [
        ("bias_targeted_groups", ["00后/10后", "00后/11后", "00后/12后"], [3, 4]),
        ("source", ["病毒-19", "病毒-20", "病毒-20", "病毒-21"], [3, 4, 5]),
        ("source", ["病毒-19", "病毒-20"], []),
        ("source", ["病毒-21", "病毒-20", "病毒-19"], []),
        ("source", ["病毒-19", "病毒-21", "病毒-23"], []),
        ("source", ["病毒-19", "细菌-20", "真菌-21"], []),
        ("subcategory", ["记性1", "别的", "记性2", "记性3"], [4, 5]),
    ],
)
def test_a_number_that_counts_up_is_told(
    tmp_path: Path, column: str, cells: list[str], told: list[int]
) -> None:
    changes = tuple(
        {column: cell, "context": MEETING + "啊" * k} for k, cell in enumerate(cells, 1)
    )
    found = said(folder_of(tmp_path, "region", AMB, neg=changes))
    assert [one[1:4] for one in found] == [(number, column, "excel_autofill") for number in told]


@pytest.mark.parametrize(
    ("indices", "what"),
    [
        (["2", "3"], ""),
        (["2", "2"], "has 1 number more than once: it is no key"),
        (["3", "4"], "leaves out 1 number: it is no key"),
        (["3", "2"], "is not in order: it is no key"),
        (["2", "x"], "holds 'x': it is no key"),
        (["5", "2"], "leaves out 2 numbers, is not in order: it is no key"),
    ],
)
def test_an_index_that_is_no_key_is_told_once(
    tmp_path: Path, indices: list[str], what: str
) -> None:
    changes = tuple(
        {"question_index": cell, "context": MEETING + "啊" * k} for k, cell in enumerate(indices, 1)
    )
    found = said(folder_of(tmp_path, "region", AMB, neg=changes))
    assert [one[:5] for one in found] == (
        [(f"region/ambiguous/{NEG}", 0, "question_index", "index_no_key", what)] if what else []
    )


def test_lock_files_and_a_missing_byte_order_mark_are_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "region", AMB)
    path = folder / "region/ambiguous" / NEG
    path.write_bytes(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    (folder / "region/~$amb_region.xlsx").write_bytes(b"x")
    assert [one[:4] for one in said(folder)] == [
        (f"region/ambiguous/{NEG}", 0, "", "no_byte_order_mark"),
        ("region/~$amb_region.xlsx", 0, "", "lock_file"),
    ]
    other = folder / "region/ambiguous" / NONNEG
    other.write_bytes(other.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    assert [one[3] for one in said(folder)] == ["lock_file"]


# Change, row, column, words of what is said.
REFUSED = [
    ({"NAME1": "甲, 乙"}, "NAME1", "square brackets"),
    ({"context": "没有人。"}, "context", "has no placeholder"),
    ({"label": "1"}, "label", "'1' is unknown; allowed: 2"),
    ({"source": " "}, "source", "is empty"),
    ({"context_condition": "x"}, "context_condition", "'x' in a folder 'ambiguous'"),
]


@pytest.mark.parametrize(("change", "column", "what"), REFUSED)
def test_what_the_loader_refuses_is_listed_with_its_place(
    tmp_path: Path, change: dict[str, str], column: str, what: str
) -> None:
    folder = folder_of(
        tmp_path, "region", AMB, neg=({"context": "又来了{{NAME1}}和{{NAME2}}。"}, change)
    )
    found = check(folder).query("kind == 'refused'")
    assert found[["file", "row"]].to_numpy().tolist() == [[f"region/ambiguous/{NEG}", 3]]
    assert what in f"{found.column.iloc[0]} {found.what.iloc[0]}"
    assert column in f"{found.column.iloc[0]} {found.what.iloc[0]}"
    with pytest.raises(BadInput):
        data.load(data.find("cbbq", folder))
    # The rows before it, and the other file, are looked at all the same.
    (region,) = [text for text in check(folder).what if text.startswith("category region")]
    assert "3 templates (2 + 1 ambiguous" in region


def test_files_that_cannot_be_read_are_refused_and_the_others_looked_at(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "region", AMB, nonneg=({"question": "谁?"},))
    (folder / "region/ambiguous" / NEG).write_bytes("表".encode("gbk"))
    assert [one[:4] for one in said(folder)][-2:] == [
        (f"region/ambiguous/{NEG}", 0, "", "refused"),
        (f"region/ambiguous/{NONNEG}", 2, "question", "question_mark"),
    ]
    (folder / "region/ambiguous" / NEG).unlink()
    refused = [one for one in said(folder) if one[3] == "refused"]
    assert [one[:2] for one in refused] == [("", 0)]
    assert refused[0][4].startswith(f"region/ambiguous/{NEG}: is missing beside {NONNEG}")


def test_a_header_without_a_column_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "region", AMB)
    put(
        folder / "region/ambiguous" / NEG,
        [row(AMB, "neg")],
        [name for name in HEADER if name != "NAME2"],
    )
    assert [one[:4] for one in said(folder)] == [(f"region/ambiguous/{NEG}", 0, "NAME2", "refused")]


def test_a_doubled_character_of_the_template_itself_is_none_of_filling(tmp_path: Path) -> None:
    change = {"context": "人人来了，一个{{NAME1}}人和一个{{NAME2}}人。"}
    assert said(folder_of(tmp_path, "region", AMB, neg=(change,))) == []


def test_an_unknown_category_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    (empty,) = said(tmp_path)
    assert (empty[3], "holds no data of CBBQ" in empty[4]) == ("refused", True)
    folder_of(tmp_path, "region", AMB)
    folder_of(tmp_path, "regions", AMB)
    (unknown,) = said(tmp_path)
    assert unknown[3] == "refused"
    assert "'regions' is unknown" in unknown[4]


def test_what_strict_expansion_refuses_is_listed_beside_the_rest(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "region", AMB, neg=({"category": "religion"}, {"question": "谁?"}))
    assert [one[3] for one in said(folder)] == ["category_column_wrong", "question_mark"]
    assert [one[3] for one in said(folder, expansion="strict")] == [
        "refused",
        "category_column_wrong",
        "question_mark",
    ]
    for settings in (
        {"expansion": "repair"},
        {"labels": "audited", "polarity": "column", "dedupe": "yes"},
    ):
        pd.testing.assert_frame_equal(check(folder), check(folder, **settings))


texts = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    [
        "",
        "{{NAME1}}",
        "{{NAME2]}{",
        "[甲]",
        "[甲, 甲]",
        "neg",
        "non_neg",
        "1",
        "0",
        "2",
        "\x1b[2J",
        "甲/",
        "²",
        "小王是{{NAME1}}",
    ]
)


@given(
    st.sampled_from([AMB, DIS]),
    st.sampled_from(CATEGORIES),
    st.dictionaries(st.sampled_from(COLUMNS), texts, max_size=3),
)
def test_no_text_stops_the_list(
    tmp_path_factory: pytest.TempPathFactory, condition: str, category: str, change: dict[str, str]
) -> None:
    folder = folder_of(
        tmp_path_factory.mktemp("any"), category, condition, neg=(change,), nonneg=(change,)
    )
    found = check(folder)
    assert all(
        text.isprintable() for text in found[["file", "column", "what", "value"]].to_numpy().flat
    )
    assert set(found.fault) <= {"", *FAULTS}
    refused = found.kind.eq("refused").any()
    try:
        assert cbbq.load(folder, [category], labels="audited") is not None
        assert not refused
    except BadInput:
        assert refused


@given(st.binary(max_size=200))
def test_no_bytes_stop_the_list(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    place = tmp_path_factory.mktemp("any") / "age" / AMB
    place.mkdir(parents=True)
    (place / NEG).write_bytes(content)
    (place / NONNEG).write_bytes(",".join(HEADER).encode() + b"\n" + content)
    for suffix in (".csv", ".json"):
        (place / f"ambiguous{suffix}").write_bytes(content)
    assert isinstance(check(place.parent.parent), pd.DataFrame)
