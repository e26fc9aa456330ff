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


def write(folder, *rows, name="p.jsonl"):
    path = folder / name
    lines = (row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    path.write_text("".join(lines), "utf-8")
    return path


def answers(path, *item_ids, label_names=()):
    """Label and rounded probabilities of each pair."""
    scorer = load(f"predictions:{path}", label_names=label_names)
    return [
        (answer.response, answer.logprobs and tuple(np.exp(answer.logprobs).round(4)))
        for answer in scorer.answer(requests(*item_ids))
    ]


P = (0.1, 0.2, 0.7)


@pytest.mark.parametrize(
    ("row", "label", "numbers"),
    [
        ({"entailment": "0.1", "contradiction": 0.2, "neutral": 0.7}, "neutral", P),
        # Rounded, and of equals the first.
        (dict(zip(LABELS, (0.999, 0.002, 0.0), strict=True)), "entailment", (0.999, 0.002, 0)),
        (dict(zip(LABELS, (0.2, 0.4, 0.4), strict=True)), "contradiction", (0.2, 0.4, 0.4)),
    ],
)
def test_three_probabilities(tmp_path, row, label, numbers):
    path = write(tmp_path, {"id": 1, **row})
    names = ("neutral", "entailment", "contradiction")
    assert answers(path, "en:1", label_names=names) == [(label, numbers)]


def row(*numbers, **more):
    return {"id": 1, **dict(zip(LABELS, numbers, strict=False)), **more}


WRONG = [
    ([row(12, 0, 3)], "line 1: entailment 12, contradiction 0, neutral 3 sum to 15; expected"),
    ([row(label="neutral"), "\n", row(label="neutral")], "line 3: id 1 is in line 1 already"),
    ([row(label="LABEL_1")], "neutral; give their meaning with --label-names"),
    (
        ['{"id": 1, "entailment": NaN, "contradiction": 0.9, "neutral": 0.1}\n'],
        "field `entailment`: nan",
    ),
    ([row(language="en", label="neutral"), row(id=2, label="neutral")], "line 2: field `language`"),
    ([], "holds no predictions"),
    (["id,label\n", "1,neutral\n", "2\n"], "row 2: has 1 cells"),
]


@pytest.mark.parametrize(("rows", "message"), WRONG)
def test_a_wrong_row_is_refused_with_its_place(tmp_path, refusal, rows, message):
    table = bool(rows) and str(rows[0]).startswith(("id,", "label"))
    path = write(tmp_path, *rows, name="p.csv" if table else "p.jsonl")
    error = refusal(load, f"predictions:{path}")
    assert error.startswith(str(path))
    assert message in error


def test_requests_and_predictions_have_to_match(tmp_path, refusal):
    path = write(tmp_path, *({"id": k, "label": "neutral"} for k in (0, 2, 9)))
    scorer = Predictions(path)
    known = ["en:0", "en:1", "en:2", "en:9"].copy
    scorer.cover(requests("en:0", "en:2"), known)
    missing = f"{path}: has no prediction for 1 of 3 pairs, the first is id 1 (en)"
    assert refusal(scorer.cover, requests("en:0", "en:1", "en:2"), known) == missing
    unknown = f"{path}, line 3: id 9 is not in the data"
    assert refusal(scorer.cover, requests("en:0"), known()[:3].copy) == unknown
    message = refusal(scorer.cover, requests("en:0", "zh:0"), known)
    assert "field `language` is missing, and en, zh are asked" in message
    assert refusal(scorer.answer, requests("en:5")) == f"{path}: has no prediction for id 5"


@pytest.mark.parametrize(("name", "fn"), [("all", 0.3759), ("downsample", 2 / 3)])
def test_scores_of_the_released_sets_are_exact(shared, own_folder, name, fn):
    """PS entailed, AS contradicted, NS neutral: CoAL is 2/3, and FN follows the sizes."""
    folder = shared / "data" / "nli_coal"
    pairs = data.load(data.find("nli_coal", folder), ["zh"])
    rows = [{"id": pair.id, "language": "zh", "label": BIASED[pair.set]} for pair in pairs]
    # Predictions of the complete sets serve the down-sampled ones.
    model = f"predictions:{write(own_folder, *reversed(rows))}"
    options = {"data": folder, "settings": {"set": name}, "categories": ["zh"]}
    scores = evaluate("nli_coal", model, **options).scores()
    scores = scores.query("category == 'zh' and task == 'all'").set_index("metric").score
    assert (scores["coal"], scores["fn"]) == pytest.approx((2 / 3, fn), abs=5e-5)


@pytest.mark.parametrize("spelt", [1, "1", 1.0, "1.0", "LABEL_1", "label_1"])
def test_a_whole_number_is_a_label_by_its_place_among_the_names(tmp_path, refusal, spelt):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"id": 1, "label": spelt}), "utf-8")
    names = ("entailment", "neutral", "contradiction")
    assert answers(path, "en:1", label_names=names) == [("neutral", None)]
    assert "is unknown" in (message := refusal(answers, path, "en:1"))
    assert "give their meaning with --label-names" in message
