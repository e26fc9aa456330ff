"""The questions that templates expand to: those of the release to the byte, and cleaner ones."""

import json
from pathlib import Path

import pandas as pd
import pytest

import bench
from bench import data
from bench.benchmarks.cbbq.templates import CONDITIONS
from bench.data import fetch
from tests.benchmarks.number_net import write_questions
from tests.helpers.cases import cases
from tests.helpers.recorded import templates


def load(folder, **settings):
    return data.load(data.find("cbbq", folder), **settings)


def test_the_questions_are_the_released_ones_to_the_byte(shared, tmp_path):
    folder = shared / "data/cbbq"
    write_questions(data.frame(load(folder)), folder, tmp_path, as_released=True)
    lines = (folder / "blobs.tsv").read_text("utf-8").splitlines()
    ids = {name.removeprefix("data/"): blob for name, blob in (line.split("\t") for line in lines)}
    paths = [path for path in tmp_path.rglob("*.*") if path.is_file()]
    written = {path.relative_to(tmp_path).as_posix(): fetch.git_blob_id(path) for path in paths}
    assert len(written) == 40
    assert written.items() <= ids.items()


def small(root):
    """Templates with a cell that CSV has to quote, and names that are swapped."""
    odd = {"NAME1": "[甲]", "source": '一,"二"\n三'}
    bare = {"NAME1": "[甲]", "subcategory": "住"}
    place = {"condition": "disambiguous", "category": "religion"}
    return templates(root / "d", odd, non_neg=[bare], **place)


@pytest.mark.parametrize("expansion", ["compat", "repair"])
def test_items_of_a_run_as_json_are_a_small_expansion_by_hand(tmp_path, expansion):
    """Repaired questions keep who fills the slots and which template it was."""
    folder = small(tmp_path)
    options = {"data": folder, "settings": {"expansion": expansion}}
    run = bench.evaluate("cbbq", "simulated:", **options, out=tmp_path / "run")
    items = pd.DataFrame(json.loads(bench.items(run).to_json(orient="records")))
    write_questions(items, folder, tmp_path / "out", as_released=expansion == "compat")
    for form in ("csv", "json"):
        written = tmp_path / f"out/religion/disambiguous/disambiguous.{form}"
        by_hand = Path(__file__).parent / f"expanded/{expansion}.{form}"
        assert written.read_bytes() == by_hand.read_bytes()


# A cell (tokens of the release: specification, section 5.3), and what the first question holds, as
# released and repaired.
@cases(__file__, "malformed.csv")
def test_faults_of_the_release_are_left_or_fixed(tmp_path, case):
    folder = templates(tmp_path / "d", {case["column"]: case["cell"]})
    for expansion in ("compat", "repair"):
        assert case[expansion] in " ".join(load(folder, expansion=expansion)[0].text)


def test_repair_leaves_out_pairs_of_one_name_and_the_others_keep_their_numbers(tmp_path):
    for condition in CONDITIONS:
        templates(tmp_path, {"NAME1": "[甲, 丙]"}, condition=condition)
    items, repaired = load(tmp_path), load(tmp_path, expansion="repair")
    alike = {item.item_id for item in items if item.name1 == item.name2}
    assert len(alike) == 4
    assert [item.item_id for item in repaired] == [
        item.item_id for item in items if item.item_id not in alike
    ]


def test_questions_without_their_templates_are_refused(tmp_path, refusal):
    """Beside their templates, the release has them too; they are not read then."""
    path = templates(tmp_path) / "region/ambiguous/ambiguous.json"
    path.write_text("[]", "utf-8")
    assert len(load(tmp_path)) == 8
    for template in path.parent.glob("templates_*"):
        template.unlink()
    message = refusal(load, tmp_path)
    assert message.startswith(f"{path}: holds questions, and the loader makes these of templates; ")
