"""Write the card of a data folder: `datasets.load_dataset(FOLDER)` and the Hub read it.

from datasets import load_dataset
load_dataset("my-questions", split="test")          # all categories
load_dataset("my-questions", "gender", split="test")
"""

import re
from pathlib import Path
from typing import Any

import yaml

from bench.benchmarks import module
from bench.core.files import atomic_write
from bench.data import find
from bench.data.dataset import read_manifest
from bench.data.readers import read_text

CARD = "README.md"
# A card with this line is written anew with the data; one without it is somebody's own.
MARK = "# Written by bench. Remove this line to keep your own changes."
SPLIT = "test"
# The columns that hold numbers; `datasets` would guess the type of others from their first rows.
NUMBERS = {"score": "float64", "label": "int64", "question_index": "int64"}


def write(benchmark: str, folder: Path) -> None:
    """Write the card of a data set in CSV or JSON files; a card that is not ours stays."""
    path = folder / CARD
    if _is_somebodys(path):
        return
    source, room = find(benchmark, folder), module("data", benchmark)
    files = {
        category: [file.relative_to(folder) for file in files if file.suffix in (".csv", ".json")]
        for category, files in room.files(folder).items()
    }
    everything = list(dict.fromkeys(file for paths in files.values() for file in paths))
    configs = {"default": everything}
    if len({tuple(paths) for paths in files.values()}) > 1:
        configs |= files
    licence = source.licence.lower()
    is_id = re.fullmatch(r"[a-z0-9.-]+", licence)
    about: dict[str, Any] = {
        "pretty_name": source.name,
        "license": licence if is_id else "other",
        **({} if is_id else {"license_name": source.licence}),
        "language": list(read_manifest(folder).languages) or [room.LANGUAGE],
        "tags": ["social-bias", benchmark],
        "configs": [
            {
                "config_name": name,
                "data_files": [{"split": SPLIT, "path": [file.as_posix() for file in paths]}],
            }
            for name, paths in configs.items()
        ],
        "dataset_info": [
            {"config_name": name, "features": features}
            for name, paths in configs.items()
            if (features := _features([folder / file for file in paths]))
        ],
    }
    front = yaml.safe_dump(about, sort_keys=False, allow_unicode=True)
    text = f"""---
{MARK}
{front}---

# {source.name}

Version {source.version}, in the format of {room.TITLE} ({room.PAPER.url}).

```python
from datasets import load_dataset

load_dataset("{folder.name}", split="{SPLIT}")
```

```bash
bench run {benchmark} --data {folder.name} --model MODEL
```
"""
    atomic_write(path, text)


def _is_somebodys(path: Path) -> bool:
    """Tell whether somebody else wrote a card, or changed it and removed our line."""
    return path.exists() and MARK not in read_text(path)


def _features(paths: list[Path]) -> list[dict[str, str]]:
    """Return the columns of CSV files with their types; none for others, or if they differ."""
    headers = {
        tuple(read_text(path).lstrip("\ufeff").partition("\n")[0].strip().split(","))
        if path.suffix == ".csv"
        else ()
        for path in paths
    }
    header = headers.pop() if len(headers) == 1 else ()
    return [{"name": name, "dtype": NUMBERS.get(name, "string")} for name in header]
