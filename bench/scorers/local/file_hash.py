"""Hash the files that decide a model's answers, over their complete content.

Large files are hashed in parts by several threads, and their hashes are kept in the user's cache
folder, so that a checkpoint is read for it once.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import platformdirs

from bench.core.files import atomic_write
from bench.core.progress import say
from bench.data.readers import as_path

ADAPTER_CONFIG = "adapter_config.json"
# Up to this size, files enter a fingerprint as they are.
SMALL = 1 << 20
# Prefixes of fingerprints: of small files only; and of others, whose files are hashed in parts.
SMALL_FILES, PARTS = "sha256:", "sha256-parts:"
# Changing this number changes the hash of every larger file, and has to change PARTS.
PART = 1 << 26
BLOCK = 1 << 20
# More threads read no faster from a disk.
MAX_THREADS = 8
# A file of this size is reported, because its hash takes seconds.
REPORTED = 1 << 30
# A file may change again within one tick of the file system's clock, and keep its times.
SETTLED_NS = 2_000_000_000


def fingerprint(path: Path) -> str:
    """Hash names and content of a file or a model's folder; an adapter's also of a local base."""
    total, prefix = hashlib.sha256(), SMALL_FILES
    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        for name, file in _files(path):
            size = file.stat().st_size
            total.update(f"{name}:{size}".encode())
            if size > SMALL:
                prefix = PARTS
            total.update(_hash_large(file, pool) if size > SMALL else file.read_bytes())
    return prefix + total.hexdigest()[:16]


def is_fingerprint(text: str) -> bool:
    """Tell a fingerprint of files from other ways to name a model's content."""
    return text.startswith((SMALL_FILES, PARTS))


def incomparable(before: object, now: object) -> str:
    """Explain why two different fingerprints may be of the same files; "" if they are not.

    Earlier versions hashed the first mebibyte of each file.
    """
    if str(before).startswith(SMALL_FILES) and str(now).startswith(PARTS):
        return (
            "an earlier version recorded a hash of the first mebibyte of each file, which cannot "
            "show whether the files are the same"
        )
    return ""


def _files(path: Path) -> Iterable[tuple[str, Path]]:
    """List the files of a model, or the one file that `path` is, with their names."""
    if not path.is_dir():
        return [(path.name, path)]
    # Code and chat templates may be one folder down; other files there are not read.
    nested = sorted(file for kind in ("py", "jinja") for file in path.glob(f"*/*.{kind}"))
    files = [*sorted(path.iterdir()), *nested]
    named = [(file.relative_to(path).as_posix(), file) for file in files]
    # What is wrong with an adapter is reported when it is loaded.
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        config = json.loads((path / ADAPTER_CONFIG).read_text("utf-8"))
        base = as_path(str(config["base_model_name_or_path"]))
        bases = sorted(base.iterdir()) if base.is_dir() else [base]
        named += [(f"base {file.name}", file) for file in bases]
    return [(name, file) for name, file in named if file.is_file()]


def _hash_large(file: Path, pool: Executor) -> bytes:
    """Hash a file in parts, or take its hash from the cache."""
    before = _state(file)
    # Each file has its own cache file, so that several writers share none.
    name = hashlib.sha256(str(file.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    cache = platformdirs.user_cache_path("bias-workbench", appauthor=False)
    kept = cache / "file-hashes" / f"{name}.json"
    with suppress(OSError, ValueError, LookupError, TypeError):
        entry = json.loads(kept.read_text("utf-8"))
        if entry["state"] == before:
            return bytes.fromhex(entry["hash"])
    size = file.stat().st_size
    if size >= REPORTED:
        say(f"{file}: hashing {size / 1e9:.1f} GB to identify the file; this is done once")
    parts = pool.map(lambda start: _hash_part(file, start), range(0, size, PART))
    digest = hashlib.sha256(b"".join(parts))
    after, stat = _state(file), file.stat()
    settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > SETTLED_NS
    if after == before and settled:
        with suppress(OSError):  # a cache that cannot be written costs time only
            atomic_write(kept, json.dumps({"state": after, "hash": digest.hexdigest()}))
    return digest.digest()


def _hash_part(file: Path, start: int) -> bytes:
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(BLOCK))
    with file.open("rb") as stream:
        stream.seek(start)
        for _ in range(PART // BLOCK):
            digest.update(buffer[: stream.readinto(buffer)])
    return digest.digest()


def _state(file: Path) -> list[str | int]:
    """List what differs when a file's content does."""
    stat, path = file.stat(), str(file.resolve())
    return [PARTS, path, stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
