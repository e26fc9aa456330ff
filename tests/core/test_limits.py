"""Limits: the value at a limit still counts as inside, and the next one does not."""

import pytest

from bench.core.cells import rounded
from bench.core.errors import BadInput
from bench.core.numbers import p_value
from bench.core.text import shortened, truncate
from bench.data.manifest import MAX_LABEL, MAX_NAME, category_name_error, is_label
from bench.scorers.endpoint.responses import MOST_TOKENS, token_count
from bench.scorers.local.device import batch_size
from bench.scorers.names import parse_parameters, path_slug
from bench.tasks.replies import ENDS, ends


def rate(value):
    """Return a model's parameter `bias`, or "refused"."""
    try:
        return parse_parameters("tiny:s", [f"bias={value}"], {"bias": 0.5})["bias"]
    except BadInput:
        return "refused"


@pytest.mark.parametrize(
    ("function", "inside", "result", "outside", "other"),
    [
        (lambda n: is_label("x" * n), MAX_LABEL, True, MAX_LABEL + 1, False),
        (lambda n: is_label("x" * n), 1, True, 0, False),
        (lambda n: category_name_error("x" * n) == "", MAX_NAME, True, MAX_NAME + 1, False),
        (lambda n: path_slug("x" * n), 80, "x" * 80, 81, f"{'x' * 72}-ce9a3ad"),
        (p_value, 0.001, "0.001", 0.00099, "< 0.001"),
        (rounded, "0.1234", "0.1234", "0.12345", "0.123"),
        (lambda text: truncate(text, 3), "abc", "abc", "abcd", "abc …"),
        (
            lambda text: shortened(text, 3),
            "abc",
            "abc",
            "abcd",
            "abc … (the first 3 of 4 characters)",
        ),
        (lambda n: len(ends("x" * n)), 2 * ENDS, 2 * ENDS, 2 * ENDS + 2, 2 * ENDS + 1),
        (rate, 0, 0, -0.01, "refused"),
        (rate, 1, 1, 1.01, "refused"),
        (lambda budget: batch_size([4, 2, 3], budget), 12, 3, 11, 2),
        (lambda budget: batch_size([4, 2, 3], budget), 1, 1, 0, 1),
        (
            lambda n: token_count({"usage": {"n": n}}, "n"),
            MOST_TOKENS,
            MOST_TOKENS,
            MOST_TOKENS + 1,
            0,
        ),
        (lambda n: token_count({"usage": {"n": n}}, "n"), 1, 1, 0, 0),
    ],
)
def test_a_value_at_a_limit_is_inside(function, inside, result, outside, other):
    assert function(inside) == result
    assert function(outside) == other
