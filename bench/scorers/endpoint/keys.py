"""Parse the URLs of endpoints, and find the key of each host; a key goes to its own host only.

docs/endpoints.md lists the variables that can hold a key. We record and hand on only names of
variables; the process that sends a key reads it itself.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from bench.config import KEY_EXPECTED
from bench.core.errors import BadInput, expected

MODEL_KEY = "OPENAI_API_KEY"
# The address of NAME alone.
OPENAI = "https://api.openai.com/v1"
DEFAULT_PORTS = {"http": 80, "https": 443}
# Names have capitals only, so that a key is not mistaken for one.
NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
# The only query field of a URL: Azure's version, such as 2024-10-21. Any other may hold a key.
VERSION, VERSIONS = "api-version", re.compile(r"(\d{4}-\d{2}-\d{2}|v\d)?-?(preview|latest|beta)?")
# Keys of OpenAI and similar services, the Hub, Google, GitHub, Amazon, and JSON web tokens.
SECRET_FORMS = re.compile(
    r"\b((sk|xai|pplx|nvapi)-[\w-]{20,}|hf_[A-Za-z]{30,}|AIza[\w-]{30,}|gsk_\w{20,}"
    r"|gh[a-z]_\w{30,}|github_pat_\w{30,}|AKIA[A-Z0-9]{16}\b|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
# Shorter values are placeholders for local servers, such as `EMPTY`.
SHORTEST = 12


class Server(NamedTuple):
    """An endpoint's model and address, and the key for its host with the variable that holds it."""

    model: str
    url: str
    host: str
    variable: str
    key: str

    @classmethod
    def of(cls, endpoint: str, variables: Mapping[str, str]) -> "Server":
        """Read NAME@URL, and the key of its host; `variables` are those of --key by host."""
        model, url = parse(endpoint)
        host = host_of(f"openai:{endpoint}")
        check_set(variables)
        of_host = own_variable(host)
        variable = variables.get(host) or (of_host if key_in(of_host) else MODEL_KEY)
        return cls(model, url, host, variable, key_in(variable))


def parse(endpoint: str) -> tuple[str, str]:
    """Split NAME@URL into the model's name and the URL; messages do not repeat a key in it.

    Examples:
        >>> parse("gpt-4o")
        ('gpt-4o', 'https://api.openai.com/v1')
    """
    if endpoint and not set("@/:?#") & set(endpoint):
        return endpoint, OPENAI
    name, _, address = endpoint.partition("@http")
    url = "http" + address
    try:
        parts = urlsplit(url)
        usable = name and parts.scheme in DEFAULT_PORTS and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a broken address
        usable = False
    if not usable:
        without_key = re.sub(r"//[^/]*@", "//...@", re.split("[?#;]", endpoint)[0])
        example = (
            "expected openai:NAME@URL, like openai:qwen@http://localhost:8000/v1, or openai:NAME "
            "for a model of OpenAI"
        )
        raise BadInput(f"model openai:{without_key}: {example}")
    query = parse_qsl(parts.query, keep_blank_values=True)
    are_versions = all(field == VERSION and VERSIONS.fullmatch(value) for field, value in query)
    has_odd_marks = "@" in parts.netloc or "#" in url or set("?#;=") & set(unquote(parts.path))
    if has_odd_marks or not are_versions:
        raise BadInput(
            f"model openai:{name}: the URL may hold no password, no query but "
            f"?{VERSION}=YYYY-MM-DD, and no other ?, #, ; or =; put the key into {MODEL_KEY}"
        )
    return name, url


def host_of(model: str) -> str:
    """Return the host of a model that is an endpoint, "" for any other model."""
    kind, _, endpoint = model.partition(":")
    if kind != "openai":
        return ""
    parts = urlsplit(parse(endpoint)[1])
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, DEFAULT_PORTS[parts.scheme]) else f"{host}:{parts.port}"


def own_variable(host: str) -> str:
    """Return the name of the variable that holds the key of one host."""
    return f"{MODEL_KEY}__{re.sub('[^A-Z0-9]', '_', host.upper())}"


def key_in(variable: str) -> str:
    """Read the key in an environment variable; "" if it is not set."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise BadInput(f"the environment variable {variable}: holds characters that no key has")
    return key


def of_run(
    models: Iterable[str], model: str, judge: str | None, variables: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the variables of a run by host; several hosts do not share `OPENAI_API_KEY`."""
    of_models, named = set(map(host_of, models)) - {""}, variables or {}
    hosts = filter(None, (host_of(model), host_of(judge or "")))
    separate = [host for host in hosts if host in named or of_models != {host}]
    return {host: named.get(host) or own_variable(host) for host in separate}


def check(variables: Mapping[str, str], models: Iterable[str | None]) -> None:
    """Refuse a host without a model, and a value that is not a name and so may be a key."""
    hosts = sorted({host_of(model) for model in models if model} - {""})
    for host, name in variables.items():
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise BadInput(KEY_EXPECTED)
        if host not in hosts:
            allowed = hosts or ["none, because no model is an endpoint"]
            raise BadInput(f"--key {host}={name}: " + expected(host, allowed, "host"))


def check_set(variables: Mapping[str, str]) -> None:
    """Raise BadInput if a variable is not set; a host's own variable need not be."""
    for host, name in variables.items():
        if name != own_variable(host) and not key_in(name):
            remedy = "set it, or name another variable"
            raise BadInput(
                f"--key {host}={name}: the environment variable {name} is not set; {remedy}"
            )


def check_no_secret(model: str) -> None:
    """Refuse a MODEL with a key in it, because records and reports contain its name."""
    if SECRET_FORMS.search(model):
        raise BadInput(f"the model's name holds what looks like a key; put it into {MODEL_KEY}")


def redacted(value: Any, key: str) -> Any:
    """Replace the key in all texts of a JSON value by `[key]`."""
    if len(key) < SHORTEST:
        return value
    return json.loads(json.dumps(value).replace(json.dumps(key)[1:-1], "[key]"))
