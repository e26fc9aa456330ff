"""The audit of a CBBQ folder: each fault by a small template of our own."""

from bench.benchmarks import get
from bench.benchmarks.cbbq.audit import check
from bench.benchmarks.cbbq.templates import FILES
from tests.helpers.cases import cases
from tests.helpers.recorded import FACTS, TEMPLATE, templates

AMB, DIS = "ambiguous", "disambiguous"
NEG, NONNEG = FILES.values()


def folder_of(root, *neg, non_neg=(), **place):
    """Write one condition: in each file a sound template, and one for each change."""
    context = FACTS if place.get("condition") == DIS else TEMPLATE["context"]
    first = {"context": context.replace("来了。", "来了。下雨了。")}
    return templates(
        root, first, *neg, non_neg=[{**first, "question": "谁有伞？"}, *non_neg], **place
    )


def found(folder):
    """All findings but the counts, as `FILE ROW COLUMN FAULT QUESTIONS`, without what is empty."""
    table = check(folder).query("kind != 'count'")
    rows = table[["file", "row", "column", "fault", "questions"]].to_numpy().tolist()
    return [" ".join(str(cell) for cell in row if cell) for row in rows]


def test_a_sound_folder_has_nothing_but_its_numbers(tmp_path):
    folder_of(tmp_path, condition=DIS)
    table = check(folder_of(tmp_path))
    assert list(table) == ["file", "row", "column", "kind", "what", "value", "fault", "questions"]
    assert list(table.kind) == ["count"] * 15
    assert (
        "category region: 1 ambiguous neg templates, 1 ambiguous non_neg templates, "
        "1 disambiguous neg templates, 1 disambiguous non_neg templates, 8 ambiguous questions, "
        "8 disambiguous questions, 16 distinct questions; the release has "
        "74 ambiguous neg templates, 74 ambiguous non_neg templates, "
        "74 disambiguous neg templates, 74 disambiguous non_neg templates, "
        "2,176 ambiguous questions, 2,176 disambiguous questions, 4,342 distinct questions"
    ) in set(table.what)
    assert table.what.iloc[-1].startswith("all categories: 1 ambiguous neg templates, ")
    assert set(check(get("cbbq").metadata.samples).kind) == {"count"}


# Changes of templates, all findings (row, column, fault, questions), and what one of them says.
@cases(__file__, "odd_templates.csv")
def test_an_odd_template_is_reported_once_a_fault_with_its_place(tmp_path, case):
    place = {"category": case["category"], "condition": case["condition"]}
    rows = [row.split("&") for row in case["change"].split(" ; ")]
    changes = (dict(pair.split("=", 1) for pair in row) for row in rows)
    folder = folder_of(tmp_path, *changes, **place)
    file = f"{'/'.join(place.values())}/{NEG} "
    findings = sorted(one.removeprefix(file) for one in found(folder))
    assert findings == sorted(filter(None, case["findings"].split(", ")))
    assert check(folder).what.str.contains(case["says"], regex=False).any()


def test_files_are_reported_too(tmp_path):
    folder = folder_of(tmp_path, non_neg=({"question": "谁?"},))
    file = f"region/ambiguous/{NEG}"
    path = folder / file
    path.write_bytes(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    (folder / "region/~$amb_region.xlsx").write_bytes(b"x")
    others = [f"region/{AMB}/{NONNEG} 2 question question_mark 4"]
    others.append("region/~$amb_region.xlsx lock_file")
    assert found(folder) == [f"{file} no_byte_order_mark", *others]
    path.write_bytes("表".encode("gbk"))
    assert found(folder) == [f"{file} no_byte_order_mark", f"{file} refused", *others]
    path.unlink()
    assert check(folder).what[0].startswith(f"{file}: is missing beside {NONNEG}")
    assert found(tmp_path / "empty") == ["refused"]
