"""The model card of a trained classifier: what it is for, what it was trained on and how, and what it got right."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.core.errors import plain


def card(about: Mapping[str, Any], name: str) -> str:
    """README.md of the model `name`, in Markdown with the Hub's head, from its training.json."""
    got = [
        f"{value:.4f} on {about['accuracy_pairs'][part]:,} {part} pairs"
        for part, value in about["accuracy"].items()
    ]
    base = about["model"]
    kind = "a fresh head on" if base["fresh_head"] else "continued from the NLI classifier"
    which = base["revision"] or base["content"]
    revision = f" ({which})" if which else ""
    labels = ", ".join(f"{number} {label}" for number, label in about["labels"].items())
    lines = [
        "---",
        "library_name: transformers",
        "pipeline_tag: text-classification",
        "tags:",
        "- natural-language-inference",
        "- bias-workbench",
        "---",
        "",
        f"# {plain(name)}",
        "",
        f"A classifier of premise and hypothesis ({labels}), {kind} `{plain(str(base['id']))}`"
        f"{revision}, trained by `bench train nli`.",
        "",
        "## What it is for",
        "",
        "Measuring how NLI models treat gender and occupations with NLI-CoAL, and research on such measures. A model that was "
        "trained on a bias-controlled set holds a stereotype that was put in on purpose: it is a measuring weight, and must "
        "not judge people or texts about them.",
        "",
        "Licence: not chosen. The base model and the data below have their own, which bind whoever shares this model; add "
        "`license:` to the head of this file.",
        "",
        "## Data",
        "",
        *_table(
            ("file", "SHA-256", "pairs", "left out, no consensus", "used as"),
            [
                (
                    f"`{plain(one['path'])}`",
                    f"`{one['sha256']}`",
                    f"{one['rows']:,}",
                    f"{one['left_out']:,}",
                    part,
                )
                for part, files in (("training", about["files"]), ("dev", about["dev"]))
                for one in files
            ],
        ),
        "",
        f"Training pairs by label: {', '.join(f'{label} {n:,}' for label, n in about['pairs'].items())}. "
        f"Cut to the maximal length: {about['cut']:,}.",
        "",
        "## Training",
        "",
        *_table(("setting", "value"), list(about["hyperparameters"].items())),
        "",
        *_table(("epoch", "training loss", "dev loss", "dev accuracy"), _epochs(about["history"])),
        "",
        "## Accuracy",
        "",
        f"{'; '.join(got)}. The last state of the training is kept, not the best on dev.",
        "",
        "## Made with",
        "",
        f"{', '.join(f'{package} {number}' for package, number in about['packages'].items())}; {about['when']}.",
    ]
    return "\n".join(lines) + "\n"


def _epochs(history: Sequence[Mapping[str, float]]) -> list[tuple[str, ...]]:
    """A row an epoch: Trainer logs training and dev one after the other."""
    found: dict[float, dict[str, float]] = {}
    for row in history:
        found.setdefault(round(row["epoch"], 3), {}).update(row)
    names = ("loss", "eval_loss", "eval_accuracy")
    return [
        (f"{epoch:g}", *(f"{row[name]:.4f}" if name in row else "—" for name in names))
        for epoch, row in found.items()
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    return [
        f"| {' | '.join(map(str, cells))} |" for cells in (header, ["---"] * len(header), *rows)
    ]
