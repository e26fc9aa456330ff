"""Multiple-choice heads: numbers against a direct call, whatever the batch; half a checkpoint refused; CBBQ end to end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AlbertForMultipleChoice,
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertModel,
    RobertaConfig,
    RobertaForMultipleChoice,
)

from bench.run import evaluate
from bench.scorers import Scorer, load
from bench.scorers.base import TooLong
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import BERT, characters, headed, save

# The three of the paper; RoBERTa has no token types, and numbers its positions from behind the padding token.
FAMILIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert": (BertForMultipleChoice, BertConfig, {}),
    "roberta": (RobertaForMultipleChoice, RobertaConfig, {}),
    "albert": (AlbertForMultipleChoice, AlbertConfig, {"embedding_size": 16}),
}
PROMPTS = [
    "is she a doctor? ",
    "他是医生，她是护士。谁是工程师？",
    "x",
    "the engineer is here. who is not? ",
]
OPTIONS = [
    ("yes", "no", "who is she?"),
    ("他", "她", "不是他。"),
    ("A", "B", "A B C"),
    ("", "the engineer", "no"),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: headed(
            tmp_path_factory.mktemp(name),
            *classes,
            types=name != "roberta",
            max_position_embeddings=65,
            **shape,
        )
        for name, (*classes, shape) in FAMILIES.items()
    }


def by_hand(folder: Path, network_class: Any) -> np.ndarray:
    """Log-probabilities of OPTIONS as transformers gives them, all items in one padded batch of items by options."""
    coder = load(str(folder)).tokenizer  # type: ignore[attr-defined]
    firsts = [prompt for prompt in PROMPTS for _ in range(3)]
    batch = coder(
        firsts, [option for some in OPTIONS for option in some], padding=True, return_tensors="pt"
    )
    network = network_class.from_pretrained(folder).double().eval()
    with torch.no_grad():
        shaped = {name: values.reshape(len(PROMPTS), 3, -1) for name, values in batch.items()}
        return network(**shaped).logits.log_softmax(-1).numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_choose_is_what_transformers_gives(folders: dict[str, Path], family: str) -> None:
    folder = folders[family]
    expected = by_hand(folder, FAMILIES[family][0])
    assert np.ptp(expected, 1).min() > 1e-3, "the options are told apart"
    for batch_tokens in (1, 40, 100_000):
        scorer: Any = load(str(folder), batch_tokens=batch_tokens)
        found = scorer.choose(PROMPTS, OPTIONS)
        assert (found.dtype, found.shape) == (np.float64, (4, 3))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.exp(found).sum(1), 1, rtol=1e-6)
        backwards = scorer.choose(PROMPTS[::-1], [some[::-1] for some in OPTIONS[::-1]])
        np.testing.assert_allclose(backwards[::-1, ::-1], found, rtol=1e-4, atol=1e-5)


def test_token_types_tell_text_and_option_apart(folders: dict[str, Path]) -> None:
    coders = {name: load(str(folder)).tokenizer for name, folder in folders.items()}  # type: ignore[attr-defined]
    assert coders["bert"]("a", "b")["token_type_ids"] == [0, 0, 0, 1, 1]
    assert "token_type_ids" not in coders["roberta"]("a", "b")


def test_options_may_be_shared_and_turns_are_joined(folders: dict[str, Path]) -> None:
    scorer: Any = load(str(folders["bert"]), device="cpu")
    shared = scorer.choose(PROMPTS, ("yes", "no"))
    np.testing.assert_allclose(scorer.choose(PROMPTS, [("yes", "no")] * 4), shared)
    turns = ("who?", "she.", "is she?")
    np.testing.assert_allclose(
        scorer.choose([turns], ("yes", "no")), scorer.choose(["\n".join(turns)], ("yes", "no"))
    )
    assert scorer.choose([], ("yes", "no")).shape == (0, 2)
    with pytest.raises(ValueError, match="shape"):
        scorer.choose(["a", "b"], [("yes", "no"), ("yes", "no", "x")])


def test_it_says_what_it_is_and_whose_reading_that_is(folders: dict[str, Path]) -> None:
    scorer = load(str(folders["bert"]), device="cpu")
    assert isinstance(scorer, Scorer)
    assert (scorer.verbs, scorer.reads) == (("choose",), ("options",))
    about = scorer.describe()
    assert "multiple-choice head" in about["kind"]
    assert "our reading" in about["kind"]
    assert (about["device"], about["dtype"]) == ("cpu", "float32")
    json.dumps(about)


@pytest.mark.parametrize(("family", "most"), [("bert", 65), ("albert", 65), ("roberta", 64)])
def test_what_is_too_long_is_an_error_and_its_neighbours_are_answered(
    folders: dict[str, Path], family: str, most: int
) -> None:
    scorer: Any = load(str(folders[family]))
    longest = most - len("yes") - 3  # special tokens
    assert np.isfinite(scorer.choose(["a" * longest], ("A", "yes"))).all()
    with pytest.raises(
        TooLong,
        match=rf"at most {most} tokens, and the text with an option has {most + 1} \(number 2",
    ):
        scorer.choose(["x", "a" * (longest + 1)], ("A", "yes"))
    requests = [
        Request("c", "t", "i", "answer", "choose", "a" * size, "v", Key(), options=("A", "yes"))
        for size in (1, longest + 1, longest)
    ]
    first, second, third = scorer.answer(requests)
    assert (
        second.error
        == f"too long for the model: it reads {most} tokens, the text with an option has {most + 1}"
    )
    alone = scorer.answer([requests[0], requests[2]])
    assert [(a.response, a.logprobs, a.error) for a in (first, third)] == [
        (a.response, a.logprobs, "") for a in alone
    ]


def relabelled(folder: Path) -> str:
    """A checkpoint whose configuration says that it has a multiple-choice head."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"architectures": ["BertForMultipleChoice"]})
    )
    return str(folder)


@pytest.mark.parametrize("plain", [BertModel, BertForMaskedLM])
def test_a_plain_encoder_is_refused_because_its_head_would_be_random(
    tmp_path: Path, refusal: Any, plain: Any
) -> None:
    message = refusal(load, relabelled(save(tmp_path, plain, BertConfig, characters(BERT))))
    assert message.startswith(f"{tmp_path}: lacks the weights ")
    assert "classifier.bias" in message
    assert "multiple choice model, which would be random" in message


def test_one_missing_weight_is_enough(tmp_path: Path, refusal: Any) -> None:
    headed(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    assert "lacks the weights classifier.weight of a multiple choice" in refusal(
        load, str(tmp_path)
    )


def test_what_else_is_asked_lists_the_head(tmp_path: Path, refusal: Any) -> None:
    message = refusal(load, str(save(tmp_path, BertModel, BertConfig, characters(BERT))))
    assert "*ForMultipleChoice" in message


def test_cbbq_end_to_end(own_folder: Path) -> None:
    folder = str(headed(own_folder / "model"))
    run = evaluate("cbbq", folder, limit=1, categories=["gender"], out=own_folder / "run")
    rows = run.records
    assert set(rows.task) == {"ambiguous", "disambiguous"}
    assert rows.valid.all()
    assert (rows.parsed.isin(list("ABC"))).all()
    assert not rows.prompt.str.contains("A. ").any(), "the options are no part of the text"
    np.testing.assert_allclose([np.exp(row).sum() for row in rows.logprobs], 1, rtol=1e-6)
    scores = run.scores()
    found = scores[(scores.preset == "robust") & (scores.category == "gender")].set_index("metric")
    assert found.score["s_amb"] in (0, 1)
    assert found.n["s_amb"] == 1
