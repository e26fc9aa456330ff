"""Hash the files that decide a model's answers, over their complete content."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from bench.core.progress import say
from bench.data.readers import as_path

ADAPTER_CONFIG = "adapter_config.json"
# Bytes up to which files enter a fingerprint as they are.
SMALL = 1 << 20
# Prefixes of fingerprints: of small files only; and of others, which are hashed in parts.
SMALL_FILES, PARTS = "sha256:", "sha256-parts:"
# Bytes of a part; another number would change the hash of every larger file.
PART = 1 << 26
# Bytes from which a file is reported, because its hash takes seconds.
REPORTED = 1 << 30


def fingerprint(path: Path) -> str:
    """Hash names and content of a file or a model's folder; an adapter's also of a local base."""
    total, prefix = hashlib.sha256(), SMALL_FILES
    for name, file in _files(path):
        state = file.stat()
        total.update(f"{name}:{state.st_size}".encode())
        if state.st_size > SMALL:
            prefix = PARTS
            total.update(_hash_large(file.resolve(), state.st_size, state.st_mtime_ns))
        else:
            total.update(file.read_bytes())
    return prefix + total.hexdigest()[:16]


def is_fingerprint(text: str) -> bool:
    """Tell a fingerprint of files from other ways to name a model's content."""
    return text.startswith((SMALL_FILES, PARTS))


def _files(path: Path) -> Iterable[tuple[str, Path]]:
    """List the files of a model, or the one file that `path` is, with their names."""
    if not path.is_dir():
        return [(path.name, path)]
    # Code and chat templates may be one folder down; other files there are not read.
    nested = sorted(file for kind in ("py", "jinja") for file in path.glob(f"*/*.{kind}"))
    files = [*sorted(path.iterdir()), *nested]
    named = [(file.relative_to(path).as_posix(), file) for file in files]
    # A fault of an adapter is reported when it is loaded.
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        config = json.loads((path / ADAPTER_CONFIG).read_text("utf-8"))
        base = as_path(str(config["base_model_name_or_path"]))
        bases = sorted(base.iterdir()) if base.is_dir() else [base]
        named += [(f"base {file.name}", file) for file in bases]
    return [(name, file) for name, file in named if file.is_file()]


# A command hashes the files of a model several times: before it is loaded, and for `run.json`.
@lru_cache
def _hash_large(file: Path, size: int, modified: int) -> bytes:
    """Hash a file in parts; `size` and `modified` tell a changed file from the one before."""
    if size >= REPORTED:
        say(f"{file}: hashing {size / 1e9:.1f} GB to identify the file")
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while part := stream.read(PART):
            digest.update(hashlib.sha256(part).digest())
    return digest.digest()
