"""How large models are, which are a series, and what papers print of models in several sizes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen2ForCausalLM

from bench import run
from bench.analyses.sizes import (
    COUNTED,
    GIVEN,
    LAYERS,
    NAMED,
    SIMULATED,
    billions,
    by_size,
    family,
    points,
    published_beside,
)
from bench.metrics.mcbe import HEADLINES as MCBE
from bench.metrics.table import ALL
from bench.run.results import Run
from bench.scorers.stand_ins.tiny import SIZES, config, tokenizer

Refusal = Callable[..., str]


def of(model: str, parameters: Any = None, benchmark: str = "cbbq") -> Run:
    about = {"benchmark": benchmark, "asked": {"model": model}, "model": {"parameters": parameters}}
    return Run(Path(model), about)


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", 0.5),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 0.135),
        ("models/qwen2.5-1.5b-instruct-q4_k_m.gguf", 1.5),
        ("openai:glm-4-9b-chat@http://localhost:8000/v1", 9),
        ("Qwen/Qwen3-30B-A3B", 30),
        ("baichuan-inc/Baichuan2-7B-Chat", 7),
        ("internlm/internlm2_5-7b-chat", 7),
    ],
)
def test_a_name_tells_a_size(model: str, size: float) -> None:
    assert billions(of(model)) == (pytest.approx(size), NAMED)


def test_what_was_counted_goes_before_the_name_and_what_is_given_before_both() -> None:
    one = of("Qwen/Qwen2.5-0.5B-Instruct", 494_032_768)
    assert billions(one) == (pytest.approx(0.494032768), COUNTED)
    assert billions(one, {"Qwen2.5-0.5B-Instruct": 0.49}) == (0.49, GIVEN)
    assert billions(one, {"Qwen/Qwen2.5-0.5B-Instruct": 0.36}) == (0.36, GIVEN)


@pytest.mark.parametrize(
    "model", ["mistralai/Mixtral-8x7B-v0.1", "openai:qwen-plus@http://x/v1", "gpt-3.5", "q4_k_m"]
)
def test_a_size_that_nothing_tells_is_asked_for(model: str, refusal: Refusal) -> None:
    said = refusal(billions, of(model))
    assert "its size is not known" in said
    assert "sizes = {" in said
    for wrong in (0, -1, "7", True, None):
        assert "expected billions" in refusal(billions, of(model), {model: wrong})


@pytest.mark.parametrize("name", SIZES)
def test_the_layers_of_tiny_models_are_counted_rightly(name: str) -> None:
    coder = tokenizer(["一二三ABC"])
    with torch.device("meta"):
        network = Qwen2ForCausalLM(config(coder, SIZES[name]))
    counted = network.num_parameters() - network.get_input_embeddings().weight.numel()
    assert billions(of(f"tiny:{name}", SIZES[name]._asdict())) == (
        pytest.approx(counted / 1e9),
        LAYERS,
    )


def test_a_family_is_the_name_without_the_size() -> None:
    assert {family(of(f"Qwen/Qwen2.5-{size}B-Instruct")) for size in (0.5, 7)} == {
        "Qwen2.5-Instruct"
    }
    assert family(of("Qwen/Qwen2.5-7B")) == "Qwen2.5"
    assert {family(of(f"tiny:{size},bias=0.2")) for size in "sml"} == {"tiny:bias=0.2"}
    assert family(of("simulated:bias=0.2")) == "simulated:bias=0.2"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return run.evaluate_all("mcbe", list(SIMULATED), folder, tasks=["ss"], limit=4)


def test_a_series_is_opened_ordered_and_paired(asked: list[Run]) -> None:
    series = by_size(asked[::-1])["mcbe"]
    (models,) = series.values()
    assert [one.billions for one in models] == [0.5, 1.5, 7, 32]
    table = points(asked, series)
    whole = table[(table.category == ALL) & (table.task == "ss")]
    own = (
        asked[0].scores().query("category == 'all' and task == 'ss' and metric == 'score'").iloc[0]
    )
    assert whole.score.iloc[0] == pytest.approx(own.score)
    assert whole.baseline.iloc[0] == pytest.approx(own.baseline)
    assert list(whole.position) == sorted(whole.position, reverse=True)
    assert whole.valid_rate.min() == 1
    assert set(published_beside("mcbe", series).task) == {"ss"}
    assert [one.task for one in MCBE if one.task == "ss"] == ["ss"]


def test_series_that_cannot_be_made_are_refused(asked: list[Run], refusal: Refusal) -> None:
    first, second = asked[0].model, asked[1].model
    assert by_size(asked, {"two": [first, second]})["mcbe"].keys() == {"two"}
    assert "no run of gpt on mcbe" in refusal(by_size, asked, {"x": [first, "gpt"]})
    assert "expected a list" in refusal(by_size, asked, {"x": first})
    assert "no series has models of two sizes" in refusal(by_size, asked[:1])
    nameless = Run(
        asked[1].folder,
        asked[1].about | {"asked": asked[1].about["asked"] | {"model": "simulated:bias=0.1"}},
    )
    assert [one for of in by_size([asked[0], asked[1]]).values() for one in of]
    assert "no series has models of two sizes" in refusal(by_size, [asked[0], nameless])
    assert "its size is not known" in refusal(
        by_size, [asked[0], nameless], {"x": [first, nameless.model]}
    )
    assert "both of 3 billion" in refusal(
        by_size, asked[:2], {"x": [first, second]}, {first: 3, second: 3}
    )
    other = Run(
        asked[1].folder, asked[1].about | {"data": asked[1].about["data"] | {"sha256": "0"}}
    )
    assert "different data" in refusal(by_size, [asked[0], other], {"x": [first, second]})
