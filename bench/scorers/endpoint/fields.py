"""Fields of an endpoint's chat requests, sent in the way that the server accepts."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.core.errors import BadInput
from bench.scorers.endpoint.errors import Refusal, all_texts
from bench.scorers.generation_options import GenerationOptions

# Statuses of a request with a field or a value that the server does not accept.
STATUSES = (400, 422)
# How servers say that they never accept a field or a value.
UNSUPPORTED = re.compile(
    r"unsupported|not support|n['o]t supported|only the default|unknown|unrecogni[sz]ed"
    r"|unexpected|not permitted|not allowed|forbidden|only \S{1,10} is (allowed|supported)|不支持",
    re.IGNORECASE,
)
RENAMED = "sent as max_completion_tokens"
TEMPLATE = "chat_template_kwargs"
# Fields that have an option of their own, or that decide how the answer is read.
RESERVED = {
    "model": "--model",
    "messages": "--system",
    "max_tokens": "--max-new-tokens",
    "max_completion_tokens": "--max-new-tokens",
    "temperature": "--temperature",
    "top_p": "--top-p",
    "seed": "--seed",
    "logprobs": "--read",
    "top_logprobs": "--read",
    TEMPLATE: "--template",
    "stream": "",
    "n": "",
}


class ChatFields:
    """Writes the fields of chat requests, and learns from refusals what the server accepts.

    Attributes:
        asked_with: fields that are sent differently, and how, for `run.json`.
    """

    def __init__(self, options: GenerationOptions) -> None:
        for name in options.request_fields:
            if name in RESERVED:
                instead = RESERVED[name]
                hint = f"give {instead} instead" if instead else "the workbench sets it itself"
                raise BadInput(f"--request-field {name}: cannot be set by this option; {hint}")
        self._options = options
        # A judge decodes greedily, and does not see the model's system message.
        self._of_judge = GenerationOptions(temperature=0.0, thinking_tokens=options.thinking_tokens)
        self.asked_with: dict[str, str] = {}

    def system(self, of_judge: bool) -> str:
        """Return the text of the system message, "" for none."""
        return "" if of_judge else self._options.system

    def of_reply(self, max_new_tokens: int, seed: int, of_judge: bool) -> dict[str, Any]:
        """Return the fields of a request for a reply."""
        options = self._of_judge if of_judge else self._options
        sampling = {"temperature": options.temperature, "top_p": options.top_p}
        return {
            "seed": seed,
            "max_tokens": max_new_tokens + (options.thinking_tokens or 0),
            **{name: value for name, value in sampling.items() if value is not None},
            **self._of_every_request(options),
        }

    def of_letter(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Add the fields of every request to `fields`, which ask for a reply's first token."""
        return {**fields, **self._of_every_request(self._options)}

    def accepted(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return `fields` as the server accepts them, according to its refusals so far."""
        result = {}
        for name, value in fields.items():
            how = self.asked_with.get(_label(name, value))
            if how is None or how == RENAMED:
                result[name if how is None else "max_completion_tokens"] = value
        return result

    def learn(self, sent: Mapping[str, Any], refusal: Refusal) -> str:
        """Learn from a refusal how to send a field instead.

        Args:
            sent: the fields of the request, as they were sent.

        Returns:
            The field that the server does not accept, like `temperature=0`; "" if the refusal is
            about nothing that can be sent differently or left out.
        """
        if refusal.status not in STATUSES:
            return ""
        message, named = all_texts(refusal.body), set(_named(refusal.body))
        for name, value in sent.items():
            if name not in named and not re.search(rf"\b{name}\b", message):
                continue
            if name == "max_tokens" and "max_completion_tokens" in message:
                self.asked_with[name] = RENAMED
            elif self._may_be_left_out(name, value, message):
                self.asked_with[_label(name, value)] = f"left out ({refusal.reason})"
            else:
                continue
            return _label(name, value)
        return ""

    def _of_every_request(self, options: GenerationOptions) -> dict[str, Any]:
        off = {"enable_thinking": False} if options.thinking_tokens == 0 else {}
        template = {**off, **options.template_arguments}
        return {**({TEMPLATE: template} if template else {}), **options.request_fields}

    def _may_be_left_out(self, name: str, value: Any, message: str) -> bool:
        if name in ("temperature", "top_p"):
            # The user's own value may also be a mistake, which has to be reported.
            chosen = getattr(self._options, name) == value
            return not chosen or bool(UNSUPPORTED.search(message))
        return name == "seed" or (name == TEMPLATE and not self._options.template_arguments)


def _label(name: str, value: Any) -> str:
    """Name a field, with its value where a server may accept another value of it."""
    return f"{name}={value:g}" if name in ("temperature", "top_p") else name


def _named(body: object) -> Iterator[str]:
    """Yield the fields that an error is about, in OpenAI's form (`param`) or FastAPI's (`loc`)."""
    if isinstance(body, list):
        for part in body:
            yield from _named(part)
    elif isinstance(body, dict):
        if isinstance(body.get("param"), str):
            yield body["param"].partition(".")[0]
        place = body.get("loc")
        if isinstance(place, list):
            yield from (part for part in place if isinstance(part, str))
        for name in ("error", "detail"):
            yield from _named(body.get(name))
