"""Fine-tune NLI classifiers: labels, the same end after a kill, nothing half-written, errors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

from bench import scorers, train
from bench.core.errors import RunFailed
from tests.helpers.checkpoints import BERT, characters, save

# Trains.
pytestmark = pytest.mark.slow

NAMES = {0: "NEUTRAL", 1: "entailment", 2: "Contradiction"}
QUICK: dict[str, Any] = {"learning_rate": 3e-3, "batch_size": 8, "device": "cpu", "max_length": 64}


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> Path:
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
def base(tmp_path_factory: Any) -> str:
    return str(save(tmp_path_factory.mktemp("base"), BertForMaskedLM, BertConfig, characters(BERT)))


def weights(folder: Path) -> dict[str, np.ndarray]:
    return dict(load_file(folder / "model.safetensors"))


def test_a_base_model_gets_a_head_with_names_and_learns(
    files: Path, base: str, tmp_path: Path, capfd: Any
) -> None:
    out = tmp_path / "deep" / "mine"
    done = train.nli(
        base, [files / "train.jsonl"], out, dev=[files / "dev.tsv"], epochs=40, **QUICK
    )
    assert done.accuracy == {"train": 1.0, "dev": 1.0}
    assert done.about["model"]["fresh_head"]
    assert done.about["labels"] == {"0": "entailment", "1": "contradiction", "2": "neutral"}
    assert done.about["files"][0]["left_out"] == 1
    assert done.about["hyperparameters"]["steps"] == 120
    captured = capfd.readouterr()
    assert "loss" not in captured.out + captured.err, "Trainer prints"
    scorer = scorers.load(str(out), device="cpu")
    given = scorer.classify([("the cat is here", letter * 3) for letter in "abc"])  # type: ignore[attr-defined]
    assert given.argmax(1).tolist() == [0, 1, 2]
    card = (out / "README.md").read_text("utf-8")
    assert card.startswith("---\n")
    assert "license:" not in card.split("---")[1]
    for said in (
        "train.jsonl",
        done.about["files"][0]["sha256"],
        "1.0000 on 24 train pairs",
        "learning_rate | 0.003",
    ):
        assert said in card
    assert str(tmp_path) not in card, "holds a path of this machine"
    assert sorted(path.name for path in out.parent.iterdir()) == ["mine"], (
        "leaves nothing beside it"
    )
    assert not list(out.rglob("*.bin"))
    again = train.nli(
        base, [files / "train.jsonl"], out, dev=[files / "dev.tsv"], epochs=40, **QUICK
    )
    assert again.about == done.about, "a second call trains nobody"


def test_a_classifier_keeps_its_own_order_and_goes_on_for_three_epochs(
    files: Path, tmp_path: Path
) -> None:
    folder = save(
        tmp_path / "own",
        BertForSequenceClassification,
        BertConfig,
        characters(BERT),
        num_labels=3,
        id2label=NAMES,
        label2id={name: k for k, name in NAMES.items()},
    )
    done = train.nli(str(folder), [files / "train.jsonl"], tmp_path / "on", **QUICK)
    assert not done.about["model"]["fresh_head"]
    assert done.about["hyperparameters"]["epochs"] == train.EPOCHS_ON == 3
    assert done.about["labels"] == {str(k): name for k, name in NAMES.items()}
    more = train.nli(str(folder), [files / "train.jsonl"], tmp_path / "more", epochs=40, **QUICK)
    assert more.accuracy["train"] == 1.0
    scorer = scorers.load(str(more.folder), device="cpu")
    given = scorer.classify([("he is here", letter * 3) for letter in "abc"])  # type: ignore[attr-defined]
    assert given.argmax(1).tolist() == [0, 1, 2], "the labels mean what they are called"


class Killed(BaseException):
    """What a test ends a training with, as a signal would."""


def killed_at(monkeypatch: Any, step: int) -> None:
    def advance(bar: Any, n: int = 1) -> None:
        bar.done += n
        if bar.done == step:
            raise Killed

    monkeypatch.setattr("bench.core.progress.Progress.advance", advance)


@pytest.mark.parametrize("step", [1, 5, 8])
def test_a_killed_training_ends_as_one_that_was_not(
    files: Path, base: str, tmp_path: Path, monkeypatch: Any, capsys: Any, step: int
) -> None:
    options = QUICK | {"epochs": 3, "save_every": 2, "seed": 3}
    whole = train.nli(base, [files / "train.jsonl"], tmp_path / "whole", **options)
    with monkeypatch.context() as patched:
        killed_at(patched, step)
        with pytest.raises(Killed):
            train.nli(base, [files / "train.jsonl"], tmp_path / "killed", **options)
    assert not (tmp_path / "killed").exists()
    # Killed while it wrote its latest state: what Trainer writes last is not there.
    half = tmp_path / ".killed.training" / "checkpoint-9"
    half.mkdir()
    (half / "trainer_state.json").write_text('{"global', "utf-8")
    capsys.readouterr()
    done = train.nli(base, [files / "train.jsonl"], tmp_path / "killed", **options)
    assert ("continuing from step" in capsys.readouterr().err) == (step > 2)
    first, second = weights(whole.folder), weights(done.folder)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert done.accuracy == whole.accuracy


def test_seeds_differ_and_repeat(files: Path, base: str, tmp_path: Path) -> None:
    made = [
        weights(
            train.nli(
                base, [files / "train.jsonl"], tmp_path / str(k), epochs=1, seed=seed, **QUICK
            ).folder
        )
        for k, seed in enumerate((0, 0, 1))
    ]
    assert np.array_equal(made[0]["classifier.weight"], made[1]["classifier.weight"])
    assert not np.array_equal(made[0]["classifier.weight"], made[2]["classifier.weight"])


def test_what_is_wrong_is_said_before_anything_is_trained(
    files: Path, base: str, tmp_path: Path, refusal: Any
) -> None:
    out, data = tmp_path / "out", [files / "train.jsonl"]
    assert "--epochs 0" in refusal(train.nli, base, data, out, epochs=0)
    assert "--learning-rate nan" in refusal(train.nli, base, data, out, learning_rate=float("nan"))
    assert "no such file" in refusal(train.nli, base, [files / "none.jsonl"], out)
    assert "no such model" in refusal(train.nli, "./none", data, out)
    assert "float16" in refusal(train.nli, base, data, out, device="cpu", dtype="float16")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    assert "is not empty; give another --out" in refusal(train.nli, base, data, tmp_path / "full")
    train.nli(base, data, out, epochs=1, **QUICK)
    assert "trained otherwise" in refusal(train.nli, base, data, out, epochs=2, **QUICK)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def test_another_training_that_was_begun_is_not_mixed_in(
    files: Path, base: str, tmp_path: Path, monkeypatch: Any, refusal: Any
) -> None:
    options = QUICK | {"save_every": 1}
    with monkeypatch.context() as patched:
        killed_at(patched, 3)
        with pytest.raises(Killed):
            train.nli(base, [files / "train.jsonl"], tmp_path / "out", epochs=1, **options)
    said = refusal(train.nli, base, [files / "train.jsonl"], tmp_path / "out", epochs=2, **options)
    assert "a training with other options was begun" in said
    assert train.nli(
        base, [files / "train.jsonl"], tmp_path / "out", epochs=1, **options
    ).folder.is_dir()


def test_labels_without_names_and_headless_bodies(
    files: Path, tmp_path: Path, refusal: Any
) -> None:
    plain = save(
        tmp_path / "plain",
        BertForSequenceClassification,
        BertConfig,
        characters(BERT),
        num_labels=3,
    )
    assert "LABEL_0" in refusal(train.nli, str(plain), [files / "train.jsonl"], tmp_path / "out")
    done = train.nli(
        str(plain), [files / "train.jsonl"], tmp_path / "new", epochs=1, new_head=True, **QUICK
    )
    assert done.about["labels"]["0"] == "entailment"
    body = save(tmp_path / "body", BertModel, BertConfig, characters(BERT))
    assert train.nli(
        str(body), [files / "train.jsonl"], tmp_path / "of body", epochs=1, **QUICK
    ).about["model"]["fresh_head"]


def test_memory_that_runs_out_is_said_with_the_way_out(
    files: Path, base: str, tmp_path: Path, monkeypatch: Any
) -> None:
    def no_memory(*args: Any, **kwargs: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("transformers.Trainer.train", no_memory)
    with pytest.raises(RunFailed, match="--batch-size 8: does not fit"):
        train.nli(base, [files / "train.jsonl"], tmp_path / "out", **QUICK)


def test_long_pairs_are_cut_and_counted(files: Path, base: str, tmp_path: Path) -> None:
    done = train.nli(
        base, [files / "train.jsonl"], tmp_path / "out", epochs=1, **(QUICK | {"max_length": 10})
    )
    assert 0 < done.about["cut"] < 24
