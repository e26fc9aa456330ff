"""A CBBQ category of one's own: rows, or dataset.toml, tell which option names the group."""

import pandas as pd

from bench import data
from bench.benchmarks import get
from bench.benchmarks.cbbq import audit
from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq.expand import expand

HEAD = 'name = "Ours"\nlanguage = "zh"\n\n[categories.ours]\nen = "Ours"\nzh = "自编"\n'
TARGETS = ('target = "NAME1"\n', 'target = "NAME2"\n')


def copied(folder, category, target="", **cells):
    """A category of the samples under a name that no release has, with some cells changed."""
    for path in sorted((get("cbbq").metadata.samples / category).glob("*/*.csv")):
        place = folder / "ours" / path.parent.name / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        rows = pd.read_csv(path, dtype=str).assign(category="ours", **cells)
        rows.to_csv(place, index=False)
    (folder / "dataset.toml").write_text(HEAD + target, "utf-8")
    return folder


def targets(folder):
    return {one.target for one in cbbq.load(folder, ["ours"]).items}


def test_rows_without_a_known_group_need_a_slot(tmp_path, refusal):
    group = {"bias_targeted_groups": "被歧视者"}
    folder = copied(tmp_path / "a", "gender", **group)
    message = refusal(cbbq.load, folder, ["ours"])
    assert "templates_generate_neg.csv, row 1, column `bias_targeted_groups`: '被歧视者'" in message
    assert 'target = "NAME1" or target = "NAME2"' in message
    found = audit.check(folder).query("kind == 'refused'")
    assert found.column.tolist() == ["bias_targeted_groups"] * 20
    for option, line in enumerate(TARGETS):
        folder = copied(tmp_path / str(option), "gender", line, **group)
        assert targets(folder) == {option}
        assert "refused" not in set(audit.check(folder).kind)
    assert data.find("cbbq", tmp_path / "0").sha256 != data.find("cbbq", folder).sha256


def test_a_row_with_a_known_group_counts_more_than_the_declared_slot(tmp_path):
    folder = copied(tmp_path / "b", "gender", TARGETS[0])
    assert targets(folder) == {1}
    rows = audit.check(folder).query("fault == 'roles_reversed_vs_category'")
    assert rows.column.tolist() == ["NAME2"] * 20
    expand(data.find("cbbq", folder), tmp_path / "out", "csv")
    assert targets(tmp_path / "out") == {1}
