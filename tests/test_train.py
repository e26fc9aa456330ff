"""Train NLI classifiers: corpora in every style, the same end after a kill, errors."""

import json
import signal
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import scorers
from bench.core.errors import RunFailed
from bench.train import read_corpus, train
from tests.helpers.checkpoints import BERT, characters, save, save_encoder

PAIR = {"sentence1": "a nurse reads", "sentence2": "a woman reads"}
HUB = {"premise": "a nurse reads", "hypothesis": "a woman reads", "label": "neutral"}
HEADER = "x\tgold_label\tsentence1\tsentence2\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("snli.jsonl", json.dumps(PAIR | {"gold_label": "neutral", "annotator_labels": ["x"]})),
        ("ocnli.json", json.dumps(PAIR | {"label": "neutral", "label0": "entailment"})),
        ("jnli.json", "\ufeff\n" + json.dumps({"id": 3} | PAIR | {"label": "Neutral"})),
        ("hub.jsonl", json.dumps(HUB)),
        ("list.json", json.dumps([HUB])),
        ("own.csv", "label,premise,hypothesis\nneutral,a nurse reads,a woman reads"),
        ("jsnli.tsv", "label\tpremise\thypothesis\nneutral\ta nurse reads\ta woman reads"),
        ("xnli.tsv", "premise\thypo\tlabel\r\na nurse reads\ta woman reads\tneutral\r"),
        ("snli.txt", HEADER + "0\tneutral\ta nurse reads\ta woman reads"),
    ],
)
def test_a_corpus_of_every_style_gives_the_same_pair(tmp_path, name, text):
    (tmp_path / name).write_text(text + "\n", "utf-8", newline="")
    pairs, about = read_corpus(tmp_path / name)
    assert pairs == [("a nurse reads", "a woman reads", "neutral")]
    assert (about["corpus"], about["pairs"], len(about["corpus_sha256"])) == (name, 1, 64)


def test_numbers_are_labels_where_the_file_names_them(tmp_path, capsys, refusal):
    names = ["entailment", "neutral", "contradiction"]
    features = {"label": {"_type": "ClassLabel", "names": names}}
    table = pa.table({"premise": list("abcd"), "hypothesis": list("efgh"), "label": [0, 1, 2, -1]})
    pq.write_table(table, tmp_path / "bare.parquet")
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "named.parquet")
    assert [label for *_, label in read_corpus(tmp_path / "named.parquet")[0]] == names
    assert "3 pairs; 1 without a majority are left out" in capsys.readouterr().err
    assert "row 1, column `label`: '0' is not allowed" in refusal(
        read_corpus, tmp_path / "bare.parquet"
    )


def test_rows_without_a_majority_are_left_out_and_counted(tmp_path, capsys):
    rows = [PAIR | {"gold_label": label} for label in ("-", "contradictory", -1, "entailment")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    pairs, _about = read_corpus(tmp_path / "a.jsonl")
    assert [label for *_, label in pairs] == ["contradiction", "entailment"]
    assert "2 pairs; 2 without a majority are left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        (
            "a.jsonl",
            '{"sentence1": "a", "label": ""}',
            "row 1: column sentence2 or hypothesis or hy",
        ),
        ("a.jsonl", json.dumps(HUB) + '\n{"premise": "a"}', "row 2, column `hypothesis`: None is"),
        (
            "a.jsonl",
            "\n" + json.dumps(HUB | {"hypothesis": " "}),
            "row 2, column `hypothesis`: ' '",
        ),
        ("a.jsonl", json.dumps(HUB | {"premise": ["a"]}), "row 1, column `premise`: ['a'] is not"),
        ("a.jsonl", json.dumps(HUB | {"label": 1}), "row 1, column `label`: 1 is not allowed; wri"),
        ("a.jsonl", json.dumps(HUB | {"label": True}), "row 1, column `label`: True is not allow"),
        ("a.csv", "label,premise,hypothesis\nmaybe,a,b", "row 1, column `label`: 'maybe' is not"),
        ("a.csv", "label,premise,hypothesis\n,a,b", "row 1, column `label`: '' is not allowed; w"),
        ("a.csv", "label,premise,hypothesis\nneutral,a,", "row 1, column `hypothesis`: '' is not"),
        (
            "a.csv",
            "premise,hypothesis,gold\na,b,c",
            "row 1: column gold_label or label is missing; f",
        ),
        ("a.tsv", HEADER + "0\ta\tb", "row 1: has 3 cells, the header has 4"),
        ("a.jsonl", json.dumps(HUB | {"label": "-"}), "holds no pairs with a label"),
        ("a.csv", "label,premise,hypothesis\n", "holds no pairs with a label"),
    ],
)
def test_an_error_of_a_corpus_names_its_place(tmp_path, refusal, name, text, error):
    (tmp_path / name).write_text(text, "utf-8")
    message = refusal(read_corpus, tmp_path / name)
    assert message.startswith(str(tmp_path / name))
    assert error in message


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Pairs whose hypothesis is a letter that names the label."""
    rows = [
        {"sentence1": word, "sentence2": letter * 3, "gold_label": label}
        for word in ("he", "she", "a nurse", "one", "no one", "who", "a man", "it") * 4
        for letter, label in (("a", "entailment"), ("b", "contradiction"), ("c", "neutral"))
    ]
    path = tmp_path_factory.mktemp("corpus") / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(
        save(tmp_path_factory.mktemp("models") / "base", "BertForMaskedLM", characters(BERT))
    )


def classifier(folder, labels=("LABEL_0", "LABEL_1", "LABEL_2")):
    return str(save_encoder(folder, "BertForSequenceClassification", labels))


@pytest.mark.slow
def test_a_base_model_gets_a_head_with_names_and_learns(base, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("bench.train.LEARNING_RATE", 2e-3)  # for a network of a few letters
    about = train(base, corpus, tmp_path / "deep/mine", epochs=30)
    assert (about["new_head"], about["model"], about["epochs"]) == (True, "base", 30)
    assert json.loads((tmp_path / "deep/mine/training.json").read_text("utf-8")) == about
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["mine"]
    model = scorers.load(str(tmp_path / "deep/mine"), device="cpu")
    given = model.classify([("the cat is here", letter * 3) for letter in "abc"])
    assert given.argmax(1).tolist() == [0, 1, 2]
    assert model.network.config.label2id == {"entailment": 0, "contradiction": 1, "neutral": 2}


@pytest.mark.slow
def test_a_classifier_keeps_the_order_of_its_labels(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("bench.train.LEARNING_RATE", 2e-3)
    folder = classifier(tmp_path / "own", ("NEUTRAL", "entailment", "Contradiction"))
    assert train(folder, corpus, tmp_path / "short")["epochs"] == 3
    assert not train(folder, corpus, tmp_path / "out", epochs=30)["new_head"]
    model = scorers.load(str(tmp_path / "out"), device="cpu")
    assert list(model.network.config.id2label.values()) == [
        "NEUTRAL",
        "entailment",
        "Contradiction",
    ]
    given = model.classify([("the cat is here", letter * 3) for letter in "abc"])
    assert given.argmax(1).tolist() == [0, 1, 2], "they mean what they are called"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "is_killed", "kept"), [(1, True, []), (8, True, [6]), (1, False, [1]), (8, False, [8])]
)
def test_an_interrupted_training_ends_as_one_that_was_not(
    base, corpus, tmp_path, monkeypatch, refusal, step, is_killed, kept
):
    def advance(bar, n=1):
        bar.n += n
        if bar.desc.startswith("training") and bar.n == step:
            if is_killed:
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGINT)

    options = {"epochs": 4, "seed": 3}
    train(base, corpus, tmp_path / "whole", **options)
    with monkeypatch.context() as patched:
        patched.setattr("tqdm.tqdm.update", advance)
        with pytest.raises(KeyboardInterrupt):
            train(base, corpus, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    checkpoints = [path.name for path in (tmp_path / ".out.training").glob("checkpoint-*")]
    assert checkpoints == [f"checkpoint-{step}" for step in kept]
    # Killed while it wrote its last checkpoint: the last file is not complete.
    half = tmp_path / ".out.training" / "checkpoint-9"
    half.mkdir()
    (half / "trainer_state.json").write_text('{"global', "utf-8")
    message = refusal(train, base, corpus, tmp_path / "out", epochs=2, seed=3)
    assert ".out.training: trained with epochs 4, not 2; give another --out" in message
    train(base, corpus, tmp_path / "out", **options)
    first, second = (tmp_path / name / "model.safetensors" for name in ("whole", "out"))
    assert first.read_bytes() == second.read_bytes()
    assert not (tmp_path / ".out.training").exists()


@pytest.mark.slow
def test_a_folder_with_another_training_is_refused(base, corpus, tmp_path, capsys, refusal):
    out = tmp_path / "out"
    done = train(base, corpus, out, epochs=1)
    weights = (out / "model.safetensors").stat()
    assert train(base, corpus, out, epochs=1) == done
    assert f"{out}: is trained already" in capsys.readouterr().err
    other = tmp_path / "other.jsonl"
    other.write_text(corpus.read_text("utf-8") * 2, "utf-8")
    named = classifier(tmp_path / "own", ("neutral", "entailment", "contradiction"))
    assert "with seed 0, not 1; give another --out" in refusal(train, base, corpus, out, 1, 1)
    assert "with epochs 1, not 5" in refusal(train, base, corpus, out)
    assert "with corpus sha256 " in refusal(train, base, other, out, 1)
    assert "with model revision sha256:" in refusal(train, named, corpus, out, 1)
    assert (out / "model.safetensors").stat() == weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "--epochs 0, --seed 0: "),
        ({"seed": -1}, "--seed -1: "),
        ({"out": "full"}, "full: is there already, and no training of ours; give another --out"),
        ({"checkpoint": "plain"}, "LABEL_2, not entailment, contradiction, neutral; set id2label"),
        ({"checkpoint": "two"}, "its labels are entailment, other, not entailment, contradiction"),
        ({"checkpoint": "./no-such"}, "./no-such: is no model; give a folder"),
    ],
)
def test_a_wrong_argument_is_refused(base, corpus, tmp_path, monkeypatch, refusal, change, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    classifier(tmp_path / "plain")
    classifier(tmp_path / "two", ("entailment", "other"))
    arguments = {"checkpoint": base, "corpus": corpus, "out": "out"}
    assert message in refusal(train, **arguments | change)
    assert not (tmp_path / ".out.training").exists()


@pytest.mark.slow
def test_a_training_that_breaks_off_is_explained(base, corpus, tmp_path, monkeypatch):
    broken = Mock(side_effect=RuntimeError("CUDA out of memory\nat"))
    monkeypatch.setattr("transformers.Trainer.train", broken)
    with pytest.raises(RunFailed, match="broke off: RuntimeError: CUDA out of memory; the same"):
        train(base, corpus, tmp_path / "out")
