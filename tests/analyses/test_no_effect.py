"""The table of studies without an effect counts claims, with Wilson's interval."""

import pytest

from tests.benchmarks import no_effect


@pytest.mark.parametrize(
    ("claims", "row"),
    [
        # 1.96 squared is 3.84, which is 27.8 % of 10 + 3.84.
        (lambda seed: False, "| a | 10 | 0 | 0.0% | 0.0% to 27.8% |"),
        (lambda seed: seed < 5, "| a | 10 | 5 | 50.0% | 23.7% to 76.3% |"),
    ],
)
def test_a_row_has_the_share_of_studies_with_a_claim(claims, row):
    *_head, last = no_effect.rows({"a": claims}, 10)
    assert last == row
