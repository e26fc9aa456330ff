"""Make the scores of trained models that the package carries.

    python tests/benchmarks/carried.py        # half an hour; add --data DIR for other packs

Needed again when a measure, the samples or the recipe of the tiny models change.
"""

import argparse
from importlib.metadata import version

import pandas as pd

from bench.analyses import meta_evaluation
from bench.core.files import atomic_write


def carry_models(scores, path=meta_evaluation.CARRIED):
    """Write scores of trained models; the first line says how they were made."""
    rows = scores.pivot_table(
        index=meta_evaluation.ROW, columns="measure", values="score", sort=False
    )
    names = ("torch", "transformers", "tokenizers")
    packages = ", ".join(f"{name} {version(name)}" for name in names)
    head = f"# Made by tests/benchmarks/carried.py, with {packages}; no text of any data set.\n"
    text = rows.reset_index().round(6).to_csv(index=False, lineterminator="\n")
    atomic_write(path, head + text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=[None], help="language packs; default: ours")
    given = parser.parse_args()
    every = [
        meta_evaluation.evaluate(data=data, ns_words=words, carried=False)
        for data in given.data
        for words in meta_evaluation.NS_WORDS
    ]
    carry_models(pd.concat(every))
