"""Keys: read from the environment, sent to the server, and found in no byte that is written."""

import base64
import os
import subprocess
import sys
from collections import Counter

import matplotlib
import pandas as pd
import pytest

from bench import records
from bench.scorers import check
from bench.scorers.endpoint.keys import redacted
from bench.scorers.names import path_slug
from tests.helpers.answering import fault, prompt, said
from tests.helpers.cases import edited, table
from tests.helpers.leaks import leaks

# What all planted keys have in common: letters and digits, which no escaping changes.
CORE = "Pl4nt3dS3cr3tN0b0dyM4yS33Me0123456789"
SECRETS = {
    row.variable: row.key.replace("[CORE]", CORE)
    for row in table(__file__, "keys.csv").itertuples()
}
KEY = SECRETS["OPENAI_API_KEY"]
URL = "https://example.org/v1"
# Places in a URL for a key, and beginnings of keys.
HIDDEN = (
    *("?v=1&access_token=", "?sig=", "?code=", "?", "#", "?api-version=", ";k=", "/key="),
    *("%3Fsig=", "%23"),
    *("?api-version=2024-10-21;sig=", "?api-version=2024-10-21&jwt="),
)
FORMS = ("sk-", "AIza", "gsk_", "xai-", "ghp_", f"eyJ{'a' * 9}.{'b' * 9}.")
FOLDERS = (
    *("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HF_HOME"),
    *("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"),
)


def test_the_search_finds_a_key_in_names_and_however_it_is_packed(tmp_path):
    packed = [base64.b64encode(b"user:x"[:k] + KEY.encode() + b"!") for k in range(3)]
    table = pd.DataFrame({"a": [[KEY], []]}).to_parquet()
    packed += [b"x" + KEY.encode(), table, base64.encodebytes(table)]
    for k, content in enumerate(packed):
        (tmp_path / str(k)).write_bytes(content)
    other = KEY.replace("Pl4nt3d", "Other")
    for name in (KEY, other):
        (tmp_path / name).write_text(other)
    assert leaks(tmp_path, CORE) == [str(tmp_path / name) for name in (*"012345", KEY)]


def echoing():
    """A server that repeats the key in each text: answers, refusals, headers."""
    tried = Counter()

    def behave(asked):
        text = prompt(asked)
        tried[text] += 1
        kind = sum(text.encode()) % 6
        headers = {"X-Key": KEY, "Set-Cookie": f"key={KEY}", "Retry-After-Ms": "1"}
        if kind == 0 and tried[text] == 1:
            return fault(500, f"broken by Bearer {KEY}", **headers)
        if kind == 1:
            return fault(400, f"Request of {KEY} was blocked by the content filter", KEY, **headers)
        if kind == 2:
            return fault(400, f"{KEY}: maximum context length is 10 tokens", **headers)
        status, _, body = said(f"A. Your key is {KEY}, in base64 {KEY[:9]}. B")
        return status, headers, {**body, "model": KEY, "system_fingerprint": KEY, "id": KEY}

    return behave


@pytest.fixture
def bench(tmp_path):
    """The command with planted secrets, and home and caches under the test's own folder."""
    (tmp_path / "home").mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("BENCH_")},
        **dict.fromkeys(FOLDERS, str(tmp_path / "home")),
        **SECRETS,
        "MPLCONFIGDIR": matplotlib.get_configdir(),  # its list of fonts takes long to make anew
        "NO_PROXY": "127.0.0.1",
    }

    def run(call, status=0):
        """Run it, and keep what it printed among the files that are searched."""
        command = [sys.executable, "-m", "bench", *call.split()]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True)
        number = len(list(tmp_path.glob("printed-*")))
        (tmp_path / f"printed-{number}").write_bytes(done.stdout + b"\n" + done.stderr)
        assert done.returncode == status, done.stderr.decode()
        return done.stderr.decode()

    return run


@pytest.mark.slow
def test_a_key_is_in_nothing_that_a_run_writes(tmp_path, bench, serve):
    other = serve(lambda asked: said(f"{KEY} C"))
    place = f"http://{other.host}/v1/chat/completions#{KEY}"
    redirection = (307, {"X-Key": KEY, "Location": place}, {})
    redirecting = serve(lambda asked: redirection, lambda asked: redirection)
    refusing = serve(lambda asked: fault(403, f"{KEY} is no key", **{"X-Key": KEY}))
    broken = serve(lambda asked: (418, {"X-Key": KEY}, f"<p>{KEY}"))
    server = serve(echoing())
    ask = f"run cbbq --categories gender,age --limit 8 --model {server.model}"
    bench(f"{ask} --set explanation=yes --out runs/one")
    bench(f"run cbbq --limit 2 --model {redirecting.model} --out runs/redirected")
    bench(f"{ask} --set explanation=yes --out runs/one --judge {server.model} --format json")
    bench("score runs/one --preset official --format csv")
    bench("run --from runs/one --out runs/two")
    bench(f"run cbbq --limit 1 --model {refusing.model}", status=1)
    bench(f"run cbbq --limit 1 --model {broken.model}", status=1)
    rows = records.read(tmp_path / "runs/one")
    answer = "Your key is [key], in base64 sk-Pl4nt3. B"
    assert rows.response.str.contains(answer, regex=False).any()
    assert rows.error.str.contains("[key]: maximum context length", regex=False).any()
    assert server.keys == {f"Bearer {KEY}"}, "it was sent where it belongs"
    assert other.keys == {None}, "and not to whom the server redirects"
    assert leaks(tmp_path, CORE) == []


@pytest.mark.slow
def test_a_key_is_in_nothing_that_a_report_writes(tmp_path, bench, serve):
    """Notebooks, their pages, tables and pictures; one of them fails with an error."""
    server = serve(echoing())
    study = edited(__file__, "leaking.yml", ("SERVER", server.model))
    (tmp_path / "keys.yml").write_text(study, "utf-8")
    assert "notebook meta_evaluation" in bench("report keys.yml --out made", status=1)
    assert "This page failed" in (tmp_path / "made/meta_evaluation.html").read_text("utf-8")
    rows = records.read(tmp_path / "made/runs" / path_slug(server.model) / "cbbq")
    assert rows.response.str.contains("[key]", regex=False).any()
    assert leaks(tmp_path, CORE) == []


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (f"openai:name@https://user:{CORE}@example.org/v1", "the URL may hold no password"),
        *((f"openai:name@{URL}{hidden}{CORE}", "no query but") for hidden in HIDDEN),
        (f"openai:@{URL}?sig={CORE}", "expected openai:NAME@URL"),
        *((f"openai:{start}{CORE}@{URL}", "looks like a key") for start in FORMS),
        ("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "looks like a key"),
    ],
)
def test_a_key_given_by_mistake_is_refused_and_not_repeated(refusal, model, says):
    message = refusal(check, model)
    assert says in message
    assert CORE not in message
    assert "hf_abc" not in message


def test_what_is_no_key_passes_and_is_left_in_answers(tmp_path):
    for model in (
        f"openai:EMPTY@{URL}",
        f"openai:a@{URL}?api-version=2024-10-21",
        str(tmp_path),
        "o/sk-s",
    ):
        check(model)
    assert redacted("A. EMPTY", "EMPTY") == "A. EMPTY"
    assert redacted(f"x{KEY}{KEY}", KEY) == "x[key][key]"
