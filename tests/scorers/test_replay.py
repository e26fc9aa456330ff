"""Predictions of an NLI model that were made elsewhere: forms, ids, errors, and exact scores."""

import json

import numpy as np
import pytest

from bench import data
from bench.benchmarks.nli_coal.requests import BIASED, LABELS
from bench.run import evaluate
from bench.scorers import load
from bench.scorers.replay import Predictions
from bench.tasks.request import Key, Request
from tests.helpers.cases import json_lines


def requests(*item_ids):
    """Requests for pairs like `zh:7`."""
    names = [(item_id.partition(":")[0], "ps", item_id) for item_id in item_ids]
    return [Request(*name, "label", "classify", "p", "", Key(), hypothesis="h") for name in names]


def write(folder, rows):
    path = folder / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize(
    ("read", "label", "expected"),
    [
        (("0.1", 0.2, 0.7), "neutral", (0.1, 0.2, 0.7)),
        # Rounded, and of equals the first.
        ((0.999, 0.002, 0.0), "entailment", (0.999, 0.002, 0)),
        ((0.2, 0.4, 0.4), "contradiction", (0.2, 0.4, 0.4)),
    ],
)
def test_three_probabilities(tmp_path, read, label, expected):
    path = write(tmp_path, [{"id": 1, **dict(zip(LABELS, read, strict=True))}])
    (answer,) = load(f"predictions:{path}").answer(requests("en:1"))
    assert answer.response == label
    np.testing.assert_allclose(np.exp(answer.logprobs), expected, atol=1e-9)


def test_a_half_of_a_character_in_a_recorded_answer_is_replaced(tmp_path):
    row = {"task": "ps", "item_id": "zh:7", "request": "label", "response": "A\ud83d"}
    (answer,) = load(f"replay:{write(tmp_path, [row])}").answer(requests("zh:7"))
    assert answer.response == "A\ufffd"


@pytest.mark.parametrize("case", json_lines(__file__, "predictions.jsonl"))
def test_a_wrong_row_is_refused_with_its_place(tmp_path, refusal, case):
    path = write(tmp_path, case.get("rows", []))
    if "csv" in case:
        path = path.with_suffix(".csv")
        path.write_text(case["csv"])
    error = refusal(load, f"predictions:{path}")
    assert error.startswith(str(path))
    assert case["says"] in error


def test_requests_and_predictions_have_to_match(tmp_path, refusal):
    path = write(tmp_path, [{"id": k, "label": "neutral"} for k in (0, 2, 9)])
    scorer = Predictions(path)
    scorer.cover(requests("en:0", "en:2"))
    missing = f"{path}: has no answer for task 'ps', item_id 'en:1', request 'label', repeat 0"
    assert refusal(scorer.cover, requests("en:0", "en:1", "en:2")) == missing
    message = refusal(scorer.cover, requests("en:0", "zh:0"))
    assert "field `language` is missing, and en, zh are asked" in message


@pytest.mark.parametrize(("name", "fn"), [("all", 0.3759), ("downsample", 2 / 3)])
def test_scores_of_the_released_sets_are_exact(shared, own_folder, name, fn):
    """PS entailed, AS contradicted, NS neutral: CoAL is 2/3, and FN follows the sizes."""
    folder = shared / "data" / "nli_coal"
    pairs = data.load(data.find("nli_coal", folder), ["zh"])
    rows = [{"id": pair.id, "language": "zh", "label": BIASED[pair.set]} for pair in pairs]
    # Predictions of the complete sets serve the down-sampled ones.
    model = f"predictions:{write(own_folder, reversed(rows))}"
    options = {"data": folder, "settings": {"set": name}, "categories": ["zh"]}
    scores = evaluate("nli_coal", model, **options).scores()
    scores = scores.query("category == 'zh' and task == 'all'").set_index("metric").score
    assert (scores["coal"], scores["fn"]) == pytest.approx((2 / 3, fn), abs=5e-5)
