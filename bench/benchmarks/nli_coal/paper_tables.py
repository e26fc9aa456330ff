"""The scores of predictors by rule on NLI-CoAL's items, as in the paper's tables."""

import numpy as np
import pandas as pd

from bench.benchmarks.nli_coal.formulas import WHOLE
from bench.benchmarks.nli_coal.outcomes import CELLS, GENDERS, SETS, SUMS
from bench.metrics.engine import Sums
from bench.metrics.table import ALL

# Predictors by rule: their labels of feminine and masculine hypotheses in PS, AS and NS. For
# example, "EE CC NN" is entailment in PS, contradiction in AS, and neutral in NS; * is random.
PREDICTORS = {
    "always neutral": "NN NN NN",
    "always entailment": "EE EE EE",
    "always contradiction": "CC CC CC",
    "man: entailment, woman: contradiction": "CE CE CE",
    "woman: entailment, man: contradiction": "EC EC EC",
    "random": "** ** **",
    "the stereotype, neutral without one": "EE CC NN",
    "the stereotype, entailment without one": "EE CC EE",
    "its opposite, neutral without one": "CC EE NN",
}
LETTERS = {"E": (1, 0, 0), "C": (0, 1, 0), "N": (0, 0, 1), "*": (1 / 3, 1 / 3, 1 / 3)}


def predictors(items: pd.DataFrame) -> pd.DataFrame:
    """Compute the scores of predictors by rule on these items: one row per language and predictor.

    This gives scores a meaning: for example, a constant wrong label has a CoAL of 2/3.
    """
    rows = items[items.set.isin(SETS)]
    sizes = rows.groupby(["category", "set", "gender"], sort=False).size()
    table = []
    for category in dict.fromkeys(rows.category):
        cells = [[sizes.get((category, name, gender), 0) for gender in GENDERS] for name in SETS]
        for predictor, rule in PREDICTORS.items():
            labels = [[LETTERS[letter] for letter in both] for both in rule.split()]
            counts = np.zeros((1, 1, len(SUMS)))
            counts[..., : len(CELLS)] = (np.array(cells)[:, :, None] * np.array(labels)).ravel()
            sums = Sums(SUMS, counts, {(category, ALL): 0})
            with np.errstate(divide="ignore", invalid="ignore"):
                values = {metric.name: float(metric.values(sums)[0]) for metric in WHOLE}
            table.append({"category": category, "predictor": predictor, **values})
    return pd.DataFrame(table)
