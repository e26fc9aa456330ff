"""The three labels of natural language inference, and how checkpoints and files spell them."""

from collections.abc import Sequence

from bench.core.errors import BadInput

# In the order of the paper's tables, which settles ties of probabilities: the first of equals wins.
LABELS = ("entailment", "contradiction", "neutral")
# What else labels are called.
SPELLINGS = {
    "entailment": ("entail", "entails", "entailed"),
    "contradiction": ("contradict", "contradicts", "contradictory"),
    "neutral": (),
}


def label(name: str) -> str:
    """Give the label that goes by `name`, or "".

    Checkpoints and files spell it `CONTRADICTION`, XNLI's `contradictory`, `entail`.
    """
    found = [one for one in LABELS if name.strip().lower() in (one, *SPELLINGS[one])]
    return found[0] if found else ""


def label_order(names: Sequence[str] | None) -> tuple[str, ...]:
    """Give the labels that `names` are, in their order: what LABEL_0, LABEL_1, LABEL_2 mean.

    Raises:
        BadInput: not three labels, each once.
    """
    found = tuple(label(str(name)) for name in names or ())
    if names and sorted(found) != sorted(LABELS):
        raise BadInput(
            f"--label-names {','.join(map(str, names))}: expected {', '.join(LABELS)}, each once, "
            "in the order of LABEL_0 to LABEL_2"
        )
    return found
