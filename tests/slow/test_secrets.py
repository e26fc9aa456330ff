"""Keys: read from the environment, sent to the server, and found in no byte that is written."""

import base64
import gzip
import html
import io
import json
import os
import subprocess
import sys
import urllib.parse
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from bench import records
from bench.run import path_slug
from bench.scorers import check
from bench.scorers.endpoint.keys import redacted
from tests.helpers.answering import Reply, fault, prompt, said
from tests.scorers.test_endpoint import Serve
from tests.slow.helpers.leaks import leaks

# What all planted keys have in common: letters and digits, which no escaping changes.
CORE = "Pl4nt3dS3cr3tN0b0dyM4yS33Me0123456789"
SECRETS = {
    "OPENAI_API_KEY": f"sk-{CORE}",
    "HF_TOKEN": f"hf_{CORE}HF",
    "HUGGING_FACE_HUB_TOKEN": f"hf_{CORE}HUB",
    "OPENAI_ADMIN_KEY": f"sk-admin-{CORE}",
    "AZURE_OPENAI_API_KEY": f"{CORE}azure",
    "ANTHROPIC_API_KEY": f"sk-ant-{CORE}",
    "DASHSCOPE_API_KEY": f"sk-{CORE}dash",
    "ZHIPUAI_API_KEY": f"{CORE}.zhipu",
    "AWS_SECRET_ACCESS_KEY": f"{CORE}/aws+",
    "WANDB_API_KEY": f"{CORE}wandb",
    "GITHUB_TOKEN": f"ghp_{CORE}",
    "JUPYTER_TOKEN": f"{CORE}jupyter",
}
KEY = SECRETS["OPENAI_API_KEY"]


def parquet(column: list[Any], compression: str) -> bytes:
    stream = io.BytesIO()
    pd.DataFrame({"a": column}).to_parquet(stream, compression=compression)
    return stream.getvalue()


def packed(text: str) -> dict[str, bytes]:
    raw, archive = text.encode(), io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("inner.txt", text * 2)
    numbers = "".join(f"\\u{ord(character):04x}" for character in text)
    in_base64 = base64.encodebytes(gzip.compress(raw)).decode()
    return {
        "plain": b"x" + raw,
        "json": json.dumps({"a": [f'"{text}é"']}).encode(),
        "json numbers": numbers.encode(),
        "html": html.escape(f"<{text}>").encode(),
        "percent": urllib.parse.quote(f"<{text}>").encode(),
        "all percent": "".join(f"%{byte:02x}" for byte in raw).encode(),
        "hex": raw.hex().encode(),
        "utf-16": text.encode("utf-16"),
        **{f"base64 {k}": base64.b64encode(b"user:x"[:k] + raw + b"!") for k in range(3)},
        "gzip": gzip.compress(raw),
        "gzip in base64": json.dumps({"image/png": in_base64}).encode(),
        "parquet": parquet(["x", f"y{text}"], "zstd"),
        "parquet list": parquet([[text], []], "gzip"),
        "zip": archive.getvalue(),
    }


@pytest.mark.parametrize("how", packed(KEY))
def test_the_search_finds_what_is_there(tmp_path: Path, how: str) -> None:
    (tmp_path / "file").write_bytes(packed(KEY)[how])
    assert leaks(tmp_path, CORE), how
    (tmp_path / "file").write_text(KEY.replace("Pl4nt3d", "Other"))
    assert leaks(tmp_path, CORE) == []
    (tmp_path / KEY).mkdir()
    assert leaks(tmp_path, CORE) == [f"{tmp_path / KEY}: in its name"]


def test_the_search_finds_texts_of_a_picture(tmp_path: Path) -> None:
    for compressed in (False, True):
        texts = PngInfo()
        texts.add_itxt("Description", KEY, zip=compressed)
        Image.new("RGB", (2, 2)).save(tmp_path / "picture.png", pnginfo=texts)
        assert leaks(tmp_path, CORE)


def echoing(elsewhere: str) -> Callable[[dict[str, Any]], Reply]:
    """A server that repeats the key in whatever it says: answers, refusals, headers, redirects."""
    tried: dict[str, int] = {}

    def behave(asked: dict[str, Any]) -> Reply:
        text = prompt(asked)
        tried[text] = tried.get(text, 0) + 1
        kind = sum(text.encode()) % 6
        headers = {"X-Key": KEY, "Set-Cookie": f"key={KEY}", "Retry-After-Ms": "1"}
        if kind == 0 and tried[text] == 1:
            return 500, headers, {"error": {"message": f"broken by Bearer {KEY}"}}
        if kind == 1:
            return fault(400, f"Request of {KEY} was blocked by the content filter", KEY, **headers)
        if kind == 2:
            return fault(400, f"{KEY}: maximum context length is 10 tokens", **headers)
        if kind == 3 and tried[text] == 1:
            return 307, {**headers, "Location": f"{elsewhere}/chat/completions#{KEY}"}, {}
        status, _, body = said(f"A. Your key is {KEY}, in base64 {KEY[:9]}. B")
        return status, headers, {**body, "model": KEY, "system_fingerprint": KEY, "id": KEY}

    return behave


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """An environment with planted secrets; home and caches are under the test's own folder."""
    places = {
        "HOME": "home",
        "TMPDIR": "tmp",
        "XDG_CACHE_HOME": "cache",
        "XDG_DATA_HOME": "share",
        "XDG_CONFIG_HOME": "config",
        "HF_HOME": "hf",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "jupyter",
        "JUPYTER_RUNTIME_DIR": "runtime",
    }
    for name in places.values():
        (tmp_path / name).mkdir()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "XDG_"))
    }
    return {
        **kept,
        **{name: str(tmp_path / place) for name, place in places.items()},
        **SECRETS,
        "MPLCONFIGDIR": matplotlib.get_configdir(),  # its list of fonts takes long to make anew
        "NO_PROXY": "127.0.0.1",
        "COLUMNS": "80",
    }


def bench(folder: Path, environment: dict[str, str], *words: str, status: int = 0) -> str:
    """Run the command, keep what it printed among the files that are searched, and return it."""
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words], cwd=folder, env=environment, capture_output=True
    )
    number = len(list(folder.glob("printed-*")))
    (folder / f"printed-{number}").write_bytes(done.stdout + b"\n" + done.stderr)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == status, said
    assert CORE not in said
    return said


@pytest.mark.slow
def test_a_key_is_in_nothing_that_a_run_writes(
    tmp_path: Path, alone: dict[str, str], serve: Serve
) -> None:
    other = serve(lambda asked: said(f"{KEY} C"))
    server = serve(echoing(other.model.partition("@")[2]))
    run = ("run", "cbbq", "--model", server.model, "--categories", "gender,age", "--limit", "8")
    explained = ("--set", "explanation=yes", "--out", "runs/one")
    bench(tmp_path, alone, *run, *explained)
    bench(tmp_path, alone, *run, *explained, "--judge", server.model, "--format", "json")
    bench(tmp_path, alone, "mark", "runs/one", "--out", "marks.csv")
    bench(tmp_path, alone, "score", "runs/one", "--preset", "official", "--format", "csv")
    bench(tmp_path, alone, "run", "--from", "runs/one", "--out", "runs/two")
    refusing = serve(
        lambda asked: (403, {"X-Key": KEY}, {"error": {"message": f"{KEY} is no key"}})
    )
    broken = serve(lambda asked: (418, {"X-Key": KEY}, f"<p>{KEY}"))
    for one in (refusing, broken):
        bench(tmp_path, alone, "run", "cbbq", "--model", one.model, "--limit", "1", status=1)
    rows = records.read(tmp_path / "runs/one")
    assert rows.response.str.contains(
        "Your key is [key], in base64 sk-Pl4nt3. B", regex=False
    ).any()
    assert rows.error.str.contains("[key]: maximum context length", regex=False).any()
    assert server.keys == {f"Bearer {KEY}"}, "it was sent where it belongs"
    assert len(other.seen) > 0
    assert other.keys == {None}, "and not to whom the server redirects"
    assert leaks(tmp_path, CORE) == []


STUDY = """
title: Does a key leak?
models: ["{server}", "simulated:bias=0.5"]
benchmarks:
  cbbq: {{categories: [gender], limit: 4, judge: "{server}"}}
analyses:
  meta_evaluation: {{rates: [word]}}
"""


@pytest.mark.slow
def test_a_key_is_in_nothing_that_a_report_writes(
    tmp_path: Path, alone: dict[str, str], serve: Serve
) -> None:
    """Notebooks, their pages, tables and pictures; one of them fails with a traceback."""
    server = serve(echoing(serve(lambda asked: said(f"{KEY} C")).model.partition("@")[2]))
    (tmp_path / "study").mkdir()
    (tmp_path / "study/keys.yml").write_text(STUDY.format(server=server.model), "utf-8")
    told = bench(tmp_path, alone, "report", "study/keys.yml", "--out", "made", status=1)
    assert "notebook meta_evaluation" in told
    pages = {path.stem for path in (tmp_path / "made").glob("*.html")}
    assert pages == {"index", "cbbq", "meta_evaluation"}
    assert "Traceback" in (tmp_path / "made/meta_evaluation.html").read_text("utf-8")
    assert any(
        "[key]" in text
        for text in records.read(tmp_path / "made/runs" / path_slug(server.model) / "cbbq").response
    )
    assert leaks(tmp_path, CORE) == []


URL = "https://example.org/v1"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (f"openai:name@https://user:{CORE}@example.org/v1", "the URL may hold no password"),
        (f"openai:@https://user:{CORE}@example.org/v1", "expected openai:NAME@URL"),
        (f"openai:name@https://{CORE}@example.org/v1", "the URL may hold no password"),
        (f"openai:name@{URL}?api_key={CORE}", "the URL may hold no `api_key`"),
        (f"openai:name@{URL}?v=1&access_token={CORE}", "the URL may hold no `access_token`"),
        (f"openai:@{URL}?sig={CORE}", "expected openai:NAME@URL"),
        (f"openai:sk-{CORE}@{URL}", "the environment variable OPENAI_API_KEY"),
        (f"openai:sk-{CORE[::-1]}@{URL}", "looks like a key"),
        (f"openai:{CORE}wandb@{URL}", "the environment variable WANDB_API_KEY"),
        (f"openai:name@{URL}/{CORE}azure", "the environment variable AZURE_OPENAI_API_KEY"),
        ("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "looks like a key"),
    ],
)
def test_a_key_given_by_mistake_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, refusal: Any, model: str, says: str
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    message = refusal(check, model)
    assert says in message
    assert CORE not in message
    assert CORE[::-1] not in message
    assert "hf_abc" not in message


def test_names_that_are_no_keys_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"OPENAI_API_KEY": "EMPTY", "A_KEY": str(tmp_path), "MY_TOKEN": ""}.items():
        monkeypatch.setenv(name, value)
    for model in (
        f"openai:EMPTY@{URL}",
        f"openai:glm-4-air@{URL}?api-version=2024-10-21",
        str(tmp_path),
        "org/sk-small",
    ):
        check(model)


def test_a_word_that_stands_for_no_key_is_left_in_answers() -> None:
    assert redacted("A. EMPTY", "EMPTY") == "A. EMPTY"
    assert redacted("A", "A") == "A"
    assert redacted("", "") == ""
    assert redacted(f"x{KEY}{KEY}", KEY) == "x[key][key]"
