"""A preference for one answer is claimed where a binomial test shows it."""

import numpy as np
import pytest
from scipy.stats import binom

from bench.metrics.table import is_preferred


@pytest.mark.parametrize(
    ("count", "n", "options"),
    [(3, 5, 3), (5, 5, 3), (6, 6, 3), (12, 20, 3), (18, 30, 3), (8, 8, 2)],
)
def test_an_answer_is_preferred_where_a_binomial_test_says_so(count, n, options):
    p = options * binom.sf(count - 1, n, 1 / options)
    assert is_preferred(count, n, options) == (p < 0.01)


@pytest.mark.parametrize("n", [5, 10, 20, 40])
def test_an_even_answerer_is_hardly_ever_said_to_prefer_an_answer(n):
    answers = np.random.default_rng(n).integers(0, 3, (5000, n))
    most = np.max([(answers == letter).sum(1) for letter in range(3)], axis=0)
    assert np.mean([is_preferred(count, n, 3) for count in most]) < 0.01


def test_one_answer_in_each_of_many_categories_is_no_preference():
    assert not is_preferred(12, 12, 2, answers=12)
    assert is_preferred(96, 96, 2, answers=12)
