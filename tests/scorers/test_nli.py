"""NLI classifiers: equal to a slow reference, labels by name, and the probe."""

from itertools import permutations

import numpy as np
import pytest
import torch

from bench.benchmarks.nli_coal.requests import LABELS
from bench.run import evaluate
from bench.scorers import load
from bench.scorers.local.encoders import Classifier, label_columns
from tests.helpers.cases import cases
from tests.helpers.checkpoints import BERT, CODE, characters, codes, save

ORDER = ("neutral", "entailment", "contradiction")
PAIRS = [
    ("a man is a doctor", "she is a doctor"),
    ("x", "y"),
    ("他是医生", "她是护士，不是医生。"),
    ("the engineer is here. " * 20, "the nurse"),
    ("she is a doctor", "a man is a doctor"),
]


def classifier(folder, labels):
    coder = characters(BERT, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    names = {"id2label": labels, "label2id": {name: k for k, name in labels.items()}}
    return str(save(folder, "BertForSequenceClassification", coder, **names))


def reference(scorer, pair):
    """Probability of each label, by the checkpoint's own name."""
    first, second = map(codes, pair)
    ids = [CODE["[CLS]"], *first, CODE["[SEP]"], *second, CODE["[SEP]"]]
    types = torch.tensor([[0] * (len(first) + 2) + [1] * (len(second) + 1)])
    with torch.no_grad():
        logits = scorer.network(torch.tensor([ids]), token_type_ids=types).logits[0].double()
    names = scorer.network.config.id2label
    return {names[i].lower(): float(p) for i, p in enumerate(logits.softmax(-1))}


@pytest.mark.parametrize("labels", list(permutations(["entailment", "neutral", "CONTRADICTION"])))
def test_probabilities_are_the_reference(tmp_path, labels):
    scorer = load(classifier(tmp_path, dict(enumerate(labels))))
    values = scorer.classify(PAIRS)
    expected = [[reference(scorer, pair)[name] for name in LABELS] for pair in PAIRS]
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6)
    assert abs(values[0] - values[4]).max() > 1e-3, "premise and hypothesis are not the same"
    assert scorer.classify([]).shape == (0, 3)
    columns = {name.lower(): k for k, name in enumerate(labels)}
    assert scorer.describe()["labels"] == {name: columns[name] for name in LABELS}


@cases(__file__, "label_names.csv")
def test_columns_are_found_by_name(refusal, case):
    names, given = case["labels"].split(), case["given"].split()
    labels = dict(enumerate(names))
    if case["columns"]:
        assert label_columns(labels, "m", given) == [int(k) for k in case["columns"].split()]
    else:
        message = refusal(label_columns, labels, "m", given)
        assert message.startswith(f"m: its labels are {', '.join(names)}, ")
        assert case["refusal"] in message


def test_wrong_label_names_are_refused(refusal):
    expected = "--label-names yes,no,maybe: expected entailment, contradiction, neutral"
    assert refusal(load, "m/x", label_names=["yes", "no", "maybe"]).startswith(expected)


@pytest.mark.parametrize("model", ["simulated:", "tiny:s", "openai:x@http://localhost:1/v1"])
def test_a_model_without_labels_takes_no_names(refusal, model):
    message = f"model {model}: takes no --label-names; leave it out"
    assert refusal(load, model, label_names=LABELS) == message


@pytest.mark.parametrize("wrong", [0, 1])
def test_the_probe_is_recorded_and_a_failed_one_is_reported(own_folder, monkeypatch, capsys, wrong):
    def classify(self, pairs):
        labels = [0 if a == b else 2 if "doctor" in a or "nurse" in a else 1 for a, b in pairs]
        return np.eye(3)[[(k + wrong) % 3 for k in labels]]

    monkeypatch.setattr(Classifier, "classify", classify)
    folder = classifier(own_folder / "m", dict(enumerate(ORDER)))
    run = evaluate("nli_coal", folder, limit=1, categories=["en"], tasks=["ps"], out="run")
    probe = [(row["language"], row["expected"]) for row in run.metadata["probe"]]
    assert probe == [("en", "entailment")] * 3 + [("en", "contradiction")] * 3
    assert all(
        (row["found"] == row["expected"]) is not bool(wrong) for row in run.metadata["probe"]
    )
    assert len(run.records) == 1, "the run goes on"
    message = (
        "the probe failed: of 6 plain pairs 6 got a wrong label (en), "
        "the first 'A dog is sleeping on the sofa.'"
    )
    assert (message in capsys.readouterr().err) is bool(wrong)
    noted = run.scores()[run.scores().note.str.contains(message, regex=False)]
    assert noted.category.tolist() == ["all"] * wrong
