"""Records: the content of a row, damaged files, locks, older versions, and kept score tables."""

import shutil
from functools import reduce
from operator import getitem
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pyarrow.parquet as pq
import pytest

from bench import records, run
from bench.core import inputs
from bench.core.errors import AnotherRun, RunFailed
from bench.run import Run, plan
from bench.runs import open as opening
from tests.helpers.recorded import columns, watch

pytestmark = pytest.mark.usefixtures("small_blocks")

ANSWERS, RECORDS = Path("out/records/answers.jsonl"), Path("out/records/answers.parquet")


@pytest.fixture
def asked(monkeypatch):
    """The prompts that simulated respondents are asked."""
    prompts = []
    watch(monkeypatch, lambda requests: prompts.extend(request.text for request in requests))
    return prompts


def ask(out="out", model="simulated:bias=0.6,refuse=0.1", **options):
    given = {"tasks": ["ss"], "categories": ["age"], "data": "samples"}
    return run.evaluate("mcbe", model, out=out, **{**given, **options})


def leave_unfinished(out="out", **options):
    """Interrupt a run after its last answer, and return its records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "finish", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ask(out, **options)
    return columns(out)


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_a_row_holds_what_was_asked_and_what_came_back(asked):
    rows = ask().records
    assert list(rows) == records.SCHEMA.names == pq.read_schema(RECORDS).names
    names = ["benchmark", "category", "task", "repeat", "seed", "error"]
    assert rows[names].iloc[0].tolist() == ["mcbe", "age", "ss", 0, 0, ""]
    assert all(word in rows.prompt[0] for word in rows.request[0].split("|"))
    # They are asked by prompt, and read in the order of the plan.
    assert asked == sorted(asked) != rows.prompt.tolist()
    assert rows.item_id.str.partition(":")[2].astype(int).is_monotonic_increasing


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:99],
        lambda content: content + b"\0",
        flipped,
        lambda content: Path("other/records/answers.parquet").read_bytes(),
    ],
)
def test_a_damaged_file_is_refused_then_moved_aside_and_asked_again(damage, capsys, refusal):
    scores, expected = ask().scores(), columns("out")
    ask("other", limit=1)
    broken = damage(RECORDS.read_bytes())
    RECORDS.write_bytes(broken)
    Path("out/items.parquet").write_bytes(broken)
    message = (
        f"{RECORDS}: is missing or damaged (its content was changed); start its "
        "`bench run` again, which moves it aside and asks again"
    )
    assert refusal(lambda: Run.open("out").records) == message
    assert refusal(Run.open("out").scores) == message, "kept scores are not read"
    pd.testing.assert_frame_equal(ask().scores(), scores)
    pd.testing.assert_frame_equal(columns("out"), expected)
    assert Path("out/records/answers.parquet.damaged").read_bytes() == broken
    err = capsys.readouterr().err
    assert "records/answers.parquet: is moved to answers.parquet.damaged, and asked again" in err


@pytest.mark.parametrize(
    ("damage", "n_lost"),
    [
        (lambda content: content, 0),
        (lambda content: content[:-50], 1),
        (lambda content: content + b"\0" * 50 + b"\n[1, 2]\nnull\n" + b"[" * 10**5, 0),
        (lambda content: content.replace(b'"error": ""', b'"error": "x"', 2), 2),
    ],
)
def test_only_damaged_lines_are_asked_again(asked, damage, n_lost):
    expected = leave_unfinished()
    ANSWERS.write_bytes(damage(ANSWERS.read_bytes()))
    asked.clear()
    ask()
    assert len(asked) == n_lost
    # An unfinished run has its answers in the order in which they came.
    in_order = [
        rows.sort_values(records.KEYS, ignore_index=True) for rows in (columns("out"), expected)
    ]
    pd.testing.assert_frame_equal(in_order[0][list(expected)], in_order[1])
    assert not ANSWERS.exists()


def test_items_that_another_version_has_written_are_written_anew_and_this_is_said(capsys):
    leave_unfinished()
    metadata = records.read_run_json(Path("out"))
    metadata["files"]["items.parquet"] = "0" * 64
    records.write_run_json(Path("out"), metadata)
    assert len(ask().items)
    assert "items.parquet: was of an earlier version; it is written anew" in capsys.readouterr().err


def without_a_line(content):
    return b"\n".join(content.split(b"\n")[2:])


@pytest.mark.parametrize(
    ("change", "n_lost"),
    [
        (lambda content: content[:-50], 1),
        (without_a_line, 1),
        (flipped, 1),
        (lambda content: b"", 4),
        (lambda content: None, 4),
        (lambda content: Path("other/records/answers.jsonl").read_bytes(), "[0-9]+"),
    ],
)
def test_answers_that_vanish_in_mid_run_are_asked_again(monkeypatch, change, n_lost):
    ask("undisturbed")
    leave_unfinished("other", model="simulated:bias=0,seed=3")
    add, added = records.add, []

    def disturbed(folder, rows):
        add(folder, rows)
        added.append(rows)
        if len(added) == 1:  # of four answers
            content = change(ANSWERS.read_bytes())
            ANSWERS.unlink() if content is None else ANSWERS.write_bytes(content)

    with monkeypatch.context() as patch:
        patch.setattr(records, "add", disturbed)
        with pytest.raises(RunFailed, match=rf"answers.jsonl: {n_lost} of .*; the same command"):
            ask()
    ask()
    pd.testing.assert_frame_equal(columns("out"), columns("undisturbed"))


def test_a_run_is_opened_again_in_parts(monkeypatch):
    expected = ask().records
    assert len(expected) % 7
    monkeypatch.setattr(records, "MAX_ROWS_IN_PYTHON", 7)
    records.reopen(Path("out"))
    pd.testing.assert_frame_equal(Run.open("out").records, expected)


def test_an_unfinished_run_is_scored():
    leave_unfinished()
    ANSWERS.write_bytes(b"\n".join(ANSWERS.read_bytes().split(b"\n")[:40]))
    assert Run.open("out").scores().note.str.startswith("unfinished run: 36 of ").all()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"\xff\0", "run.json: is damaged or was changed ("),
        ("run.json", b"[]", "; put back the file that `bench run` wrote"),
        ("run.json", None, "out: holds no run (no run.json)"),
        ("items.parquet", b"PAR1", "items.parquet: is missing or damaged"),
        ("records/answers.parquet", None, "out: holds no records yet"),
    ],
)
def test_a_damaged_or_missing_file_is_named(refusal, name, content, message):
    path = ask().folder / name
    path.write_bytes(content) if content else path.rename("moved")
    assert message in refusal(lambda: Run.open("out").scores())


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("prompts", None, "entry `prompts`: is missing"),
        ("data.labels", None, "entry `data.labels`: is missing"),
        ("modified", 3, "entry `modified`: 3 is not a list"),
        ("excluded", [{}], "entry `excluded.0.category`: is missing"),
        ("asked.settings", [], "entry `asked.settings`: [] is not a mapping"),
        ("model", "tiny:s", "entry `model`: 'tiny:s' is not a mapping"),
        ("answer_mode.ss", 1, "entry `answer_mode.ss`: 1 is not a text"),
        ("requests", True, "entry `requests`: True is not a whole number"),
        ("requests", -1, "entry `requests`: -1 is not allowed; it has to be at least 0"),
        ("preset", "strict", "entry `preset`: 'strict' is not allowed"),
        ("when", "yesterday", "entry `when`: 'yesterday' is not allowed"),
        ("benchmark", 3, "entry `benchmark`: 3 is not a text"),
    ],
)
def test_a_run_json_of_another_kind_is_refused_with_its_entry(refusal, entry, value, message):
    metadata = ask().metadata
    *parts, name = entry.split(".")
    changed = reduce(getitem, parts, metadata)
    changed[name] = value
    if value is None:
        del changed[name]
    metadata["identity"] = records.digest([metadata["benchmark"], metadata["asked"]])[:8]
    records.write_run_json(Path("out"), metadata)
    error = refusal(Run.open, "out")
    assert error.startswith("out/run.json: is damaged or was changed (")
    assert message in error


def test_a_locked_run_is_read_and_nothing_in_it_is_moved(refusal):
    scores = ask().scores()
    with records.run_lock(Path("out")):
        pd.testing.assert_frame_equal(ask().scores(), scores)
        RECORDS.write_bytes(b"PAR1")
        assert "is asking this run; wait" in refusal(ask)
    assert RECORDS.read_bytes() == b"PAR1"
    # The folders of a run that did not begin are removed.
    refusal(ask, "new/model/run", model="replay:nothing.jsonl")
    assert not Path("new").exists()


def test_a_run_of_an_older_version_is_scored_but_its_sample_is_not_continued(refusal):
    shutil.copytree(Path(__file__).parent / "recorded_run", "out")
    answers, scores = columns("out"), Run.open("out").scores()
    assert (len(answers), (scores.metric == "coal").any()) == (9, True)
    Path("out/records/000001.parquet").unlink()
    given = {"categories": ["zh"], "limit": 3, "data": "samples", "out": "out"}
    message = refusal(run.evaluate, "nli_coal", "simulated:bias=0.6,seed=4", **given)
    assert message.startswith("out: holds another run (")
    assert "sample was not given, now balanced" in message


NEEDED = ("judge", "seed")


def test_a_run_from_before_an_option_was_there_is_the_same_run():
    metadata = ask().metadata
    asked = {key: value for key, value in metadata["asked"].items() if value or key in NEEDED}
    assert "read" not in asked
    short = records.digest([metadata["benchmark"], asked])[:8]
    records.write_run_json(Path("out"), {**metadata, "asked": asked, "identity": short})
    assert ask().metadata["asked"] == asked


def kept(*options):
    """The tables that are kept: all, or the one with these options."""
    name = f"{records.digest([*options])}-" if options else ""
    return sorted(Path("out/cache").glob(f"{name}*.parquet"))


@pytest.mark.parametrize("preset", ["robust", "official", "paper"])
def test_a_kept_table_equals_a_computed_one_and_one_of_some_answers_is_not_kept(
    monkeypatch, preset
):
    done = ask()
    some = pd.MultiIndex.from_frame(done.records[records.KEYS].iloc[::2])
    table, units = done.scores(preset), done.outcomes(preset)
    done.scores(preset, answers=some)
    assert len(kept()) == 2
    monkeypatch.setattr(type(done.definition), "scoring", lambda *given: pytest.fail("computed"))
    pd.testing.assert_frame_equal(Run.open("out").scores(preset), table)
    pd.testing.assert_frame_equal(done.outcomes(preset), units)


def test_a_table_that_is_damaged_or_of_other_code_is_computed_again(monkeypatch):
    table, (path,) = ask().scores(), kept("robust", [])
    content = path.read_bytes()
    path.write_bytes(flipped(content))
    pd.testing.assert_frame_equal(ask().scores(), table)
    assert path.read_bytes() == content
    monkeypatch.setattr(inputs.PACKAGE_CODE, "sha256", "another")
    pd.testing.assert_frame_equal(ask().scores(), table)
    assert [one == path for one in kept("robust", [])] == [False]


def test_a_process_that_is_older_than_its_code_keeps_nothing(monkeypatch):
    done, code = ask(), inputs.Code([inputs.PACKAGE / "run"])
    monkeypatch.setattr(opening, "PACKAGE_CODE", code)
    assert code.sha256
    monkeypatch.setattr(code, "_imported", [])
    done.scores()
    assert kept() == []


def test_a_table_made_with_an_earlier_run_json_is_for_nobody_else():
    def ask_all(**judge):
        given = {"settings": {"explanation": "yes"}, "categories": ["gender"], "limit": 3}
        return run.evaluate(
            "cbbq", "simulated:bias=0.7", data="samples", partial=True, out="out", **given, **judge
        )

    earlier = ask_all()
    judged = ask_all(judge="simulated:")
    marks = judged.scores().note
    shutil.rmtree("out/cache")
    earlier.scores()
    pd.testing.assert_series_equal(Run.open("out").scores().note, marks)
    assert marks.str.contains("marked by").any()


def test_runs_whose_identities_are_equal_are_told_apart(monkeypatch):
    ask()
    metadata = records.read_run_json(Path("out"))
    short = records.digest([metadata["benchmark"], metadata["asked"]])[:8]
    monkeypatch.setattr(plan, "digest", lambda value: f"{short}{records.digest(value)[8:]}")
    with pytest.raises(AnotherRun, match="seed was 0, now 2"):
        ask(seed=2)
