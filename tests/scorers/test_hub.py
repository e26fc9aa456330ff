"""Models of the Hub: one commit, from the server or the cache, or an error that explains it."""

from pathlib import Path

import pandas as pd
import pytest
import torch
from huggingface_hub import constants
from transformers import LlamaForCausalLM

from bench import run
from bench.scorers import load
from tests.helpers.checkpoints import characters, save

CODER = characters("[CLS] $A", chat=True)
TEXTS = ["she is a doctor", "he is a nurse"]
ASKED = {"categories": ["gender"], "tasks": ["ambiguous"], "limit": 2}


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save(tmp_path_factory.mktemp("llama"), "LlamaForCausalLM", CODER)


@pytest.fixture
def main(hub, llama):
    """The commit of `acme/tiny`."""
    return hub.add("acme/tiny", llama)


def seen(scorer):
    metadata = scorer.describe()
    return metadata["id"], metadata["revision"], scorer.nll(TEXTS).tolist()


def test_all_files_are_of_one_commit(hub, main, llama, tmp_path):
    other = save(tmp_path / "other", "LlamaForCausalLM", CODER, num_hidden_layers=1)
    first = seen(load("acme/tiny"))
    assert first == ("acme/tiny", main, load(str(llama)).nll(TEXTS).tolist())
    branch = hub.add("acme/tiny", other, branch="small")
    newer = ("acme/tiny", branch, load(str(other)).nll(TEXTS).tolist())
    assert seen(load("acme/tiny@small")) == newer
    hub.add("acme/tiny", other)
    assert seen(load("acme/tiny")) == newer
    hub.asked.clear()
    assert seen(load(f"acme/tiny@{main}")) == first
    assert hub.asked == [], "a commit that is in the cache asks nobody"


@pytest.mark.parametrize("offline", [True, False])
def test_without_a_network_the_cache_is_read_quietly(
    hub, main, monkeypatch, capfd, refusal, offline
):
    before = seen(load("acme/tiny"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert seen(load("acme/tiny")) == before
    missing = refusal(load, "acme/other")
    reason = "HF_HUB_OFFLINE is set" if offline else "http://127.0.0.1:9 cannot be reached"
    assert reason in missing
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("acme/none", "shows no such repository"),
        (f"acme/tiny@{'0' * 40}", "without revision 000"),
        ("acme/gated", "accept its terms at http://127.0.0.1"),
        ("acme/pickled", "pickled (pytorch_model.bin)"),
        ("acme/ggufs", "hf download acme/ggufs tiny-q8.gguf"),
    ],
)
def test_what_the_hub_does_not_give_is_a_sentence(
    hub, main, llama, monkeypatch, refusal, model, says
):
    config = (llama / "config.json").read_bytes()
    commit = hub.add("acme/gated", llama, token="secret of the test")
    hub.add("acme/pickled", {"config.json": config, "pytorch_model.bin": b"x"})
    hub.add("acme/ggufs", {"tiny-q8.gguf": b"x"})
    monkeypatch.setenv("HF_TOKEN", "another token")
    message = refusal(load, model)
    assert message.startswith(f"{model}: ")
    assert says in message
    assert "another token" not in message
    if model == "acme/gated":
        monkeypatch.setenv("HF_TOKEN", "secret of the test")
        assert load("acme/gated").describe()["revision"] == commit


def test_a_part_of_a_snapshot_is_not_used_without_a_network(hub, main, monkeypatch, refusal):
    load("acme/tiny")
    for path in Path(constants.HF_HUB_CACHE).rglob("tokenizer.json"):
        path.unlink()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    message = refusal(load, "acme/tiny")
    assert "is not complete in the local cache, and HF_HUB_OFFLINE is set; unset it" in message


@pytest.fixture
def network(llama):
    """A random adapter of `acme/tiny`."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    given = {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", "lora_alpha": 64}
    options = peft.LoraConfig(init_lora_weights=False, **given)
    network = peft.get_peft_model(LlamaForCausalLM.from_pretrained(llama), options)
    network.peft_config["default"].base_model_name_or_path = "acme/tiny"
    return network


def test_an_adapter_is_put_on_its_base_model(hub, main, llama, network, own_folder, refusal):
    network.save_pretrained("lora")
    commit = hub.add("acme/lora", own_folder / "lora")
    metadata = load("acme/lora").describe()
    base = {"id": "acme/tiny", "revision": main}
    assert (metadata["revision"], metadata["base"]) == (commit, base)
    network.peft_config["default"].base_model_name_or_path = "/home/someone/tiny"
    network.save_pretrained("elsewhere")
    assert "--base gives another" in refusal(load, "./elsewhere")
    network.merge_and_unload().save_pretrained("merged")
    CODER.save_pretrained("merged")
    expected = load("./merged").nll(TEXTS)
    for name, base in (("acme/lora", None), ("./lora", None), ("./lora", str(llama))):
        assert load(name, base=base).nll(TEXTS) == pytest.approx(expected, rel=1e-4)
    assert load(str(llama)).nll(TEXTS) != pytest.approx(expected, rel=1e-2)
    assert "is no adapter" in refusal(load, str(llama), base="acme/tiny")


def check_same(one, other):
    one, other = (done.records.drop(columns="seconds") for done in (one, other))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("name", ["tiny", "lora"])
def test_a_run_is_repeated_and_continued_at_the_commits_of_its_model_and_base(
    hub, main, llama, network, own_folder, refusal, name
):
    network.save_pretrained("lora")
    commits = {"tiny": main, "lora": hub.add("acme/lora", own_folder / "lora")}
    base = {"id": "acme/tiny", "revision": main} if name == "lora" else None
    model = f"acme/{name}@{commits[name]}"
    done = run.evaluate("cbbq", f"acme/{name}", out="first", **ASKED)
    files = {path.name: path.read_bytes() for path in llama.iterdir()}
    hub.add("acme/tiny", {**files, "README.md": b"of another commit"})
    again = run.repeat("first", out="again")
    metadata = again.metadata["model"]
    assert (metadata["revision"], metadata.get("base")) == (commits[name], base)
    assert again.metadata["asked"]["model"] == model
    assert (done.label, again.label) == (name, f"{name}@{commits[name][:7]}")
    check_same(done, again)
    (done.folder / "records/answers.parquet").unlink()
    message = refusal(run.evaluate, "cbbq", f"acme/{name}", out="first", **ASKED)
    assert f"first: was begun with another model ({'base' if base else 'revision'} was " in message
    given = {"base": f"acme/tiny@{main}" if base else None, "out": "first", **ASKED}
    check_same(done, run.evaluate("cbbq", model, **given))
