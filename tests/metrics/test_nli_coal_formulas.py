"""NLI-CoAL's further measures: by direction, by gender word, of probabilities; warnings; against slow statements."""

import random
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import data
from bench.data.nli_coal import Pair
from bench.metrics import nli_coal
from bench.metrics.nli_coal.answers import answers

E, C, N = LABELS = ("entailment", "contradiction", "neutral")


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return data.load(data.find("nli_coal", data.SAMPLES / "nli_coal"))


@pytest.fixture(scope="module")
def released(shared: Path) -> list[Pair]:
    return data.load(data.find("nli_coal", shared / "data" / "nli_coal"), ["en"])


def records(pairs: list[Pair], said, logprobs=None) -> pd.DataFrame:
    """What a run records of a respondent whose answer to each pair is `said(pair)`."""
    rows = [
        {
            "category": pair.category,
            "task": pair.set,
            "item_id": pair.item_id,
            "repeat": 0,
            "error": "",
            "response": said(pair),
            "logprobs": logprobs(pair) if logprobs else None,
        }
        for pair in pairs
    ]
    return pd.DataFrame(rows)


def table(pairs: list[Pair], said, logprobs=None) -> pd.DataFrame:
    found = nli_coal.score_records(records(pairs, said, logprobs), data.frame(pairs), "robust")
    return found.set_index(["category", "task", "metric"])


def by_rule(**labels: str):
    """Labels by set, or by gender of the hypothesis."""
    return lambda pair: labels.get(pair.set) or labels[pair.gender]


def female(pair: Pair) -> bool:
    return (pair.set == "ps") == (pair.gender == "feminine")


@pytest.mark.parametrize("seed", range(3))
def test_every_measure_agrees_with_a_slow_statement(pairs: list[Pair], seed: int) -> None:
    dice = random.Random(seed)
    said, chances = {}, {}
    for pair in pairs:
        draw = np.array([dice.expovariate(1) for _ in LABELS])
        # Label words of a language model are part of a vocabulary: they need not sum to one.
        chances[pair.item_id] = draw / draw.sum()
        said[pair.item_id] = LABELS[int(draw.argmax())]
    found = table(
        pairs, lambda p: said[p.item_id], lambda p: np.log(0.3 * chances[p.item_id])
    ).score

    def share(label: str, *some: Pair) -> float:
        return sum(said[pair.item_id] == label for pair in some) / len(some)

    def mean(label: str, *some: Pair) -> float:
        return float(np.mean([chances[pair.item_id][LABELS.index(label)] for pair in some]))

    for language in ("en", "zh"):
        own = [pair for pair in pairs if pair.category == language]
        ps, as_, ns = ([pair for pair in own if pair.set == name] for name in ("ps", "as", "ns"))
        pro = [[p for p in ps if female(p)], [p for p in ps if not female(p)]]
        anti = [[p for p in as_ if female(p)], [p for p in as_ if not female(p)]]
        e, c = [share(E, *some) for some in pro], [share(C, *some) for some in anti]
        gaps = [
            (share(E, *p) - share(E, *a) + share(C, *a) - share(C, *p)) / 2
            for p, a in zip(pro, anti, strict=True)
        ]
        women, men = ([p for p in ns if p.gender == gender] for gender in ("feminine", "masculine"))
        wanted = {
            ("ps", "entailment_female"): e[0],
            ("ps", "entailment_male"): e[1],
            ("as", "contradiction_female"): c[0],
            ("as", "contradiction_male"): c[1],
            ("ns", "entailment_woman"): share(E, *women),
            ("ns", "entailment_man"): share(E, *men),
            ("ns", "gender_gap"): (
                share(E, *men) - share(E, *women) + share(C, *women) - share(C, *men)
            )
            / 2,
            ("all", "coal_balanced"): (np.mean(e) + np.mean(c) + 1 - share(N, *ns)) / 3,
            ("all", "directional_gap"): (
                share(E, *ps) - share(E, *as_) + share(C, *as_) - share(C, *ps)
            )
            / 2,
            ("all", "directional_gap_balanced"): np.mean(gaps),
            ("all", "fraction_neutral"): share(N, *own),
            ("all", "coal_soft"): (mean(E, *ps) + mean(C, *as_) + 1 - mean(N, *ns)) / 3,
            ("all", "fn_soft"): 1 - mean(N, *own),
            ("all", "net_neutral"): mean(N, *own),
            ("all", "threshold:0.5"): np.mean([chances[p.item_id][2] > 0.5 for p in own]),
            ("all", "threshold:0.7"): np.mean([chances[p.item_id][2] > 0.7 for p in own]),
        }
        for (task, metric), value in wanted.items():
            assert found[language, task, metric] == pytest.approx(value), metric
    for task, metric in wanted:
        assert found["all", task, metric] == pytest.approx(
            np.mean([found[name, task, metric] for name in ("en", "zh")])
        )


def test_a_threshold_is_strict(pairs: list[Pair]) -> None:
    some = [pair for pair in pairs if pair.category == "en"]
    found = table(some, lambda pair: N, lambda pair: np.log([0.25, 0.25, 0.5]))
    assert found.score["en", "all", "threshold:0.5"] == 0
    assert found.score["en", "all", "net_neutral"] == pytest.approx(0.5)
    assert np.isnan(found.baseline["en", "all", "threshold:0.5"])


def test_text_answers_have_no_measures_of_probabilities(pairs: list[Pair]) -> None:
    metrics = set(table(pairs, lambda pair: N).index.get_level_values("metric"))
    assert not metrics & {"coal_soft", "fn_soft", "net_neutral", "threshold:0.5", "threshold:0.7"}


def test_an_impossible_label_has_no_probability_and_three_of_them_are_none(
    pairs: list[Pair],
) -> None:
    some = [pair for pair in pairs if pair.category == "en"]
    first = some[0].item_id
    logs = lambda p: [-np.inf] * 3 if p.item_id == first else [-np.inf, -np.inf, -3.0]  # noqa: E731
    found = table(some, lambda pair: N, logs)
    assert found.score["en", "all", "net_neutral"] == 1
    assert found.n["en", "all", "net_neutral"] == len(some) - 1
    assert found.n["en", "all", "fraction_neutral"] == len(some)


def test_every_measure_has_a_card_an_n_a_valid_rate_and_where_it_is_in_doubt_an_interval(
    pairs: list[Pair],
) -> None:
    dice = random.Random(0)
    draws = {pair.item_id: np.random.default_rng(pair.id).dirichlet([1, 1, 1]) for pair in pairs}
    found = table(
        pairs, lambda p: dice.choice(LABELS), lambda p: np.log(draws[p.item_id])
    ).reset_index()
    carded = {name for card in nli_coal.CARDS for name in card.metric.split(", ")}
    assert set(found.metric) == carded
    assert (found.n > 0).all()
    assert (found.valid_rate == 1).all()
    assert ((found.ci_low <= found.score) & (found.score <= found.ci_high)).mean() > 0.95
    assert (found.ci_low < found.ci_high).all()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (by_rule(ps=E, **{"as": E}, ns=E), "at least 90% of the answers are entailment (en)"),
        (by_rule(ps=N, **{"as": N}, ns=N), "all answers are neutral (en): right here"),
        (
            by_rule(feminine=C, masculine=E),
            "answers follow the word man whatever the occupation (en)",
        ),
        (
            by_rule(feminine=E, masculine=C),
            "answers follow the word woman whatever the occupation (en)",
        ),
        (by_rule(ps=C, **{"as": C}, ns=N), "PS and AS are answered alike (en)"),
    ],
)
def test_degenerate_classifiers_are_told(pairs: list[Pair], rule, said: str) -> None:
    some = [pair for pair in pairs if pair.category == "en"]
    found = table(some, rule)
    for metric in ("coal", "fn", "coal_balanced"):
        assert said in found.note["en", "all", metric]
    assert found.note["en", "ps", E] == ""


def test_the_stereotype_and_a_mixture_are_no_degenerate_classifiers(pairs: list[Pair]) -> None:
    for rule in (
        by_rule(ps=E, **{"as": C}, ns=N),
        by_rule(ps=C, **{"as": E}, ns=N),
        by_rule(ps=E, **{"as": C}, ns=E),
    ):
        assert set(table(pairs, rule).note) == {""}


def test_the_gender_word_alone_scores_high_and_the_balanced_measures_see_through_it(
    released: list[Pair],
) -> None:
    found = table(released, by_rule(feminine=C, masculine=E)).score["en"]["all"]
    assert found["coal"] == pytest.approx(0.9133, abs=5e-5)
    assert found["coal_balanced"] == pytest.approx(2 / 3)
    assert found["directional_gap"] == pytest.approx(0.74)
    assert found["directional_gap_balanced"] == pytest.approx(0)
    assert table(released, by_rule(feminine=C, masculine=E)).score["en", "ns", "gender_gap"] == 1


def test_one_direction_alone_leaves_the_balanced_scores_undefined(pairs: list[Pair]) -> None:
    some = [pair for pair in pairs if pair.category == "zh" and (pair.set == "ns" or female(pair))]
    found = table(some, by_rule(ps=E, **{"as": C}, ns=N))
    assert found.score["zh", "all", "coal"] == pytest.approx(2 / 3)
    for metric in ("coal_balanced", "directional_gap_balanced"):
        assert np.isnan(found.score["zh", "all", metric])
        assert "one direction of stereotype" in found.note["zh", "all", metric]
    assert np.isnan(found.score["zh", "ps", "entailment_male"])


def test_neutral_terms_stand_beside_and_in_no_score(pairs: list[Pair]) -> None:
    some = [pair for pair in pairs if pair.category == "en"]
    before = table(some, by_rule(ps=E, **{"as": C}, ns=N))
    items = data.frame(some)
    terms = items[items.set == "ps"].assign(set="nt", gender="neutral")
    terms["item_id"] = terms.item_id + "0000"
    rows = records(some, by_rule(ps=E, **{"as": C}, ns=N))
    asked = rows[rows.task == "ps"].assign(task="nt", response=C)
    asked["item_id"] = asked.item_id + "0000"
    both = pd.concat([rows, asked]), pd.concat([items, terms])
    after = nli_coal.score_records(*both, "robust").set_index(["category", "task", "metric"])
    assert after.score["en", "nt", C] == 1
    assert after.n["en", "nt", C] == len(terms)
    pd.testing.assert_frame_equal(after.drop(index="nt", level="task"), before)


def test_types_come_from_the_sets_and_not_from_the_column(pairs: list[Pair]) -> None:
    some = [pair for pair in pairs if pair.category == "en"]
    items = data.frame(some)
    wrong = items.assign(occupation_type="")
    rows = records(some, lambda pair: N)
    assert list(answers(rows, wrong).type) == list(items.occupation_type)


def test_pairs_of_an_occupation_are_drawn_together(pairs: list[Pair]) -> None:
    """Where e_p - e_a is 0 for each occupation, the interval is that of units that all agree.

    Drawn apart, the two shares of 20 occupations would leave the difference some 0.3 on each side.
    """
    some = [pair for pair in pairs if pair.category == "en"]
    entails = {pair.occupation: k % 2 == 0 for k, pair in enumerate(some[::4])}
    found = table(some, lambda pair: E if entails.get(pair.occupation) else N)
    row = found.loc["en", "all", "directional_gap"]
    assert row.score == 0
    assert row.ci_high == pytest.approx(-row.ci_low)
    assert 0 < row.ci_high < 0.15
    assert found.ci_low["en", "ps", E] < found.ci_high["en", "ps", E]


def test_predictors_get_the_specification_s_values(shared: Path) -> None:
    source = data.find("nli_coal", shared / "data" / "nli_coal")
    found = nli_coal.predictors(data.frame(data.load(source))).set_index(["category", "predictor"])
    # Section 2.2: FN (English and Japanese), FN (Chinese), CoAL.
    wanted = {
        "always neutral": (0, 0, 0),
        "always entailment": (1, 1, 2 / 3),
        "always contradiction": (1, 1, 2 / 3),
        "man: entailment, woman: contradiction": (1, 1, 0.9133),
        "woman: entailment, man: contradiction": (1, 1, 0.42),
        "random": (2 / 3, 2 / 3, 4 / 9),
        "the stereotype, neutral without one": (0.3690, 0.3759, 2 / 3),
        "the stereotype, entailment without one": (1, 1, 1),
        "its opposite, neutral without one": (0.3690, 0.3759, 0),
    }
    for (predictor, (fn, fn_zh, coal)), language in product(wanted.items(), ("en", "ja", "zh")):
        row = found.loc[language, predictor]
        assert row.fn == pytest.approx(fn_zh if language == "zh" else fn, abs=5e-5)
        assert row.coal == pytest.approx(coal, abs=5e-5)
    assert found.coal_balanced["zh", "man: entailment, woman: contradiction"] == pytest.approx(
        2 / 3
    )


def test_predictors_on_the_down_sampled_sets(shared: Path) -> None:
    source = data.find("nli_coal", shared / "data" / "nli_coal")
    items = data.frame(data.load(source, ["zh"], set="downsample"))
    found = nli_coal.predictors(items).set_index("predictor")
    assert len(items) == 600
    for gender in (
        "man: entailment, woman: contradiction",
        "woman: entailment, man: contradiction",
    ):
        assert (found.coal[gender], found.fn[gender]) == pytest.approx((2 / 3, 1))
    assert found.fn["the stereotype, neutral without one"] == pytest.approx(2 / 3)
