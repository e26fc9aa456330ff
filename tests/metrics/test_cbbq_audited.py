"""The number by audited labels, beside that by released ones."""

from pathlib import Path

import pytest

from bench import run
from bench.metrics import cbbq
from tests.helpers.recorded import cell


def test_a_perfect_reader_has_no_bias_by_audited_labels(shared: Path, tmp_path: Path) -> None:
    asked = run.evaluate(
        "cbbq",
        "simulated:",
        categories=["disease", "educational_qualification"],
        data=shared / "data/cbbq",
        tasks=["disambiguous"],
        limit=300,
        out=tmp_path,
    )
    items = asked.items
    # Where the audit trusts no label the facts support the stereotype, as the released label says.
    facts = items.label_audited.where(items.label_audited >= 0, items.label_column)
    replies = asked.records.item_id.map(
        dict(zip(items.item_id, facts.map(dict(enumerate("ABC"))), strict=True))
    )
    table = cbbq.score_records(asked.records.assign(response=replies), items, "robust")
    released, audited = (
        cell(table, name, task="disambiguous") for name in ("s_disamb", "s_disamb_audited")
    )
    assert 0.1 < released.score < 0.6
    assert audited.score == 0
    assert audited.n == (items.label_audited >= 0).sum() < released.n


def test_without_a_fault_in_the_labels_there_is_one_number(tmp_path: Path) -> None:
    asked = run.evaluate("cbbq", "simulated:", categories=["age"], data="samples", out=tmp_path)
    assert not asked.scores().metric.str.contains("audited").any()
    old = cbbq.score_records(asked.records, asked.items.drop(columns="label_audited"), "robust")
    assert cell(old, "accuracy", task="all").score == pytest.approx(1)
