"""The audit of a CBBQ folder: each fault by a small template of our own."""

import pandas as pd
import pytest

from bench.benchmarks import get
from bench.benchmarks.cbbq.audit import check
from bench.benchmarks.cbbq.expand import expand
from bench.benchmarks.cbbq.templates import FILES
from bench.data import find
from tests.helpers.cases import cases
from tests.helpers.recorded import FACTS, TEMPLATE, templates

AMB, DIS = "ambiguous", "disambiguous"
NEG, NONNEG = FILES.values()
MEETING = TEMPLATE["context"]


def folder_of(root, *neg, non_neg=(), **place):
    """Write one condition: in each file a sound template, and one for each change."""
    facts = FACTS.removeprefix(MEETING) if place.get("condition") == DIS else ""
    first = {"context": f"{MEETING}下雨了。{facts}"}
    return templates(
        root, first, *neg, non_neg=[{**first, "question": "谁有伞？"}, *non_neg], **place
    )


def found(folder, **settings):
    """All findings but the counts, as `FILE ROW COLUMN FAULT QUESTIONS`, without what is empty."""
    table = check(folder, **settings).query("kind != 'count'")
    rows = table[["file", "row", "column", "fault", "questions"]].to_numpy().tolist()
    return [" ".join(str(cell) for cell in row if cell) for row in rows]


def test_a_sound_folder_has_nothing_but_its_numbers(tmp_path):
    folder_of(tmp_path, condition=DIS)
    table = check(folder_of(tmp_path))
    assert list(table) == ["file", "row", "column", "kind", "what", "value", "fault", "questions"]
    assert list(table.kind) == ["count"] * 15
    (region,) = [what for what in table.what if what.startswith("category region: ")]
    parts = ("neg templates", "non_neg templates")
    names = [f"{place}iguous {part}" for place in ("amb", "disamb") for part in parts]
    names += ["ambiguous questions", "disambiguous questions", "distinct questions"]
    counts = dict(zip(names, (1, 1, 1, 1, 8, 8, 16), strict=True))
    released = dict(zip(names, (74, 74, 74, 74, 2176, 2176, 4342), strict=True))
    own, theirs = (
        ", ".join(f"{count:,} {name}" for name, count in numbers.items())
        for numbers in (counts, released)
    )
    assert region == f"category region: {own}; the release has {theirs}"
    assert table.what.iloc[-1].startswith("all categories: 1 ambiguous neg templates, ")
    assert set(check(get("cbbq").metadata.samples).kind) == {"count"}


# Changes of templates, all findings (row, column, fault, questions), and what one of them says.
@cases(__file__, "odd_templates.csv")
def test_an_odd_template_is_reported_once_a_fault_with_its_place(tmp_path, case):
    place = {"category": case["category"], "condition": case["condition"]}
    rows = [row.split("&") for row in case["change"].split(" ; ")]
    folder = folder_of(
        tmp_path, *(dict(pair.split("=", 1) for pair in row) for row in rows), **place
    )
    file = f"{'/'.join(place.values())}/{NEG} "
    findings = sorted(one.removeprefix(file) for one in found(folder))
    assert findings == sorted(filter(None, case["findings"].split(", ")))
    assert check(folder).what.str.contains(case["says"], regex=False).any()


def test_files_are_reported_too(tmp_path):
    folder = folder_of(tmp_path, non_neg=({"question": "谁?"},))
    path = folder / "region/ambiguous" / NEG
    path.write_bytes(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    (folder / "region/~$amb_region.xlsx").write_bytes(b"x")
    others = [f"region/{AMB}/{NONNEG} 2 question question_mark 4"]
    others.append("region/~$amb_region.xlsx lock_file")
    assert found(folder) == [f"region/ambiguous/{NEG} no_byte_order_mark", *others]
    path.write_bytes("表".encode("gbk"))
    refused = f"region/ambiguous/{NEG} refused"
    assert found(folder) == [f"region/ambiguous/{NEG} no_byte_order_mark", refused, *others]
    path.unlink()
    assert check(folder).what[0].startswith(f"region/ambiguous/{NEG}: is missing beside {NONNEG}")
    templates(templates(folder), category="regions")
    assert check(folder).what.str.contains("'regions' is unknown").any()
    assert found(tmp_path / "empty") == ["refused"]


def expanded(root, condition):
    """The expanded file of `folder_of`, and its rows."""
    out = root / "out"
    expand(find("cbbq", folder_of(root / "in", condition=condition)), out, "csv")
    path = out / f"region/{condition}/{condition}.csv"
    return path, pd.read_csv(path, dtype=str)


def test_expanded_files_beside_templates_are_compared_with_them(tmp_path):
    rows, folder = expanded(tmp_path, AMB)[1], tmp_path / "in"
    name = "region/ambiguous/ambiguous.json"

    def differences(rows):
        rows.to_json(folder / name, orient="records")
        return found(folder)

    assert differences(rows) == []
    assert differences(rows[:-1]) == [f"{name} expanded_differ 1"]
    rows.loc[2, "context"] = rows.loc[3, "ans2"] = "别的"
    assert differences(rows) == [f"{name} 3 context expanded_differ 2"]
    (folder / name).write_bytes(b"")
    assert check(folder).what.str.contains("it cannot be compared: ").any()


def test_expanded_files_alone_are_audited_by_row(tmp_path):
    path, rows = expanded(tmp_path, DIS)
    name, folder = f"region/{DIS}/{DIS}.csv", tmp_path / "out"
    changes = [
        {},
        {"context": "来了{{NAME2]}。"},
        {"label": "0", "context": "下雨了。"},
        {"category": "race", "context": "晴了。"},
        {},
    ]
    table = pd.DataFrame([rows.loc[0].to_dict() | change for change in changes])
    pd.concat([table, rows[4:5]]).to_csv(path, index=False)
    assert found(folder) == [
        f"region/{DIS} duplicate_questions 1",
        f"{name} 2 context malformed_placeholder 1",
        f"{name} 3 label label_is_biased 1",
        f"{name} 4 category category_column_wrong 1",
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda rows: rows[::-1], "question_polarity polarity_order 4"),
        (lambda rows: rows.assign(question_polarity="neg"), "question_polarity one_polarity 8"),
        (lambda rows: rows.assign(label="2"), "1 label refused"),
    ],
)
def test_an_expanded_file_is_audited_as_a_whole(tmp_path, change, fault):
    path, rows = expanded(tmp_path, DIS)
    change(rows).to_csv(path, index=False)
    assert f"region/{DIS}/{DIS}.csv {fault}" in found(tmp_path / "out")
