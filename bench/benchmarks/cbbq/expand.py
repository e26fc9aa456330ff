"""Write CBBQ's templates as questions: the files of the release, to the byte, or cleaner ones.

We write a file under a temporary name and rename it, so that a file that exists is complete.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.benchmarks.cbbq import METADATA
from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq.items import KEPT
from bench.benchmarks.cbbq.labels import target_slot
from bench.benchmarks.cbbq.templates import CONDITIONS, EXPANSIONS, INSTANCE_COLUMNS
from bench.benchmarks.cbbq.templates import expand as fillings
from bench.core.errors import BadInput, expected
from bench.core.files import atomic_path, atomic_write
from bench.core.progress import progress
from bench.data import MANIFEST, Source
from bench.data.dataset import PROMPTS_FILE, manifest_tables, own_prompts, read_manifest
from bench.data.fetch import WrittenFile, git_blob_id, released_ids
from bench.data.readers import Row, read_text, to_toml

FORMATS: Mapping[str, tuple[str, ...]] = {
    "csv": ("csv",),
    "json": ("json",),
    "both": ("csv", "json"),
}
# The released files begin with a byte order mark, which their JSON has in the first key.
MARK = "\ufeff"


def expand(
    source: Source, out: Path, formats: str = "both", expansion: str = "compat"
) -> list[WrittenFile]:
    """Write the questions of `source` to `out`/CATEGORY/CONTEXT/CONTEXT.csv and .json.

    With `compat` these are the bytes of the release. With `repair` and `strict` (see `templates`)
    the files have the columns `KEPT` too, and JSON no byte order mark.
    """
    if formats not in FORMATS:
        raise BadInput(expected(formats, FORMATS, "format"))
    if expansion not in EXPANSIONS:
        raise BadInput(expected(expansion, EXPANSIONS, "expansion"))
    parts = {
        f"{category}/{condition}/{condition}": cbbq.read_templates(
            paths, category, condition, expansion
        )
        for category, paths in cbbq.files(source.folder).items()
        for condition in CONDITIONS
    }
    if not any(parts.values()):
        raise BadInput(
            f"{source.folder}: holds no templates of CBBQ, so there is nothing to expand; "
            f"expected {METADATA.layout}"
        )
    known = released_ids("cbbq_expanded")
    written: list[WrittenFile] = []
    with progress(sum(map(len, parts.values())), "expanding", "templates") as bar:
        for place, templates in parts.items():
            rows = [row for _, row in fillings(templates, expansion)]
            if expansion != "compat":
                slots = {
                    template.name: ("name1", "name2")[target_slot(template)]
                    for template in templates
                }
                rows = [row | {"target_name": row[slots[row["template"]]]} for row in rows]
            for name in (f"{place}.{form}" for form in FORMATS[formats] if templates):
                _write(out / name, rows, expansion == "compat")
                blob = git_blob_id(out / name)
                written.append(WrittenFile(out / name, len(rows), blob, known.get(name, "")))
            bar.update(len(templates))
    equal = sum(file.as_released for file in written)
    manifest = {
        "name": source.name,
        "version": source.version,
        "licence": source.licence,
        "note": f"expanded from {source.name}, {source.version} ({expansion}); {equal} of "
        f"{len(written)} files equal the release",
    }
    if prompts := own_prompts(source.folder):
        atomic_write(out / PROMPTS_FILE, read_text(prompts))
    tables = manifest_tables(read_manifest(source.folder))
    atomic_write(out / MANIFEST, to_toml(manifest | tables))
    return written


def _write(path: Path, rows: Sequence[Row], as_released: bool) -> None:
    encoding = "utf-8-sig" if path.suffix == ".csv" else "utf-8"
    # The draft is closed before it is renamed.
    with atomic_path(path) as draft, draft.open("w", encoding=encoding, newline="") as stream:
        columns = ["example_id", *INSTANCE_COLUMNS, *(() if as_released else KEPT)]
        if path.suffix == ".csv":
            table = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
            return
        keys = [MARK + name if as_released and name == "example_id" else name for name in columns]
        values = [dict(zip(keys, map(row.get, columns), strict=True)) for row in rows]
        stream.write(json.dumps(values, ensure_ascii=False, separators=(",", ":")))
