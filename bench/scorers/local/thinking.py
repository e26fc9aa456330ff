"""When a reply that may begin with a thought has had enough tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.tasks.replies import THOUGHT_TAGS
from bench.tasks.request import Until

# How many last tokens hold a tag that was just completed, at one byte per token.
WINDOW = 2 * max(len(tag.encode()) for pair in THOUGHT_TAGS for tag in pair)


@dataclass(slots=True)
class Progress:
    """How far a reply is.

    Attributes:
        thinking: whether a thought is open.
        answer_start: tokens before the answer, those of a closed thought.
    """

    thinking: bool = False
    answer_start: int = 0


@dataclass(frozen=True)
class StopRule:
    """Ends replies before their last token.

    Attributes:
        decode: decodes tokens.
        answer_tokens: limit of an answer, counted from the end of a thought.
        thought_tokens: limit of a thought; None: thought and answer share that of the answer.
        until: whether the text of a reply says enough; not called while a thought is open.
    """

    decode: Callable[[Sequence[int]], str]
    answer_tokens: int
    thought_tokens: int | None
    until: Until

    @property
    def limit(self) -> int:
        """The most tokens that a reply can have."""
        return self.answer_tokens + (self.thought_tokens or 0)

    def follow(self, progress: Progress, ids: Sequence[int]) -> None:
        """Update `progress` where the last token of `ids` opened or closed a thought."""
        text = self.decode(ids[-WINDOW:])
        opening, closing = (max(text.rfind(pair[k]) for pair in THOUGHT_TAGS) for k in (0, 1))
        if progress.thinking and closing > opening:
            progress.thinking, progress.answer_start = False, len(ids)
        elif opening > closing:
            progress.thinking = True

    def full(self, progress: Progress, ids: Sequence[int]) -> bool:
        """Tell whether the thought or the answer has reached its limit."""
        if self.thought_tokens is None:
            return len(ids) >= self.answer_tokens
        if progress.thinking:
            return len(ids) >= self.thought_tokens
        return len(ids) - progress.answer_start >= self.answer_tokens

    def enough(self, progress: Progress, ids: Sequence[int]) -> bool:
        """Tell whether the answer says enough already."""
        return self.until is not None and not progress.thinking and self.until(self.decode(ids))
