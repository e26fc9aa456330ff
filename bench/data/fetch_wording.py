"""The wording part of `bench fetch`: read from the authors' scripts, and kept beside the data as `prompts.toml`.

A benchmark's wording module has `VERSION`, `REMEDY`, `SCRIPTS`, `EXPECTED` (these in words), `ADDRESS` (where they are
downloaded from, or "" where they come with the data), `is_script(name)`, `find(folder, above)`, `read(scripts)` and
`choices(tables)`.
"""

import os
import shutil
import tomllib
from http.client import HTTPException
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.core.errors import BadInput, RunFailed
from bench.data import MANIFEST, readers
from bench.data.cbbq import official_wording as cbbq_wording
from bench.data.dataset import FETCHED, PROMPTS_FILE, own_prompts
from bench.data.download import download
from bench.data.mcbe import official_wording as mcbe_wording
from bench.data.official_wording import SCRIPT_BYTES

MODULES: dict[str, ModuleType] = {"mcbe": mcbe_wording, "cbbq": cbbq_wording}


def is_script(benchmark: str, name: str) -> bool:
    """Whether a member of an archive is a script that holds wording."""
    return benchmark in MODULES and MODULES[benchmark].is_script(name)


def expected(benchmark: str) -> str:
    """The scripts in words, or "" where a benchmark has none."""
    return MODULES[benchmark].EXPECTED if benchmark in MODULES else ""


def beside(
    benchmark: str, folder: Path, root: Path, target: Path, work: Path, downloaded: bool
) -> tuple[str, str]:
    """Put the wording beside the data in `work/new`: the own one of the set in `root`, else that of the scripts in or near
    `folder`, else the older one of `target`.

    A download has to hold the released wording. Returns the version of a released wording and what is to be told of a
    failure, each "" where there is none.
    """
    new = work / "new"
    if brought := own_prompts(root):
        readers.read_toml(brought)
        shutil.copyfile(brought, new / PROMPTS_FILE)
        return "", ""
    module = MODULES.get(benchmark)
    if module is None:
        return "", ""
    fault, wording = "", ""
    try:
        if downloaded:
            wording = _released(module, folder, work / "scripts")
        # What lies above an unpacked archive is ours.
        elif scripts := module.find(folder, above=not folder.is_relative_to(work)):
            wording = module.read(scripts)
    except (OSError, BadInput, RunFailed) as error:
        fault = f"the data came without the wording: {error}"
    if wording:
        (new / PROMPTS_FILE).write_bytes(wording.encode())
    elif (target / PROMPTS_FILE).is_file():
        shutil.copyfile(target / PROMPTS_FILE, new / PROMPTS_FILE)
        fault = f"{fault}; the older wording is kept" if fault else ""
        if own_prompts(target):
            return "", fault
    return version(new), fault


def alone(benchmark: str, folder: Path, target: Path, work: Path) -> bool:
    """Put the wording of a local copy without data into `target`, and leave the data there as they are.

    Returns whether there is any.

    Raises:
        BadInput: the data there are a set with a wording of its own, which would be lost.
    """
    module = MODULES.get(benchmark)
    scripts = module.find(folder) if module else None
    if module is None or scripts is None:
        return False
    wording = module.read(scripts)
    manifest: dict[str, Any] = {}
    if (target / MANIFEST).is_file():
        manifest = readers.read_toml(target / MANIFEST)
    if own := own_prompts(target):
        raise BadInput(
            f"{own}: is a set's own wording, which the released one would replace; give another --to"
        )
    target.mkdir(exist_ok=True)
    (work / PROMPTS_FILE).write_bytes(wording.encode())
    os.replace(work / PROMPTS_FILE, target / PROMPTS_FILE)
    if manifest:
        manifest[FETCHED] = version(target)
        (work / MANIFEST).write_bytes(readers.to_toml(manifest).encode())
        os.replace(work / MANIFEST, target / MANIFEST)
    return True


def version(folder: Path) -> str:
    """The version of the released wording in a folder of data, or "" where there is none."""
    return str(_content(folder).get("version", ""))


def told(benchmark: str, folder: Path) -> str:
    """How to use the wording in a folder of data, in a sentence; "" where there is none."""
    module, here = MODULES.get(benchmark), version(folder)
    if own := own_prompts(folder):
        return f"wording {here}: {own}; the set is asked in it unless --prompts says otherwise"
    if module is None or not here:
        return ""
    changed = "" if here == module.VERSION else " (not the released one)"
    names = module.choices(
        [name for name, value in _content(folder).items() if isinstance(value, dict)]
    )
    which = f"#NAME`, where NAME is one of {', '.join(names)}" if names else "`"
    return (
        f"wording {here}{changed}: {folder / PROMPTS_FILE}; use it with `--prompts official{which}"
    )


def _released(module: ModuleType, folder: Path, into: Path) -> str:
    """The wording of a download: of the scripts in `folder`, or downloaded to `into` where they come from elsewhere."""
    scripts = _download(module, into) if module.ADDRESS else module.find(folder)
    if scripts is None:
        raise RunFailed(f"{folder}: holds none of {module.EXPECTED}; {module.REMEDY}")
    try:
        wording: str = module.read(scripts)
        if tomllib.loads(wording)["version"] != module.VERSION:
            raise RunFailed(f"{scripts}: the wording is not the released one; {module.REMEDY}")
    except (BadInput, RunFailed) as error:
        # The caller does not know of a folder that scripts are downloaded to.
        message = str(error).replace(f"{into}{os.sep}", f"{module.ADDRESS}: ")
        raise RunFailed(message.replace(str(into), module.ADDRESS)) from None
    return wording


def _download(module: ModuleType, into: Path) -> Path:
    into.mkdir()
    for name in module.SCRIPTS:
        url = f"{module.ADDRESS}/{name}"
        try:
            download(url, into / name, SCRIPT_BYTES)
        except (OSError, HTTPException, ValueError) as error:
            reason = " ".join(str(error).split())
            raise RunFailed(f"{url}: the download failed ({reason}); {module.REMEDY}") from None
    return into


def _content(folder: Path) -> dict[str, Any]:
    try:
        return readers.read_toml(folder / PROMPTS_FILE)
    except BadInput:
        return {}
