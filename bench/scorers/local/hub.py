"""Models of the Hub: `NAME` or `NAME@REVISION`, read from the local cache at one commit.

The commit is resolved first, with one request. All files of the model are then taken from the
cache's folder of that commit, so that a `main` that moves meanwhile cannot mix two models.
"""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.core.errors import BadInput
from bench.data.readers import as_path

COMMIT = re.compile(r"[0-9a-f]{40}")
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
# Files that torch pickles weights into.
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
# Seconds that the Hub may take to resolve a revision.
TIMEOUT = 5.0
ID = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([^\s@]+))?", re.ASCII)
# Configuration, vocabularies, templates and code; weights are named by an index among them.
SMALL_FILES = [
    "*.json",
    "*.txt",
    "*.jinja",
    "*.model",
    "*.tiktoken",
    "*.spm",
    "*.bpe",
    "*.codes",
    "*.py",
]


class Reference(NamedTuple):
    """A repository of the Hub, and a branch, tag or commit; None stands for `main`."""

    name: str
    revision: str | None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


def parse(model: str) -> Reference | None:
    """Read the repository that `model` names; None for a folder, a file, or another kind."""
    match = ID.fullmatch(model)
    if not match or model.endswith(".gguf") or model.startswith(".") or as_path(model).exists():
        return None
    return Reference(match[1], match[2])


def at_revision(model: str, revision: str | None) -> str:
    """Return `model` as NAME@REVISION.

    Raises:
        BadInput: `model` has no revisions, or names another one itself.
    """
    if not revision:
        return model
    reference = parse(model)
    if not reference:
        raise BadInput(
            f"--revision {revision}: is for a Hub id only, and the model is {model}; "
            "leave the option out"
        )
    if reference.revision not in (None, revision):
        raise BadInput(
            f"--revision {revision}: {model} names another revision; give one of the two"
        )
    result = str(Reference(reference.name, revision))
    if not ID.fullmatch(result):
        raise BadInput(f"--revision {revision!r}: expected a branch, a tag or a commit")
    return result


def at_commit(model: str, revision: object) -> str:
    """Return `model` at the commit that a record names; `model` itself if it names none."""
    if not COMMIT.fullmatch(str(revision)):
        return model
    return f"{model.partition('@')[0]}@{revision}"


def snapshot(reference: Reference) -> Path:
    """Download a model's files to the cache's folder of one commit.

    Without a network, with HF_HUB_OFFLINE, and for a complete commit the cache is used as it is.

    Raises:
        BadInput: the repository or revision does not exist, may not be read, has no weights in
            safetensors, or neither the cache nor the Hub has the files.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import RevisionNotFoundError

    from bench.data.hub_client import quiet

    quiet()
    name, revision = reference
    cached = _cached(reference)
    if cached and COMMIT.fullmatch(str(revision)) and not _missing(cached):
        return cached
    try:
        info = HfApi().model_info(name, revision=revision, timeout=TIMEOUT)
    except Exception as error:  # the client's own errors, and those of its HTTP library
        if cached and not isinstance(error, RevisionNotFoundError):
            return _check_complete(reference, cached, [])
        raise BadInput(_explain(reference, error, "is not in the local cache, and ")) from None
    try:
        folder = Path(
            snapshot_download(
                name, revision=revision, allow_patterns=SMALL_FILES, ignore_patterns="*/*"
            )
        )
        if missing := _missing(folder):
            snapshot_download(name, revision=folder.name, allow_patterns=missing)
    except Exception as error:
        prefix = "its download broke off, and the same command continues it: "
        raise BadInput(_explain(reference, error, prefix)) from None
    return _check_complete(reference, folder, [file.rfilename for file in info.siblings or ()])


def pickled(model: str, file: str) -> str:
    """Return the message for a model whose weights are pickled."""
    return (
        f"{model}: its weights are pickled ({file}), which can run code when they are loaded; "
        "convert them to safetensors (docs/security.md)"
    )


def _cached(reference: Reference) -> Path | None:
    """Return the cache's folder of a revision as it was last seen; None if there is none."""
    from huggingface_hub import snapshot_download

    name, revision = reference
    # Not in the cache, or no valid id, which the Hub's own answer explains.
    with suppress(Exception):
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=[], local_files_only=True)
        )
    return None


def _missing(folder: Path) -> list[str]:
    """List the files of weights that a folder of small files needs and lacks."""
    names = [WEIGHTS]
    if (folder / ADAPTER_CONFIG).is_file():
        names = [ADAPTER_WEIGHTS]
    elif (folder / WEIGHTS_INDEX).is_file() and not (folder / WEIGHTS).is_file():
        # A broken index is refused where the folder is loaded.
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            index = json.loads((folder / WEIGHTS_INDEX).read_text("utf-8"))
            names = sorted(set(map(str, index["weight_map"].values())))
    return [name for name in names if not (folder / name).is_file()]


def _check_complete(reference: Reference, folder: Path, files: list[str]) -> Path:
    """Return `folder` if it holds what a model needs.

    Args:
        files: names of the repository's files; empty if they are unknown.

    Raises:
        BadInput: something is missing.
    """
    missing = _missing(folder)
    if not missing and any((folder / name).is_file() for name in ("config.json", ADAPTER_CONFIG)):
        return folder
    lacking = missing[0] if missing else "config.json"
    pickles = [name for name in files if Path(name).suffix in PICKLES]
    ggufs = [name for name in files if name.endswith(".gguf")]
    if missing and ggufs:
        message = (
            f"holds GGUF files; download one (`hf download {reference.name} {ggufs[0]}`) "
            "and give the file"
        )
    elif missing and pickles:
        raise BadInput(pickled(str(reference), pickles[0]))
    elif files:
        message = f"holds no {lacking}, so it is no model of transformers"
    else:
        message = f"{lacking} is not in the local cache, and the Hub cannot be reached for it"
    raise BadInput(f"{reference}: {message}")


def _explain(reference: Reference, error: Exception, prefix: str) -> str:
    """Return the message for a failed download, with `prefix` if the Hub did not answer."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    from bench.data.hub_client import explain

    answered = isinstance(error, HfHubHTTPError | HFValidationError)
    return f"{reference}: {'' if answered else prefix}{explain(error, *reference)}"
