"""Read `openai:NAME@URL`, and keep secrets out of names that are written down."""

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from bench.core.errors import BadInput

KEY = "OPENAI_API_KEY"
# Environment variables whose value is a secret, by the end of their names.
SECRET_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$|^OPENAI_API_KEY__")
# Parameters of a URL in which services take keys.
SECRET_FIELDS = re.compile(r"key|token|secret|passw|auth|signature|credential", re.IGNORECASE)
# Keys of OpenAI, of similar services, and of the Hub, by their beginning.
SECRET_FORMS = re.compile(r"\b(sk-[\w-]{20,}|hf_[A-Za-z]{30,})")
# Shorter values are words like `EMPTY` or `none`, which local servers are given.
SHORTEST = 12
MARK = "[key]"


class Address(NamedTuple):
    """A model's name on a server, and the server's base URL."""

    name: str
    url: str


def parse(rest: str) -> Address:
    """Read what follows `openai:`.

    Raises:
        BadInput: not NAME@URL, or a URL with a password or a key, which is not repeated.
    """
    name, _, address = rest.partition("@http")
    url = "http" + address
    try:
        parts = urlsplit(url)
        usable = name and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a broken address
        usable = False
    if not usable:
        # Without a password or a query.
        shown = re.sub(r"//[^/]*@", "//...@", rest.partition("?")[0])
        raise BadInput(
            f"model openai:{shown}: expected openai:NAME@URL, "
            "like openai:qwen@http://localhost:8000/v1"
        )
    fields = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    forbidden = [f"`{field}`" for field in fields if SECRET_FIELDS.search(field)]
    if "@" in parts.netloc:
        forbidden = ["password"]
    if forbidden:
        raise BadInput(
            f"model openai:{name}: the URL may hold no {forbidden[0]}; put the key into {KEY}"
        )
    return Address(name, url)


def check_no_secret(model: str) -> None:
    """Refuse a MODEL with a key in it, because its name is written into records and reports.

    Raises:
        BadInput: it holds the value of a secret environment variable, or what looks like a key;
            the message does not repeat it.
    """
    for name, value in os.environ.items():
        if SECRET_NAMES.search(name) and _is_secret(value.strip()) and value.strip() in model:
            raise BadInput(
                f"the model's name holds the value of the environment variable {name}; leave it out"
            )
    if SECRET_FORMS.search(model):
        raise BadInput(
            "the model's name holds what looks like a key; leave it out, and put the key into "
            f"{KEY}"
        )


def redacted(text: str, key: str) -> str:
    """Replace the key in `text` by `[key]`."""
    return text.replace(key, MARK) if _is_secret(key) else text


def _is_secret(value: str) -> bool:
    # $SOME_KEY may also name the file that holds a key.
    return len(value) >= SHORTEST and not os.path.exists(value)
