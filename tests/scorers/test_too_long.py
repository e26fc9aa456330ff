"""Texts that are too long for a model are errors, never cut, and do not affect the others."""

from bench.scorers import load
from tests.helpers.answering import request
from tests.helpers.cases import cases
from tests.helpers.checkpoints import BERT, characters, headed, save

LABELS = {"id2label": dict(enumerate(["contradiction", "entailment", "neutral"]))}
# Tokens besides those of the text: special ones, a line break, the reply, and all but the last of
# an option's tokens.


def model_of(kind, folder):
    """A model that reads 16 tokens."""
    if "GPT2" in kind:
        return load(str(save(folder, kind, characters(), n_positions=16)))
    # RoBERTa counts positions from behind the padding token, whose id is 0.
    shape = {"max_position_embeddings": 17 if "Roberta" in kind else 16}
    if "MultipleChoice" in kind:
        return load(str(headed(folder, kind, **shape)))
    labels = LABELS if "Classification" in kind else {}
    return load(str(save(folder, kind, characters(BERT), **labels, **shape)))


@cases(__file__, "too_long.csv")
def test_a_long_text_is_an_error_and_the_others_are_answered(tmp_path, refusal, case):
    request_type, name, longest = case["verb"], case["name"], 16 - int(case["more"])
    scorer = model_of(case["network"], tmp_path)
    options = {"options": ("A", "不是"), "max_new_tokens": 4, "hypothesis": "b"}
    sizes = (1, longest + 1, longest, longest + 4)
    requests = [request("a" * size, "r", request_type, **options) for size in sizes]
    answers = scorer.answer(requests)
    for k, size in ((1, 17), (3, 20)):
        error = f"too long for the model: it reads 16 tokens, {name} has {size}"
        assert (answers[k].response, answers[k].error) == ("", error)
    for answer, alone in zip(answers[::2], scorer.answer(requests[::2]), strict=True):
        assert (answer.response, answer.logprobs) == (alone.response, alone.logprobs)
        assert answer.error == alone.error == ""
    assert all(answer.error for answer in scorer.answer(requests[1::2])), "all may be too long"
    if request_type == "nll":
        message = refusal(scorer.nll, ["a", "a" * (longest + 1)])
        assert f"it reads 16 tokens, {name} has 17 (number 2 of 2)" in message
