"""NLI-CoAL's scores: the paper's table, exact values of predictors by rule, a slow restatement, warnings, wrong tables."""

import csv

import numpy as np
import pandas as pd
import pytest

from bench import data, run
from bench.metrics import nli_coal
from bench.metrics.nli_coal.answers import answers

E, C, N = LABELS = ("entailment", "contradiction", "neutral")
LANGUAGES = ("en", "zh")


@pytest.fixture(scope="module")
def pairs():
    return data.load(data.find("nli_coal", data.SAMPLES / "nli_coal"))


@pytest.fixture(scope="module")
def english(pairs):
    return [pair for pair in pairs if pair.category == "en"]


def records(pairs, said, logprobs=lambda pair: None):
    """What a run records of a respondent whose answer to each pair is `said(pair)`."""
    rows = [
        (pair.category, pair.set, pair.item_id, 0, "", said(pair), logprobs(pair)) for pair in pairs
    ]
    columns = ["category", "task", "item_id", "repeat", "error", "response", "logprobs"]
    return pd.DataFrame(rows, columns=columns)


def table(pairs, said, *logprobs):
    scores = nli_coal.score_records(records(pairs, said, *logprobs), data.frame(pairs), "robust")
    return scores.set_index(["category", "task", "metric"])


def by_set(pro, anti, non):
    return lambda pair: {"ps": pro, "as": anti, "ns": non}[pair.set]


def by_gender(feminine, masculine):
    return lambda pair: {"feminine": feminine, "masculine": masculine}[pair.gender]


def female(pair):
    return (pair.set == "ps") == (pair.gender == "feminine")


# The specification's section 2.2: FN in English and Japanese, FN in Chinese, CoAL in all three.
PREDICTORS = {
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


def test_predictors_by_rule_get_the_specification_s_values(shared):
    source = data.find("nli_coal", shared / "data" / "nli_coal")
    scores = nli_coal.predictors(data.frame(data.load(source)))
    assert set(scores.predictor) == set(PREDICTORS)
    for row in scores.itertuples():
        fn, fn_zh, coal = PREDICTORS[row.predictor]
        wanted = (fn_zh if row.category == "zh" else fn, coal)
        assert (row.fn, row.coal) == pytest.approx(wanted, abs=5e-5)
        if row.predictor.startswith(("man", "woman")):
            assert row.coal_balanced == pytest.approx(2 / 3)
    items = data.frame(data.load(source, ["zh"], set="downsample"))
    scores = nli_coal.predictors(items).set_index("predictor")
    assert len(items) == 600
    for name in list(PREDICTORS)[3:5]:
        assert (scores.coal[name], scores.fn[name]) == pytest.approx((2 / 3, 1))
    assert scores.fn["the stereotype, neutral without one"] == pytest.approx(2 / 3)


def test_the_gender_word_alone_scores_high_and_the_balanced_measures_see_through_it(shared):
    released = data.load(data.find("nli_coal", shared / "data" / "nli_coal"), ["en"])
    scores = table(released, by_gender(C, E)).score["en"]
    names = ["coal", "coal_balanced", "directional_gap", "directional_gap_balanced"]
    wanted = [0.9133, 2 / 3, 0.74, 0]
    assert [scores["all", name] for name in names] == pytest.approx(wanted, abs=5e-5)
    assert scores["ns", "gender_gap"] == 1


@pytest.mark.parametrize(
    ("rule", "coal", "fn", "note"),
    [
        (by_set(E, E, E), 2 / 3, 1, "at least 90% of the answers are entailment (en)"),
        (by_set(N, N, N), 0, 0, "all answers are neutral (en): right here"),
        (by_gender(C, E), None, 1, "answers follow the word man whatever the occupation (en)"),
        (by_gender(E, C), None, 1, "answers follow the word woman whatever the occupation (en)"),
        (by_set(C, C, N), 1 / 3, None, "PS and AS are answered alike (en)"),
        # The stereotype, its opposite and a mixture are no degenerate classifiers.
        (by_set(E, C, N), 2 / 3, None, ""),
        (by_set(C, E, N), 0, None, ""),
        (by_set(E, C, E), 1, 1, ""),
    ],
)
def test_degenerate_classifiers_are_noted(english, rule, coal, fn, note):
    scores = table(english, rule)
    for metric in ("coal", "fn", "coal_balanced"):
        text = scores.note["en", "all", metric]
        assert text.startswith(note) if note else not text
    assert scores.note["en", "ps", E] == ""
    for metric, wanted in (("coal", coal), ("fn", fn)):
        if wanted is not None:
            assert scores.score["en", "all", metric] == pytest.approx(wanted)


@pytest.mark.parametrize("bias", [0, 0.4, 1])
def test_a_simulated_bias_is_recovered(tmp_path, bias):
    # With chance `bias` it says what the stereotype expects in PS and AS, else neutral; in NS it always says neutral.
    done = run.evaluate("nli_coal", f"simulated:bias={bias}", data="samples", out=tmp_path)
    scores = done.scores_beside()
    assert set(scores.preset) == {"robust"}, "the presets agree"
    near = 4 * np.sqrt(bias * (1 - bias) * 2 / 240) / 3 + 1e-12
    for language in LANGUAGES:
        own = scores[scores.category == language].set_index(["task", "metric"]).score
        assert own["all", "coal"] == pytest.approx(2 * bias / 3, abs=near)
        assert own["ps", E] + own["ps", N] == pytest.approx(1)
        assert own["ns", N] == 1


def test_the_english_rows_of_the_paper_s_table_are_recomputed(shared):
    with (shared / "golden/nli_table3_en.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 5
    for row in rows:
        shares = [[float(row[label + name]) for label in "ecn"] for name in "pan"]
        fn, coal = nli_coal.scores(shares, (1000, 1000, 3420))
        wanted = [float(row[f"{name}_recomputed"]) for name in ("fn", "coal")]
        assert [fn, coal] == pytest.approx(wanted, abs=5e-7)
        assert [f"{fn:.3f}", f"{coal:.3f}"] == [row["fn_printed"], row["coal_printed"]]


GOOD = [[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.1, 0.1, 0.8]]


def test_sizes_weigh_fn_and_not_coal():
    for sizes, fn in (((1, 1, 1), 1 - 1.4 / 3), ((1, 1, 8), 1 - 7 / 10)):
        wanted = (fn, (0.5 + 0.6 + 0.2) / 3)
        assert nli_coal.scores(np.array(GOOD), sizes) == pytest.approx(wanted)
    # Rounded shares are accepted.
    for total in (0.9985, 1.002):
        shares = [[0.5, 0.2, total - 0.7], *GOOD[1:]]
        assert nli_coal.scores(shares, (1, 1, 1)).coal == pytest.approx(1.3 / 3)


@pytest.mark.parametrize(
    ("distributions", "sizes", "message"),
    [
        ([[500, 200, 300], *GOOD[1:]], (1, 1, 1), "row PS is [500.0, 200.0, 300.0]"),
        ([*GOOD[:2], [10, 10, 80]], (1, 1, 1), "row NS"),
        ([GOOD[0], [0.4, 0.4, 0.4], GOOD[2]], (1, 1, 1), "row AS is [0.4, 0.4, 0.4]"),
        ([GOOD[0], [-0.2, 0.6, 0.6], GOOD[2]], (1, 1, 1), "row AS"),
        ([GOOD[0], [np.nan, 0.5, 0.5], GOOD[2]], (1, 1, 1), "row AS"),
        (GOOD[:2], (1, 1, 1), "shape (2, 3); expected (3, 3)"),
        ([GOOD], (1, 1, 1), "shape (1, 3, 3)"),
        ([[0.5, 0.5], *GOOD[1:]], (1, 1, 1), "not numbers in a regular shape"),
        ([["a", "b", "c"]] * 3, (1, 1, 1), "not numbers in a regular shape"),
        *((GOOD, sizes, "three positive") for sizes in ((1, 1), (1, 1, 0), (1, -1, 1))),
        *((GOOD, (1, size, 1), "three positive") for size in (np.nan, np.inf)),
    ],
)
def test_what_holds_no_shares_or_sizes_is_refused(refusal, distributions, sizes, message):
    assert message in refusal(nli_coal.scores, distributions, sizes)


REPLIES = {"neutral.": N, "不知道": "", "entailment or neutral": "", "": ""}
REPLIES |= {E: E, "Contradiction": C, N: N, C: C}


@pytest.mark.parametrize("seed", range(3))
def test_every_measure_agrees_with_a_slow_statement(pairs, seed):
    rng = np.random.default_rng(seed)
    draws = rng.dirichlet([1, 1, 1], len(pairs))
    chances = dict(zip((pair.item_id for pair in pairs), draws, strict=True))
    replies = {name: list(REPLIES)[rng.integers(len(REPLIES))] for name in chances}
    # Label words of a language model are part of a vocabulary: they need not sum to one.
    found = table(pairs, lambda p: replies[p.item_id], lambda p: np.log(0.3 * chances[p.item_id]))

    def share(label, pairs):
        """Shares are among readable answers."""
        labels = [REPLIES[replies[pair.item_id]] for pair in pairs]
        return sum(read == label for read in labels) / sum(read != "" for read in labels)

    def mean(label, pairs):
        return np.mean([chances[pair.item_id][LABELS.index(label)] for pair in pairs])

    def gap(pro, anti):
        return (share(E, pro) - share(E, anti) + share(C, anti) - share(C, pro)) / 2

    for language in LANGUAGES:
        own = [pair for pair in pairs if pair.category == language]
        ps, as_, ns = ([pair for pair in own if pair.set == name] for name in ("ps", "as", "ns"))
        pro, anti = ([[p for p in s if female(p) == f] for f in (True, False)] for s in (ps, as_))
        women, men = ([p for p in ns if p.gender == gender] for gender in ("feminine", "masculine"))
        e, c = [share(E, part) for part in pro], [share(C, part) for part in anti]
        over = np.array([chances[pair.item_id][2] for pair in own])
        wanted = {
            ("ps", "entailment_female"): e[0],
            ("ps", "entailment_male"): e[1],
            ("as", "contradiction_female"): c[0],
            ("as", "contradiction_male"): c[1],
            ("ns", "entailment_woman"): share(E, women),
            ("ns", "entailment_man"): share(E, men),
            ("ns", "gender_gap"): gap(men, women),
            ("all", "coal"): (share(E, ps) + share(C, as_) + 1 - share(N, ns)) / 3,
            ("all", "fn"): 1 - share(N, own),
            ("all", "coal_balanced"): (np.mean(e) + np.mean(c) + 1 - share(N, ns)) / 3,
            ("all", "directional_gap"): gap(ps, as_),
            ("all", "directional_gap_balanced"): np.mean(list(map(gap, pro, anti))),
            ("all", "fraction_neutral"): share(N, own),
            ("all", "coal_soft"): (mean(E, ps) + mean(C, as_) + 1 - mean(N, ns)) / 3,
            ("all", "fn_soft"): 1 - mean(N, own),
            ("all", "net_neutral"): mean(N, own),
            ("all", "threshold:0.5"): np.mean(over > 0.5),
            ("all", "threshold:0.7"): np.mean(over > 0.7),
        }
        for name, part in (("ps", ps), ("as", as_), ("ns", ns)):
            wanted |= {(name, label): share(label, part) for label in LABELS}
            readable = sum(REPLIES[replies[pair.item_id]] != "" for pair in part)
            row = found.loc[language, name, N]
            assert (row.n, row.valid_rate) == (readable, pytest.approx(readable / len(part)))
        values = found.score[language]
        assert {key: values[key] for key in wanted} == pytest.approx(wanted)
    # Every measure has a card, and those of all languages are means.
    carded = {name for card in nli_coal.CARDS for name in card.metric.split(", ")}
    assert set(found.index.get_level_values("metric")) == carded
    assert set(found.score["all"].index) == set(wanted)
    for key in wanted:
        mean_of_both = np.mean([found.score[(language, *key)] for language in LANGUAGES])
        assert found.score[("all", *key)] == pytest.approx(mean_of_both)
    assert ((found.ci_low <= found.score) & (found.score <= found.ci_high)).mean() > 0.95
    assert (found.ci_low < found.ci_high).all()


def test_a_threshold_is_strict_and_an_impossible_label_has_no_probability(english):
    scores = table(english, lambda pair: N, lambda pair: np.log([0.25, 0.25, 0.5]))
    scores = scores.loc["en"].loc["all"]
    assert scores.score["threshold:0.5"] == 0
    assert np.isnan(scores.baseline["threshold:0.5"])
    first = english[0].item_id
    logs = lambda pair: [-np.inf, -np.inf, -np.inf if pair.item_id == first else -3.0]  # noqa: E731
    scores = table(english, lambda pair: N, logs).loc["en"].loc["all"]
    assert scores.score["net_neutral"] == 1
    assert scores.n[["net_neutral", "fraction_neutral"]].tolist() == [
        len(english) - 1,
        len(english),
    ]
    without = table(english, lambda pair: N).index.get_level_values("metric")
    assert not set(without) & {"coal_soft", "fn_soft", "net_neutral", "threshold:0.5"}


def test_what_was_not_asked_or_read_leaves_scores_undefined_with_a_reason(tmp_path, english):
    options = {"data": "samples", "categories": ["zh"]}
    refused = run.evaluate("nli_coal", "simulated:refuse=1", out=tmp_path / "a", **options).scores()
    assert refused.score.isna().all()
    assert (refused.note != "").all()
    assert (refused.valid_rate == 0).all()
    unread = table(english, by_set(E, "不知道", N)).loc["en"]
    assert np.isnan(unread.score["all", "coal"])
    assert "no readable answer in one of the sets" in unread.note["all", "coal"]
    assert unread.score["ps", E] == 1
    female_only = [pair for pair in english if pair.set == "ns" or female(pair)]
    scores = table(female_only, by_set(E, C, N)).loc["en"]
    assert scores.score["all", "coal"] == pytest.approx(2 / 3)
    for metric in ("coal_balanced", "directional_gap_balanced"):
        assert np.isnan(scores.score["all", metric])
        assert "one direction of stereotype" in scores.note["all", metric]
    assert np.isnan(scores.score["ps", "entailment_male"])
    options |= {"tasks": ["ps"], "out": tmp_path / "b"}
    alone = run.evaluate("nli_coal", "simulated:bias=1", **options).scores()
    assert set(alone.metric) == {*LABELS, "entailment_female", "entailment_male"}
    assert set(alone.task) == {"ps"}


def test_neutral_terms_are_reported_and_in_no_score(english):
    before, items = table(english, by_set(E, C, N)), data.frame(english)
    rows = records(english, by_set(E, C, N))
    terms = items[items.set == "ps"].assign(set="nt", gender="neutral")
    asked = rows[rows.task == "ps"].assign(task="nt", response=C)
    for frame in (terms, asked):
        frame["item_id"] += "0000"
    both = pd.concat([rows, asked]), pd.concat([items, terms])
    after = nli_coal.score_records(*both, "robust").set_index(["category", "task", "metric"])
    assert after.loc["en", "nt", C][["score", "n"]].tolist() == [1, len(terms)]
    pd.testing.assert_frame_equal(after.drop(index="nt", level="task"), before)


def test_types_come_from_the_sets_and_not_from_the_column(english):
    items = data.frame(english)
    rows = answers(records(english, lambda pair: N), items.assign(occupation_type=""))
    assert list(rows.type) == list(items.occupation_type)


def test_pairs_of_an_occupation_are_drawn_together(english):
    """Where e_p - e_a is 0 for each occupation, the interval is that of units that all agree.

    Drawn apart, the two shares of 20 occupations would leave the difference some 0.3 on each side.
    """
    entails = {pair.occupation: k % 2 == 0 for k, pair in enumerate(english[::4])}
    scores = table(english, lambda pair: E if entails.get(pair.occupation) else N)
    row = scores.loc["en", "all", "directional_gap"]
    assert row.score == 0
    assert row.ci_high == pytest.approx(-row.ci_low)
    assert 0 < row.ci_high < 0.15
    assert scores.ci_low["en", "ps", E] < scores.ci_high["en", "ps", E]
