"""Where an endpoint is, read from `openai:NAME@URL`, and secrets kept out of names that are written down."""

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from bench.core.errors import BadInput

KEY = "OPENAI_API_KEY"
# Environment variables whose value is a secret, by how their names end.
SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$|^OPENAI_API_KEY__")
# Parameters of an address that services take keys in.
SECRET_FIELDS = re.compile(r"key|token|secret|passw|auth|signature|credential", re.IGNORECASE)
# Keys of OpenAI, many of its likes, and the Hub, by how they begin.
SECRET_FORMS = re.compile(r"\b(sk-[\w-]{20,}|hf_[A-Za-z]{30,})")
# Shorter values are words like `EMPTY` or `none`, which local servers are given.
SHORTEST = 12
MARK = "[key]"


class Address(NamedTuple):
    """A model's name on a server, and the server's base address."""

    name: str
    url: str


def parse(rest: str) -> Address:
    """What stands behind `openai:`.

    Raises:
        BadInput: not NAME@URL, or an address that holds a password or a key, which is not repeated.
    """
    name, _, address = rest.partition("@http")
    url = "http" + address
    try:
        parts = urlsplit(url)
        usable = name and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a broken address
        usable = False
    if not usable:
        shown = re.sub(
            r"//[^/]*@", "//...@", rest.partition("?")[0]
        )  # without a password or a query
        raise BadInput(
            f"model openai:{shown}: expected openai:NAME@URL, like openai:qwen@http://localhost:8000/v1"
        )
    if "@" in parts.netloc:
        raise BadInput(f"model openai:{name}: the URL may hold no password; put the key into {KEY}")
    for field, _ in parse_qsl(parts.query, keep_blank_values=True):
        if SECRET_FIELDS.search(field):
            raise BadInput(
                f"model openai:{name}: the URL may hold no `{field}`; put the key into {KEY}"
            )
    return Address(name, url)


def check_no_secret(model: str) -> None:
    """Refuse a MODEL that has a key in it: its name is written into records, reports and folders.

    Raises:
        BadInput: it has the value of a secret variable of the environment, or what looks like a key; it is not repeated.
    """
    for name, value in os.environ.items():
        if SECRET_NAMES.search(name) and _is_secret(value.strip()) and value.strip() in model:
            raise BadInput(
                f"the model's name holds the value of the environment variable {name}; leave it out"
            )
    if SECRET_FORMS.search(model):
        raise BadInput(
            f"the model's name holds what looks like a key; leave it out, and put the key into {KEY}"
        )


def redacted(text: str, key: str) -> str:
    """`text` with `[key]` wherever it repeats the key."""
    return text.replace(key, MARK) if _is_secret(key) else text


def _is_secret(value: str) -> bool:
    # A path is none: $SOME_KEY may name the file that holds one.
    return len(value) >= SHORTEST and not os.path.exists(value)
