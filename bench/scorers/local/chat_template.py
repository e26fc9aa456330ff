"""A conversation as a causal model reads it: by its chat template where it has one, what was said taken as text alone.

A tokenizer takes the name of a special token for that token wherever it stands. So a text that holds `<|im_end|>` would end
the user's turn and begin another, and say what it likes there. Here such names within what was said are marked before the
template is filled in, and each is read as the characters that it is made of. The template's own stay special.
"""

import re
from collections.abc import Sequence
from typing import Any

import jinja2
import jinja2.meta

from bench.core.errors import BadInput
from bench.core.progress import say
from bench.scorers.base import messages
from bench.scorers.generation_options import GenerationOptions
from bench.tasks.replies import THOUGHT_TAGS
from bench.tasks.request import Turns

# Around the name of a special token that was said. Unicode assigns these to no character, ever.
OPEN, CLOSE = "\ufdd0", "\ufdd1"
# The argument by which chat templates switch thinking off, and those that are not the user's to give.
SWITCH = "enable_thinking"
TAKEN = {
    "messages",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "raise_exception",
    "strftime_now",
}
_SAID = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")


class Speech:
    """Writes conversations as text, and encodes that.

    Args:
        model: whose tokenizer it is, for errors.
        behind: how many special tokens the tokenizer puts behind a text.
        generation: a system message, arguments of the chat template, and whether the model may think.

    Raises:
        BadInput: the chat template cannot do what `generation` asks for.
    """

    def __init__(
        self, model: str, tokenizer: Any, behind: int, generation: GenerationOptions | None = None
    ) -> None:
        self.model, self.tokenizer, self._behind = model, tokenizer, behind
        known = {
            token.content for token in tokenizer.added_tokens_decoder.values() if token.special
        }
        names = sorted(known | set(tokenizer.all_special_tokens), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, names))) if names else None
        options = generation or GenerationOptions()
        self._system, self._arguments = options.system, dict(options.template_arguments)
        self._off = options.thinking_tokens == 0
        self._thoughts = ""
        options.refuse(["request_fields"], f"{model} is no endpoint, and is sent no requests")
        if tokenizer.chat_template:
            self._check_template(_source(tokenizer))
        else:
            options.refuse(["template_arguments"], f"{model} has no chat template")

    def describe(self) -> dict[str, Any]:
        """Say in `run.json` how prompts are written, where that is another way than the usual one."""
        about = {"thoughts": self._thoughts} if self._thoughts else {}
        if self._system and not self.tokenizer.chat_template:
            about["prompted_as"] = (
                "bare text behind the system message and a blank line (the model has no chat template)"
            )
        return about

    def written(self, prompt: Turns, closed: bool = False) -> str:
        """The text that the model continues: turns of user and model, or bare with a line break after each.

        Args:
            closed: close a thought that the chat template opens.

        Raises:
            BadInput: the model's chat template cannot be used.
        """
        said = [prompt] if isinstance(prompt, str) else list(prompt)
        if not self.tokenizer.chat_template:
            system = [self._marked(self._system), ""] if self._system else []
            return "\n".join([*system, *map(self._marked, said), ""])
        text = self._rendered(said)
        if (closed or self._off) and self.opens_thought(prompt, text):
            return _closed(text)
        return text

    def opens_thought(self, prompt: Turns, text: str) -> bool:
        """Whether the chat template ended `text`, the written `prompt`, with the opening tag of a thought."""
        if not self.tokenizer.chat_template or not _opening(text):
            return False
        said = [prompt] if isinstance(prompt, str) else list(prompt)
        # A prompt that ends so by itself shows what the template does only without that end.
        return not _opening(said[-1]) or bool(_opening(self._rendered([*said[:-1], "?"])))

    def _rendered(self, said: Sequence[str]) -> str:
        conversation = messages(tuple(map(self._marked, said)), self._marked(self._system))
        try:
            # In Jinja's sandbox, so that a template can neither run code nor read files.
            return str(
                self.tokenizer.apply_chat_template(
                    conversation, tokenize=False, add_generation_prompt=True, **self._arguments
                )
            )
        except Exception as error:  # what others have written can be wrong in any way
            raise BadInput(
                f"{self.model}: its chat template cannot be used ({type(error).__name__}: {error})"
            ) from error

    def _marked(self, text: str) -> str:
        if not self._special:
            return text
        return self._special.sub(lambda name: f"{OPEN}{name[0]}{CLOSE}", text)

    def _check_template(self, template: str) -> None:
        """Find out what the chat template does with the options, and refuse what it cannot do."""
        for name in self._arguments:
            if name in TAKEN or not re.search(rf"\b{re.escape(name)}\b", template):
                names = ", ".join(_variables(template))
                raise BadInput(
                    f"--template {name}: the chat template of {self.model} takes no such argument"
                    + (f"; it takes {names}" if names else "; leave it out")
                )
        if self._off and self._arguments.get(SWITCH):
            raise BadInput(
                f"--template {SWITCH}: --thinking-tokens off says otherwise; leave one out"
            )
        switch = self._off and bool(re.search(rf"\b{SWITCH}\b", template))
        if switch:
            self._arguments.setdefault(SWITCH, False)
        if self._system:
            self._check_system()
        if not (opening := self._opens()):
            if self._off:
                self._thoughts = (
                    f"off ({SWITCH} is false)"
                    if switch
                    else "off (the chat template has no switch)"
                )
        elif self._off:
            self._thoughts = f"off (the chat template opens {opening}, which is closed at once)"
        else:
            self._thoughts = (
                f"the chat template opens {opening}; letters are read behind the closed thought"
            )
        if self._off and not switch:
            say(
                f"{self.model}: its chat template has no switch for thinking"
                + (f"; the {opening} that it opens is closed at once" if opening else "")
            )

    def _opens(self) -> str:
        """The tag of a thought that the chat template opens, as far as an everyday question shows."""
        try:
            return _opening(self._rendered(["?"]))
        except BadInput:  # which is said when something is asked
            return ""

    def _check_system(self) -> None:
        try:
            written = self._rendered(["?"])
        except BadInput as error:
            raise BadInput(
                f"--system: the chat template of {self.model} takes no system message ({error.__cause__}); "
                "leave it out"
            ) from error
        if self._marked(self._system).strip() not in written:
            raise BadInput(
                f"--system: the chat template of {self.model} leaves out the system message; leave it out"
            )

    def encoded(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of texts that go on."""
        if not texts:
            return []
        # Where nothing is marked, which is nearly always, all are encoded in one call.
        parts = [_SAID.split(text) for text in texts]
        if self.tokenizer.chat_template:  # which writes the special tokens itself
            firsts = list(
                self.tokenizer([part[0] for part in parts], add_special_tokens=False)["input_ids"]
            )
        else:
            # What the tokenizer puts behind a text is left out.
            firsts = [
                ids[: len(ids) - self._behind]
                for ids in self.tokenizer([part[0] for part in parts])["input_ids"]
            ]
        return [
            first
            + [
                one
                for k, piece in enumerate(part[1:])
                for one in self._piece(piece, said=k % 2 == 0)
            ]
            for first, part in zip(firsts, parts, strict=True)
        ]

    def _piece(self, text: str, said: bool) -> list[int]:
        """Token ids of a piece of a text; those of a name that was `said` are of its characters."""
        if not text:
            return []
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, split_special_tokens=said)[
            "input_ids"
        ]
        return ids


def _source(tokenizer: Any) -> str:
    """The chat template that is used, "" where there are several and none is the usual one."""
    try:
        return str(tokenizer.get_chat_template())
    except ValueError:  # which is said when something is asked
        return ""


def _opening(text: str) -> str:
    """The tag of a thought that a text ends with, "" where it ends otherwise."""
    return next((tag for tag, _ in THOUGHT_TAGS if text.rstrip().endswith(tag)), "")


def _closed(text: str) -> str:
    """Close the thought at the end of a text as templates write an empty one."""
    closing = dict(THOUGHT_TAGS)[_opening(text)]
    return f"{text.rstrip()}\n\n{closing}\n\n"


def _variables(template: str) -> list[str]:
    """The names that a chat template takes from outside, as far as its source can be read."""
    environment = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"], autoescape=True)
    try:
        names = jinja2.meta.find_undeclared_variables(environment.parse(template))
    except jinja2.TemplateError:
        return []
    return sorted(names - TAKEN - set(environment.globals))
