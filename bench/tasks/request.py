"""What is asked of a model: one request, named as in the records."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """What respondents of known character answer; a simulated respondent reads it, a real model never sees it.

    Attributes:
        answers: every answer that counts as one, in the order in which they are offered.
        biased: the answer that follows the stereotype.
        correct: the right answer, empty where no answer is right or wrong.
        rank: for likelihoods, how close the text is to the stereotype, 0 (closest) to 1.
    """

    answers: tuple[str, ...] = ()
    biased: str = ""
    correct: str = ""
    rank: float = 0.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request of one item.

    Attributes:
        verb: `nll`, `choose`, `generate` or `classify`.
        prompt: the text (nll), the user turn (choose, generate), or the premise (classify).
        hypothesis: the second sentence (classify).
        options: what to choose from (choose).
    """

    category: str
    task: str
    item_id: str
    request: str
    verb: str
    prompt: str
    prompt_version: str
    key: Key
    hypothesis: str = ""
    options: tuple[str, ...] = ()
    max_new_tokens: int = 32
    repeat: int = 0
    seed: int = 0

    @property
    def text(self) -> str:
        """All that the model is shown, as records keep it; premise and hypothesis on a line each."""
        return f"{self.prompt}\n{self.hypothesis}" if self.verb == "classify" else self.prompt
