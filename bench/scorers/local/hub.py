"""Find a model's files: a folder, a GGUF file, or a model of the Hub, `NAME` or `NAME@REVISION`.

The commit of a Hub model is resolved first, with one request. All of its files are then taken from
the cache's folder of that commit, so that a `main` that moves meanwhile cannot mix two models.
"""

import json
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.errors import BadInput
from bench.data.readers import as_path
from bench.scorers.local.file_hash import ADAPTER_CONFIG, fingerprint

COMMIT = re.compile(r"[0-9a-f]{40}")
ADAPTER_WEIGHTS = "adapter_model.safetensors"
WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
# The beginning of what `git clone` leaves in place of a large file without git-lfs.
POINTER = b"version https://git-lfs.github.com/spec/"
# Files that torch pickles weights into.
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
# Seconds that the Hub may take to resolve a revision.
TIMEOUT = 5.0
ID = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([^\s@]+))?", re.ASCII)
# Configuration, vocabularies, templates and code; weights are named by an index among them.
SMALL_FILES = [
    f"*.{kind}"
    for kind in ("json", "txt", "jinja", "model", "tiktoken", "spm", "bpe", "codes", "py")
]
# More layers than any model has; they would all be built before missing weights are noticed.
MAX_LAYERS = 2000


class Reference(NamedTuple):
    """A repository of the Hub, and a branch, tag or commit; None stands for `main`."""

    name: str
    revision: str | None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


class Location(NamedTuple):
    """Where a model's files are.

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
    """Return `model` as NAME@REVISION; refuse what has no revisions, or names another one."""
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


def locate(model: str) -> Location:
    """Find the files of `model`; those of a Hub id are downloaded.

    Raises:
        BadInput: there is no checkpoint, or a pickled one.
    """
    path = Path(model).expanduser()
    if reference := parse(model):
        folder = _snapshot(reference)
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


def is_here(model: str, base: str | None = None) -> bool:
    """Tell whether the files of `model` are on this machine, complete; nothing is downloaded.

    `base` is the base model of an adapter, if it is not the one that the adapter names.
    """
    reference = parse(model)
    folder = _cached(reference) if reference else Path(model).expanduser()
    if folder is None or not folder.exists() or (reference and _missing(folder)):
        return False
    if not (folder / ADAPTER_CONFIG).is_file():
        return True
    name = base
    with suppress(OSError, ValueError, LookupError, TypeError):
        config = json.loads((folder / ADAPTER_CONFIG).read_text("utf-8"))
        name = name or str(config["base_model_name_or_path"])
    return bool(name) and is_here(str(name))


def base_of(model: str, files: Location, given: str | None = None) -> Location | None:
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
    name, revision = given or "", None
    if not given:
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            config = json.loads((folder / ADAPTER_CONFIG).read_text("utf-8"))
            name, revision = str(config["base_model_name_or_path"] or ""), config.get("revision")
    if not name:
        raise BadInput(f"{adapter} that names no base model; give it with --base")
    try:
        base = locate(at_revision(name, revision) if parse(name) else name)
    except BadInput as error:
        part = "" if given else f" (the base model that {model} names; --base gives another)"
        raise BadInput(f"{error}{part}") from None
    check_whole(name, base.path)
    return base


def no_adapter(model: str, base: str) -> BadInput:
    """Say that a model has no base model."""
    return BadInput(f"--base {base}: model {model} is no adapter; leave the option out")


def check_whole(model: str, path: str) -> None:
    """Raise BadInput if the folder holds an adapter, where a complete model is needed."""
    if (Path(path) / ADAPTER_CONFIG).is_file():
        raise BadInput(
            f"{model}: is an adapter ({ADAPTER_CONFIG}) where a complete model is needed; merge it "
            "into its base (peft's `merge_and_unload`, `save_pretrained`) and give that folder"
        )


def check_files(model: str, path: str, config: Any, options: dict[str, Any]) -> None:
    """Refuse a checkpoint that would have transformers read anything but safetensors in it."""
    layers = getattr(config.get_text_config(), "num_hidden_layers", None)
    if isinstance(layers, int) and layers > MAX_LAYERS:
        raise BadInput(f"{model}: has {layers:,} layers; expected at most {MAX_LAYERS:,}")
    if "gguf_file" in options:
        return
    index = Path(path) / WEIGHTS_INDEX
    shards = json.loads(index.read_text("utf-8"))["weight_map"].values() if index.is_file() else ()
    for name in shards:
        if Path(name).suffix != ".safetensors":
            raise _pickled(model, f"{name} in {WEIGHTS_INDEX}")
        if Path(name).name != name:
            raise BadInput(f"{model}: {WEIGHTS_INDEX} names {name}, which is outside its folder")


def check_pointers(model: str, files: Location) -> None:
    """Refuse a checkpoint in which a file that is needed is a pointer of git-lfs."""
    folder = Path(files.path)
    file = files.options.get("gguf_file")
    names = [file] if file else _weights(folder)
    small = [] if file else [path.name for kind in SMALL_FILES for path in folder.glob(kind)]
    for name in (*names, *small):
        path = folder / name
        if not path.is_file():
            continue
        with path.open("rb") as content:
            is_pointer = content.read(len(POINTER)) == POINTER
        if is_pointer:
            raise BadInput(
                f"{model}: {name} is a git-lfs pointer instead of the file; fetch it with "
                "`git lfs pull`"
            )


def _snapshot(reference: Reference) -> Path:
    """Download a model's files to the cache's folder of one commit.

    Without a network, with HF_HUB_OFFLINE, and for a complete commit the cache is used as it is.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RevisionNotFoundError

    from bench.data.hub_client import explain

    def failure(error: Exception, without_answer: str) -> BadInput:
        answered = isinstance(error, HfHubHTTPError | HFValidationError)
        prefix = "" if answered else without_answer
        return BadInput(f"{reference}: {prefix}{explain(error, *reference)}")

    name, revision = reference
    cached = _cached(reference)
    if cached and COMMIT.fullmatch(str(revision)) and not _missing(cached):
        return cached
    try:
        info = HfApi().model_info(name, revision=revision, timeout=TIMEOUT)
    except Exception as error:  # the client's own errors, and those of its HTTP library
        if cached and not isinstance(error, RevisionNotFoundError):
            return _check_complete(reference, cached, [])
        raise failure(error, "is not in the local cache, and ") from None
    try:
        folder = Path(
            snapshot_download(
                name, revision=revision, allow_patterns=SMALL_FILES, ignore_patterns="*/*"
            )
        )
        if missing := _missing(folder):
            snapshot_download(name, revision=folder.name, allow_patterns=missing)
    except Exception as error:
        raise failure(
            error, "its download broke off, and the same command continues it: "
        ) from None
    return _check_complete(reference, folder, [file.rfilename for file in info.siblings or ()])


def _cached(reference: Reference) -> Path | None:
    """Return the cache's folder of a model, which can lack files; None if there is none."""
    from huggingface_hub import snapshot_download

    from bench.data.hub_client import quiet

    quiet()
    name, revision = reference
    # Not in the cache, or no valid id, which the Hub's own answer explains.
    with suppress(Exception):
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=[], local_files_only=True)
        )
    return None


def _missing(folder: Path) -> list[str]:
    """List the files of weights that a folder of small files needs and lacks."""
    return [name for name in _weights(folder) if not (folder / name).is_file()]


def _weights(folder: Path) -> list[str]:
    """List the files of weights that the small files of a folder name."""
    names = [WEIGHTS]
    if (folder / ADAPTER_CONFIG).is_file():
        names = [ADAPTER_WEIGHTS]
    elif (folder / WEIGHTS_INDEX).is_file() and not (folder / WEIGHTS).is_file():
        # A broken index is refused where the folder is loaded.
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            index = json.loads((folder / WEIGHTS_INDEX).read_text("utf-8"))
            names = sorted(set(map(str, index["weight_map"].values())))
    return names


def _check_complete(reference: Reference, folder: Path, files: list[str]) -> Path:
    """Return `folder` if it holds what a model needs; `files` are the repository's, if known."""
    missing = _missing(folder)
    if not missing and any((folder / name).is_file() for name in ("config.json", ADAPTER_CONFIG)):
        return folder
    lacking = missing[0] if missing else "config.json"
    ggufs = [name for name in files if missing and name.endswith(".gguf")]
    pickles = [name for name in files if missing and Path(name).suffix in PICKLES]
    if pickles and not ggufs:
        raise _pickled(str(reference), pickles[0])
    problem = f"{lacking} is not in the local cache, and the Hub cannot be reached for it"
    if ggufs:
        download = f"`hf download {reference.name} {ggufs[0]}`"
        problem = f"holds GGUF files; download one ({download}) and give the file"
    elif files:
        problem = f"holds no {lacking}, so it is no model of transformers"
    raise BadInput(f"{reference}: {problem}")


def _pickled(model: str, file: str) -> BadInput:
    return BadInput(
        f"{model}: its weights are pickled ({file}), which can run code when they are loaded; "
        "convert them to safetensors (docs/security.md)"
    )
