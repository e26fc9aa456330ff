"""A CBBQ category of one's own: its targets are told by the rows, by dataset.toml, or by nothing."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import data, records, run
from bench.core.errors import BadInput
from bench.curate import cbbq as curated
from bench.curate.cbbq import release
from bench.curate.cbbq.rounds import Rounds
from bench.data import SAMPLES, cbbq
from bench.data.cbbq import audit
from bench.data.cbbq.expand import expand

HEAD = 'name = "Ours"\nlanguage = "zh"\n\n[categories.ours]\nen = "Ours"\nzh = "自编"\n'
TARGET_1, TARGET_2 = 'target = "NAME1"\n', 'target = "NAME2"\n'


def copied(folder: Path, category: str, manifest: str = HEAD, **cells: str) -> Path:
    """A category of the samples under a name that no release has, with some cells changed."""
    for path in sorted((SAMPLES / "cbbq" / category).glob("*/*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = [{**row, "category": "ours", **cells} for row in csv.DictReader(stream)]
        place = folder / "ours" / path.parent.name / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    (folder / "dataset.toml").write_text(manifest, "utf-8")
    return folder


def targets(folder: Path, category: str = "ours") -> list[tuple[str, str, int, int]]:
    questions = cbbq.load(folder, [category])
    return [(one.condition, one.template, one.example_id, one.target) for one in questions]


def test_the_gender_sample_is_scored_alike_under_another_name(own_folder: Path) -> None:
    """A respondent biased against women, who are recognised by the options."""
    copied(Path("data"), "gender")
    for name, folder in (("gender", SAMPLES / "cbbq"), ("ours", Path("data"))):
        lines = []
        for one in cbbq.load(folder, [name]):
            letter = "AB"["女" in one.ans1 if one.polarity == "neg" else "女" in one.ans0]
            key = {"task": one.condition, "item_id": one.item_id, "request": "answer"}
            lines.append(json.dumps({**key, "response": letter}))
        Path("replies.jsonl").write_text("\n".join(lines))
        done = run.evaluate(
            "cbbq", "replay:replies.jsonl", data=folder, categories=[name], out=name
        )
        scores = done.scores("paper")
        shares = scores[scores.category == name].set_index(["task", "metric"]).score
        assert shares["ambiguous", "s_amb"] == shares["disambiguous", "s_disamb"] == 1
    # A run that kept other targets takes those of today.
    records.write_items(done.folder, done.items.assign(target=0))
    assert done.scores("paper").score[0] == 0
    again = run.evaluate("cbbq", "replay:replies.jsonl", data=folder, categories=[name], out=name)
    assert again.scores("paper").score[0] == 1


@pytest.mark.parametrize("category", sorted(path.name for path in (SAMPLES / "cbbq").glob("*/")))
def test_a_copy_has_the_same_targets_or_is_refused(tmp_path: Path, category: str) -> None:
    folder = copied(tmp_path, category)
    try:
        found = targets(folder)
    except BadInput:
        return
    if category not in ("disease", "educational_qualification"):  # have rules of their own
        assert found == targets(SAMPLES / "cbbq", category)


def test_rows_that_do_not_tell_need_a_slot(tmp_path: Path, refusal: Callable[..., str]) -> None:
    group = {"bias_targeted_groups": "被歧视者"}
    folder = copied(tmp_path / "a", "gender", **group)
    message = refusal(cbbq.load, folder, ["ours"])
    for text in (
        "templates_generate_neg.csv, row 1, column `bias_targeted_groups`: '被歧视者'",
        'target = "NAME1" or target = "NAME2"',
        "[categories.ours]",
    ):
        assert text in message
    found = audit.check(folder)
    assert len(found[(found.kind == "refused") & (found.column == "bias_targeted_groups")]) == 20
    hashes = set()
    for option, line in enumerate((TARGET_1, TARGET_2)):
        folder = copied(tmp_path / line[-4:-2], "gender", HEAD + line, **group)
        assert {row[-1] for row in targets(folder)} == {option}
        assert "refused" not in set(audit.check(folder).kind)
        hashes.add(data.find("cbbq", folder).sha256)
    assert len(hashes) == 2
    # A row that tells counts more than the declared slot, and is listed.
    folder = copied(tmp_path / "b", "gender", HEAD + TARGET_1)
    assert {row[-1] for row in targets(folder)} == {1}
    rows = audit.check(folder).query("fault == 'roles_reversed_vs_category'")
    assert rows.column.tolist() == ["NAME2"] * 20


def test_expanded_files_take_the_target_from_their_rows_too(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    expand(data.find("cbbq", copied(tmp_path / "data", "gender")), tmp_path / "out", "csv")
    assert {row[-1] for row in targets(tmp_path / "out")} == {1}
    for path in (tmp_path / "out").glob("*/*/*.csv"):
        path.write_text(path.read_text("utf-8-sig").replace("女性", "某群"), "utf-8")
    assert "'某群' does not tell" in refusal(cbbq.load, tmp_path / "out", ["ours"])
    assert "refused" in set(audit.check(tmp_path / "out").kind)


def test_curation_writes_the_slot_and_asks_for_one_that_nothing_tells(
    done: curated.Project,
) -> None:
    path = done.folder / "dataset.toml"
    made = release.write(Rounds(done))
    assert TARGET_1.strip() in (made.folder / "dataset.toml").read_text("utf-8").splitlines()
    assert {row[-1] for row in targets(made.folder, "accent")} == {0}
    path.write_text(path.read_text("utf-8").replace(TARGET_1, ""), "utf-8")
    wrong = curated.faults(done)
    assert set(wrong.column[wrong.file == "templates.csv"]) == {"NAME1"}
    assert wrong.what.str.contains('target = "NAME1"', regex=False).any()
    # What every template tells is written for those who add rows.
    words = "/".join(("乡音很重", "带乡音", "方言口音", "普通话不标准"))
    done.save("biases", [{**row, "group": words} for row in done.table("biases")])
    assert curated.faults(done).empty
    text = release.manifest_text(done, done.templates())
    assert TARGET_1.strip() in text.splitlines()
