"""Fine-tune NLI classifiers: labels, the same end after a kill, nothing half-written, errors."""

import json
from unittest.mock import Mock

import pytest
import torch

from bench import scorers, train
from bench.core.errors import RunFailed
from tests.helpers.checkpoints import BERT, characters, save, save_encoder

# Trains.
pytestmark = pytest.mark.slow

QUICK = {"learning_rate": 3e-3, "batch_size": 8, "device": "cpu", "max_length": 64, "epochs": 1}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pairs that a small network learns: the hypothesis is a letter that names the label."""
    folder = tmp_path_factory.mktemp("files")
    rows = [
        {"sentence1": word, "sentence2": letter * 3, "gold_label": label}
        for word in ("he", "she", "a nurse", "one", "no one", "who", "a man", "it")
        for letter, label in (("a", "entailment"), ("b", "contradiction"), ("c", "neutral"))
    ]
    rows.append({**rows[0], "gold_label": "-"})
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "dev.tsv").write_text("contradictory\tthe dog\tbbb\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(save(tmp_path_factory.mktemp("base"), "BertForMaskedLM", characters(BERT)))


@pytest.fixture
def fit(files, base, tmp_path):
    """Train on the pairs, into a folder of the test."""

    def run(out="out", model=base, **options):
        return train.nli(model, [files / "train.jsonl"], tmp_path / out, **QUICK | options)

    return run


def classifier(folder, labels=("LABEL_0", "LABEL_1", "LABEL_2")):
    return str(save_encoder(folder, "BertForSequenceClassification", labels))


def answers(trained):
    scorer = scorers.load(str(trained.folder), device="cpu")
    given = scorer.classify([("the cat is here", letter * 3) for letter in "abc"])
    return given.argmax(1).tolist()


def test_a_base_model_gets_a_head_with_names_and_learns(fit, files, tmp_path):
    options = {"dev": [files / "dev.tsv"], "epochs": 40}
    done = fit("deep/mine", **options)
    assert done.accuracy == {"train": 1.0, "dev": 1.0}
    assert done.metadata["model"]["fresh_head"]
    assert done.metadata["labels"] == {"0": "entailment", "1": "contradiction", "2": "neutral"}
    assert done.metadata["files"][0]["left_out"] == 1
    assert answers(done) == [0, 1, 2]
    card = (done.folder / "README.md").read_text("utf-8")
    sha256 = done.metadata["files"][0]["sha256"]
    for text in ("train.jsonl", sha256, "1.0000 on 24 train pairs", "learning_rate | 0.003"):
        assert text in card
    assert str(tmp_path) not in card, "holds a path of this machine"
    assert [path.name for path in done.folder.parent.iterdir()] == ["mine"]
    assert fit("deep/mine", **options).metadata == done.metadata, "a second call trains nobody"


def test_a_classifier_keeps_its_own_order_and_goes_on_for_three_epochs(fit, tmp_path):
    names = ("NEUTRAL", "entailment", "Contradiction")
    folder = classifier(tmp_path / "own", names)
    done = fit("on", folder, epochs=None)
    assert not done.metadata["model"]["fresh_head"]
    assert done.metadata["hyperparameters"]["epochs"] == train.EPOCHS_ON == 3
    assert done.metadata["labels"] == {str(k): name for k, name in enumerate(names)}
    assert answers(fit("more", folder, epochs=40)) == [0, 1, 2], "they mean what they are called"


class Killed(BaseException):
    """Ends a training as a signal would."""


@pytest.mark.parametrize("step", [1, 8])
def test_a_killed_training_ends_as_one_that_was_not(
    fit, tmp_path, monkeypatch, capsys, refusal, step
):
    def advance(bar, n=1):
        bar.n += n
        if bar.desc.startswith("training") and bar.n == step:
            raise Killed

    options = {"epochs": 3, "save_every": 2, "seed": 3}
    uninterrupted = fit("whole", **options)
    with monkeypatch.context() as patched:
        patched.setattr("tqdm.tqdm.update", advance)
        with pytest.raises(Killed):
            fit(**options)
    assert not (tmp_path / "out").exists()
    # Killed while it wrote its latest state: the last file of a state is not complete.
    half = tmp_path / ".out.training" / "checkpoint-9"
    half.mkdir()
    (half / "trainer_state.json").write_text('{"global', "utf-8")
    if step > 2:
        message = refusal(fit, **options | {"epochs": 2})
        assert "a training with other options was begun" in message
    capsys.readouterr()
    done = fit(**options)
    assert ("continuing from step" in capsys.readouterr().err) == (step > 2)
    first, second = (
        (one.folder / "model.safetensors").read_bytes() for one in (uninterrupted, done)
    )
    assert first == second
    assert done.accuracy == uninterrupted.accuracy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs: 0 is not allowed; it has to be above 0"),
        ({"learning_rate": float("nan")}, "learning_rate: nan is not allowed; it has to be a fini"),
        ({"dtype": "float16"}, "float16"),
        ({"out": "full"}, "is not empty; give another --out"),
        ({"model": "plain"}, "or train a fresh head on it with --new-head"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_trained(
    fit, tmp_path, refusal, options, message
):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    if "model" in options:
        options = {"model": classifier(tmp_path / "plain")}
    assert message in refusal(fit, **options)


def test_labels_without_names_get_a_fresh_head_on_demand(fit, tmp_path, refusal):
    plain = classifier(tmp_path / "plain")
    assert fit("new", plain, new_head=True).metadata["labels"]["0"] == "entailment"
    assert "trained otherwise" in refusal(fit, "new", plain, new_head=True, epochs=2)


def test_a_model_without_a_head_gets_one_and_long_pairs_are_cut_and_counted(fit, tmp_path):
    done = fit(model=str(save(tmp_path / "body", "BertModel", characters(BERT))), max_length=10)
    assert done.metadata["model"]["fresh_head"]
    assert 0 < done.metadata["cut"] < 24


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (torch.OutOfMemoryError("CUDA"), "--batch-size 8: does not fit into the mem"),
        (RuntimeError("it broke\nhere"), r"the training broke off \(it broke\); the same command"),
    ],
)
def test_a_training_that_breaks_off_is_explained(fit, monkeypatch, error, says):
    monkeypatch.setattr("transformers.Trainer.train", Mock(side_effect=error))
    with pytest.raises(RunFailed, match=says):
        fit()
