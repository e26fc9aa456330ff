"""Find a model's files: a folder, a GGUF file, or a model of the Hub, `NAME` or `NAME@REVISION`.

huggingface_hub resolves a revision to a commit, and all files of a Hub model are taken from the
cache's folder of that commit, so that a `main` that moves meanwhile cannot mix two models.
"""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.errors import BadInput
from bench.data.readers import as_path
from bench.scorers.local.file_hash import ADAPTER_CONFIG, fingerprint

COMMIT = re.compile(r"[0-9a-f]{40}")
ADAPTER_WEIGHTS = "adapter_model.safetensors"
WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
# The beginning of a file that `git clone` writes in place of a large one without git-lfs.
POINTER = b"version https://git-lfs.github.com/spec/"
# Files that torch pickles weights into.
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
ID = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([^\s@]+))?", re.ASCII)
# Weights, configuration, vocabularies, templates and code.
KINDS = ("safetensors", "json", "txt", "jinja", "model", "tiktoken", "spm", "bpe", "codes", "py")
FILES = [f"*.{kind}" for kind in KINDS]
# Files in folders, and a second copy of the weights that transformers does not read.
UNUSED_FILES = ["*/*", "consolidated*"]


class Reference(NamedTuple):
    """A repository of the Hub, and a branch, tag or commit; None stands for `main`."""

    name: str
    revision: str | None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


class Location(NamedTuple):
    """The place of a model's files.

    Attributes:
        name: the model as it was given, without a revision.
        path: the folder.
        options: of transformers, to name a GGUF file in it.
        commit: of a Hub model.
    """

    name: str
    path: str
    options: dict[str, Any]
    commit: str | None = None

    @property
    def identity(self) -> dict[str, str]:
        """The model's name and its commit, or a hash of its files."""
        file = Path(self.path, self.options.get("gguf_file", ""))
        return {"id": self.name, "revision": self.commit or fingerprint(file)}


def parse(model: str) -> Reference | None:
    """Read the repository that `model` names; None for a folder, a file, or another kind."""
    match = ID.fullmatch(model)
    if not match or model.endswith(".gguf") or model.startswith(".") or as_path(model).exists():
        return None
    return Reference(match[1], match[2])


def at_revision(model: str, revision: str | None) -> str:
    """Return `model` as NAME@REVISION; refuse a model without revisions, or of another one."""
    if not revision:
        return model
    reference = parse(model)
    problem = ""
    if not reference:
        problem = f"is for a Hub id only, and the model is {model}; leave the option out"
    elif reference.revision not in (None, revision):
        problem = f"{model} names another revision; give one of the two"
    elif not ID.fullmatch(f"{reference.name}@{revision}"):
        problem = "expected a branch, a tag or a commit"
    if problem or not reference:
        raise BadInput(f"--revision {revision}: {problem}")
    return f"{reference.name}@{revision}"


def at_commit(model: str, revision: object) -> str:
    """Return `model` at the commit that a record names; `model` itself if it names none."""
    commit = COMMIT.fullmatch(str(revision))
    return f"{model.partition('@')[0]}@{revision}" if commit else model


def locate(model: str, local_files_only: bool = False) -> Location:
    """Find the files of `model`; a Hub model is downloaded unless `local_files_only`.

    Raises:
        BadInput: there is no checkpoint, or a pickled one.
    """
    path = Path(model).expanduser()
    if reference := parse(model):
        folder = _snapshot(reference, local_files_only)
        return Location(reference.name, str(folder), {}, folder.name)
    if model.endswith(".gguf"):
        return Location(model, str(path.parent), {"gguf_file": path.name})
    if path.is_dir():
        if not any((path / name).is_file() for name in ("config.json", ADAPTER_CONFIG)):
            ggufs = sorted(path.glob("*.gguf"))
            hint = f"; give the file itself: {ggufs[0]}" if ggufs else ""
            raise BadInput(
                f"{model}: the folder has no config.json, so it holds no transformers "
                f"checkpoint{hint}"
            )
        pickles = sorted(file.name for file in path.iterdir() if file.suffix in PICKLES)
        if pickles and not any(path.glob("*.safetensors*")):
            raise _pickled(model, pickles[0])
        return Location(model, str(path), {})
    if path.is_file() and path.suffix in PICKLES:
        raise _pickled(model, path.name)
    problem = "is a file, but not a .gguf file" if path.is_file() else "is no model"
    raise BadInput(f"{model}: {problem}; give a folder, a .gguf file, or a Hub id")


def base_of(
    model: str, files: Location, given: str | None = None, local_files_only: bool = False
) -> Location | None:
    """Find the base model of an adapter, which needs peft; None for a complete model.

    `given` is the base model if it is not the one that the adapter names.
    """
    folder = Path(files.path)
    if files.options or not (folder / ADAPTER_CONFIG).is_file():
        if given:
            raise no_adapter(model, given)
        return None
    adapter = f"{model}: is an adapter ({ADAPTER_CONFIG})"
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise BadInput(f"{adapter} without {ADAPTER_WEIGHTS}; pickled weights are not read")
    if not find_spec("peft"):
        raise BadInput(
            f"{adapter}, for which peft is missing; `pip install 'bias-workbench[adapters]'`, or "
            "merge it into its base model and give the folder of the result"
        )
    config = _read_json(folder / ADAPTER_CONFIG)
    name = given or str(config.get("base_model_name_or_path") or "")
    if not name:
        raise BadInput(f"{adapter} that names no base model; give it with --base")
    try:
        revision = None if given else config.get("revision")
        base = locate(at_revision(name, revision) if parse(name) else name, local_files_only)
    except BadInput as error:
        part = "" if given else f" (the base model that {model} names; --base gives another)"
        raise BadInput(f"{error}{part}") from None
    check_whole(name, base.path)
    return base


def no_adapter(model: str, base: str) -> BadInput:
    """Say that a model has no base model."""
    return BadInput(f"--base {base}: model {model} is no adapter; leave the option out")


def check_whole(model: str, path: str) -> None:
    """Raise BadInput if the folder holds an adapter and no complete model."""
    if (Path(path) / ADAPTER_CONFIG).is_file():
        raise BadInput(
            f"{model}: is an adapter ({ADAPTER_CONFIG}) where a complete model is needed; merge it "
            "into its base (peft's `merge_and_unload`, `save_pretrained`) and give that folder"
        )


def check_files(model: str, files: Location) -> None:
    """Refuse a checkpoint with git-lfs pointers, missing shards, pickles or a broken setting."""
    from huggingface_hub.utils import filter_repo_objects

    folder, gguf = Path(files.path), files.options.get("gguf_file")
    inside = sorted(path.name for path in folder.iterdir() if path.is_file())
    read = filter_repo_objects(inside, allow_patterns=FILES, ignore_patterns=UNUSED_FILES)
    for name in [gguf] if gguf else read:
        with (folder / name).open("rb") as content:
            is_pointer = content.read(len(POINTER)) == POINTER
        if is_pointer:
            raise BadInput(
                f"{model}: {name} is a git-lfs pointer instead of the file; fetch it with "
                "`git lfs pull`"
            )
    index, generation = folder / WEIGHTS_INDEX, folder / "generation_config.json"
    if gguf is None and index.is_file() and not (folder / WEIGHTS).is_file():
        for name in sorted(set(_read_json(index).get("weight_map", {}).values())):
            if Path(name).suffix in PICKLES:
                raise _pickled(model, f"{name} in {WEIGHTS_INDEX}")
            if not (folder / name).is_file():
                raise BadInput(f"{model}: lacks {name}, which {WEIGHTS_INDEX} names; fetch it anew")
    if generation.is_file():
        _read_json(generation)  # transformers would go on without it, and decode in another way


def _snapshot(reference: Reference, local_files_only: bool) -> Path:
    """Return the cache's folder of one commit, with the files that a model needs.

    Without a network, and with HF_HUB_OFFLINE, a complete folder is used as it is.
    """
    from huggingface_hub import HfApi, snapshot_download

    from bench.data.hub_client import explain, quiet

    quiet()
    name, revision = reference
    patterns = {"allow_patterns": FILES, "ignore_patterns": UNUSED_FILES}
    try:
        folder = Path(
            snapshot_download(
                name, revision=revision, local_files_only=local_files_only, **patterns
            )
        )
        if any(folder.glob("*.safetensors")):
            return folder
        files = [] if local_files_only else HfApi().list_repo_files(name, revision=folder.name)
    except Exception as error:  # errors of the client, and of its HTTP library
        raise BadInput(f"{reference}: {explain(error, name, revision)}") from None
    if ggufs := [file for file in files if file.endswith(".gguf")]:
        download = f"`hf download {name} {ggufs[0]}`"
        raise BadInput(
            f"{reference}: holds GGUF files; download one ({download}) and give the file"
        )
    if pickles := [file for file in files if Path(file).suffix in PICKLES]:
        raise _pickled(str(reference), pickles[0])
    raise BadInput(f"{reference}: holds no {WEIGHTS}, so it is no model of transformers")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: is no JSON object ({error}); fetch it anew") from None


def _pickled(model: str, file: str) -> BadInput:
    return BadInput(
        f"{model}: its weights are pickled ({file}), which can run code when they are loaded; "
        "convert them to safetensors (docs/security.md)"
    )
