"""Models, and what stands in for one. `load` takes any MODEL of the command line.

`tiny:s`, `simulated:bias=0.7`, `replay:FILE.jsonl`, `predictions:FILE.jsonl`, `lm-eval:FILE.jsonl`,
`openai:NAME@URL`, a folder, a `.gguf` file, or a Hub id, `NAME` or `NAME@REVISION`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bench.config import Generation, Limits
from bench.core.errors import BadInput, expected
from bench.data.readers import as_path
from bench.scorers.base import Answer, Model, Scorer
from bench.scorers.endpoint import batch
from bench.scorers.endpoint import keys as key_names
from bench.scorers.local import hub
from bench.scorers.local.file_hash import fingerprint
from bench.scorers.local.hub import locate
from bench.tasks.nli_labels import label_order

__all__ = [
    "FILES",
    "Answer",
    "Model",
    "Scorer",
    "check",
    "content",
    "load",
    "split_kind",
    "writes_replies",
]

# Kinds of MODEL that are a file, and what the file holds.
FILES = {
    "replay": "recorded answers",
    "predictions": "predictions",
    "lm-eval": "samples of lm-evaluation-harness",
}
# How lm-evaluation-harness begins the arguments of a model.
ELSEWHERE = re.compile(r"(pretrained|peft|model)=")
# The beginning of an absolute path on Windows: `C:\models\x`, `D:/models/x`.
DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def load(
    model: str,
    device: str | None = None,
    dtype: str | None = None,
    batch_tokens: int | None = None,
    trust_remote_code: bool = False,
    label_names: Sequence[str] = (),
    limits: Limits | Mapping[str, Any] | None = None,
    generation: Generation | Mapping[str, Any] | None = None,
    keys: Mapping[str, str] | None = None,
    revision: str | None = None,
    base: str | None = None,
    as_model: str | None = None,
) -> Scorer:
    """Load a model.

    Args:
        model: see the module's docstring.
        device: `cpu`, `cuda`, `cuda:1`...; `auto` distributes a model over all accelerators.
            Default: an accelerator if there is one.
        dtype: `float32`, `bfloat16` or `float16`. Default: bfloat16 on an accelerator, float32 on
            the CPU.
        batch_tokens: tokens in a batch, padding included.
        trust_remote_code: run code that comes with a Hub model; leave it off for models that you
            do not know.
        label_names: what LABEL_0, LABEL_1 and LABEL_2 of an NLI classifier or a file of
            predictions mean.
        limits: of an endpoint, like `{"concurrency": 16}`; see
            `bench.config.Limits`.
        generation: like `{"temperature": 0}`; see
            `bench.config.Generation`.
        keys: environment variables with the keys of endpoints, by host, like
            `{"api.deepseek.com": "DEEPSEEK_API_KEY"}`; see `bench.scorers.endpoint.keys`.
        revision: branch, tag or commit of a Hub model, as in NAME@REVISION. Default: `main`.
        base: the base model of an adapter. Default: the one that the adapter names.
        as_model: name of the model whose answers a file holds; needed for results of a batch.

    Raises:
        BadInput: the model does not exist or is not supported, or cannot follow an option.
        RunFailed: an endpoint does not answer.
    """
    model = hub.at_revision(model, revision)
    check(model)
    order = label_order(label_names)
    options = Generation.of(generation)
    kind, rest = split_kind(model)
    if kind and base:
        raise hub.no_adapter(model, base)
    if not writes_replies(model):
        options.refuse(options.changed(), f"model {model} writes no replies of its own")
    if order and kind and kind != "predictions":
        raise BadInput(f"model {model}: has no labels to name; leave out --label-names")
    if kind in FILES:
        from bench.scorers.stand_ins import recorded

        path = as_path(rest)
        if kind == "predictions":
            return recorded.Predictions(path, order)
        if kind == "lm-eval":
            return recorded.HarnessSamples(path)
        if not batch.is_batch(path):
            return recorded.Replay(path, as_model or "")
        if not as_model:
            raise BadInput(
                f"{path}: holds results of a batch; name the model that gave them by --as-model "
                "NAME (a judge by --as-judge NAME), as in `bench requests`"
            )
        return batch.Batch(path, as_model, options)
    if kind == "simulated":
        from bench.scorers.stand_ins.simulated import Simulated

        return Simulated(rest)
    if kind == "openai":
        from bench.scorers.endpoint.scorer import Endpoint

        return Endpoint(rest, Limits.of(limits), keys or {}, options)
    # A model that does not exist is refused before torch is loaded, which takes seconds; a wrong
    # option before a model is downloaded.
    files = locate(model) if not kind and not device and not dtype else None
    from bench.scorers.local.device import placement

    where = placement("cpu" if kind else device, dtype, batch_tokens)
    if kind == "tiny":
        from bench.scorers.stand_ins.tiny import Tiny

        return Tiny(rest, where, options)
    files = files or locate(model)
    from bench.scorers.local.load import load as load_checkpoint

    return load_checkpoint(model, files, where, trust_remote_code, order, options, base)


def check(model: str, elsewhere: bool = False) -> None:
    """Refuse a MODEL that cannot be one, before anything heavy is loaded.

    Args:
        elsewhere: a model's folder or file need not be on this machine.

    Raises:
        BadInput: a path that does not exist, wrong parameters, or a name that holds a key.
    """
    key_names.check_no_secret(model)
    kind, rest = split_kind(model)
    if not model.strip():
        raise BadInput(
            "model '': is empty; give a Hub id, a folder, a .gguf file, "
            "or one of tiny:, simulated:, replay:, predictions:, lm-eval:, openai:"
        )
    if ELSEWHERE.match(model):
        raise BadInput(f"model {model}: is another tool's spelling; here it is {_respelt(model)}")
    if kind == "simulated":
        from bench.scorers.stand_ins.simulated import parse

        parse(rest)
    elif kind == "tiny":
        from bench.scorers.stand_ins import parse_recipe

        parse_recipe(rest)
    elif kind in FILES:
        path = as_path(rest)
        if not (path.is_file() or (kind == "replay" and path.is_dir())):
            raise BadInput(f"{rest}: no such file of {FILES[kind]} (model {model})")
    elif kind == "openai":
        key_names.parse(rest)
    elif kind:
        kinds = ("simulated", "tiny", *FILES, "openai", "a Hub id", "a folder", "a .gguf file")
        raise BadInput(f"model {model}: " + expected(kind, kinds, "kind"))
    elif not elsewhere and not hub.parse(model) and not as_path(model).exists():
        raise BadInput(
            f"{model}: no such model folder or file; a Hub id has the form NAME or "
            "ORGANISATION/NAME, and may end in @REVISION"
        )


def _respelt(model: str) -> str:
    """Write `pretrained=NAME,revision=COMMIT` as options of this command."""
    given = dict(part.split("=", 1) for part in model.split(",") if "=" in part)
    name = given.pop("pretrained", "") or given.pop("model", "") or "NAME"
    if revision := given.pop("revision", ""):
        name += f"@{revision}"
    url, adapter = given.pop("base_url", ""), given.pop("peft", "")
    if url:
        name = f"openai:{name}@{re.sub('/(chat/)?completions/?$', '', url)}"
    spelt = f"--model {adapter} --base {name}" if adapter else f"--model {name}"
    others = f"; for {', '.join(given)} see `bench run --help`" if given else ""
    return f"`{spelt}`{others}"


def content(model: str) -> str | None:
    """Hash the files of `model`; None for a name whose content is not on this machine."""
    kind, rest = split_kind(model)
    if kind == "tiny":
        from bench.scorers.stand_ins import VERSION

        return f"recipe {VERSION}"
    path = as_path(rest if kind in FILES else model)
    return fingerprint(path) if path.exists() else None


def writes_replies(model: str) -> bool:
    """Tell language models, which can follow options of generation, from files and formulas.

    Results of a batch followed them.
    """
    kind, rest = split_kind(model)
    return kind not in ("simulated", *FILES) or (kind == "replay" and batch.is_batch(as_path(rest)))


def split_kind(model: str) -> tuple[str, str]:
    """Split `KIND:REST`; the kind of a Hub id or a path, also one like `C:\\x`, is ""."""
    kind, colon, rest = model.partition(":")
    return (kind, rest) if colon and not DRIVE.match(model) else ("", model)
