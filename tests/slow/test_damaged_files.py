"""A damaged file is read, or refused in one line that names it: no other error, no other number."""

import random
import re
import shutil
from functools import partial

import pandas as pd
import pytest
from nli_sets import PACKS, read_pack

from bench import data, records, run
from bench.benchmarks import get
from bench.core.errors import BadInput, RunFailed
from bench.report import study
from bench.scorers.replay import Replay
from bench.tasks import prompts
from tests.helpers.cases import edited

pytestmark = pytest.mark.slow
# Control characters, structure, other encodings, odd numbers, paths and code.
NASTY = [bytes([code]) for code in b"\0\x1b\r\n\t\"',\\{}[]"]
NASTY += [b"", b"\xff\xfe", b"\xed\xa0\x80", b"[" * 3000, b'{"a":' * 2000, b"<<: *a", b"%s"]
NASTY += [b"NaN", b"-1e999", b"9" * 5000, b"-1", b"1.5", b"true", b"null", b"x" * 140_000]
NASTY += [b"../../etc/passwd", b"!!python/object/apply:os.system [id]", "\u202e\u2028٣".encode()]
TOKEN = re.compile(rb"[^\s,;\t\"'{}\[\]<>]+")
ANSWER = '{"task": "ss", "item_id": "a:0", "request": "x", "response": "A"}'
PROMPTS = get("cbbq").metadata.prompts.read_text("utf-8")


def text(name, content, read):
    """Return the functions that make a file of this text, and that read it with `read`."""
    write = lambda folder: (folder / name).write_text(content, "utf-8")  # noqa: E731
    return write, lambda folder: read(folder / name)


def samples(benchmark, part):
    """Return the functions that copy a part of the samples with their manifest, and read it."""
    source = get(benchmark).metadata.samples

    def copy(folder):
        (shutil.copytree if (source / part).is_dir() else shutil.copy)(source / part, folder / part)
        shutil.copy(source / "dataset.toml", folder)

    return copy, partial(read_data, benchmark)


def read_data(benchmark, folder):
    source = data.find(benchmark, folder)
    data.check(source)
    assert data.load(source)


def workbook(folder):
    table = pd.read_csv(get("mcbe").metadata.samples / "age.csv", dtype=str)
    table.to_excel(folder / "age.xlsx", index=False)


def finished(folder):
    asked = {"categories": ["gender"], "limit": 1, "data": "samples"}
    run.evaluate("mcbe", "simulated:", judge="simulated:", tasks=["ba"], out=folder, **asked)


def read_finished(folder):
    done = run.Run.open(folder)
    (score,) = done.scores().query("metric == 'score' and category == 'all'").score
    assert 0 <= score <= 100


def unfinished(folder):
    finished(folder)
    records.reopen(folder)
    (folder / "records/answers.parquet").rename(folder / "before.parquet")


def read_unfinished(folder):
    """Check that the answers that are left are answers that were given."""
    before, left = pd.read_parquet(folder / "before.parquet"), run.Run.open(folder).records
    same = before.merge(left[records.KEYS], on=records.KEYS)
    pd.testing.assert_frame_equal(same, left, check_dtype=False)


# A function that makes files of a kind in a folder, one that reads the folder, and these files.
KINDS = {
    "McBE": (*samples("mcbe", "age.csv"), "*"),
    "CBBQ": (*samples("cbbq", "age"), "**/*"),
    "NLI-CoAL": (*samples("nli_coal", "zh_v0.1"), "**/*"),
    "workbook": (workbook, partial(read_data, "mcbe"), "*"),
    "language pack": (partial(shutil.copytree, PACKS / "en", dirs_exist_ok=True), read_pack, "*"),
    "prompts": (*text("own.toml", PROMPTS, lambda path: prompts.load(get("cbbq"), str(path))), "*"),
    "study": (*text("study.yml", edited(__file__, "damaged.yml"), study.load), "*"),
    "replay": (*text("answers.jsonl", ANSWER, lambda path: Replay(path).describe()), "*"),
    "run": (finished, read_finished, "*[ns].[jp]*"),
    "answers": (finished, read_finished, "records/*"),
    "answers of an unfinished run": (unfinished, read_unfinished, "records/*"),
}


def damaged(raw, rng):
    """Cut out, double, insert, replace a word, or encode otherwise."""
    at, nasty = rng.randrange(len(raw) + 1), rng.choice([*NASTY, rng.randbytes(8)])
    words = list(TOKEN.finditer(raw))
    start, end = rng.choice(words).span() if words else (0, len(raw))
    recoded = raw.decode("utf-8", "replace").encode(rng.choice(["utf-16", "gb18030"]), "replace")
    cut, doubled = raw[:at] + raw[rng.randint(at, len(raw)) :], raw[:at] + raw[max(0, at - 2000) :]
    inserted, replaced = raw[:at] + nasty + raw[at:], raw[:start] + nasty + raw[end:]
    return rng.choice([cut, doubled, inserted, replaced, replaced, recoded])


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_or_refused_in_one_line_that_names_it(tmp_path, name):
    make, read, pattern = KINDS[name]
    whole, folder = tmp_path / "whole", tmp_path / "folder"
    whole.mkdir()
    make(whole)
    read(whole)
    files = sorted(path for path in whole.glob(pattern) if path.is_file())
    rng, refusals = random.Random(1), []
    for _ in range(60):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        path = folder / rng.choice(files).relative_to(whole)
        path.write_bytes(damaged(damaged(path.read_bytes(), rng), rng))
        try:
            read(folder)
        except (BadInput, RunFailed) as refusal:
            refusals.append(str(refusal))
    assert refusals
    assert all(str(folder) in message and message.isprintable() for message in refusals), refusals
