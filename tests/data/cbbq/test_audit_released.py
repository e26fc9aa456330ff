"""The audit of the released files of CBBQ: the known faults, and the numbers."""

import csv
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from bench.data.cbbq.audit import FAULTS, check, summary
from bench.data.cbbq.templates import CATEGORIES, FILES

NEG, NONNEG = FILES.values()
AMB, DIS = "ambiguous", "disambiguous"


def test_a_template_has_each_fault_once(shared: Path) -> None:
    found = check(shared / "data/cbbq").query("row > 0")
    assert not found.duplicated(["file", "row", "fault"]).any()


@pytest.fixture(scope="module")
def released(shared: Path) -> pd.DataFrame:
    return check(shared / "data/cbbq")


# Ours to the audit's, where they have the same meaning.
SAME = [
    "malformed_placeholder",
    "duplicate_template",
    "duplicate_names",
    "name_in_both_lists",
    "polarity_column_wrong",
    "same_question_in_both_polarities",
    "slot_attribute_not_swapped",
    "no_disambiguating_facts",
    "label_wrong_in_unswapped_half",
    "excel_autofill",
    "roles_reversed_vs_category",
    "swap_breaks_facts",
]
# Files and rows that we find and the audit does not, or the reverse; each was examined.
MORE: dict[str, set[tuple[str, int]]] = {
    # A price in the title of a source counts up from 5000.
    "excel_autofill": {
        (f"educational_qualification/{condition}/{name}", number)
        for condition in (AMB, DIS)
        for name in (NEG, NONNEG)
        for number in (30, 31, 32, *range(34, 48))
    },
    "roles_reversed_vs_category": {
        (f"gender/disambiguous/{NONNEG}", number) for number in (115, 116, 117)
    },
    "swap_breaks_facts": {
        (f"educational_qualification/disambiguous/{name}", 52) for name in (NEG, NONNEG)
    },
}
LESS = {
    "label_wrong_in_unswapped_half": MORE["swap_breaks_facts"],
    "swap_breaks_facts": {
        (f"household_registration/disambiguous/{name}", 7) for name in (NEG, NONNEG)
    },
}


@pytest.mark.parametrize("fault", SAME)
def test_the_release_has_the_faults_that_its_audit_found(
    released: pd.DataFrame, shared: Path, fault: str
) -> None:
    with (shared / "data/cbbq/audit.csv").open(encoding="utf-8-sig", newline="") as stream:
        wanted = {
            (
                f"{row['category']}/{row['context']}/templates_generate_{row['file_polarity']}.csv",
                int(row["record"]),
            )
            for row in csv.DictReader(stream)
            if fault in {issue.partition(":")[0] for issue in row["issues"].split(";")}
        }
    some = released[released.fault == fault]
    ours = set(zip(some.file, some.row, strict=True))
    assert ours - wanted == MORE.get(fault, set())
    assert wanted - ours == LESS.get(fault, set())
    assert len(wanted) > 1


def test_the_release_s_duplicates_are_those_of_the_specification(released: pd.DataFrame) -> None:
    some = released[released.fault == "duplicate_questions"]
    assert dict(zip(some.file, some.questions, strict=True)) == {
        "age/ambiguous": 360,
        "age/disambiguous": 268,
        "disability/ambiguous": 32,
        "educational_qualification/ambiguous": 34,
        "educational_qualification/disambiguous": 16,
        "gender/ambiguous": 32,
        # Not in the specification's list, but in its counts of questions and of distinct texts.
        "ethnicity/ambiguous": 18,
        "gender/disambiguous": 8,
        "nationality/ambiguous": 3066,
        "nationality/disambiguous": 342,
        "physical_appearance/ambiguous": 256,
        "sexual_orientation/ambiguous": 16,
    }


def questions(released: pd.DataFrame, fault: str, place: str, column: str = "") -> int:
    some = released[(released.fault == fault) & released.file.str.startswith(place)]
    return int(some[some.column == column].questions.sum() if column else some.questions.sum())


# Fault, beginning of the file's name, and questions in the specification (sections 3.4 and 5).
COUNTED = [
    ("malformed_placeholder", "disability/ambiguous", 128),
    ("malformed_placeholder", "educational_qualification", 80),
    ("malformed_placeholder", "household_registration", 2000),
    ("malformed_placeholder", "gender/ambiguous", 76),
    ("malformed_placeholder", "gender/disambiguous", 68),
    ("malformed_placeholder", "nationality", 1512),
    ("malformed_placeholder", "physical_appearance/ambiguous", 512),
    ("malformed_placeholder", "disease", 8),
    ("malformed_placeholder", "physical_appearance/disambiguous", 592),
    ("malformed_placeholder", "sexual_orientation", 96),
    ("group_not_named", "physical_appearance/ambiguous", 512),
    ("group_not_named", "nationality/ambiguous", 756),
    ("option_in_option", "disease", 1172),
    ("option_in_option", "gender", 48),
    ("option_in_option", "", 1220),
    ("options_equal", "", 8),
    ("options_equal", "nationality", 8),
    ("polarity_column_wrong", "", 696),
    ("opposite_labels", "gender/disambiguous", 220),
    ("opposite_labels", "", 220),
    ("doubled_character", "age/ambiguous", 1214),
    ("doubled_character", "age/disambiguous", 1214),
    ("excel_autofill", "age", 984 * 2),
    ("label_contradicts_facts", "disease", 268),
    ("no_disambiguating_facts", "household_registration", 200),
    ("label_is_biased", "gender", 24),
    ("label_is_biased", "age", 72),
]


@pytest.mark.parametrize(("fault", "place", "count"), COUNTED)
def test_the_release_s_faults_touch_as_many_questions_as_the_specification_counts(
    released: pd.DataFrame, fault: str, place: str, count: int
) -> None:
    assert questions(released, fault, place) == count


def test_the_release_s_numbers_are_its_own(released: pd.DataFrame) -> None:
    whats = released[released.kind == "count"].what.str.split(":").str[0].tolist()
    assert whats == [*(f"category {name}" for name in CATEGORIES), "all categories"]
    equal = released[released.what.str.endswith("; as the release has")]
    assert {what.split(":")[0].removeprefix("category ") for what in equal.what} == set(
        CATEGORIES
    ) - {"SES", "race", "region", "religion"}


def test_the_release_s_smaller_oddities_are_told(released: pd.DataFrame) -> None:
    counts = Counter(released.fault)
    assert counts["question_mark"] == 1 + 4
    assert counts["two_wordings"] == 3
    assert counts["group_cell"] == 4
    bare = released[released.fault == "no_byte_order_mark"].file.tolist()
    assert bare == [f"ethnicity/disambiguous/{NEG}", f"nationality/disambiguous/{NEG}"]
    assert counts["refused"] == counts["lock_file"] == counts["person_not_swapped"] == 0


def test_the_summary_adds_up(released: pd.DataFrame) -> None:
    table = summary(released).set_index("fault")
    assert set(table.index) == set(released.fault) - {""}
    assert list(table.index) == [name for name in FAULTS if name in table.index]
    assert table.loc["label_contradicts_facts"].tolist() == [
        FAULTS["label_contradicts_facts"],
        2,
        70,
        268,
    ]
    assert table.loc["duplicate_questions"].tolist() == [FAULTS["duplicate_questions"], 12, 0, 4448]
