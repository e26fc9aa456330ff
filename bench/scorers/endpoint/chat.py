"""Write chat requests of OpenAI's protocol, and read their answers: of a server, or of a file."""

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from bench.config import Generation
from bench.core.errors import BadInput, expected
from bench.core.text import whole_characters
from bench.scorers.base import Answer, messages
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.responses import (
    MOST_LIKELIEST,
    NO_LOGPROBS,
    Broken,
    Refusal,
    Unanswered,
)
from bench.tasks.replies import (
    THINKS,
    closes_unopened,
    is_tag,
    split_thought,
    unfinished_thought,
)
from bench.tasks.request import Request

# We reject replies with more characters per token.
LONGEST_TOKEN = 128
# The model's own probabilities, without temperature or nucleus sampling.
UNCHANGED: dict[str, Any] = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0}
# Where a model's thoughts are.
OPENED = "opened by the server's chat template, closed in the reply"
IN_REPLIES = "in the replies"
APART = "kept apart by the server"
TEMPLATE = "chat_template_kwargs"
# Fields that `--leave-out` can name, and how `run.json` describes this.
LEFT_OUT = {
    "max_tokens": "sent as max_completion_tokens",
    **dict.fromkeys(("seed", "temperature", "top_p"), "left out"),
}
# The options that set a field.
OPTIONS = {
    "max_tokens": "--max-new-tokens, or not sent with --leave-out max_tokens",
    "seed": "--seed, or not sent with --leave-out seed",
    "temperature": "--temperature, or not sent with --leave-out temperature",
    TEMPLATE: "--thinking-tokens and --template",
    "logprobs": "--answer-mode letters",
    "top_logprobs": "--answer-mode letters, and --request-field top_logprobs=5 asks for fewer",
}
# Fields that have an option of their own, or that would change the form of answers.
RESERVED = {
    *("model", "messages", "max_tokens", "max_completion_tokens", "temperature", "seed"),
    *("logprobs", TEMPLATE, "stream", "n"),
}


class Chat:
    """Makes the bodies of chat requests to the model `name`, and reads the choices."""

    def __init__(self, name: str, options: Generation, leave_out: Sequence[str] = ()) -> None:
        self.name, self.options, self.leave_out = name, options, leave_out
        # The number of likeliest first tokens to request, and of probabilities with upper bounds.
        self.likeliest = options.request_fields.get("top_logprobs", MOST_LIKELIEST)
        self.bounded = 0
        # The place of thoughts, if known: OPENED, IN_REPLIES or APART.
        self.thoughts = ""
        for field in RESERVED & options.request_fields.keys():
            raise BadInput(f"--request-field {field}: is set by another option, or by us")
        for field in set(leave_out) - LEFT_OUT.keys():
            raise BadInput("--leave-out: " + expected(field, LEFT_OUT, "field"))

    def describe(self) -> dict[str, Any]:
        """Return the fields of `run.json` on the form of requests."""
        temperature = self.options.temperature
        left_out = {name: LEFT_OUT[name] for name in self.leave_out}
        decoding = "the server's own" if temperature is None else f"temperature {temperature:g}"
        return {
            "prompted_as": "chat turn of the endpoint",
            "decoding": decoding,
            **self.options.describe(),
            **({"asked_with": left_out} if left_out else {}),
            **({"thoughts": self.thoughts} if self.thoughts else {}),
            "letters_from": f"the {self.likeliest} likeliest first tokens, summed over a letter's "
            "spellings; a letter that is not among them stands with the probability of the least "
            "likely token, an upper bound",
        }

    def body(self, request: Request) -> dict[str, Any]:
        """Return the body of a request (generate, choose) without the fields of `leave_out`.

        Fields that the user chose by another option are sent.
        """
        options = self.options
        body: dict[str, Any] = {"model": self.name, "seed": request.seed}
        body["max_tokens"] = self._most_tokens(request)
        if request.of_judge:  # decodes greedily, and does not see the model's system message
            options = Generation(thinking_tokens=options.thinking_tokens)
            body["temperature"] = 0.0
        body["messages"] = messages(request.turns, options.system)
        chosen = dict(options.request_fields)
        chosen.pop("top_logprobs", None)
        if options.temperature is not None:
            chosen["temperature"] = options.temperature
        body |= chosen
        if request.request_type == "choose":
            body |= UNCHANGED | {"logprobs": True, "top_logprobs": self.likeliest}
        off = {"enable_thinking": False} if options.thinking_tokens == 0 else {}
        if template := {**off, **options.template_arguments}:
            body[TEMPLATE] = template
        for name in set(self.leave_out) & body.keys() - chosen.keys():
            value = body.pop(name)
            if name == "max_tokens":
                body["max_completion_tokens"] = value
        return body

    def advice(self, request: Request, refusal: Refusal) -> str:
        """Name the option that sets the field about which a server complains; "" for none."""
        if refusal.status in (400, 403, 422):
            options = OPTIONS | {
                name: f"--request-field {name}" for name in self.options.request_fields
            }
            for name in options.keys() & self.body(request).keys():
                if re.search(rf"\b{name}\b", refusal.texts):
                    return f"{name} is set by {options[name]}"
        return ""

    def read(self, request: Request, body: dict[str, Any]) -> Answer:
        """Read the answer to a request; a refused request has an error."""
        choice, most_tokens = body["choices"][0], self._most_tokens(request)
        cut = responses.was_cut(choice)
        if responses.token_count(body, "completion_tokens") == most_tokens:
            cut = True  # some servers give another reason
        try:
            if request.request_type == "choose":
                cut = None
                return self._letter(choice, request.options)
            text = responses.text_of(choice)
        except Unanswered as failure:
            return Answer("", error=str(failure), cut=cut)
        if len(text) > LONGEST_TOKEN * most_tokens:
            text, cut = text[: LONGEST_TOKEN * most_tokens], True
        # If a reply ended in its thought, a server that keeps thoughts apart sends an empty text.
        in_thought = not text.strip() and (bool(cut) or responses.keeps_thought_apart(choice))
        opened = in_thought or self.thoughts == OPENED
        error = unfinished_thought(text, opened, cut, responses.MORE_TOKENS)
        return Answer(whole_characters(text), error=error, cut=cut)

    def _most_tokens(self, request: Request) -> int:
        return request.max_new_tokens + (self.options.thinking_tokens or 0)

    def _letter(self, choice: dict[str, Any], options: Sequence[str]) -> Answer:
        text, tokens = responses.text_of(choice), responses.first_tokens(choice)
        likeliest, _ = max(tokens, key=itemgetter(1), default=("", 0.0))
        is_kept_apart = not text.strip() and responses.keeps_thought_apart(choice)
        if self.thoughts or is_kept_apart or is_tag(likeliest.strip()):
            raise Unanswered(THINKS)
        if not tokens:
            raise Broken(NO_LOGPROBS)
        values, bounded = responses.options(tokens, options)
        if not values:
            first = responses.first_line(repr(likeliest))
            problem = "no option is among the likeliest first tokens of the reply"
            raise Unanswered(f"{problem}, which is {first}")
        self.bounded += bounded
        return Answer(options[values.index(max(values))], tuple(values))


def thoughts_in(choice: dict[str, Any]) -> str:
    """Return the place of a reply's thought; "" if it has none."""
    if responses.keeps_thought_apart(choice):
        return APART
    text = responses.text_of(choice)
    if closes_unopened(text):
        return OPENED
    split = split_thought(text)
    return IN_REPLIES if split.thought or not split.closed else ""
