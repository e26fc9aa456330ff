"""Endpoints that fail: every answer comes once, whatever breaks between, and none is lost."""

import itertools
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from bench import records, run
from bench.core.errors import RunFailed
from bench.scorers import load
from bench.scorers.endpoint import client
from tests.helpers.answering import KINDS, fault, prompt, request, said

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_folder")]


def letter(body):
    """A, B or C, by the question, after a moment."""
    time.sleep(0.002)
    return said("ABC"[len(prompt(body)) % 3])


def evaluate(model, out, **options):
    given = {"tasks": ["ambiguous"], "categories": ["gender", "age"], "limit": 40, "repeats": 2}
    return run.evaluate("cbbq", model, out=out, **{**given, **options})


def check_same(one, other):
    rows = [done.records.drop(columns="seconds") for done in (one, other)]
    pd.testing.assert_frame_equal(*rows)


@pytest.mark.parametrize("judge", [False, True])
def test_at_thirty_percent_of_faults_every_answer_is_recorded_once(serve, judge):
    server = serve((lambda body: said("有")) if judge else letter)
    given = {"model": server.model}
    if judge:
        given = {"model": "simulated:", "judge": server.model, "limit": 10}
        given["settings"] = {"explanation": "yes"}
    plain = evaluate(out="plain", **given)
    server.rate = 0.3
    broken = evaluate(out="broken", limits={"concurrency": 32, "timeout": 0.7}, **given)
    check_same(plain, broken)
    assert not broken.records.duplicated(["task", "item_id", "request", "repeat"]).any()
    assert judge or set(server.faults) >= set(KINDS), "a fault that did not happen was not tested"
    assert server.faults.total() > 3


def test_answers_from_before_the_server_broke_are_kept(serve):
    is_well, numbers = False, itertools.count(1)

    def behave(body):
        broke = next(numbers) > 50 and not is_well
        return fault(404, "the model was unloaded") if broke else letter(body)

    server = serve(behave)
    message = r"status 404: the model was unloaded; 50 of 160 requests were answered; the same"
    with pytest.raises(RunFailed, match=message):
        evaluate(server.model, "out")
    before, is_well = len(server.seen), True
    assert before <= 50 + 8, "only what was under way was sent after that"
    continued = evaluate(server.model, "out")
    assert len(server.seen) - before == 110
    check_same(evaluate(server.model, "complete"), continued)


def test_a_server_that_answers_nothing_any_more_is_given_up(serve, monkeypatch):
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    scorer = load(serve(lambda body: fault(429, "later")).model, limits={"timeout": 2})
    with pytest.raises(RunFailed, match=r"answers nothing any more \(status 429: later\)"):
        scorer.answer([request()])


@pytest.fixture
def certificate(tmp_path):
    """The files of a self-signed certificate for 127.0.0.1, and of its key."""
    files = tmp_path / "own.pem", tmp_path / "own.key"
    options = (
        f"-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=a -out {files[0]} -keyout {files[1]}"
    )
    options = f"{options} -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", "req", *options.split()]
    subprocess.run(command, check=True, capture_output=True)
    return files


def test_a_certificate_that_is_not_trusted_is_named_at_once(serve, certificate, monkeypatch):
    server = serve(lambda body: said("A"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    plain = serve(lambda body: said("A")).model.replace("http:", "https:")
    secure = server.model.replace("http:", "https:")
    for model, says in (
        (secure, r"not accepted \(self-signed certificate\).* SSL_CERT_FILE=FILE.pem"),
        (secure.replace("127.0.0.1", "localhost"), "SSL_CERT_FILE"),
        (server.model, "is the server running, at http://127.0.0.1"),
        (plain, "does not speak https .*; give http://127.0.0.1"),
    ):
        with pytest.raises(RunFailed, match=says):
            load(model)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert load(secure).answer([request()])[0].response == "A"


def test_ctrl_c_ends_it_at_once_and_says_how_to_continue(serve):
    server = serve(lambda body: said("A") if len(server.seen) < 30 else time.sleep(60) or said("A"))
    options = f"--model {server.model} --tasks ambiguous --limit 10 --out out".split()
    command = [sys.executable, "-m", "bench", "run", "cbbq", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(server.seen) < 37:  # eight under way, which do not end
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=20)
    assert process.returncode == 130
    message = "bench: interrupted; the same command continues from what is recorded"
    assert printed.strip().splitlines()[-1] == message
    assert records.count(Path("out")) == 29
