"""Keys of endpoints: each host gets its own, in real requests whose every header is read."""

import json
from pathlib import Path

import pytest

from bench import run
from bench.scorers.endpoint import keys
from tests.helpers.answering import said
from tests.helpers.leaks import leaks

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
ONE = {"categories": ["gender"], "limit": 1}


def test_a_name_alone_is_a_model_of_openai():
    model, url, host, variable, _key = keys.Server.of("gpt-4o", {})
    assert (model, url) == ("gpt-4o", "https://api.openai.com/v1")
    assert (host, variable) == ("api.openai.com", "OPENAI_API_KEY")


@pytest.fixture(autouse=True)
def _environment(monkeypatch, own_folder):
    for name, value in {**AMBIENT, "OPENAI_API_KEY": OF_MODEL}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def two(serve):
    return serve(lambda body: said("A")), serve(lambda body: said("有"))


def own(server):
    return f"OPENAI_API_KEY__127_0_0_1_{server.server_port}"


def check_headers(server, key):
    """Every request since the last check had this key, or none, and nothing of the environment."""
    assert server.keys == {f"Bearer {key}" if key else None}
    for headers in server.headers:
        assert not set(headers) - SENT - {"authorization", "user-agent"}
        assert "planted" not in json.dumps(headers)
    server.headers.clear()


def test_each_host_gets_its_own_key_and_no_file_holds_one(two, monkeypatch):
    def evaluate(model, judge, out, **options):
        given = {"settings": {"explanation": "yes"}, **ONE, **options}
        metadata = run.evaluate("cbbq", model, judge=judge, out=out, **given).metadata
        return metadata["model"].get("key"), metadata["judge"]["key"]

    model, judge = two
    assert evaluate(model.model, judge.model, "without") == ("OPENAI_API_KEY", None)
    check_headers(model, OF_MODEL)
    check_headers(judge, None)
    monkeypatch.setenv("ZHIPUAI_API_KEY", OF_JUDGE)
    keys = {judge.host: "ZHIPUAI_API_KEY"}
    assert evaluate(model.model, judge.model, "named", keys=keys)[1] == "ZHIPUAI_API_KEY"
    check_headers(judge, OF_JUDGE)
    monkeypatch.setenv(own(judge), OF_JUDGE)
    assert evaluate(model.model, judge.model, "own")[1] == own(judge)
    check_headers(judge, OF_JUDGE)
    check_headers(model, OF_MODEL)
    evaluate(model.model, model.model.replace("some-model", "judge"), "same")
    check_headers(model, OF_MODEL)
    evaluate("simulated:", model.model, "local")
    check_headers(model, None)
    assert leaks(Path(), OF_MODEL) == leaks(Path(), OF_JUDGE) == []


def test_models_at_several_hosts_need_keys_of_their_own(two, monkeypatch):
    first, second = two
    monkeypatch.setenv(own(first), OF_JUDGE)
    runs = run.evaluate_all("cbbq", [first.model, second.model], "runs", **ONE)
    assert [done.metadata["model"]["key"] for done in runs] == [own(first), None]
    check_headers(first, OF_JUDGE)
    check_headers(second, None)
    run.evaluate_all("cbbq", [second.model, "simulated:"], "single", **ONE)
    check_headers(second, OF_MODEL)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"HOST": "DEEPSEEK_API_KEY"}, "DEEPSEEK_API_KEY is not set"),
        ({"HOST": OF_JUDGE}, "expected HOST=NAME"),
        ({OF_JUDGE: "api.deepseek.com"}, "expected HOST=NAME"),
        ({"api.deepsek.com": "HOME"}, "'api.deepsek.com' is unknown; allowed: 127.0.0.1:"),
    ],
)
def test_a_wrong_name_or_a_key_in_its_place_is_refused_and_no_key_repeated(
    serve, refusal, given, says
):
    server = serve(lambda body: said("A"))
    named = {server.host if name == "HOST" else name: value for name, value in given.items()}
    message = refusal(run.evaluate, "cbbq", server.model, limit=1, keys=named)
    assert says in message
    assert OF_JUDGE not in message
    assert not server.headers, "nothing is asked before"
