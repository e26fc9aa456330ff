"""Records: the content of a row, damaged files, locks, older versions, and kept score tables."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pyarrow.parquet as pq
import pytest

from bench import records, run
from bench.run import Run, cache
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


def leave_unfinished():
    """Interrupt a run after its last answer, and return its records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "finish", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ask()
    return columns("out")


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
    assert "items.parquet: was missing, damaged or of an earlier version" in err


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
    pd.testing.assert_frame_equal(columns("out"), expected)
    assert not ANSWERS.exists()


def test_an_unfinished_run_is_scored():
    leave_unfinished()
    ANSWERS.write_bytes(b"\n".join(ANSWERS.read_bytes().split(b"\n")[:40]))
    assert Run.open("out").scores().note.str.startswith("unfinished run: 37 of ").all()


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


def test_a_locked_run_is_read_and_nothing_in_it_is_moved(refusal):
    scores = ask().scores()
    with records.run_lock(Path("out")):
        pd.testing.assert_frame_equal(ask().scores(), scores)
        RECORDS.write_bytes(b"PAR1")
        assert "is asking this run; wait" in refusal(ask)
    assert RECORDS.read_bytes() == b"PAR1"
    # A folder in which no run was begun is removed.
    refusal(ask, "new", model="replay:nothing.jsonl")
    assert not Path("new").exists()


def test_a_run_of_an_older_version_is_scored_but_its_sample_is_not_continued(refusal):
    shutil.copytree(Path(__file__).parent / "recorded_run", "out")
    answers, scores = columns("out"), Run.open("out").scores()
    assert (len(answers), (scores.metric == "coal").any()) == (9, True)
    Path("out/records/000001.parquet").unlink()
    given = {"categories": ["zh"], "limit": 3, "data": "samples", "out": "out"}
    message = refusal(run.evaluate, "nli_coal", "simulated:bias=0.6,seed=4", **given)
    assert message.startswith("out: holds another run (sample was not there, now balanced)")


def kept():
    return sorted(Path("out/cache").glob("*.parquet"))


@pytest.mark.parametrize("preset", ["robust", "official", "paper"])
def test_a_kept_table_of_all_or_of_some_answers_equals_a_computed_one(monkeypatch, preset):
    done = ask()
    some = pd.MultiIndex.from_frame(done.records[records.KEYS].iloc[::2])
    table, of_some = done.scores(preset), done.scores(preset, answers=some)
    units = done.outcomes(preset)
    assert len(kept()) == 3
    monkeypatch.setattr(Run, "scoring", lambda *given: pytest.fail("computed"))
    pd.testing.assert_frame_equal(Run.open("out").scores(preset), table)
    pd.testing.assert_frame_equal(done.scores(preset, answers=some), of_some)
    pd.testing.assert_frame_equal(done.outcomes(preset), units)


def test_a_table_that_is_damaged_or_of_other_code_is_computed_again(monkeypatch):
    table, (path,) = ask().scores(), kept()
    content = path.read_bytes()
    path.write_bytes(flipped(content))
    pd.testing.assert_frame_equal(ask().scores(), table)
    assert path.read_bytes() == content
    monkeypatch.setattr(cache, "code_hash", lambda *folder: "another")
    pd.testing.assert_frame_equal(ask().scores(), table)
    assert [one == path for one in kept()] == [False]
