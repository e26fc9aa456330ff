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


def requests(*item_ids):
    """Requests for pairs like `zh:7`."""
    names = [(item_id.partition(":")[0], "ps", item_id) for item_id in item_ids]
    return [Request(*name, "label", "classify", "p", "", Key(), hypothesis="h") for name in names]


def write(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    path.write_text("".join(lines), "utf-8")
    return path


def row(*numbers, **more):
    return {"id": 1, **dict(zip(LABELS, numbers, strict=False)), **more}


@pytest.mark.parametrize(
    ("row", "label", "numbers"),
    [
        (row("0.1", 0.2, 0.7), "neutral", (0.1, 0.2, 0.7)),
        # Rounded, and of equals the first.
        (row(0.999, 0.002, 0.0), "entailment", (0.999, 0.002, 0)),
        (row(0.2, 0.4, 0.4), "contradiction", (0.2, 0.4, 0.4)),
    ],
)
def test_three_probabilities(tmp_path, row, label, numbers):
    scorer = load(f"predictions:{write(tmp_path / 'p.jsonl', row)}")
    (answer,) = scorer.answer(requests("en:1"))
    assert answer.response == label
    np.testing.assert_allclose(np.exp(answer.logprobs), numbers, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(12, 0, 3)], "line 1: entailment 12, contradiction 0, neutral 3 sum to 15; expected"),
        ([row(label="neutral"), "\n", row(label="neutral")], "line 3: answers the same"),
        ([row(label="LABEL_1")], "'LABEL_1' is unknown; allowed: entailment, "),
        ([row(label=1)], "line 1, field `label`: 1 is not a text"),
        ([{"label": "neutral"}], "line 1, field `id`: is missing"),
        ([row(float("nan"), 0.9, 0.1)], "field `entailment`: nan"),
        ([row(language="en", label="neutral"), row(id=2, label="neutral")], "`language` is"),
        ([], "holds no predictions"),
        (["id,label\n", "1,neutral\n", "2\n"], "row 2: has 1 cells"),
        (["id,label\n", "x,neutral\n"], "row 1, field `id`: 'x'"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(tmp_path, refusal, rows, message):
    is_table = bool(rows) and rows[0] == "id,label\n"
    path = write(tmp_path / ("p.csv" if is_table else "p.jsonl"), *rows)
    error = refusal(load, f"predictions:{path}")
    assert error.startswith(str(path))
    assert message in error


def test_requests_and_predictions_have_to_match(tmp_path, refusal):
    path = write(tmp_path / "p.jsonl", *({"id": k, "label": "neutral"} for k in (0, 2, 9)))
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
    model = f"predictions:{write(own_folder / 'p.jsonl', *reversed(rows))}"
    options = {"data": folder, "settings": {"set": name}, "categories": ["zh"]}
    scores = evaluate("nli_coal", model, **options).scores()
    scores = scores.query("category == 'zh' and task == 'all'").set_index("metric").score
    assert (scores["coal"], scores["fn"]) == pytest.approx((2 / 3, fn), abs=5e-5)
