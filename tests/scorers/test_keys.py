"""Keys of endpoints: each host gets its own, in real requests whose every header is read."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import run
from bench.core.errors import RunFailed
from bench.report import build, study
from bench.scorers import load
from bench.scorers.endpoint import client, keys
from tests.helpers.answering import Reply, Server, fault, said

OF_MODEL, OF_JUDGE = "sk-of-the-model-0123456789", "glm.of-the-judge-0123456789"
# What openai's client would send by itself, to every host.
AMBIENT = {
    "OPENAI_ORG_ID": "org-planted",
    "OPENAI_PROJECT_ID": "proj-planted",
    "OPENAI_ADMIN_KEY": "sk-admin-planted",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer planted\nX-Api-Key: planted",
    "OPENAI_BASE_URL": "http://planted.example/v1",
}
SENT = {"accept", "accept-encoding", "connection", "content-length", "content-type", "host"}
Serve = Callable[..., Server]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    for name, value in {**AMBIENT, "OPENAI_API_KEY": OF_MODEL}.items():
        monkeypatch.setenv(name, value)


def host(server: Server) -> str:
    return f"127.0.0.1:{server.server_port}"


def own(server: Server) -> str:
    return f"OPENAI_API_KEY__127_0_0_1_{server.server_port}"


def check_headers(server: Server, key: str | None) -> None:
    """Every request had this key, or none, and nothing else from the environment."""
    assert server.headers
    for headers in server.headers:
        assert headers.get("authorization") == (f"Bearer {key}" if key else None)
        extra = set(headers) - SENT - {"authorization", "user-agent", "x-stainless-raw-response"}
        assert not extra
        assert "planted" not in json.dumps(headers)


def asked(model: str, judge: str, out: str, **options: Any) -> run.Run:
    given = {"categories": ["gender"], "limit": 2, "settings": {"explanation": "yes"}}
    return run.evaluate("cbbq", model, judge=judge, out=out, **given, **options)


@pytest.mark.parametrize(
    ("model", "name", "variable"),
    [
        ("openai:m@https://api.deepseek.com/v1", "api.deepseek.com", "API_DEEPSEEK_COM"),
        ("openai:m@https://API.Deep-Seek.com:443/v1", "api.deep-seek.com", "API_DEEP_SEEK_COM"),
        ("openai:m@http://localhost:8000/v1", "localhost:8000", "LOCALHOST_8000"),
        ("openai:m@http://[::1]:80/v1", "[::1]", "___1_"),
    ],
)
def test_a_host_has_one_name_and_one_variable(model: str, name: str, variable: str) -> None:
    assert keys.host_of(model) == name
    assert keys.own_variable(name) == f"OPENAI_API_KEY__{variable}"


def test_the_models_key_is_not_sent_to_a_judge_elsewhere(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, judge = serve(lambda body: said("A")), serve(lambda body: said("有"))
    done = asked(model.model, judge.model, "without")
    check_headers(model, OF_MODEL)
    check_headers(judge, None)
    assert (done.about["model"]["key"], done.about["judge"]["key"]) == ("OPENAI_API_KEY", None)
    judge.headers.clear()
    monkeypatch.setenv("ZHIPUAI_API_KEY", OF_JUDGE)
    done = asked(model.model, judge.model, "named", keys={host(judge): "ZHIPUAI_API_KEY"})
    check_headers(judge, OF_JUDGE)
    assert done.about["judge"]["host"] == host(judge)
    assert done.about["judge"]["key"] == "ZHIPUAI_API_KEY"
    judge.headers.clear()
    monkeypatch.setenv(own(judge), OF_JUDGE)
    assert asked(model.model, judge.model, "own").about["judge"]["key"] == own(judge)
    check_headers(judge, OF_JUDGE)
    check_headers(model, OF_MODEL)
    for path in Path().rglob("*"):
        text = path.read_bytes() if path.is_file() else b""
        assert OF_MODEL.encode() not in text
        assert OF_JUDGE.encode() not in text


def test_a_judge_on_the_models_host_gets_its_key_and_one_of_a_local_model_does_not(
    serve: Serve,
) -> None:
    server = serve(lambda body: said("有"))
    asked(server.model, server.model.replace("some-model", "judge"), "same")
    assert {body["model"] for body in server.seen} == {"some-model", "judge"}
    check_headers(server, OF_MODEL)
    server.headers.clear()
    asked("simulated:", server.model, "local")
    check_headers(server, None)


def test_models_at_several_hosts_need_keys_of_their_own(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = serve(lambda body: said("A")), serve(lambda body: said("B"))
    given = {"categories": ["gender"], "limit": 1}
    runs = run.evaluate_all("cbbq", [one.model, other.model], "runs", **given)
    assert [done.about["model"]["key"] for done in runs] == [None, None]
    check_headers(one, None)
    check_headers(other, None)
    one.headers.clear()
    monkeypatch.setenv(own(one), OF_JUDGE)
    run.evaluate_all("cbbq", [one.model, other.model], "more", **given)
    check_headers(one, OF_JUDGE)
    check_headers(other, None)
    other.headers.clear()
    run.evaluate_all("cbbq", [other.model, "simulated:"], "single", **given)
    check_headers(other, OF_MODEL)


def test_a_redirect_to_another_port_carries_nothing(serve: Serve) -> None:
    other = serve(lambda body: said("B"), lambda body: said("B"))

    def redirect(body: dict[str, Any]) -> Reply:
        place = f"http://127.0.0.1:{other.server_port}/v1/chat/completions"
        return 307, {"Location": place, "Set-Cookie": "a=planted"}, {}

    server = serve(redirect)
    assert load(server.model).generate(["x"]) == ["B"]  # type: ignore[attr-defined]
    check_headers(server, OF_MODEL)
    check_headers(other, None)


def test_an_unanswered_401_names_the_variable_that_would_be_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = serve(lambda body: said("A"))
    judge = serve(lambda body: fault(401, "no"), lambda body: fault(401, "no"))
    with pytest.raises(RunFailed, match=rf"{own(judge)} is not set.* --key {host(judge)}=NAME"):
        asked(model.model, judge.model, "run")
    monkeypatch.setenv(own(judge), OF_JUDGE)
    with pytest.raises(RunFailed, match=f"{own(judge)} is wrong"):
        asked(model.model, judge.model, "run")


def bench(*words: str) -> tuple[int, str]:
    environment = {**os.environ, "DEEPSEEK_API_KEY": ""}
    command = [sys.executable, "-m", "bench", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stderr


def test_a_variable_that_is_not_set_is_one_sentence_before_anything_is_asked(serve: Serve) -> None:
    server = serve(lambda body: said("A"))
    call = ("run", "cbbq", "--model", server.model, "--limit", "1", "--out", "out")
    status, message = bench(*call, "--key", f"{host(server)}=DEEPSEEK_API_KEY")
    assert status == 2
    variable = "DEEPSEEK_API_KEY"
    assert f"{host(server)}={variable}: the environment variable {variable} is not set" in message
    assert "Traceback" not in message
    assert not server.headers


@pytest.mark.parametrize(
    "given", [{"HOST": OF_JUDGE}, {OF_JUDGE: "api.deepseek.com"}, {"HOST": "lower_case_key_0123"}]
)
def test_a_key_in_place_of_a_name_is_refused_and_not_repeated(
    serve: Serve, refusal: Any, given: dict[str, str]
) -> None:
    server = serve(lambda body: said("A"))
    named = {host(server) if name == "HOST" else name: value for name, value in given.items()}
    message = refusal(run.evaluate, "cbbq", server.model, limit=1, keys=named)
    assert "expected HOST=NAME" in message
    assert not any(part in message for part in (OF_JUDGE, "lower_case"))
    message = refusal(run.evaluate, "cbbq", server.model, limit=1, keys={"api.deepsek.com": "HOME"})
    assert f"'api.deepsek.com' is unknown; allowed: {host(server)}" in message


STUDY = """
title: Two services
models: ["{one}", "{other}"]
benchmarks:
  cbbq: {{categories: [gender], limit: 1, judge: "{other}", settings: {{explanation: "yes"}}}}
keys: {{"{host}": DEEPSEEK_API_KEY}}
"""


def test_a_study_says_what_is_wrong_with_its_keys_before_anything_is_asked(
    serve: Serve, refusal: Any
) -> None:
    one, other = serve(lambda body: said("A")), serve(lambda body: said("B"))
    given = {"one": one.model, "other": other.model, "host": host(one)}
    Path("study.yml").write_text(STUDY.format(**given), "utf-8")
    message = refusal(build.make, "study.yml")
    assert f"--key {host(one)}=DEEPSEEK_API_KEY: the environment variable" in message
    Path("study.yml").write_text(STUDY.format(**{**given, "host": "localhost"}), "utf-8")
    message = refusal(study.load, Path("study.yml"))
    assert "key `keys`: --key localhost=DEEPSEEK_API_KEY: host 'localhost' is unknown" in message
    injected = STUDY.replace(
        "keys:", f"analyses: {{{{judge_injection: {{{{judge: {other.model!r}}}}}}}}}\nkeys:"
    )
    Path("study.yml").write_text(injected.format(**{**given, "host": host(other)}), "utf-8")
    assert study.load(Path("study.yml")).keys == {host(other): "DEEPSEEK_API_KEY"}
    assert not one.headers
    assert not other.headers


@pytest.mark.slow
def test_the_processes_of_a_study_send_each_host_its_own_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = serve(lambda body: said("A")), serve(lambda body: said("B"))
    named = other.model.replace("some-model", "other-model")
    given = {"one": one.model, "other": named, "host": host(one)}
    Path("study.yml").write_text(STUDY.format(**given), "utf-8")
    monkeypatch.setenv("DEEPSEEK_API_KEY", OF_JUDGE)
    assert build.make("study.yml", jobs=1).failed == []
    check_headers(one, OF_JUDGE)
    check_headers(other, None)
    asked_before = len(one.headers)
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    assert build.make("study.yml", jobs=1).failed == [], "a study that is complete needs no key"
    assert len(one.headers) == asked_before
