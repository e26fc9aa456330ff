"""CBBQ's released templates: their targets and labels."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq.items import check_labels
from bench.benchmarks.cbbq.templates import CONDITIONS
from bench.data import find, frame, load
from tests.data.cbbq.test_labels import REASONS

AMB, DIS = CONDITIONS


def table(name):
    """Numbers of the specification (sections 1.6, 3.4 and 5), or of an examination of the data."""
    return pd.read_csv(Path(__file__).with_name(name), keep_default_na=False)


@pytest.fixture(scope="module")
def questions(shared):
    return frame(load(find("cbbq", shared / "data/cbbq")))


@pytest.fixture(scope="module")
def templates(shared):
    paths = cbbq.files(shared / "data/cbbq")
    return {
        (name, condition): cbbq.read_templates(paths[name], name, condition)
        for name in paths
        for condition in CONDITIONS
    }


@pytest.fixture(scope="module")
def reviewed(shared):
    """The shared audit of each template."""
    rows = pd.read_csv(shared / "data/cbbq/audit.csv", keep_default_na=False)
    polarity = rows.file_polarity.replace("nonneg", "non_neg")
    return rows.assign(
        condition=rows.context,
        target=rows.target_option.str[-1].astype(int),
        template=polarity + ":" + rows.record.astype(str),
        issues=[{issue.partition(":")[0] for issue in cell.split(";")} for cell in rows.issues],
    )


def test_targets_are_those_of_the_shared_audit(questions, reviewed):
    keys = ["category", "condition", "template"]
    found = questions.groupby(keys).target.agg(["min", "max", "size"])
    assert len(found) == 2127
    wanted = reviewed.set_index(keys)[["target", "target", "instances"]].loc[found.index]
    assert found.to_numpy().tolist() == wanted.to_numpy().tolist()
    gender = questions[questions.category == "gender"]
    assert (gender.target_name.nunique(), gender.topic.nunique()) == (19, 21)
    assert len(gender[["target_name", "topic"]].drop_duplicates()) == 58, "the paper's figure"


# The names of the reasons in the shared audit; no rule tells age 51, 52, 55 from gender 108-110.
ISSUES = {
    REASONS["SUPPORTED"]: {"label_contradicts_facts"},
    REASONS["BIASED_LABEL"]: {"label_contradicts_facts", "label_facts_pro_stereotype"},
    REASONS["CORRECTED"]: {"label_wrong_in_unswapped_half"},
    REASONS["NO_FACTS"]: {"no_disambiguating_facts", "swap_breaks_facts"},
    REASONS["WRONG_NAME"]: {"swap_breaks_facts"},
    REASONS["BROKEN_SWAP"]: {"swap_breaks_facts"},
}


def test_labels_are_distrusted_where_the_shared_audit_does(templates, reviewed):
    checks = {
        (*key, one.name): pair
        for key, some in templates.items()
        for one, pair in zip(some, check_labels(some), strict=True)
    }
    differ, counts = {}, Counter()
    for row in reviewed.itertuples():
        place = (row.category, row.condition, row.template)
        reasons = {reason for _, reason in checks[place]} - {"", REASONS["SWAPPED_FACTS"]}
        ours = set().union(*(ISSUES[reason] for reason in reasons))
        wanted = row.issues & set().union(*ISSUES.values())
        if not (wanted <= ours and bool(wanted) == bool(ours)):
            differ[place] = (wanted, reasons)
        halves = checks[place][: 1 if row.category == "disease" else 2]
        for _, reason in halves:
            counts[row.category, reason] += row.instances // len(halves)
    # Both facts of one context name the same slot, which the shared audit overlooked in these two.
    overlooked = ({"label_wrong_in_unswapped_half"}, {REASONS["WRONG_NAME"]})
    place = ("educational_qualification", DIS)
    assert differ == {(*place, "neg:52"): overlooked, (*place, "non_neg:52"): overlooked}
    distrusted = table("distrusted.csv")
    assert {key: count for key, count in counts.items() if key[1]} == {
        (row.category, REASONS[row.reason]): row.questions for row in distrusted.itertuples()
    }


def test_repair_fixes_each_broken_swap(templates):
    repaired = (pair for some in templates.values() for pair in check_labels(some, "repair"))
    assert REASONS["BROKEN_SWAP"] not in {reason for pair in repaired for _, reason in pair}


def test_audited_labels_go_against_the_stereotype(questions):
    rows = questions[questions.label_audited >= 0]
    other = rows.target.where(rows.polarity == "non_neg", 1 - rows.target)
    wanted = other.where(rows.condition == DIS, 2)
    assert (rows.label_audited == wanted).all()
    assert (rows.condition == AMB).any()
