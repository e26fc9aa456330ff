"""Hash the complete content of the files that decide a model's answers."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from bench.core.progress import say
from bench.data.readers import as_path

ADAPTER_CONFIG = "adapter_config.json"
# We hash larger files in parts.
SMALL_BYTES = 1 << 20
# Prefixes of fingerprints of small files only, and of files with parts.
SMALL_FILES = "sha256:"
PARTS = "sha256-parts:"
# Another number would change the hash of every larger file.
PART_BYTES = 1 << 26
# We report a larger file, because its hash takes seconds.
REPORTED_BYTES = 1 << 30


def fingerprint(path: Path) -> str:
    """Hash names and content of a file or a model's folder, with an adapter's local base model."""
    total, prefix = hashlib.sha256(), SMALL_FILES
    for name, file in _files(path):
        state = file.stat()
        total.update(f"{name}:{state.st_size}".encode())
        if state.st_size > SMALL_BYTES:
            prefix = PARTS
            total.update(_hash_large(file.resolve(), state.st_size, state.st_mtime_ns))
        else:
            total.update(file.read_bytes())
    return prefix + total.hexdigest()[:16]


def is_fingerprint(text: str) -> bool:
    """Return whether a text is a fingerprint of files, and not a commit or a recipe."""
    return text.startswith((SMALL_FILES, PARTS))


def _files(path: Path) -> Iterable[tuple[str, Path]]:
    """List the files of a model, or the one file that `path` is, with their names."""
    if not path.is_dir():
        return [(path.name, path)]
    # In subfolders we hash only code and chat templates.
    nested = sorted(file for kind in ("py", "jinja") for file in path.glob(f"*/*.{kind}"))
    files = [*sorted(path.iterdir()), *nested]
    named = [(file.relative_to(path).as_posix(), file) for file in files]
    # Loading an adapter reports its faults.
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        config = json.loads((path / ADAPTER_CONFIG).read_text("utf-8"))
        base = as_path(str(config["base_model_name_or_path"]))
        bases = sorted(base.iterdir()) if base.is_dir() else [base]
        named += [(f"base {file.name}", file) for file in bases]
    return [(name, file) for name, file in named if file.is_file()]


# A command needs the hash of a model several times: before loading it, and for `run.json`.
@lru_cache
def _hash_large(file: Path, size: int, modified: int) -> bytes:
    """Hash a file in parts; `size` and `modified` are keys of the cache, for changed files."""
    if size >= REPORTED_BYTES:
        say(f"{file}: hashing {size / 1e9:.1f} GB to identify the file")
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while part := stream.read(PART_BYTES):
            digest.update(hashlib.sha256(part).digest())
    return digest.digest()
