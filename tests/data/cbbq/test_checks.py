"""The checks of a CBBQ folder: each fault by a small template of our own."""

from bench.benchmarks import get
from bench.benchmarks.cbbq.templates import FILES
from tests.helpers.cases import cases
from tests.helpers.recorded import FACTS, TEMPLATE, templates

AMB, DIS = "ambiguous", "disambiguous"
NEG, NONNEG = FILES.values()


check = get("cbbq").check


def folder_of(root, *neg, **place):
    """Write one condition: a sound template and one for each change, beside as many sound ones."""
    context = FACTS if place.get("condition") == DIS else TEMPLATE["context"]
    first = {"context": context.replace("来了。", "来了。下雨了。")}
    sound = [{**first, "question": f"谁有{k}把伞？"} for k in range(len(neg) + 1)]
    return templates(root, first, *neg, non_neg=sound, **place)


def found(folder):
    """All findings but the counts, as `FILE ROW COLUMN FAULT`, without what is empty."""
    table = check(folder).query("kind != 'count'")
    rows = table[["file", "row", "column", "fault"]].to_numpy().tolist()
    return [" ".join(str(cell) for cell in row if cell) for row in rows]


def test_a_sound_folder_has_nothing_but_its_numbers(tmp_path):
    folder_of(tmp_path, condition=DIS)
    table = check(folder_of(tmp_path))
    assert list(table) == ["file", "row", "column", "kind", "fault", "what", "value"]
    assert list(table.kind) == ["count"] * 15
    assert table.what[0] == (
        "category region: 1 ambiguous neg templates, 1 ambiguous non_neg templates, "
        "1 disambiguous neg templates, 1 disambiguous non_neg templates; the release has "
        "74 ambiguous neg templates, 74 ambiguous non_neg templates, "
        "74 disambiguous neg templates, 74 disambiguous non_neg templates"
    )
    assert table.what.iloc[-1].startswith("all: 1 ambiguous neg templates, ")
    assert set(check(get("cbbq").metadata.samples).kind) == {"count"}


# Changes of templates, all findings (row, column, fault), and what one of them says.
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


def test_files_that_are_not_read_and_a_missing_one_are_named(tmp_path):
    folder = folder_of(tmp_path)
    (folder / "region/~$amb_region.xlsx").write_bytes(b"x")
    (folder / "more.csv").write_text("a,b\n", "utf-8")
    assert found(folder) == ["more.csv other_file", "region/~$amb_region.xlsx other_file"]
    path = folder / f"region/{AMB}/{NEG}"
    path.write_bytes("表".encode("gbk"))
    assert found(folder)[1] == f"region/{AMB}/{NEG} 1 refused"
    path.unlink()
    assert found(folder) == [f"region/{AMB}/{NEG} refused"]
    assert check(folder).what[0].startswith(f"is missing beside {NONNEG}; both polarities")
    (tmp_path / "empty").mkdir()
    assert found(tmp_path / "empty") == ["refused"]


def test_as_many_templates_of_each_polarity_are_expected(tmp_path):
    folder = templates(tmp_path, {}, {"question": "谁没带伞？"})
    assert found(folder) == [f"region/{AMB} unequal_groups"]
    assert check(folder).what[0] == (
        "are not as many of each: 2 neg templates, 1 non_neg templates"
    )
