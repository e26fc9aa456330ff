"""Speed: ratios by hand, tokens and memory counted, equal answers, peers that are there, missing or broken."""

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from bench.analyses import speed, speed_peers, speed_turns
from bench.analyses.speed_peers import OURS, Contestant, Said
from bench.figures import speed as pictures
from bench.metrics import speed_findings
from bench.scorers.local import checkpoint
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import characters, save

pytestmark = pytest.mark.slow

# As little of lm-eval and minicons as is used, by the book: a text at a time.
LM_EVAL = """
    import torch

    class HFLM:
        def __init__(self, pretrained, tokenizer, batch_size):
            self.network, self.tokenizer, self.batch_size = pretrained, tokenizer, batch_size

        def loglikelihood(self, requests, disable_tqdm):
            return [(self._sum(*request.args), False) for request in requests]

        @torch.no_grad()
        def _sum(self, context, text):
            before = self.tokenizer.encode(context) if context else [self.tokenizer.bos_token_id]
            ids = before + self.tokenizer.encode(text)
            logprobs = self.network(torch.tensor([ids])).logits[0].log_softmax(-1)
            return sum(float(logprobs[k - 1, ids[k]]) for k in range(len(before), len(ids)))
"""
INSTANCE = """
    class Instance:
        def __init__(self, request_type, doc, arguments, idx):
            self.args = arguments
"""
MINICONS = """
    import torch

    class IncrementalLMScorer:
        def __init__(self, network, device, tokenizer):
            raise RuntimeError("no scorer today\\nand a trace")
"""


@pytest.fixture(autouse=True, scope="module")
def small_matrices() -> Iterator[None]:
    """How fast this machine is does not matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(speed_turns.SIDE, "cpu", 64)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    shape = {"max_position_embeddings": 2048, "num_key_value_heads": 2, "tie_word_embeddings": True}
    return save(place, Qwen2ForCausalLM, Qwen2Config, characters(chat=True), **shape)


@pytest.fixture(scope="module")
def setup(folder: Path) -> speed.Setup:
    return speed.Setup(str(folder), n=6, few=2, turns=1, cap=4, device="cpu", name="small")


@pytest.fixture(scope="module")
def found(setup: speed.Setup) -> pd.DataFrame:
    return speed.measure(setup)


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand-ins for lm-eval, which works, and minicons, which breaks."""
    texts = {
        "lm_eval/models/huggingface": LM_EVAL,
        "lm_eval/api/instance": INSTANCE,
        "minicons/scorer": MINICONS,
    }
    for name, text in texts.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def forget() -> None:
        for name in [
            name for name in sys.modules if name.partition(".")[0] in ("lm_eval", "minicons")
        ]:
            del sys.modules[name]

    forget()
    yield
    forget()


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def asked(n: int) -> list[Request]:
    return [Request("c", "nll", str(k), "r", "nll", f"she is {k}", "v", Key()) for k in range(n)]


def pacing(
    clock: Clock, seconds: Sequence[float], tokens: int, value: float
) -> Callable[[Any], speed_peers.Run]:
    """Takes as long as it is told, turn by turn, the first one as warm-up, and sends so many tokens through the network."""

    def make(model: Any) -> speed_peers.Run:
        left = iter([9.0, *seconds])

        def run(requests: Sequence[Request]) -> Said:
            clock.now += next(left)
            model.network(torch.ones(1, tokens, dtype=torch.long))
            return Said(np.full(len(requests), value))

        return run

    return make


def test_ratios_are_those_of_the_same_turn(
    setup: speed.Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(speed_turns, "clock", clock)
    monkeypatch.setattr(speed_turns, "matmul_rate", lambda *args: 1e6)
    whom = [
        Contestant(OURS, pacing(clock, [1, 2, 4], 7, -8.0)),
        Contestant("lm-eval", pacing(clock, [3, 3, 3], 20, -8.5), few=True),
    ]
    ours, theirs = speed_turns.in_turns(setup.loaded, "nll", asked(4), whom, few=2, turns=3)
    # 4, 2 and 1 items a second, beside two thirds of one.
    assert (theirs["times"], theirs["times_low"], theirs["times_high"]) == pytest.approx(
        (3, 1.5, 6)
    )
    assert (ours["items_per_second"], theirs["items_per_second"]) == pytest.approx((2, 2 / 3))
    assert (ours["items"], theirs["items"], theirs["at_least"]) == (4, 2, 3.0)
    assert ours["seconds"] == "1 2 4"
    # [CLS] and eight characters for each text.
    assert (ours["tokens_asked"], ours["tokens_computed"], theirs["tokens_computed"]) == (36, 7, 20)
    assert ours["tokens_per_second"] == 3.5
    network = setup.loaded.network
    body = (
        sum(some.numel() for some in network.model.parameters())
        - network.model.embed_tokens.weight.numel()
    )
    assert (ours["tokens_read"], theirs["tokens_read"]) == (7, 20)
    head = network.lm_head.weight.numel()
    assert ours["share_of_matmul"] == pytest.approx(2 * (body + head) * 3.5 / 1e6)
    # Half a nat, over the eight tokens that are predicted.
    assert theirs["same"] == pytest.approx(0.5 / 8)


def test_who_is_missing_or_breaks_has_a_row_and_a_reason(setup: speed.Setup) -> None:
    def breaks(at: int) -> Callable[[Any], speed_peers.Run]:
        calls = iter(range(99))

        def run(requests: Sequence[Request]) -> Said:
            if next(calls) == at:
                raise ValueError("out of luck\nand a trace")
            return Said(np.zeros(len(requests)))

        return lambda model: run

    def refuses(model: Any) -> speed_peers.Run:
        raise ImportError

    whom = [
        Contestant(OURS, breaks(-1)),
        Contestant("absent", refuses, "no_such_package"),
        Contestant("refuses", refuses),
        Contestant("cold", breaks(0)),
        Contestant("late", breaks(2)),
    ]
    rows = speed_turns.in_turns(setup.loaded, "nll", asked(2), whom, turns=2)
    assert {row["who"]: row["note"] for row in rows} == {
        OURS: "",
        "absent": "not installed: pip install 'bias-workbench[peers]'",
        "refuses": "broke: ImportError()",
        "cold": "broke: out of luck",
        "late": "broke: out of luck",
    }
    assert not [row for row in rows[1:] if "seconds" in row]
    with pytest.raises(ValueError, match="out of luck"):
        speed_turns.in_turns(setup.loaded, "nll", asked(2), [Contestant(OURS, breaks(1))])


def test_answers_are_compared() -> None:
    lengths, every = np.array([5, 11]), [0, 1]

    def compared(work: str, a: Said, b: Said, places: Sequence[int] = every) -> tuple[float, float]:
        return speed_turns.differing(work, a, b, places, lengths)

    same, agree = compared("nll", Said(np.array([-10.0, -20])), Said(np.array([-10.4, -20])))
    assert same == pytest.approx(0.1)
    assert np.isnan(agree)
    options = np.log([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    assert compared("letters", Said(options), Said(options - 3)) == pytest.approx((0, 1))
    other = np.log([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2]])
    assert compared("letters", Said(options), Said(other)) == pytest.approx((np.log(3.5), 0.5))
    replies = compared("letters", Said(options), Said(replies=["A. 是她", "我选B"]))
    assert replies[1] == 0.5
    assert compared("ss", Said(options), Said(replies=["C"]), [1])[1] == 1
    assert compared("generate", Said(replies=["a", "b"]), Said(replies=["b"]), [1])[1] == 1


def test_everybody_does_the_same_work(setup: speed.Setup, found: pd.DataFrame) -> None:
    assert list(dict.fromkeys(found.work)) == list(speed_findings.WORKS)
    assert set(found.model) == {"small"}
    rows = found.set_index(["work", "who"])
    loop = rows.loc[("nll", "authors' loop")]
    assert loop["same"] < 1e-4
    assert (
        loop["tokens_computed"] == loop["tokens_asked"] > rows.loc[("nll", OURS)]["tokens_computed"]
    )
    assert (
        rows.loc[("letters", OURS)]["tokens_computed"]
        <= rows.loc[("letters", OURS)]["tokens_asked"]
    )
    one = rows.loc[("generate", "one by one")]
    assert (one["agree"], one["items"]) == (1, 2)
    # Each reply has as many tokens as it may; the last one is not read.
    assert one["tokens_computed"] == one["tokens_asked"] + 2 * (speed_peers.REPLY - 1)
    measured, whole = (rows.loc[("ss", f"authors' {k} tokens")] for k in (4, 512))
    if whole["note"].startswith("extrapolated: 2 of 2"):
        assert float(whole["seconds"]) > 5 * float(measured["seconds"])
    assert (found.times.dropna() > 0).all()
    assert setup.loaded.network.generation_config.eos_token_id is not None


def test_a_reply_that_stops_is_not_extrapolated(
    setup: speed.Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = setup.loaded
    pairs = setup.requests("ss", 2)
    going = speed_peers._a_reply_each(model, 4, 512)(pairs)
    ids = torch.tensor([speed_peers.turn(model.tokenizer, pairs[0].turns)[1]])
    first = int(model.network(ids).logits[0, -1].argmax())
    monkeypatch.setattr(model.network.generation_config, "eos_token_id", first)
    stopped = speed_peers._a_reply_each(model, 4, 512)(pairs[:1])
    assert stopped.note == "every reply had stopped"
    assert stopped.whole < going.whole
    assert going.note == "extrapolated: 2 of 2 replies had not stopped after 4 tokens"
    assert np.isnan(speed_peers._a_reply_each(model, 4)(pairs[:1]).whole)


@pytest.mark.usefixtures("peers")
def test_harnesses_are_asked_the_same(setup: speed.Setup) -> None:
    rows = speed.measure(setup, ["nll", "letters"]).set_index(["work", "who"])
    assert rows.loc[("nll", "lm-eval")]["same"] < 1e-4
    assert rows.loc[("letters", "lm-eval")]["same"] < 1e-4
    assert rows.loc[("letters", "lm-eval")]["agree"] == 1
    assert rows.loc[("nll", "minicons")]["note"] == "broke: no scorer today"


def test_time_memory_and_threads_are_watched(setup: speed.Setup) -> None:
    network = setup.loaded.network
    with speed_turns.watched(network) as watch:
        network(torch.ones(2, 5, dtype=torch.long))
        network.model(input_ids=torch.ones(1, 3, dtype=torch.long))
        torch.ones(64 << 20, dtype=torch.uint8).sum()
    assert (watch.tokens, watch.read) == (13, 10)
    assert watch.seconds > 0
    assert watch.peak > 50 << 20
    network(torch.ones(1, 5, dtype=torch.long))
    assert watch.tokens == 13, "nobody counts any more"
    before = torch.get_num_threads()
    with checkpoint.threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    assert speed_turns.matmul_rate(torch.device("cpu"), torch.float32) > 1e6


def test_shared_beginnings_are_counted_once(setup: speed.Setup) -> None:
    row = speed.sharing(setup).iloc[0]
    assert row["items"] == len(setup.questions)
    assert row["times"] == row["tokens_asked"] / row["tokens_computed"] > 1


def test_items_are_those_of_the_samples(setup: speed.Setup) -> None:
    three = setup.lists(3, 6)
    assert [len({one.prompt for one in three[k : k + 6]}) for k in (0, 6, 12)] == [6, 6, 6]
    assert len({one.item_id for one in three}) == 3
    assert {one.bos for one in three} == {True}
    assert [len(setup.requests(work, 7)) for work in speed_findings.WORKS] == [7] * 4
    every = setup.requests("letters", 10**6)
    assert every == setup.questions
    some = setup.requests("letters", 2 * speed.STRETCH)
    assert some[: speed.STRETCH] == every[: speed.STRETCH]
    middle = every.index(some[speed.STRETCH])
    assert some[speed.STRETCH :] == every[middle : middle + speed.STRETCH]
    assert middle == pytest.approx(len(every) / 2, abs=speed.STRETCH)


def test_work_grows_along_items_words_and_parameters(
    setup: speed.Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "VOCABULARY", 100)
    monkeypatch.setitem(speed.SHAPES, "mini", (32, 64, 1, 4, 2))
    grown = speed.growth(setup, sizes=["qwen2:mini"])
    ours = grown[grown.who == OURS]
    assert ours[ours.along == "items"]["at"].tolist() == [1, 3, 6] * 2
    assert ours[ours.along == "words"]["at"].tolist() == [2, 3, 4, 6]
    assert ours[ours.along == "words"]["items"].tolist() == [2, 3, 4, 6]
    # 100 words or more of 32 numbers; queries and outputs of 32 x 32, keys and values of half, and their biases; three
    # matrices of 32 x 64; three norms.
    attention = 2 * 32 * 32 + 2 * 32 * 16 + 32 + 2 * 16
    size = 32 * max(100, len(setup.loaded.tokenizer)) + attention + 3 * 32 * 64 + 3 * 32
    models = ours[ours.along == "parameters"]
    assert models["at"].tolist() == [setup.loaded.network.num_parameters(), size]
    assert models["model"].tolist() == ["small", "qwen2:mini"]
    label = str(pictures.growth(grown).get_label())  # type: ignore[union-attr]
    assert label.startswith("A sentence takes the workbench ")
    assert "in lists of 6 words than in lists of 2 words" in label
    assert pictures.growth(grown[:0]) is None


def test_random_weights_are_the_same_again(
    setup: speed.Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "VOCABULARY", 100)
    monkeypatch.setitem(speed.SHAPES, "mini", (32, 64, 1, 4, 2))
    state = torch.get_rng_state()
    a, b = (speed.load("qwen2:mini", "cpu", "bfloat16", setup.loaded) for _ in range(2))
    assert a.network.dtype == torch.bfloat16
    np.testing.assert_array_equal(a.token_logprobs(["she is"]), b.token_logprobs(["she is"]))
    assert torch.equal(state, torch.get_rng_state())


def test_what_is_wrong_is_said(setup: speed.Setup, refusal: Callable[..., str]) -> None:
    assert "turns 0: has to be 1 at least" in refusal(speed.Setup, "tiny:s", turns=0)
    assert "work 'pc' is unknown" in refusal(speed.measure, setup, ["pc"])
    assert "growth 'time' is unknown" in refusal(speed.growth, setup, ["time"])
    assert "is no causal language model" in refusal(speed.load, "simulated:bias=0.5")
    assert "shape '9b' is unknown" in refusal(speed.load, "qwen2:9b", like=setup.loaded)
    missing = speed.Setup("tiny:s", mcbe="nowhere")
    assert "nowhere: no such folder" in refusal(missing.requests, "nll", 1)
