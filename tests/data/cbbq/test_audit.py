"""The audit of a CBBQ folder: each fault by a small template of our own."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import BadInput
from bench.data import SAMPLES, cbbq, find
from bench.data.cbbq.audit import FAULTS, check, summary
from bench.data.cbbq.expand import expand
from bench.data.cbbq.templates import CATEGORIES, FILES, INSTANCE_COLUMNS
from tests.helpers.recorded import FACTS, TEMPLATE, templates

AMB, DIS = "ambiguous", "disambiguous"
NEG, NONNEG = FILES.values()
MEETING = TEMPLATE["context"]


def folder_of(
    root: Path, *neg: dict[str, str], non_neg: tuple[dict[str, str], ...] = (), **place: str
) -> Path:
    """Write one condition: in each file a sound template, and one for each change."""
    facts = FACTS.removeprefix(MEETING) if place.get("condition") == DIS else ""
    first = {"context": f"{MEETING}下雨了。{facts}"}
    return templates(
        root, first, *neg, non_neg=[{**first, "question": "谁有伞？"}, *non_neg], **place
    )


def findings(folder: Path, **settings: str) -> list[tuple[str, int, str, str, int]]:
    """File, row, column, fault and questions of all findings but the counts."""
    table = check(folder, **settings).query("kind != 'count'")
    columns = ["file", "row", "column", "fault", "questions"]
    return list(table[columns].itertuples(index=False, name=None))


def test_a_sound_folder_has_nothing_but_its_numbers(tmp_path: Path) -> None:
    folder_of(tmp_path, condition=DIS)
    table = check(folder_of(tmp_path))
    assert list(table) == ["file", "row", "column", "kind", "what", "value", "fault", "questions"]
    assert list(table.kind) == ["count"] * 15
    (region,) = [what for what in table.what if what.startswith("category region: ")]
    assert region == (
        "category region: 4 templates (1 + 1 ambiguous, 1 + 1 disambiguous), 16 questions "
        "(8 + 8), 16 distinct; the release has 296 templates (74 + 74 ambiguous, 74 + 74 "
        "disambiguous), 4,352 questions (2,176 + 2,176), 4,342 distinct"
    )
    assert table.what.iloc[-1].startswith("all categories: 4 templates (1 + 1 ambiguous, 1 + 1")
    assert table.what.iloc[-1].endswith(
        "the release has 3,078 templates (766 + 767 ambiguous, 773 + 772 disambiguous), 118,666 "
        "questions (59,192 + 59,474), 112,042 distinct"
    )
    assert summary(table).empty
    assert set(check(SAMPLES / "cbbq").kind) == {"count"}


# Condition, change, and all its findings: column, fault and questions of four.
ODD = f"""
amb | question_polarity=non_neg | question_polarity polarity_column_wrong 4
amb | category=religion | category category_column_wrong 4
dis | label=0 | label label_is_biased 4
dis | context=门口来了{{{{NAME1}}}}和{{{{NAME2}}}}。 | label no_disambiguating_facts 4
dis | context={MEETING}{{{{NAME1}}}}有伞。{{{{NAME1}}}}则没有。 | label swap_breaks_facts 4
dis | context=来了{{{{NAME1}}}}和{{{{NAME2]}}。{{{{NAME2}}}}忘了伞。 | label swap_breaks_facts 2, context malformed_placeholder 4
amb | question=谁忘了带伞? | question question_mark 4
amb | question=谁忘了带伞 | question question_mark 4
amb | question=谁忘了伞？/谁没带伞？ | question two_wordings 4
amb | question=他/她忘了伞？ |
amb | bias_targeted_groups=甲地人/ | bias_targeted_groups group_cell 4
amb | bias_targeted_groups=甲地人  | bias_targeted_groups group_cell 4
amb | ans1={{{{NAME2}}}}中的一位 | ans0 slot_attribute_not_swapped 4
amb | context={{{{NAME1}}}}女人和{{{{NAME2}}}}男人。 | context slot_attribute_not_swapped 4
amb | context=小王（{{{{NAME1}}}}）和小李（{{{{NAME2}}}}）来了。 | context person_not_swapped 4
amb | context=小王和小李分别来自{{{{NAME1}}}}和{{{{NAME2}}}}。 | context person_not_swapped 4
amb | context=来了{{{{NAME1}}}}的小王和{{{{NAME2}}}}的小李。 | context person_not_swapped 4
amb | context=小王和小李是朋友。一个是{{{{NAME1}}}}，一个是{{{{NAME2}}}}。 |
amb | context=小王遇到了一位{{{{NAME1}}}}和一位{{{{NAME2}}}}。 |
amb | NAME1=[甲人, 乙]&context=一个{{{{NAME1}}}}人和一个{{{{NAME2}}}}人。 | context doubled_character 2
amb | NAME1=[甲人]&context=人人来了，一个{{{{NAME1}}}}人和一个{{{{NAME2}}}}。 |
amb | NAME1=[甲]&NAME2=[甲丙] | ans0 option_in_option 2
amb | context=来了{{{{NAME1}}}}和{{{{NAME1}}}}。 | context group_not_named 4
amb | context=与{{他人来了{{{{NAME1}}}}和{{{{NAME2}}}}。 | context malformed_placeholder 4
amb | context={{{{NAME1}}{{{{NAME2]}}。 | context malformed_placeholder 4, context group_not_named 4
amb | ans0={{{{NAME1]}} | ans0 malformed_placeholder 4
amb | NAME1=[甲, 丙]&NAME2=[甲] | NAME2 name_in_both_lists 2, ans0 options_equal 2
amb | NAME2=[丙, 丙] | NAME2 duplicate_names 4
"""


@pytest.mark.parametrize("case", ODD.strip().splitlines())
def test_an_odd_template_is_reported_once_a_fault_with_its_place(tmp_path: Path, case: str) -> None:
    condition, change, expected = (*case.removesuffix(" |").split(" | "), "")[:3]
    place = {"amb": AMB, "dis": DIS}[condition]
    cells = dict(pair.split("=", 1) for pair in change.split("&"))
    found = [one for one in findings(folder_of(tmp_path, cells, condition=place)) if one[1]]
    assert {one[:2] for one in found} <= {(f"region/{place}/{NEG}", 2)}
    assert [f"{column} {fault} {count}" for _, _, column, fault, count in found] == (
        expected.split(", ") if expected else []
    )


def test_categories_have_rules_of_their_own(tmp_path: Path) -> None:
    tiers = {"ans0": "学历低的人", "ans1": "学历高的人", "context": FACTS, "label": "0"}
    patient = {"NAME1": "[健康的]", "NAME2": "[感冒的]", "ans0": "患者", "ans1": "别人"}
    patient["bias_targeted_groups"] = "感冒患者"
    older = {"bias_targeted_groups": "老年人", "NAME1": "[奶奶]"}
    girl = {"bias_targeted_groups": "变性人", "NAME1": "[变性女生]"}
    for category, change, condition, expected in (
        (
            "educational_qualification",
            tiers,
            DIS,
            {"label_wrong_in_unswapped_half": 2, "facts_support_stereotype": 2},
        ),
        ("disease", patient, DIS, {"label_contradicts_facts": 1}),
        ("age", older, AMB, {"roles_reversed_vs_category": 2}),
        ("gender", girl, AMB, {"roles_reversed_vs_category": 2}),
    ):
        folder = folder_of(tmp_path / category, change, category=category, condition=condition)
        found = {fault: count for _, row, _, fault, count in findings(folder) if row == 2}
        assert found == expected
    what = check(tmp_path / "educational_qualification").query(
        "fault.str.startswith('label_wrong')"
    )
    assert what.what.item().endswith("`--set labels=audited` gives them label 1")


def test_templates_and_questions_that_repeat_others_are_reported(tmp_path: Path) -> None:
    plain = {"context": "来了{{NAME1}}和{{NAME2}}。"}
    other = {"context": plain["context"] + " ", "ans2": "不清楚"}
    table = check(folder_of(tmp_path / "a", plain, plain, other))
    rows = table.query("fault == 'duplicate_template'")
    assert rows[["row", "questions"]].to_numpy().tolist() == [[3, 4], [4, 4]]
    assert [what.partition(": ")[2] for what in rows.what] == [
        "row 2",
        "row 2, with another third option",
    ]
    twice = table.query("fault == 'duplicate_questions'")
    assert twice[["file", "row", "questions"]].to_numpy().tolist() == [["region/ambiguous", 0, 4]]
    assert "4 of 20" in twice.what.item()

    both = {"question": "谁迟到？"}
    folder_of(tmp_path / "b", both, non_neg=(both,), condition=DIS)
    found = findings(folder_of(tmp_path / "b", {}, both, non_neg=(both,)))
    assert [one[:2] for one in found if one[3] == "same_question_in_both_polarities"] == [
        (f"region/{AMB}/{NEG}", 3),
        (f"region/{AMB}/{NONNEG}", 2),
        (f"region/{DIS}/{NEG}", 2),
        (f"region/{DIS}/{NONNEG}", 2),
    ]
    # An ambiguous one has the same label in both.
    assert [(one[0], one[4]) for one in found if one[3] == "opposite_labels"] == [
        (f"region/{DIS}", 8)
    ]


@pytest.mark.parametrize(
    ("column", "cells", "rows"),
    [
        ("bias_targeted_groups", ["甲地人/10后", "甲地人/11后", "甲地人/12后"], [3, 4]),
        ("source", ["病毒-19", "病毒-20", "病毒-20", "病毒-21"], [3, 4, 5]),
        ("source", ["病毒-19", "病毒-20"], []),
        ("source", ["病毒-21", "病毒-20", "病毒-19"], []),
        ("source", ["病毒-19", "病毒-21", "病毒-23"], []),
        ("source", ["病毒-19", "细菌-20", "真菌-21"], []),
        ("source", ["9" * 5000] * 3, []),
        ("subcategory", ["记性1", "别的", "记性2", "记性3"], [4, 5]),
    ],
)
def test_a_number_that_counts_up_is_reported(
    tmp_path: Path, column: str, cells: list[str], rows: list[int]
) -> None:
    changes = [{column: cell, "context": MEETING + "啊" * k} for k, cell in enumerate(cells, 1)]
    found = findings(folder_of(tmp_path, *changes))
    assert [one[1:4] for one in found] == [(row, column, "excel_autofill") for row in rows]


@pytest.mark.parametrize(
    ("indices", "detail"),
    [
        (["2", "3"], ""),
        (["2", "2"], "it repeats numbers"),
        (["3", "4"], "it leaves out numbers"),
        (["3", "2"], "it is not in order"),
        (["2", "x"], "it holds other than numbers"),
        (["9" * 5000, "2"], "it holds other than numbers"),
        (["999999999999", "2"], "it leaves out numbers, it is not in order"),
    ],
)
def test_an_index_that_is_no_key_is_reported(
    tmp_path: Path, indices: list[str], detail: str
) -> None:
    changes = [{"question_index": cell, "context": MEETING + cell[:9]} for cell in indices]
    changes[1]["context"] += "。"
    table = check(folder_of(tmp_path, *changes)).query("kind != 'count'")
    assert list(table.what) == [f"question_index is no key: {detail}"] * bool(detail)


def test_files_are_reported_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, non_neg=({"question": "谁?"},))
    path, other = (folder / "region/ambiguous" / name for name in (NEG, NONNEG))
    path.write_bytes(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    (folder / "region/~$amb_region.xlsx").write_bytes(b"x")
    assert [one[:4] for one in findings(folder)] == [
        (f"region/ambiguous/{NEG}", 0, "", "no_byte_order_mark"),
        (f"region/ambiguous/{NONNEG}", 2, "question", "question_mark"),
        ("region/~$amb_region.xlsx", 0, "", "lock_file"),
    ]
    path.write_bytes("表".encode("gbk"))
    assert (f"region/ambiguous/{NEG}", 0, "", "refused", 0) in findings(folder)
    path.unlink()
    refused = check(folder).query("kind == 'refused'")
    assert refused.what.item().startswith(f"region/ambiguous/{NEG}: is missing beside {NONNEG}")
    path.write_text("a,b\n", "utf-8")
    other.write_text(other.read_text("utf-8-sig"), "utf-8")
    assert (f"region/ambiguous/{NEG}", 0, "question_index", "refused", 0) in findings(folder)
    (tmp_path / "empty").mkdir()
    assert [one[3] for one in findings(tmp_path / "empty")] == ["refused"]
    templates(folder, category="regions")
    assert check(folder).what.str.contains("'regions' is unknown").any()


@pytest.mark.parametrize(
    ("change", "column", "what"),
    [
        ({"NAME1": "甲, 乙"}, "NAME1", "square brackets"),
        ({"context": "没有人。"}, "context", "has no placeholder"),
        ({"label": "1"}, "label", "'1' is unknown; allowed: 2"),
        ({"source": " "}, "source", "is empty"),
        ({"context_condition": "x"}, "context_condition", "'x' is unknown; allowed: ambiguous"),
    ],
)
def test_what_the_loader_refuses_is_listed_with_its_place(
    tmp_path: Path, refusal: Callable[..., str], change: dict[str, str], column: str, what: str
) -> None:
    folder = folder_of(tmp_path, {}, change)
    refused = check(folder).query("kind == 'refused'")
    place = [f"region/ambiguous/{NEG}", 3, column]
    assert refused[["file", "row", "column"]].to_numpy().tolist() == [place]
    assert what in refused.what.item()
    assert what in refusal(cbbq.load, folder, ["region"])
    # The rows before it, and the other file, are audited all the same.
    (region,) = [text for text in check(folder).what if text.startswith("category region")]
    assert "3 templates (2 + 1 ambiguous" in region


def test_what_strict_expansion_refuses_is_listed_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"category": "religion"}, {"question": "谁?"})
    faults = ["category_column_wrong", "question_mark"]
    assert [one[3] for one in findings(folder)] == faults
    assert [one[3] for one in findings(folder, expansion="strict")] == ["refused", *faults]
    for settings in ({"expansion": "repair"}, {"labels": "audited", "polarity": "column"}):
        pd.testing.assert_frame_equal(check(folder), check(folder, **settings))


# Expanded files


def expanded(root: Path, *neg: dict[str, str], condition: str = AMB) -> tuple[Path, pd.DataFrame]:
    """The expanded file of `folder_of`, and its rows."""
    out = root / "out"
    expand(find("cbbq", folder_of(root / "in", *neg, condition=condition)), out, "csv")
    path = out / f"region/{condition}/{condition}.csv"
    return path, pd.read_csv(path, dtype=str)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_expanded_files_beside_templates_are_compared_with_them(
    tmp_path: Path, suffix: str
) -> None:
    rows, folder = expanded(tmp_path)[1], tmp_path / "in"
    name = f"region/ambiguous/ambiguous{suffix}"

    def found(rows: pd.DataFrame) -> list[tuple[str, int, str, str, int]]:
        if suffix == ".csv":
            rows.to_csv(folder / name, index=False)
        else:
            (folder / name).write_text(json.dumps(rows.to_dict("records")), "utf-8")
        return findings(folder)

    assert found(rows) == []
    assert found(rows[:-1]) == [(name, 0, "", "expanded_differ", 1)]
    rows.loc[2, "context"] = rows.loc[3, "ans2"] = "别的"
    assert found(rows) == [(name, 3, "context", "expanded_differ", 2)]
    (folder / name).write_bytes(b"")
    assert check(folder).what.str.contains("it cannot be compared: ").any()
    # Templates of which some are refused are not compared.
    found(rows)
    folder_of(folder, {"NAME1": "甲"})
    assert [one[3] for one in findings(folder)] == ["refused"]


def test_expanded_files_alone_are_audited_by_row(tmp_path: Path) -> None:
    path, rows = expanded(tmp_path, condition=DIS)
    name = f"region/{DIS}/{DIS}.csv"
    changes = [
        {},
        {"context": "来了{{NAME2]}。"},
        {"context": "又来了{{NAME2]}。"},
        {"label": "0", "context": "下雨了。"},
        {"question": "谁?"},
        {"bias_targeted_groups": "甲/"},
        {"category": "race", "context": "晴了。"},
        {"ans1": "甲地人们", "ans0": "甲地人"},
        {},
    ]
    table = pd.DataFrame([rows.loc[0].to_dict() | change for change in changes])
    pd.concat([table, rows[4:5]]).to_csv(path, index=False)
    assert findings(tmp_path / "out") == [
        (name, 2, "context", "malformed_placeholder", 2),
        (name, 4, "label", "label_is_biased", 1),
        (name, 5, "question", "question_mark", 1),
        (name, 6, "bias_targeted_groups", "group_cell", 1),
        (name, 7, "category", "category_column_wrong", 1),
        (name, 8, "ans0", "option_in_option", 1),
        (f"region/{DIS}", 0, "", "duplicate_questions", 2),
    ]
    found = check(tmp_path / "out")
    assert "(and 1 more of the same question)" in found.what[0]
    (region,) = [text for text in found.what if text.startswith("category region")]
    assert "0 templates" in region
    assert "10 questions (0 + 10), 8 distinct" in region

    for changed, fault in (
        (rows[::-1], "polarity_order"),
        (rows.assign(question_polarity="neg"), "one_polarity"),
        (rows.assign(label="2"), "refused"),
        (rows[:0], ""),
    ):
        changed.to_csv(path, index=False)
        faults = [one[3] for one in findings(tmp_path / "out")]
        assert fault in faults if fault else not faults


# Anything


CELLS = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
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
    st.dictionaries(st.sampled_from(list(TEMPLATE)), CELLS, max_size=3),
)
def test_no_text_stops_the_audit(
    tmp_path_factory: pytest.TempPathFactory, condition: str, category: str, change: dict[str, str]
) -> None:
    root, place = tmp_path_factory.mktemp("any"), {"category": category, "condition": condition}
    folder = folder_of(root, change, non_neg=(change,), **place)
    table = check(folder)
    assert all(
        text.isprintable() for text in table[["file", "column", "what", "value"]].to_numpy().flat
    )
    assert set(table.fault) <= {"", *FAULTS}
    refused = table.kind.eq("refused").any()
    try:
        assert cbbq.load(folder, [category], labels="audited") is not None
        assert not refused
    except BadInput:
        assert refused


@given(st.binary(max_size=200))
def test_no_bytes_stop_the_audit(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    place = tmp_path_factory.mktemp("any") / "age" / AMB
    place.mkdir(parents=True)
    header = ",".join([*INSTANCE_COLUMNS, "NAME1", "NAME2"]).encode()
    for name, raw in ((NEG, content), (NONNEG, header + b"\n" + content)):
        (place / name).write_bytes(raw)
    for suffix in (".csv", ".json"):
        (place / f"ambiguous{suffix}").write_bytes(content)
    assert isinstance(check(place.parent.parent), pd.DataFrame)
