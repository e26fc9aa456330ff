"""Write conversations as a causal model reads them, by its chat template if it has one.

A tokenizer reads the name of a special token as this token everywhere: for example, a text with
`<|im_end|>` would end the user's turn and begin another. So we mark such names inside messages
before we fill in the template, and encode them as characters. The template's own special tokens
stay special.
"""

import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

from bench.config import Generation
from bench.core.errors import BadInput
from bench.core.progress import say
from bench.scorers.base import messages
from bench.scorers.local.checkpoint import n_trailing_special_tokens
from bench.scorers.local.hub import read_settings
from bench.tasks.replies import closing_tag, opened_tag
from bench.tasks.request import Turns

# Marks around the name of a special token in a message: code points that Unicode never assigns.
OPEN = "\ufdd0"
CLOSE = "\ufdd1"
MARKED = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")
# The argument by which chat templates switch thinking off.
SWITCH = "enable_thinking"
# A question that a chat template has to write.
PROBE = "Where is the book?"
# A reply, to see which token the template writes after it.
PROBE_REPLY = "On the table."
# Limits of a chat template; a usual one takes less than a millisecond, and some kilobytes.
SECONDS = 5.0
MEMORY = 256 << 20  # bytes
CHARACTERS = 1_000_000  # of a rendered prompt, besides those of its turns
# The function by which chat templates write today's date, and the codes in its argument.
DATE = "strftime_now"
CODES = [f"%{dash}{letter}" for dash in ("", "-") for letter in "aAbBcdeDFGHIjmMpSTuUVwWxXyYzZ"]
# This macro replaces the function, to write the date of the run; `date_codes` maps codes to texts.
DATE_MACRO = (
    "{% macro strftime_now(format) %}{% set written = namespace(text=format) %}"
    "{% for code, value in date_codes.items() %}"
    "{% set written.text = written.text | replace(code, value) %}"
    "{% endfor %}{{ written.text }}{% endmacro %}\n"
)
# Processors of images and sound keep their chat template in these files.
PROCESSORS = ("chat_template.json", "processor_config.json")


def chat_template_of(tokenizer: Any, path: str, options: Mapping[str, Any]) -> str | None:
    """Return the chat template that asks a question; None for a base model.

    A model can have several by name, for example one with tools. The template of a model that also
    sees images can be its processor's.
    """
    templates = tokenizer.chat_template
    for file in [Path(path, name) for name in PROCESSORS if "gguf_file" not in options]:
        if not templates and file.is_file():
            templates = read_settings(file).get("chat_template")
    if isinstance(templates, list):
        templates = {template["name"]: template["template"] for template in templates}
    if isinstance(templates, Mapping):
        if "default" not in templates:
            raise BadInput(
                f"{path}: its chat templates are named {', '.join(templates)}; name the one that "
                "asks a question `default`"
            )
        templates = templates["default"]
    return templates or None


class ChatFormatter:
    """Writes conversations as text, and encodes it; refuses options without effect."""

    def __init__(self, model: str, tokenizer: Any, generation: Generation) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._n_trailing = n_trailing_special_tokens(tokenizer)
        added = tokenizer.added_tokens_decoder.values()
        names = {token.content for token in added if token.special}
        names |= set(tokenizer.all_special_tokens)
        longest_first = sorted(names, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first))) if names else None
        self._system, self._arguments = generation.system, dict(generation.template_arguments)
        self._thinking_off = generation.thinking_tokens == 0
        self._thoughts, self._in_parts = "", False
        self.example = ""  # a question in the chat template
        # The date when the run began, so that a run that continues later has the same prompts.
        self.date = date.today()
        self._is_dated = DATE in (tokenizer.chat_template or "")
        generation.refuse(["request_fields"], f"{model} is no endpoint, and is sent no requests")
        if tokenizer.chat_template:
            self._check_template()
        else:
            generation.refuse(["template_arguments"], f"{model} has no chat template")

    def describe(self) -> dict[str, Any]:
        """Return the fields of `run.json` that differ from the usual ones."""
        metadata = {"thoughts": self._thoughts} if self._thoughts else {}
        if self._is_dated:
            metadata["prompt_date"] = self.date.isoformat()
        if self._system and not self.tokenizer.chat_template:
            metadata["prompted_as"] = (
                "bare text behind the system message and a blank line "
                "(the model has no chat template)"
            )
        return metadata

    def render(self, prompt: Turns, close_thought: bool = False) -> str:
        """Write the text that the model continues; without a template, one line per turn.

        `close_thought` closes a thought that the chat template opens.
        """
        if self.tokenizer.chat_template:
            text = self._fill_template(prompt)
            if (close_thought or self._thinking_off) and self.opens_thought(prompt, text):
                # As templates write an empty thought.
                text = f"{text.rstrip()}\n\n{closing_tag(opened_tag(text))}\n\n"
            return text
        turns = [prompt] if isinstance(prompt, str) else prompt
        system = [self._system, ""] if self._system else []
        return "\n".join(map(self._mark, [*system, *turns, ""]))

    def opens_thought(self, prompt: Turns, text: str) -> bool:
        """Return whether the rendered `prompt`, `text`, ends in a thought of the chat template."""
        if not self.tokenizer.chat_template or not opened_tag(text):
            return False
        last = prompt if isinstance(prompt, str) else prompt[-1]
        # If the prompt itself ends with a tag, try another prompt.
        return not opened_tag(last) or bool(opened_tag(self._fill_template("?")))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of texts before a continuation."""
        if not texts:
            return []
        # Every second part is the name of a special token; nearly always there is one part.
        parts = [MARKED.split(text) for text in texts]
        # Chat templates write the special tokens themselves.
        bare = not self.tokenizer.chat_template
        encoded = self.tokenizer([part[0] for part in parts], add_special_tokens=bare)["input_ids"]
        result = []
        for ids, (_, *more) in zip(encoded, parts, strict=True):
            ids = ids[: len(ids) - self._n_trailing * bare]
            for k, text in enumerate(more):
                coded = self.tokenizer(
                    text, add_special_tokens=False, split_special_tokens=k % 2 == 0
                )
                ids = ids + coded["input_ids"]
            result.append(ids)
        return result

    def end_of_turn(self) -> int | None:
        """Return the added token that the chat template writes behind a reply, if any."""
        if not self.tokenizer.chat_template:
            return None
        try:
            text = self._fill_template((PROBE, PROBE_REPLY))
        except BadInput:
            return None  # asking the model says so
        _, reply, after = text.rpartition(PROBE_REPLY)
        ids = self.tokenizer(after.lstrip(), add_special_tokens=False)["input_ids"]
        added = {*self.tokenizer.added_tokens_decoder, *self.tokenizer.all_special_ids}
        return ids[0] if reply and ids and ids[0] in added else None

    def _fill_template(self, prompt: Turns) -> str:
        """Write the prompt's turns, and the beginning of a reply if the last turn is a user's."""
        conversation: list[dict[str, Any]] = []
        for message in messages(prompt, self._system):
            content = self._mark(message["content"])
            parts = [{"type": "text", "text": content}]
            conversation.append({**message, "content": parts if self._in_parts else content})
        date_options: dict[str, Any] = {}
        if self._is_dated:
            date_options["chat_template"] = DATE_MACRO + self.tokenizer.chat_template
            date_options["date_codes"] = {code: self.date.strftime(code) for code in CODES}
        try:
            # In Jinja's sandbox, so that a template can neither run code nor read files.
            with _time_limit(SECONDS), _memory_limit(MEMORY):
                text = self.tokenizer.apply_chat_template(
                    conversation,
                    tokenize=False,
                    add_generation_prompt=conversation[-1]["role"] == "user",
                    **self._arguments,
                    **date_options,
                )
            if len(text) > CHARACTERS + len(str(conversation)):
                raise MemoryError(f"it writes {len(text):,} characters")
        except Exception as error:  # templates of others can be wrong in any way
            raise BadInput(
                f"{self.model}: its chat template cannot be used ({type(error).__name__}: {error})"
            ) from error
        return str(text)

    def _mark(self, text: str) -> str:
        if not self._special:
            return text
        return self._special.sub(lambda name: f"{OPEN}{name[0]}{CLOSE}", text)

    def _check_template(self) -> None:
        """Try the chat template with the options, and refuse options without effect."""
        names = set(re.findall(r"\w+", self.tokenizer.chat_template))
        for name in self._arguments.keys() - names:
            takes = f"the chat template of {self.model} takes no such argument"
            raise BadInput(f"--template {name}: {takes}; leave it out")
        if self._thinking_off and SWITCH in names:
            self._arguments[SWITCH] = False
        try:
            text = self._fill_template(PROBE)
            if PROBE not in text:
                # Templates of models that see images expect a list of parts.
                self._in_parts = True
                text = self._fill_template(PROBE)
        except BadInput as error:
            if isinstance(error.__cause__, TimeoutError | MemoryError):
                raise
            if self._system:
                self._refuse_system(f"takes no system message ({error.__cause__})")
            return  # asking the model says so
        if PROBE not in text:
            raise BadInput(f"{self.model}: its chat template leaves out the question; correct it")
        self.example = text
        if self._mark(self._system).strip() not in text:
            self._refuse_system("leaves out the system message")
        opening = opened_tag(text)
        if not self._thinking_off:
            shut = "; letters are read behind the closed thought"
            self._thoughts = f"the chat template opens {opening}{shut}" if opening else ""
            return
        how = f"{SWITCH} is false" if SWITCH in names else "the chat template has no switch"
        if opening:
            how = f"the chat template opens {opening}, which is closed at once"
        self._thoughts = f"off ({how})"
        if SWITCH not in names:
            say(f"{self.model}: its chat template has no switch for thinking")

    def _refuse_system(self, problem: str) -> None:
        raise BadInput(f"--system: the chat template of {self.model} {problem}; leave it out")


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in a chat template that takes longer, in any thread."""
    end, before = time.monotonic() + seconds, sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if time.monotonic() > end:
            raise TimeoutError(f"it takes longer than {seconds:g} seconds")
        # Only the template's own lines, because tracing is slow.
        return trace if frame.f_code.co_filename == "<template>" else None

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


# The limit holds for the process, so that two threads would restore each other's.
_LIMITED = threading.Lock()


@contextmanager
def _memory_limit(size: int) -> Iterator[None]:
    """Raise MemoryError in a chat template that takes more than `size` bytes; on Linux only."""
    if sys.platform != "linux":
        yield
        return
    import resource

    with _LIMITED:
        before, most = resource.getrlimit(resource.RLIMIT_DATA)
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        limit = pages * resource.getpagesize() + size
        if before != resource.RLIM_INFINITY:
            limit = min(limit, before)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
        try:
            yield
        except MemoryError as error:
            raise MemoryError(f"it takes more than {size >> 20} MiB") from error
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (before, most))
