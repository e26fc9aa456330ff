"""Hashes of inputs: the content of all files that values name, and the code that was imported."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from bench.core.inputs import Code, hash_inputs, imported_modules


@pytest.fixture
def files(own_folder):
    for name in ("one.csv", "data/age.csv", "data/deep/sex.csv", "runs/a/run.json", "runs/b.csv"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x")


@pytest.mark.parametrize(
    ("value", "changed", "is_input"),
    [
        ("one.csv", "one.csv", True),
        (Path("one.csv"), "one.csv", True),
        ({"cbbq": {"tables": ["one.csv"]}}, "one.csv", True),
        ({"one.csv": 1}, "one.csv", True),
        ({"cbbq": "data"}, "data/deep/sex.csv", True),
        ("data", "data/new.csv", True),
        ("runs/*", "runs/b.csv", True),
        ("runs/*", "runs/c.csv", True),
        ("runs/a", "runs/a/run.json", True),
        # What is made of a run, what is hidden, and what is left out is none.
        ("runs/a", "runs/a/cache/table.parquet", False),
        ("runs/a", "runs/a/scores.json", False),
        ("data", "data/cache/age.csv", True),
        ("data", "data/.lock", False),
        ("data", "data/out/page.html", False),
        # Separators are no folders.
        (["/", ".", "", "~", "a\0b", "x" * 5000, 1.5, None], "one.csv", False),
    ],
)
def test_files_that_a_value_names_are_inputs_with_their_content(files, value, changed, is_input):
    before = hash_inputs(value, but=Path("data/out"))
    assert before == hash_inputs(value, but=Path("data/out"))
    Path(changed).parent.mkdir(parents=True, exist_ok=True)
    Path(changed).write_text("y")
    assert (hash_inputs(value, but=Path("data/out")) != before) is is_input


def test_paths_start_at_a_folder_even_before_it_is_made(files):
    before = hash_inputs("../data", folder=Path("later"))
    Path("later").mkdir()
    assert hash_inputs("../data", folder=Path("later")) == before
    Path("data/age.csv").write_text("y")
    assert hash_inputs("../data", folder=Path("later")) != before


def test_equal_sizes_and_times_of_change_do_not_hide_a_change(files):
    state, before = os.stat("one.csv"), hash_inputs("one.csv")
    code = Code(["one.csv"])
    Path("one.csv").write_text("y")
    os.utime("one.csv", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert hash_inputs("one.csv") != before
    assert code.key() != code.sha256


def test_links_that_lead_back_are_followed_once(files):
    os.symlink(os.path.abspath("data"), "data/deep/back")
    os.symlink(os.path.abspath("runs"), "data/runs")
    before = hash_inputs("data")
    Path("runs/b.csv").write_text("y")
    assert hash_inputs("data") != before


@pytest.mark.parametrize("change", ["edit", "replace", "remove", "add"])
def test_a_process_does_not_know_the_code_that_came_after_its_import(files, change):
    code, early = Code(["data"]), Code(["data"])
    assert early.key() == early.sha256
    if change == "replace":
        os.rename("data", "old")
        Path("data/deep").mkdir(parents=True)
        for name in ("age.csv", "deep/sex.csv"):
            Path("data", name).write_text("x")
    elif change == "remove":
        Path("data/age.csv").unlink()
    else:
        Path("data", "age.csv" if change == "edit" else "new.csv").write_text("y")
    assert len({code.key(), code.key(), early.key(), early.sha256}) == 4


def test_code_that_is_younger_than_the_process_may_not_be_what_it_imported(files):
    now = os.stat("data/age.csv").st_ctime_ns
    older, younger = (Code(["data/age.csv"], since=since) for since in (now - 1, now))
    assert younger.key() == younger.sha256 != older.key()


def test_a_module_is_found_by_sys_path_or_by_another_finder(own_folder, monkeypatch):
    # `twin` has been imported from another folder; `hidden` is found as in an editable install.
    for name in ("here/twin.py", "there/twin.py", "there/hidden.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("")
    spec = spec_from_file_location("twin", Path("there/twin.py").resolve())
    monkeypatch.setitem(sys.modules, "twin", module_from_spec(spec))
    monkeypatch.syspath_prepend(Path("here").resolve())

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return spec_from_file_location(name, hidden) if name == "hidden" else None

    hidden = Path("there/hidden.py").resolve()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    found = imported_modules([], ["twin", "hidden"])
    assert found == {"twin": [Path("here/twin.py").resolve()], "hidden": [hidden]}
