"""The three labels of natural language inference, and their spellings in checkpoints and files."""

from collections.abc import Sequence

from bench.core.errors import BadInput

# In the order of the paper's tables; of equally probable labels the first one counts.
LABELS = ("entailment", "contradiction", "neutral")
# Other spellings.
SPELLINGS = {
    "entailment": ("entail", "entails", "entailed"),
    "contradiction": ("contradict", "contradicts", "contradictory"),
    "neutral": (),
}


def label(name: str) -> str:
    """Return the label that `name` spells; empty if none.

    Examples:
        >>> label("CONTRADICTION"), label("entails"), label("LABEL_0")
        ('contradiction', 'entailment', '')
    """
    spelling = name.strip().lower()
    return next((name for name in LABELS if spelling in (name, *SPELLINGS[name])), "")


def label_order(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the labels that LABEL_0, LABEL_1 and LABEL_2 mean."""
    labels = tuple(label(str(name)) for name in names or ())
    if names and sorted(labels) != sorted(LABELS):
        raise BadInput(
            f"--label-names {','.join(map(str, names))}: expected {', '.join(LABELS)}, each once, "
            "in the order of LABEL_0 to LABEL_2"
        )
    return labels
