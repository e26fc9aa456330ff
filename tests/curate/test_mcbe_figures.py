"""Pictures of curated items: what they say in words, with few and with many items, and with long names."""

import numpy as np
import pandas as pd

from bench.core.i18n import use_language
from bench.curate import mcbe_rules
from bench.figures import curation


def rated(n, name="d"):
    dice = np.random.default_rng(0)
    scores = np.clip(dice.normal(dice.uniform(1, 9, (n, 1)), 1.1, (n, 6)).round(1), 0, 10)
    wide = pd.DataFrame(scores, index=[f"{name}{k:03}" for k in range(n)], columns=list("uvwxyz"))
    tall = (
        wide.rename_axis("item_id")
        .reset_index()
        .melt("item_id", var_name="rater", value_name="rating")
    )
    return tall, mcbe_rules.severities(wide)


def agreed(n):
    row = {
        "of": "severity",
        "measure": "Krippendorff's alpha (interval)",
        "value": 0.5,
        "ci_low": 0.2,
        "ci_high": 0.7,
    }
    rows = [row | {"category": f"category {k}"} for k in range(n)]
    rows.append(
        {
            "category": "category 0",
            "of": "subcategory",
            "measure": "Fleiss' kappa",
            "value": np.nan,
            "ci_low": np.nan,
            "ci_high": np.nan,
        }
    )
    return pd.DataFrame(rows)


def test_severities_say_how_many_lie_too_far_apart():
    ratings, outcome = rated(12)
    n = int(outcome.again.sum())
    assert 0 < n < 12
    fig = curation.severities(ratings, outcome, outcome[outcome.again])
    assert f"Severities of {n} of 12 items lie more than 3.5 apart" in fig.get_label()
    assert "6 people" in fig.get_label()
    assert len(fig.axes[0].get_yticklabels()) == 12


def test_of_many_items_those_are_drawn_that_lie_farthest_apart():
    ratings, outcome = rated(200, "a draft with quite a long name ")
    fig = curation.severities(ratings, outcome, None)
    drawn = [label.get_text() for label in fig.axes[0].get_yticklabels()]
    assert len(drawn) == curation.MANY
    assert max(map(len, drawn)) <= curation.LONGEST
    assert "of 200 items" in fig.get_label()
    assert "drawn: the 40 farthest apart" in fig.get_label()
    assert len(set(drawn)) == curation.MANY


def test_a_picture_speaks_chinese():
    with use_language("zh"):
        assert "一致性" in curation.agreement(agreed(1)).get_label()


def test_agreement_names_categories_where_there_are_several_and_draws_no_dot_without_a_number():
    fig = curation.agreement(agreed(2))
    ax = fig.axes[0]
    assert [text.get_text() for text in ax.texts] == ["undefined"]
    assert (
        ax.get_yticklabels()[0].get_text()
        == "category 0, severities as numbers: Krippendorff's alpha (interval)"
    )
    assert "Agreement is 0.50; chance gives 0" in fig.get_label()


def test_nothing_is_drawn_of_nothing():
    assert curation.severities(pd.DataFrame(), None, None) is None
    assert curation.agreement(agreed(1)[:0]) is None
