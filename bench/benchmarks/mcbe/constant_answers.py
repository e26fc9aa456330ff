"""Warnings of constant answers to McBE, and the baselines of constant and random answers."""

import math
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from bench.benchmarks.mcbe.instances import DECAY, decay
from bench.benchmarks.mcbe.requests import LETTERS
from bench.core.numbers import decimals
from bench.metrics.table import ALL, CONSTANT, HABIT, is_habit

# A category and a task.
Cell = tuple[str, str]
# The share of A without a preference for a letter.
EVEN = 0.5
BASELINES = {"position_bias": 0.5, "score_substring": 100.0}


@cache
def random_chooser(n: int, rate: float, first: float = EVEN, draws: int = 100_000) -> float:
    """Return the mean scenario selection score of a respondent that draws each letter.

    Args:
        n: number of groups.
        rate: the rate of the decay.
        first: the probability of A.
    """
    rng = np.random.default_rng(n)
    counts = np.zeros((n, draws))
    for a, b in combinations(range(n), 2):  # each pair is asked about in both orders
        if first == EVEN:
            votes = rng.binomial(2, EVEN, draws)
        else:
            votes = rng.binomial(1, first, draws) + rng.binomial(1, 1 - first, draws)
        counts[a] += votes
        counts[b] += 2 - votes
    return float(np.mean(decay(counts.var(axis=0), rate)))


def constant_answers(
    rows: pd.DataFrame, records: pd.DataFrame, items: pd.DataFrame
) -> dict[Cell, str]:
    """Warn by category (or all) and task of answers that are all alike, whatever the group.

    Args:
        rows: the outcomes, see `bench.benchmarks.mcbe.instances.outcomes`.
    """
    # Category, task, the numbers of equal answers and of all answers, the number of commonest
    # answers (one a category), and the finding.
    habits: list[tuple[str, str, float, float, int, str]] = []
    # Preference computation: equal likelihoods for all groups. No real language model gives this.
    equal = "the instances have sentences that are equally likely for all groups"
    # Scenarios answered by position: all groups are chosen equally often, and the score is 100.
    by_place = (
        "the pairs are answered with the same letter in both orders: by position, not by group"
    )
    scores = pd.DataFrame({"alike": rows.score == 100, "total": rows.score.notna()})
    pairs = rows.reindex(columns=["same_letter", "pairs_in_both_orders"])
    for task, what, columns in (("pc", equal, scores), ("ss", by_place, pairs)):
        sums = columns[rows.task == task].groupby(rows.category).sum()
        for category, numbers in pd.concat([sums, sums.sum().to_frame(ALL).T]).iterrows():
            habits.append((str(category), task, *numbers, 1, what))
    # The same label or severity everywhere, in categories with more than one.
    read = records[(records.request == "answer") & (records.parsed != "")]
    for task, column in (("sc", "subtype"), ("bs", "score")):
        choice = items.groupby("category")[column].nunique().gt(1)
        answers = read[(read.task == task) & read.category.map(choice).astype(bool)]
        counts: Any = answers.groupby(["category", "parsed"], sort=False).size()
        by_category = counts.groupby("category", sort=False)
        most = by_category.max()
        n = by_category.sum()
        what = "the readable answers are the same within a category, whatever is asked"
        habits.append((ALL, task, most.sum(), n.sum(), len(most), what))
        for category, answer in by_category.idxmax():
            what = f"the readable answers are {answer}, whatever is asked"
            habits.append((category, task, most[category], n[category], 1, what))
    warnings = {}
    repeats = records["repeat"].nunique()
    for category, task, alike, total, n_answers, what in habits:
        if is_habit(alike, total, CONSTANT, repeats=repeats, answers=n_answers):
            warnings[category, task] = f"{decimals(100 * alike / total)}% of {what}"
    return warnings


def first_letter(records: pd.DataFrame) -> float:
    """Return the share of A in scenario selection if one letter is preferred; else 1/2."""
    parsed = records[(records.task == "ss") & (records.parsed != "")]
    n = len(parsed)
    first = int((parsed.parsed == LETTERS[0]).sum())
    most = max(first, n - first)
    repeats = parsed["repeat"].nunique()
    return round(first / n, 2) if is_habit(most, n, HABIT, repeats=repeats) else EVEN


def baselines(
    rows: pd.DataFrame, items: pd.DataFrame, preset: str, first: float
) -> dict[tuple[str, str, str], float]:
    """Return by category, task and measure the score of random or of the best constant answers."""
    instances = rows[["category", "task", "item_id"]].drop_duplicates(["task", "item_id"])
    fields = items[["item_id", "words", "subtype", "score"]]
    by_task = instances.merge(fields, on="item_id").groupby(["task", "category"], sort=False)
    baselines: dict[tuple[str, str, str], float] = {}
    for key, cell in by_task:
        task, category = map(str, key)
        score = math.nan
        if task == "ss":
            rate = DECAY[preset]["ss"]
            scores = [random_chooser(len(words), rate, first) for words in cell.words.tolist()]
            score = float(np.mean(scores))
        elif task == "sc":
            score = 100 * cell.subtype.value_counts().max() / len(cell)
            baselines[category, task, "score_readable"] = score
        elif task == "bs":
            people = cell.score.to_numpy(float)
            score = 100 - 10 * float(np.abs(people - np.median(people)).mean())
        baselines[category, task, "score"] = score
        baselines |= {(category, task, name): value for name, value in BASELINES.items()}
    return baselines
