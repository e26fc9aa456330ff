"""Which option of a CBBQ row names the stereotyped group: by the row, by dataset.toml, or none."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import data, records, run
from bench.core.errors import BadInput
from bench.curate import cbbq as curated
from bench.curate.cbbq import release
from bench.data import SAMPLES, cbbq
from bench.data.cbbq import audit
from bench.data.cbbq.targets import named_option

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


def targets(questions: list[cbbq.Question]) -> list[tuple[str, str, int, int]]:
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


def test_an_earlier_run_takes_the_targets_of_today(own_folder: Path) -> None:
    copied(Path("data"), "gender")
    asked = {"data": "data", "categories": ["ours"], "out": "run"}
    done = run.evaluate("cbbq", "simulated:bias=1", **asked)
    records.write_items(done.folder, done.items.assign(target=0))
    assert done.scores("paper").score[0] == 0
    again = run.evaluate("cbbq", "simulated:bias=1", **asked)
    assert again.scores("paper").score[0] == 1


@pytest.mark.parametrize("category", sorted(path.name for path in (SAMPLES / "cbbq").glob("*/")))
def test_a_copy_has_the_same_targets_or_is_refused(tmp_path: Path, category: str) -> None:
    if category in ("disease", "educational_qualification"):
        pytest.skip("has rules of expansion of its own")
    folder = copied(tmp_path, category)
    try:
        found = cbbq.load(folder, ["ours"])
    except BadInput:
        return
    assert targets(found) == targets(cbbq.load(SAMPLES / "cbbq", [category]))


@pytest.mark.parametrize(
    ("group", "first", "second", "option"),
    [
        ("女性", "男司机", "女司机", 1),
        ("女性", "女教授", "男教授", 0),
        ("男性/女性", "男司机", "女司机", None),
        ("河南人/安徽人", "河南店主 安徽店主", "浙江店主 福建店主", 0),
        ("非异性恋者", "同性恋者 双性恋者", "异性恋者", 0),
        ("变性人", "非变性女生", "变性女生", 1),
        ("残疾人", "坐轮椅的程序员", "没有残疾的程序员", 0),
        ("残疾人", "坐轮椅的程序员", "没有任何残疾的程序员", None),
        ("外貌不出众者", "长相出众 很有气质", "长相一般 长相普通", 1),
        ("非裔美国人", "白种人", "非裔美国人", 1),
        ("无锡人", "无锡人", "苏州人", 0),
        ("老年人", "二十岁的人", "五十八岁的人", None),
        ("老人", "年轻的老板", "年长的员工", None),
        ("印度人", "印度", "美国 印度尼西亚", None),
        ("women", "a group of men", "a group of women", 1),
        ("men", "a group of women", "a few people", None),
        ("Muslims", "non-Muslims", "Muslims", 1),
        ("immigrants", "immigrants", "people who are not immigrants", 0),
    ],
)
def test_the_group_is_looked_for_in_the_texts_of_the_options(
    group: str, first: str, second: str, option: int | None
) -> None:
    texts = [frozenset([text] if group.isascii() else text.split()) for text in (first, second)]
    assert named_option(group, (texts[0], texts[1])) == option


def test_rows_that_do_not_tell_need_a_slot(tmp_path: Path, refusal: Callable[..., str]) -> None:
    group = {"bias_targeted_groups": "被歧视者"}
    folder = copied(tmp_path / "a", "gender", **group)
    message = refusal(cbbq.load, folder, ["ours"])
    assert "templates_generate_neg.csv, row 1, column `bias_targeted_groups`: '被歧视者'" in message
    assert 'target = "NAME1" or target = "NAME2"' in message
    assert "[categories.ours]" in message
    found = audit.check(folder)
    assert len(found[(found.kind == "refused") & (found.column == "bias_targeted_groups")]) == 20
    hashes = set()
    for option, line in enumerate((TARGET_1, TARGET_2)):
        folder = copied(tmp_path / line[-4:-2], "gender", HEAD + line, **group)
        assert {one.target for one in cbbq.load(folder, ["ours"])} == {option}
        assert "refused" not in set(audit.check(folder).kind)
        hashes.add(data.find("cbbq", folder).sha256)
    assert len(hashes) == 2
    folder = copied(tmp_path / "b", "gender", HEAD + 'target = "name2"\n', **group)
    assert "`categories.ours.target`" in refusal(data.find, "cbbq", folder)


def test_a_row_that_tells_counts_more_than_the_declared_slot_and_is_listed(tmp_path: Path) -> None:
    folder = copied(tmp_path, "gender", HEAD + TARGET_1)
    assert {one.target for one in cbbq.load(folder, ["ours"])} == {1}
    found = audit.check(folder)
    rows = found[found.fault == "roles_reversed_vs_category"]
    assert len(rows) == 20
    assert set(rows.column) == {"NAME2"}


def test_expanded_files_take_the_target_from_their_rows_too(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    from bench.data.cbbq.expand import expand

    folder = copied(tmp_path / "data", "gender")
    expand(data.find("cbbq", folder), tmp_path / "out", "csv", "compat")
    found = cbbq.load(tmp_path / "out", ["ours"])
    assert {one.target for one in found} == {1}
    for path in (tmp_path / "out").glob("*/*/*.csv"):
        path.write_text(path.read_text("utf-8-sig").replace("女性", "某群"), "utf-8")
    assert "'某群' does not tell" in refusal(cbbq.load, tmp_path / "out", ["ours"])
    assert "refused" in set(audit.check(tmp_path / "out").kind)


def test_curation_writes_the_slot_and_asks_for_one_that_nothing_tells(
    done: curated.Project,
) -> None:
    path = done.folder / "dataset.toml"
    made = release.write(done)
    assert TARGET_1.strip() in (made.folder / "dataset.toml").read_text("utf-8").splitlines()
    assert {one.target for one in cbbq.load(made.folder, ["accent"])} == {0}
    path.write_text(path.read_text("utf-8").replace(TARGET_1, ""), "utf-8")
    wrong = curated.faults(done)
    assert set(wrong.column[wrong.file == "templates.csv"]) == {"NAME1"}
    assert wrong.what.str.contains('target = "NAME1"', regex=False).any()
    # What every template tells is written for those who add rows.
    biases = done.table("biases")
    words = "/".join(("乡音很重", "带乡音", "方言口音", "普通话不标准"))
    done.save("biases", [{**row, "group": words} for row in biases])
    assert curated.faults(done).empty
    text = release.manifest_text(done, done.templates())
    assert TARGET_1.strip() in text.splitlines()
    assert 'en = "accent"' in text
