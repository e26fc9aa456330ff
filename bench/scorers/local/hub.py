"""Find a model's files: a folder, a GGUF file, or a model of the Hub, `NAME` or `NAME@REVISION`.

huggingface_hub resolves a revision to a commit, and we take all files of a Hub model from the
cache's folder of this commit, so that a moving `main` cannot mix two models. Other models are
identified by a hash of their files.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from bench.core.errors import BadInput
from bench.core.files import read_json
from bench.core.progress import say
from bench.data.readers import as_path

COMMIT = re.compile(r"[0-9a-f]{40}")
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
# The beginning of a placeholder for a large file after `git clone` without git-lfs.
POINTER = b"version https://git-lfs.github.com/spec/"
# Kinds of files that we load; others may be such placeholders.
READ = (".safetensors", ".json", ".model", ".gguf")
# Weights that we do not read from a folder, by the end of a file's name.
FORMATS = {
    ".gguf": "llama.cpp",
    ".onnx": "ONNX",
    ".h5": "TensorFlow",
    ".ckpt.index": "TensorFlow",
    ".tflite": "TensorFlow Lite",
    ".msgpack": "Flax",
    ".mlmodel": "Core ML",
    ".mlpackage": "Core ML",
    ".ot": "Rust",
    ".pdparams": "Paddle",
    ".nemo": "NeMo",
    "openvino_model.xml": "OpenVINO",
    ".safetensors": "a part or variant",
}
# Files that torch pickles weights into.
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
ID = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([^\s@]+))?", re.ASCII)
# Weights, configuration, vocabularies, templates and code.
KINDS = ("safetensors", "json", "txt", "jinja", "model", "tiktoken", "spm", "bpe", "codes", "py")
FILES = [f"*.{kind}" for kind in KINDS]
# Subfolders, and a second copy of the weights, which transformers does not read.
UNUSED_FILES = ["*/*", "consolidated*"]

# The beginning of a revision that is a hash of files.
HASH = "sha256:"
# We report a larger file, because its hash takes seconds.
REPORTED_BYTES = 1 << 30


class Location(NamedTuple):
    """The folder of a model's files, and its identity."""

    name: str  # the model as it was given, without a revision
    path: str  # of the folder
    options: dict[str, Any]  # of transformers, to name a GGUF file in it
    commit: str | None = None  # of a Hub model

    @property
    def identity(self) -> dict[str, str]:
        """The model's name and its commit, or a hash of its files."""
        file = Path(self.path, self.options.get("gguf_file", ""))
        return {"id": self.name, "revision": self.commit or fingerprint(file)}


def parse(model: str) -> tuple[str, str | None] | None:
    """Return the repository of the Hub that `model` names, and its branch, tag or commit, if any.

    None means that it is a folder, a file, or of another kind.
    """
    match = ID.fullmatch(model)
    if not match or model.endswith(".gguf") or model.startswith(".") or as_path(model).exists():
        return None
    return match[1], match[2]


def at_commit(model: str, revision: object) -> str:
    """Return `model` at a recorded commit; `model` itself without one."""
    commit = COMMIT.fullmatch(str(revision))
    return f"{model.partition('@')[0]}@{revision}" if commit else model


def locate(model: str, complete: bool = False) -> Location:
    """Find the files of `model`, and check them; `complete` refuses an adapter."""
    path = Path(model).expanduser()
    if reference := parse(model):
        folder = _snapshot(model, *reference)
        files = Location(reference[0], str(folder), {}, folder.name)
    elif model.endswith(".gguf"):
        files = Location(model, str(path.parent), {"gguf_file": path.name})
    elif path.is_dir():
        files = Location(model, str(path), {})
    else:
        _refuse_pickles(model, [path.name])
        raise BadInput(f"{model}: is no model; give a folder, a .gguf file, or a Hub id")
    _check(model, files)
    if complete and (Path(files.path) / ADAPTER_CONFIG).is_file():
        raise BadInput(
            f"{model}: is an adapter ({ADAPTER_CONFIG}) where a complete model is needed; merge it "
            "into its base (peft's `merge_and_unload`, `save_pretrained`) and give that folder"
        )
    return files


def base_of(model: str, files: Location, base: str | None = None) -> Location | None:
    """Find the base model of an adapter, or `base`; None for a complete model."""
    folder = Path(files.path)
    if files.options or not (folder / ADAPTER_CONFIG).is_file():
        if base:
            raise BadInput(f"--base {base}: model {model} is no adapter; leave the option out")
        return None
    adapter = f"{model}: is an adapter ({ADAPTER_CONFIG})"
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise BadInput(f"{adapter} without {ADAPTER_WEIGHTS}; pickled weights are not read")
    if not find_spec("peft"):
        raise BadInput(
            f"{adapter}, for which peft is missing; `pip install 'bias-workbench[adapters]'`, or "
            "merge it into its base model and give the folder of the result"
        )
    if base:
        return locate(base, complete=True)
    config = read_settings(folder / ADAPTER_CONFIG)
    name = str(config.get("base_model_name_or_path") or "")
    if not name:
        raise BadInput(f"{adapter} that names no base model; give it with --base")
    try:
        revision = config.get("revision") if parse(name) else None
        return locate(f"{name}@{revision}" if revision else name, complete=True)
    except BadInput as error:
        raise BadInput(
            f"{error} (the base model that {model} names; --base gives another)"
        ) from None


def shard_names(folder: Path) -> list[str]:
    """Return the names of the files into which weights are split."""
    index = folder / WEIGHTS_INDEX
    weight_map = read_settings(index).get("weight_map", {}) if index.is_file() else {}
    return sorted(set(weight_map.values()))


def _check(model: str, files: Location) -> None:
    """Refuse git-lfs pointers, pickles, a damaged setting, and a folder without a checkpoint."""
    folder, gguf = Path(files.path), files.options.get("gguf_file")
    names = [gguf] if gguf else sorted(path.name for path in folder.iterdir() if path.is_file())
    for name in names:
        with (folder / name).open("rb") as content:
            if Path(name).suffix in READ and content.read(len(POINTER)) == POINTER:
                problem = f"{name} is a git-lfs pointer instead of the file"
                raise BadInput(f"{model}: {problem}; fetch it with `git lfs pull`")
    if gguf:
        return
    if not {ADAPTER_CONFIG, WEIGHTS} & set(names):
        shards = shard_names(folder)
        _refuse_pickles(model, shards)
        if not shards:
            nested = [f"{path.parent.name}/{path.name}" for path in sorted(folder.glob("*/*"))]
            _refuse_other_weights(model, [*names, *nested], f"give the file itself: {folder}/FILE")
    if not {"config.json", ADAPTER_CONFIG} & set(names):
        raise BadInput(f"{model}: has no config.json, so it holds no transformers checkpoint")
    if "generation_config.json" in names:
        # transformers would ignore a damaged file, and decode otherwise.
        read_settings(folder / "generation_config.json")


def _snapshot(model: str, name: str, revision: str | None) -> Path:
    """Return the cache's folder of one commit, with the files that a model needs.

    Without a network, or with HF_HUB_OFFLINE, we use a complete folder.
    """
    from huggingface_hub import HfApi, snapshot_download

    from bench.data.hub_client import quietly

    options = {"allow_patterns": FILES, "ignore_patterns": UNUSED_FILES}
    with quietly(BadInput, model, name, revision):
        folder = Path(snapshot_download(name, revision=revision, **options))
        is_model = any(folder.glob("*.safetensors"))
        files = [] if is_model else HfApi().list_repo_files(name, revision=folder.name)
    if not is_model:
        _refuse_other_weights(model, files, f"give one (`hf download {name} FILE`)")
    return folder


def read_settings(path: Path) -> dict[str, Any]:
    """Read a JSON object; refuse a damaged one, because transformers would ignore it."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: is no JSON object ({error}); fetch it anew") from None


def _refuse_pickles(model: str, files: Iterable[str]) -> None:
    for file in files:
        if Path(file).suffix in PICKLES:
            remedy = "convert them to safetensors (docs/security.md)"
            raise BadInput(
                f"{model}: its weights are pickled ({file}), which can run code; {remedy}"
            )


def _refuse_other_weights(model: str, files: Sequence[str], gguf: str) -> NoReturn:
    """Refuse a model without safetensors; name the weights that it has, or how to get a GGUF."""
    _refuse_pickles(model, [name for name in files if "openvino" not in name])
    remedies = {
        ".gguf": gguf,
        ".safetensors": f"give the whole checkpoint, or name the file {WEIGHTS} if it is complete",
    }
    original = "give the PyTorch checkpoint that they were made from, as safetensors"
    for ending, program in FORMATS.items():
        for file in files:
            if file.endswith(ending):
                remedy = remedies.get(ending, original).replace("FILE", file)
                problem = f"holds weights of {program} ({file}) and no {WEIGHTS}"
                raise BadInput(f"{model}: {problem}; {remedy}")
    raise BadInput(f"{model}: holds no {WEIGHTS}, so it is no model of transformers")


def fingerprint(path: Path) -> str:
    """Hash names and content of a file or a model's folder, with an adapter's local base model."""
    named = [(path.name, path)]
    if path.is_dir():
        # Subfolders hold nothing else that we load.
        nested = sorted(path.glob("*/*.py")) + sorted(path.glob("*/*.jinja"))
        files = sorted(path.iterdir()) + nested
        named = [(file.relative_to(path).as_posix(), file) for file in files]
        # Loading an adapter reports its faults.
        if base := read_json(path / ADAPTER_CONFIG).get("base_model_name_or_path"):
            folder = as_path(str(base))
            bases = sorted(folder.iterdir()) if folder.is_dir() else [folder]
            named += [(f"base {file.name}", file) for file in bases]
    states = []
    for name, file in named:
        if file.is_file():
            state = file.stat()
            # `cp -p` keeps the time of modification, but no copy that of the last change.
            times = state.st_mtime_ns, state.st_ctime_ns
            states.append((name, file.resolve(), state.st_size, *times))
    return _hash(*states)


# A command needs the hash several times: before loading the model, and for `run.json`.
@lru_cache
def _hash(*files: tuple[Any, ...]) -> str:
    """Hash files by name, path and size; their times are keys of the cache, for changed files."""
    total = hashlib.sha256()
    for name, path, size, *_ in files:
        if size >= REPORTED_BYTES:
            say(f"{path}: hashing {size / 1e9:.1f} GB to identify the file")
        total.update(f"{name}:{size}".encode())
        with path.open("rb") as stream:
            while part := stream.read(1 << 20):
                total.update(part)
    return f"{HASH}{total.hexdigest()[:16]}"
