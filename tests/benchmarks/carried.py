"""Make the results that the package carries: scores of models and respondents of known bias.

    python tests/benchmarks/carried.py respondents   # a minute or two
    python tests/benchmarks/carried.py models        # half an hour; add --data DIR for other packs

Needed again when a measure, a prompt, the samples or the recipe of the tiny models change.
"""

import argparse
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from bench.analyses import meta_evaluation, meta_respondents
from bench.core.files import atomic_write


def carry_models(scores: pd.DataFrame, path: Path = meta_evaluation.CARRIED) -> None:
    """Write scores of trained models; the first line says how they were made."""
    rows = scores.pivot_table(
        index=meta_evaluation.ROW, columns="measure", values="score", sort=False
    )
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("torch", "transformers", "tokenizers")
    )
    head = f"# Made by tests/benchmarks/carried.py, with {packages}; no text of any data set.\n"
    text = rows.reset_index().round(6).to_csv(index=False, lineterminator="\n")
    atomic_write(path, head + text)


def carry_respondents(scores: pd.DataFrame, path: Path = meta_respondents.CARRIED) -> None:
    """Write scores of respondents: a row per respondent, a column per measure.

    `nan` is an undefined score; a cell is empty where the benchmark does not have the measure.
    """
    texts = scores.assign(
        name=scores.task + " " + scores.metric, score=scores.score.map("{:.8g}".format)
    )
    wide = texts.set_index([*meta_respondents.ROW, "name"]).score.unstack("name", sort=False)  # noqa: PD010
    head = "# Made by tests/benchmarks/carried.py; no text of any data set.\n"
    atomic_write(path, head + wide.reset_index().to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["models", "respondents"])
    parser.add_argument("--data", nargs="*", default=[None], help="language packs; default: ours")
    given = parser.parse_args()
    if given.what == "respondents":
        carry_respondents(meta_respondents.evaluate(carried=False))
    else:
        every = [
            meta_evaluation.evaluate(data=data, ns_words=words, carried=False)
            for data in given.data
            for words in meta_evaluation.NS_WORDS
        ]
        carry_models(pd.concat(every))
