"""A conversation as a causal model reads it: by its chat template where it has one, what was said taken as text alone.

A tokenizer takes the name of a special token for that token wherever it stands. So a text that holds `<|im_end|>` would end
the user's turn and begin another, and say what it likes there. Here such names within what was said are marked before the
template is filled in, and each is read as the characters that it is made of. The template's own stay special.
"""

import re
from collections.abc import Sequence
from typing import Any

from bench.errors import BadInput
from bench.scorers.base import messages
from bench.tasks.request import Turns

# Around the name of a special token that was said. Unicode assigns these to no character, ever.
OPEN, CLOSE = "\ufdd0", "\ufdd1"
_SAID = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")


class Speech:
    """Writes conversations as text, and encodes that.

    Args:
        model: whose tokenizer it is, for errors.
        behind: how many special tokens the tokenizer puts behind a text.
    """

    def __init__(self, model: str, tokenizer: Any, behind: int) -> None:
        self.model, self.tokenizer, self._behind = model, tokenizer, behind
        known = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
        names = sorted(known | set(tokenizer.all_special_tokens), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, names))) if names else None

    def written(self, prompt: Turns) -> str:
        """The text that the model continues: turns of user and model, or bare with a line break after each.

        Raises:
            BadInput: the model's chat template cannot be used.
        """
        said = [prompt] if isinstance(prompt, str) else list(prompt)
        if self._special:
            said = [self._special.sub(lambda name: f"{OPEN}{name[0]}{CLOSE}", text) for text in said]
        if not self.tokenizer.chat_template:
            return "\n".join([*said, ""])
        try:
            # In Jinja's sandbox, so that a template can neither run code nor read files.
            return str(
                self.tokenizer.apply_chat_template(
                    messages(tuple(said)), tokenize=False, add_generation_prompt=True
                )
            )
        except Exception as error:  # what others have written can be wrong in any way
            raise BadInput(
                f"{self.model}: its chat template cannot be used ({type(error).__name__}: {error})"
            ) from error

    def encoded(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of texts that go on."""
        if not texts:
            return []
        # Where nothing is marked, which is nearly always, all are encoded in one call.
        parts = [_SAID.split(text) for text in texts]
        if self.tokenizer.chat_template:  # which writes the special tokens itself
            firsts = list(self.tokenizer([part[0] for part in parts], add_special_tokens=False)["input_ids"])
        else:
            # What the tokenizer puts behind a text is left out.
            firsts = [
                ids[: len(ids) - self._behind]
                for ids in self.tokenizer([part[0] for part in parts])["input_ids"]
            ]
        return [
            first + [one for k, piece in enumerate(part[1:]) for one in self._piece(piece, said=k % 2 == 0)]
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
