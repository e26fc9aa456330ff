"""A CBBQ category of one's own: rows, or dataset.toml, tell which option names the group."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from bench import data, records, run
from bench.benchmarks import get
from bench.benchmarks.cbbq import audit
from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq.expand import expand
from tests.helpers.recorded import templates

HEAD = 'name = "Ours"\nlanguage = "zh"\n\n[categories.ours]\nen = "Ours"\nzh = "自编"\n'
TARGETS = ('target = "NAME1"\n', 'target = "NAME2"\n')


def copied(folder: Path, category: str, target: str = "", **cells: str) -> Path:
    """A category of the samples under a name that no release has, with some cells changed."""
    for path in sorted((get("cbbq").metadata.samples / category).glob("*/*.csv")):
        place = folder / "ours" / path.parent.name / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        rows = pd.read_csv(path, dtype=str).assign(category="ours", **cells)
        rows.to_csv(place, index=False)
    (folder / "dataset.toml").write_text(HEAD + target, "utf-8")
    return folder


def targets(folder: Path, category: str = "ours") -> list[tuple[str, int]]:
    return [
        (f"{one.condition}:{one.example_id}", one.target)
        for one in cbbq.load(folder, [category]).items
    ]


def test_a_run_that_kept_other_targets_takes_those_of_today(own_folder: Path) -> None:
    copied(Path("data"), "gender")
    given = {"data": "data", "categories": ["ours"], "out": "run"}
    done = run.evaluate("cbbq", "simulated:bias=1", **given)
    scores = done.scores("paper").score
    records.write_items(done.folder, done.about, done.items.assign(target=0))
    assert not done.scores("paper").score.equals(scores)
    again = run.evaluate("cbbq", "simulated:bias=1", **given)
    assert again.scores("paper").score.equals(scores)


def test_rows_that_do_not_tell_need_a_slot(tmp_path: Path, refusal: Callable[..., str]) -> None:
    group = {"bias_targeted_groups": "被歧视者"}
    folder = copied(tmp_path / "a", "gender", **group)
    message = refusal(cbbq.load, folder, ["ours"])
    assert "templates_generate_neg.csv, row 1, column `bias_targeted_groups`: '被歧视者'" in message
    assert 'target = "NAME1" or target = "NAME2"' in message
    found = audit.check(folder).query("kind == 'refused'")
    assert found.column.tolist() == ["bias_targeted_groups"] * 20
    for option, line in enumerate(TARGETS):
        folder = copied(tmp_path / str(option), "gender", line, **group)
        assert {target for _, target in targets(folder)} == {option}
        assert "refused" not in set(audit.check(folder).kind)
    assert data.find("cbbq", tmp_path / "0").sha256 != data.find("cbbq", folder).sha256
    # A row that tells counts more than the declared slot, and is listed.
    folder = copied(tmp_path / "b", "gender", TARGETS[0])
    assert {target for _, target in targets(folder)} == {1}
    rows = audit.check(folder).query("fault == 'roles_reversed_vs_category'")
    assert rows.column.tolist() == ["NAME2"] * 20
    # So do the rows of expanded files.
    expand(data.find("cbbq", folder), tmp_path / "out", "csv")
    assert {target for _, target in targets(tmp_path / "out")} == {1}
    (tmp_path / "out/dataset.toml").write_text(HEAD, "utf-8")
    for path in (tmp_path / "out").glob("*/*/*.csv"):
        path.write_text(path.read_text("utf-8-sig").replace("女性", "某群"), "utf-8")
    assert "'某群' does not tell" in refusal(cbbq.load, tmp_path / "out", ["ours"])
    assert "refused" in set(audit.check(tmp_path / "out").kind)


def test_a_code_in_a_released_category_is_refused_until_the_slot_is_declared(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    cells = {"NAME1": "[woman, girl]", "NAME2": "[man, boy]", "bias_targeted_groups": "F"}
    folder = templates(tmp_path, cells, non_neg=[cells], category="gender")
    message = refusal(data.load, data.find("cbbq", folder))
    assert "row 1, column `bias_targeted_groups`: 'F' does not tell" in message
    lines = message.partition("[categories.gender] in dataset.toml, below ")[2].split(", with ")
    table = "\n".join(["[categories.gender]", *lines[1].split(", "), 'target = "NAME1"'])
    (folder / "dataset.toml").write_text(f"{lines[0]}\n{table}", "utf-8")
    items = data.load(data.find("cbbq", folder))
    assert {(one.ans0, one.target, one.target_name) for one in items} == {
        ("woman", 0, "woman"),
        ("girl", 0, "girl"),
    }
    audited = audit.check(folder)
    assert "refused" not in set(audited.kind)
