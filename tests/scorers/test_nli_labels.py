"""NLI classifiers whose labels have no names, and the probe that shows when names, order or language are wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

from bench.run import evaluate
from bench.scorers import load
from bench.scorers.local.classifier import Classifier, label_columns, probe_pairs
from bench.tasks.nli_coal import LABELS
from tests.helpers.checkpoints import BERT, characters, save

NAMELESS = {k: f"LABEL_{k}" for k in range(3)}
ORDER = ("neutral", "entailment", "contradiction")


def classifier(folder: Path, labels: dict[int, str]) -> str:
    coder = characters(BERT, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    back = {name: k for k, name in labels.items()}
    return str(
        save(
            folder, BertForSequenceClassification, BertConfig, coder, id2label=labels, label2id=back
        )
    )


def test_label_names_say_what_label_0_means(tmp_path: Path) -> None:
    folder = classifier(tmp_path, NAMELESS)
    scorer: Any = load(folder, label_names=["Neutral", "ENTAILMENT", "contradictory"])
    assert scorer.describe()["labels"] == {"entailment": 1, "contradiction": 2, "neutral": 0}
    pairs = [("a nurse sits", "a woman sits")]
    other: Any = load(folder, label_names=list(LABELS))
    np.testing.assert_allclose(scorer.classify(pairs), other.classify(pairs)[:, [1, 2, 0]])


def test_label_0_is_refused_with_the_way_out(tmp_path: Path, refusal: Any) -> None:
    folder = classifier(tmp_path, NAMELESS)
    assert refusal(load, folder) == (
        f"{folder}: its labels are LABEL_0, LABEL_1, LABEL_2, not entailment, contradiction, neutral; give their meaning, like "
        "--label-names entailment,neutral,contradiction, or set id2label in its config.json to what they mean"
    )


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ({0: "entailment", 1: "neutral", 2: "contradictory"}, [0, 2, 1]),  # as in XNLI's files
        ({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, [2, 0, 1]),
        ({"2": "label_2", "1": "label_1", "0": "label_0"}, [1, 2, 0]),
    ],
)
def test_columns_by_name(names: dict[Any, str], columns: list[int]) -> None:
    meant = ORDER if "0" in names else ()
    assert label_columns(names, "m", meant) == columns


def test_label_names_may_agree_with_the_checkpoint_but_not_contradict_it(refusal: Any) -> None:
    names = dict(enumerate(ORDER))
    assert label_columns(names, "m", ORDER) == label_columns(names, "m")
    assert (
        "its labels are neutral, entailment, contradiction, which --label-names entailment,contradiction,neutral contradicts"
        in refusal(label_columns, names, "m", LABELS)
    )
    # Numbered otherwise than the columns: then the numbers mean nothing.
    assert "not entailment" in refusal(
        label_columns, {0: "LABEL_2", 1: "LABEL_1", 2: "LABEL_0"}, "m", ORDER
    )
    assert "not entailment" in refusal(label_columns, {0: "LABEL_0", 1: "LABEL_1"}, "m", ORDER)


@pytest.mark.parametrize("names", [["entailment"], ["entailment"] * 3, ["yes", "no", "maybe"]])
def test_label_names_are_the_three_labels(own_folder: Path, refusal: Any, names: list[str]) -> None:
    said = (
        f"--label-names {','.join(names)}: expected entailment, contradiction, neutral, each once"
    )
    assert refusal(load, "m/x", label_names=names).startswith(said)
    assert refusal(evaluate, "nli_coal", "simulated:", label_names=names).startswith(said)
    assert "label_names 'neutral': expected a list" in refusal(
        evaluate, "nli_coal", "simulated:", label_names="neutral"
    )


def test_what_has_no_labels_takes_no_names_for_them(own_folder: Path, refusal: Any) -> None:
    causal = save(own_folder / "c", LlamaForCausalLM, LlamaConfig, characters("[CLS] $A"))
    for model in (str(causal), "simulated:", "tiny:s", "openai:x@http://localhost:1/v1"):
        assert (
            refusal(load, model, label_names=LABELS)
            == f"model {model}: has no labels to name; leave out --label-names"
        )


def test_label_names_are_part_of_the_run_and_may_be_given_by_model(
    own_folder: Path, refusal: Any
) -> None:
    folder = classifier(own_folder / "m", NAMELESS)
    options: dict[str, Any] = {"limit": 1, "categories": ["en"], "out": own_folder / "run"}
    run = evaluate("nli_coal", folder, label_names={folder: ORDER, "other": LABELS}, **options)
    assert run.about["asked"]["label_names"] == list(ORDER)
    assert evaluate("nli_coal", folder, label_names=ORDER, **options).about == run.about
    said = refusal(evaluate, "nli_coal", folder, label_names=LABELS, **options)
    assert (
        "holds another run (label_names was ['neutral', 'entailment', 'contradiction'], now" in said
    )
    assert "now None)" in refusal(evaluate, "nli_coal", folder, **options)
    assert "label_names" not in evaluate("nli_coal", "simulated:", limit=1).about["asked"]


def test_probes_are_three_of_each_kind_in_every_language() -> None:
    rows = probe_pairs()
    for language in ("en", "ja", "zh"):
        some = [row for row in rows if row["language"] == language]
        assert [row["expected"] for row in some] == ["entailment"] * 3 + ["contradiction"] * 3
        assert [row["premise"] == row["hypothesis"] for row in some] == [True] * 3 + [False] * 3
        assert len({(row["premise"], row["hypothesis"]) for row in some}) == 6


def by_rule(self: Any, pairs: list[tuple[str, str]]) -> np.ndarray:
    """A classifier that knows: the same is entailed, anything else contradicted, but an occupation's gender is open."""
    wrong = getattr(by_rule, "wrong", 0)
    labels = [0 if a == b else 2 if "doctor" in a or "nurse" in a else 1 for a, b in pairs]
    return np.eye(3)[[(k + wrong) % 3 for k in labels]]


def test_a_passed_probe_is_recorded_and_not_told(
    own_folder: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(Classifier, "classify", by_rule)
    folder = classifier(own_folder / "m", dict(enumerate(ORDER)))
    run = evaluate("nli_coal", folder, limit=1, categories=["zh"], out=own_folder / "run")
    probe = run.about["probe"]
    assert len(probe) == 6
    assert {row["language"] for row in probe} == {"zh"}, "in the languages that are asked"
    assert all(row["found"] == row["expected"] for row in probe)
    assert "probe" not in capsys.readouterr().err
    assert not run.scores().note.str.contains("probe").any()


@pytest.mark.parametrize("tasks", [None, ["ps"]])
def test_a_failed_probe_is_told_and_the_run_goes_on(
    own_folder: Path, monkeypatch: Any, capsys: Any, tasks: list[str] | None
) -> None:
    monkeypatch.setattr(Classifier, "classify", by_rule)
    monkeypatch.setattr(by_rule, "wrong", 1, raising=False)
    folder = classifier(own_folder / "m", dict(enumerate(ORDER)))
    run = evaluate(
        "nli_coal", folder, limit=1, categories=["en"], tasks=tasks, out=own_folder / "run"
    )
    said = (
        "the probe failed: of 6 plain pairs 6 got a wrong label (en), the first 'A dog is sleeping on the sofa.', "
        "'A dog is sleeping on the sofa.': contradiction for entailment"
    )
    assert f"{said}; it is asked all the same\n" in capsys.readouterr().err
    assert len(run.records) == (3 if tasks is None else 1)
    scores = run.scores()
    assert scores.note.str.contains(said, regex=False).sum() == 1
    assert scores[scores.note.str.contains("probe")].category.item() == "all"


def test_others_are_not_probed(own_folder: Path) -> None:
    assert evaluate("nli_coal", "simulated:", limit=1, out=own_folder / "a").about["probe"] == []
