"""CBBQ's released templates: counts, targets, labels, scenes, settings, the audit's findings."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq import labels
from bench.benchmarks.cbbq.audit import check
from bench.benchmarks.cbbq.labels import check_labels
from bench.benchmarks.cbbq.templates import CONDITIONS
from bench.data import find, frame, load

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


def test_questions_and_targets_are_those_of_the_specification_and_the_shared_audit(
    questions, reviewed
):
    counts = questions.groupby(["category", "condition"]).size()
    assert counts.reset_index().to_numpy().tolist() == table("released.csv").to_numpy().tolist()
    keys = ["category", "condition", "template"]
    found = questions.groupby(keys).target.agg(["min", "max", "size"])
    assert len(found) == 2127
    wanted = reviewed.set_index(keys)[["target", "target", "instances"]].loc[found.index]
    assert found.to_numpy().tolist() == wanted.to_numpy().tolist()
    gender = questions[questions.category == "gender"]
    assert (gender.target_name.nunique(), gender.topic.nunique()) == (19, 21)
    assert len(gender[["target_name", "topic"]].drop_duplicates()) == 58, "the paper's figure"


# Labels

# The names of the reasons in the shared audit; no rule tells age 51, 52, 55 from gender 108-110.
ISSUES = {
    labels.SUPPORTED: {"label_contradicts_facts"},
    labels.BIASED_LABEL: {"label_contradicts_facts", "label_facts_pro_stereotype"},
    labels.CORRECTED: {"label_wrong_in_unswapped_half"},
    labels.NO_FACTS: {"no_disambiguating_facts", "swap_breaks_facts"},
    labels.WRONG_NAME: {"swap_breaks_facts"},
    labels.BROKEN_SWAP: {"swap_breaks_facts"},
}


def test_labels_are_distrusted_where_the_shared_audit_does(templates, reviewed):
    checks = {}
    for key, some in templates.items():
        pairs = zip(some, check_labels(some), strict=True)
        checks |= {(*key, one.name): pair for one, pair in pairs}
        reasons = {one.reason for pair in check_labels(some, "repair") for one in pair}
        assert labels.BROKEN_SWAP not in reasons, "repair fixes it"
    differ, counts = {}, Counter[tuple[str, str]]()
    for row in reviewed.itertuples():
        pair = checks[row.category, row.condition, row.template]
        reasons = {check.reason for check in pair} - {"", labels.SWAPPED_FACTS}
        ours = set().union(*(ISSUES[reason] for reason in reasons))
        wanted = row.issues & set().union(*ISSUES.values())
        if not (wanted <= ours and bool(wanted) == bool(ours)):
            differ[row.category, row.condition, row.template] = (wanted, reasons)
        halves = pair[: 1 if row.category == "disease" else 2]
        for one in halves:
            counts[row.category, one.reason] += row.instances // len(halves)
    # Both facts of one context name the same slot, which the shared audit overlooked in these two.
    distrusted = table("distrusted.csv")
    overlooked = ({"label_wrong_in_unswapped_half"}, {labels.WRONG_NAME})
    place = ("educational_qualification", DIS)
    assert differ == {(*place, "neg:52"): overlooked, (*place, "non_neg:52"): overlooked}
    known = [(row.category, getattr(labels, row.reason)) for row in distrusted.itertuples()]
    assert {key: count for key, count in counts.items() if key[1]} == dict(
        zip(known, distrusted.questions, strict=True)
    )


def test_audited_labels_go_against_the_stereotype(questions):
    rows = questions[questions.label_audited >= 0]
    other = rows.target.where(rows.polarity == "non_neg", 1 - rows.target)
    wanted = other.where(rows.condition == DIS, 2)
    assert (rows.label_audited == wanted).all()
    assert (rows.condition == AMB).any()


# The audit


@pytest.fixture(scope="module")
def findings(shared):
    return check(shared / "data/cbbq")


def test_faults_touch_as_many_questions_as_the_specification_counts(findings):
    for fault, place, count in table("faults.csv").itertuples(index=False):
        some = findings[(findings.fault == fault) & findings.file.str.startswith(place)]
        assert some.questions.sum() == count, (fault, place)
    counts = Counter(findings.fault)
    rare = {"question_mark": 5, "two_wordings": 3, "group_cell": 4, "no_byte_order_mark": 2}
    rare |= {"refused": 0, "lock_file": 0, "person_not_swapped": 0}
    assert {name: counts[name] for name in rare} == rare
    assert not findings[findings.row > 0].duplicated(["file", "row", "fault"]).any()
    assert findings.what.str.endswith("; as the release has").sum() == 10
