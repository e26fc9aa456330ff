"""Masked models and NLI classifiers: numbers against a brute force, labels by name, and what cannot be asked refused."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    RobertaConfig,
    RobertaForMaskedLM,
)

from bench.run import evaluate
from bench.scorers import load
from bench.scorers.local.classifier import label_columns
from tests.helpers.checkpoints import BERT, LETTERS, SPECIAL, characters, save

CODE = dict(zip([*SPECIAL, *LETTERS], range(1000), strict=False))
TEXTS = [
    "the doctor is here.",
    "他是医生。",
    "",
    "x",
    "she is an engineer, not a doctor. is she?",
    "🙂a",
]
# Ways in which tokenizers put special tokens around a text.
AROUND = {"both": BERT, "before": "[CLS] $A", "behind": "$A [SEP]", "none": ""}


def masked(folder: Path, around: str = BERT, **options: Any) -> Any:
    save(folder, BertForMaskedLM, BertConfig, characters(around), max_position_embeddings=64)
    return load(str(folder), **options)


def spelled(text: str, around: str) -> list[int]:
    """The token ids of `text`, looked up by hand."""
    before, behind = ([CODE[name]] if name in around else [] for name in ("[CLS]", "[SEP]"))
    return [*before, *(CODE.get(letter, CODE["<unk>"]) for letter in text), *behind]


def brute(scorer: Any, ids: list[int], position: int) -> float:
    """Log-probability of the token at `position` with it alone masked, from float64 logits."""
    shown = [*ids[:position], CODE["[MASK]"], *ids[position + 1 :]]
    with torch.no_grad():
        logits = scorer.network(torch.tensor([shown])).logits[0, position].double()
    return float(logits.log_softmax(-1)[ids[position]])


def test_pseudo_likelihood_is_the_brute_force(tmp_path: Path) -> None:
    scorer = masked(tmp_path)
    found, means = scorer.token_logprobs(TEXTS), scorer.nll(TEXTS)
    for text, row, mean in zip(TEXTS, found, means, strict=True):
        ids = spelled(text, BERT)
        # An unknown token is a special one.
        expected = [
            brute(scorer, ids, i) for i in range(1, len(ids) - 1) if ids[i] != CODE["<unk>"]
        ]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)
        assert mean == pytest.approx(-np.mean(expected), rel=1e-4) if expected else np.isnan(mean)
    np.testing.assert_allclose(load(str(tmp_path), batch_tokens=1).nll(TEXTS), means, rtol=1e-5)
    np.testing.assert_allclose([scorer.nll([text])[0] for text in TEXTS], means, rtol=1e-5)
    assert scorer.nll([]).shape == (0,)


@pytest.mark.parametrize("name", AROUND)
def test_choose_reads_the_options_positions(tmp_path: Path, name: str) -> None:
    around = AROUND[name]
    scorer = masked(tmp_path, around)
    prompts, options = ["他是医生？答案：", "is she?", "x"], ("A", "B", "yes", "不是")
    expected = np.empty((3, 4))
    for i, prompt in enumerate(prompts):
        for k, option in enumerate(options):
            ids = spelled(prompt + option, around)
            first = ("[CLS]" in around) + len(prompt)
            expected[i, k] = sum(brute(scorer, ids, first + n) for n in range(len(option)))
    np.testing.assert_allclose(scorer.choose(prompts, options), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        load(str(tmp_path), batch_tokens=1).choose(prompts, options), expected, rtol=1e-4, atol=1e-5
    )
    assert (expected < 0).all()
    assert scorer.choose([], options).shape == (0, 4)


def in_order(scorer: Any, texts: list[str]) -> list[float]:
    """Sums of pseudo-log-probabilities, computed in the order of the texts, all as wide as the widest: slow and plain."""
    jobs = [(spelled(text, BERT), i) for text in texts for i in range(1, len(text) + 1)]
    width = max(len(ids) for ids, _ in jobs)
    found = []
    for ids, position in jobs:
        shown = torch.full((1, width), CODE["<pad>"])
        shown[0, : len(ids)] = torch.tensor(ids)
        shown[0, position] = CODE["[MASK]"]
        seen = (torch.arange(width) < len(ids)).long()[None]
        with torch.no_grad():
            logits = scorer.network(input_ids=shown, attention_mask=seen).logits[0, position]
        found.append(float(logits.log_softmax(-1)[ids[position]]))
    rows = np.split(np.array(found), np.cumsum([len(text) for text in texts])[:-1])
    return [float(row.sum()) for row in rows]


def test_batches_by_length_give_the_numbers_of_the_plain_way(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    texts = ["".join(dice.choice(LETTERS, size)) for size in dice.permutation(np.arange(1, 60, 3))]
    scorer = masked(tmp_path)
    expected = in_order(scorer, texts)
    for batch_tokens in (1, 100, 100_000):
        found = load(str(tmp_path), batch_tokens=batch_tokens).token_logprobs(texts)  # type: ignore[attr-defined]
        assert [len(row) for row in found] == [len(text) for text in texts]
        np.testing.assert_allclose([row.sum() for row in found], expected, rtol=1e-5)


def test_no_batch_is_wider_or_larger_than_it_has_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = masked(tmp_path, batch_tokens=60)
    seen, forward = [], scorer.network.forward

    def watched(**inputs: Any) -> Any:
        seen.append(inputs["attention_mask"])
        return forward(**inputs)

    monkeypatch.setattr(scorer.network, "forward", watched)
    pairs = [f"{one}{other}" for one, other in zip(LETTERS[:15], LETTERS[15:30], strict=True)]
    scorer.nll(["a" * 38, *pairs])
    # 40 tokens leave no room for a second such text; texts of two letters are four tokens, 15 of them a batch.
    assert [tuple(mask.shape) for mask in seen] == [(1, 40)] * 38 + [(15, 4)] * 2
    assert all(mask.all() for mask in seen), "nothing is padded"


def test_what_differs_behind_the_mask_alone_is_computed_once(tmp_path: Path) -> None:
    scorer = masked(tmp_path)
    found = scorer.choose(["is she?", "x"], ["A", "B", "C"])
    assert scorer.tally.asked == 3 * (10 + 4)
    assert scorer.tally.computed == 2 * 10, "two texts, padded to the longer one"
    apart = [
        [scorer.choose([prompt], [option])[0, 0] for option in "ABC"] for prompt in ("is she?", "x")
    ]
    np.testing.assert_allclose(found, apart, rtol=1e-5)


def test_each_prompt_may_have_options_of_its_own(tmp_path: Path) -> None:
    scorer = masked(tmp_path)
    prompts, options = (
        ["他是医生？", "is she?", "x"],
        [("是", "不是"), ("yes", "no"), ("A", "the doctor")],
    )
    found = scorer.choose(prompts, options)
    alone = [
        scorer.choose([prompt], some)[0] for prompt, some in zip(prompts, options, strict=True)
    ]
    np.testing.assert_allclose(found, alone, rtol=1e-5)
    backwards = scorer.choose(prompts[::-1], [some[::-1] for some in options[::-1]])
    np.testing.assert_allclose(backwards[::-1, ::-1], found, rtol=1e-5)
    turns = ("who?", "she.", "is she?")
    np.testing.assert_allclose(
        scorer.choose([turns], ("yes", "no")), scorer.choose(["who?\nshe.\nis she?"], ("yes", "no"))
    )
    with pytest.raises(ValueError, match="shape"):
        scorer.choose(["a", "b"], [("A", "B"), ("A", "B", "yes", "no")])


def test_cbbq_is_asked_by_options_or_by_letters(own_folder: Path) -> None:
    folder = str(save(own_folder / "model", BertForMaskedLM, BertConfig, characters(BERT)))
    runs = {
        read: evaluate(
            "cbbq",
            folder,
            limit=1,
            categories=["gender"],
            read=read,
            out=own_folder / f"run {read}",
        )
        for read in (None, "options", "letters")
    }
    rows = {read: run.records for read, run in runs.items()}
    for one in rows.values():
        assert len(one) == 2
        assert one.valid.all()
        assert one.parsed.isin(list("ABC")).all()
    assert rows[None].response.tolist() == rows["options"].response.tolist()
    np.testing.assert_allclose(np.vstack(rows[None].logprobs), np.vstack(rows["options"].logprobs))
    assert rows["letters"].response.isin(list("ABC")).all()
    assert not rows[None].response.isin(list("ABC")).any()
    listed = {read: one.prompt.str.contains("A. ", regex=False).all() for read, one in rows.items()}
    assert listed == {None: False, "options": False, "letters": True}
    scores = runs[None].scores()
    found = scores[(scores.preset == "robust") & (scores.category == "gender")].set_index("metric")
    assert found.score["s_amb"] in (0, 1)


def test_mcbe_has_no_options_to_read_so_letters_are(own_folder: Path) -> None:
    folder = str(save(own_folder / "model", BertForMaskedLM, BertConfig, characters(BERT)))
    run = evaluate(
        "mcbe", folder, tasks=["ss"], limit=1, categories=["gender"], out=own_folder / "run"
    )
    assert run.records.response.isin(["A", "B"]).all()
    assert run.records.valid.all()
    assert (run.scores().metric == "score").any()


def test_roberta_has_fewer_positions_than_its_table(tmp_path: Path, refusal: Any) -> None:
    """It numbers them from behind the padding token, whose id is 0 here and 1 in the released ones."""
    shape: dict[str, Any] = {"max_position_embeddings": 20}
    scorer: Any = load(
        str(save(tmp_path, RobertaForMaskedLM, RobertaConfig, characters(BERT), **shape))
    )
    assert np.isfinite(scorer.nll(["a" * 17])).all()
    assert "at most 19 tokens, and the text has 20" in refusal(scorer.nll, ["a" * 18])


def test_a_masked_model_says_what_it_is(tmp_path: Path) -> None:
    scorer = masked(tmp_path)
    assert scorer.verbs == ("nll", "choose")
    about = scorer.describe()
    assert "pseudo" in about["kind"]
    assert about["revision"].startswith("sha256:")
    assert about["dtype"] == "float32"


def test_a_tokenizer_without_mask_token_is_refused(tmp_path: Path, refusal: Any) -> None:
    folder = save(tmp_path, BertForMaskedLM, BertConfig, characters(BERT, mask=False))
    assert "no mask token" in refusal(load, str(folder))


PAIRS = [
    ("a man is a doctor", "she is a doctor"),
    ("x", "y"),
    ("他是医生", "她是护士，不是医生。"),
    ("the engineer is here. " * 20, "the nurse"),
    ("she is a doctor", "a man is a doctor"),
]


def classifier(folder: Path, labels: list[str], **options: Any) -> Any:
    coder = characters(BERT, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    save(
        folder,
        BertForSequenceClassification,
        BertConfig,
        coder,
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
    )
    return load(str(folder), **options)


def brute_pair(scorer: Any, pair: tuple[str, str]) -> dict[str, float]:
    """Probability of each label as the checkpoint names it."""
    first, second = (spelled(text, "") for text in pair)
    ids = [CODE["[CLS]"], *first, CODE["[SEP]"], *second, CODE["[SEP]"]]
    types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    with torch.no_grad():
        logits = (
            scorer.network(torch.tensor([ids]), token_type_ids=torch.tensor([types]))
            .logits[0]
            .double()
        )
    return {
        scorer.network.config.id2label[i].lower(): float(p)
        for i, p in enumerate(logits.softmax(-1))
    }


@pytest.mark.parametrize("labels", list(permutations(["entailment", "neutral", "CONTRADICTION"])))
def test_labels_are_found_by_name(tmp_path: Path, labels: list[str]) -> None:
    scorer = classifier(tmp_path, list(labels))
    found = scorer.classify(PAIRS)
    expected = [brute_pair(scorer, pair) for pair in PAIRS]
    for column, label in enumerate(("entailment", "contradiction", "neutral")):
        np.testing.assert_allclose(
            found[:, column], [one[label] for one in expected], rtol=1e-4, atol=1e-6
        )


def test_probabilities_sum_to_one_in_the_order_of_the_pairs(tmp_path: Path) -> None:
    scorer = classifier(tmp_path, ["contradiction", "entailment", "neutral"])
    found = scorer.classify(PAIRS)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(
        np.vstack([scorer.classify([pair]) for pair in PAIRS]), found, rtol=1e-4
    )
    np.testing.assert_allclose(
        load(str(tmp_path), batch_tokens=1).classify(PAIRS[::-1]), found[::-1], rtol=1e-4
    )
    assert abs(found[0] - found[4]).max() > 1e-3, "premise and hypothesis are not the same"
    assert scorer.classify([]).shape == (0, 3)
    assert scorer.describe()["labels"] == {"entailment": 1, "contradiction": 0, "neutral": 2}


@pytest.mark.parametrize(
    "labels",
    [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["entailment", "not_entailment"],
        ["entailment", "neutral", "neutral, too"],
        ["entailment", "contradiction", "neutral", "other"],
    ],
)
def test_labels_that_cannot_be_told_are_refused(
    tmp_path: Path, refusal: Any, labels: list[str]
) -> None:
    message = refusal(classifier, tmp_path, labels)
    assert message.startswith(str(tmp_path))
    assert labels[0] in message
    assert "id2label" in message


def test_short_label_names_are_known() -> None:
    assert label_columns({0: "Neutral", 1: "entail", 2: "contradict"}, "m") == [1, 2, 0]
