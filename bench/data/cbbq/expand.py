"""Write CBBQ's templates as questions: the files of the release, to the byte, or cleaner ones.

Files are written under a temporary name and renamed, so that a file that exists is complete.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, repeat
from pathlib import Path
from typing import TextIO

from bench.core.errors import BadInput, RunFailed, expected
from bench.core.files import atomic_path, atomic_write
from bench.core.progress import progress
from bench.data import MANIFEST, Source, cbbq
from bench.data.cbbq import KEPT
from bench.data.cbbq.labels import target_slot
from bench.data.cbbq.templates import CONDITIONS, EXPANSIONS, INSTANCE_COLUMNS, Template
from bench.data.cbbq.templates import expand as fillings
from bench.data.dataset import PROMPTS_FILE, manifest_tables, own_prompts, read_manifest
from bench.data.fetch import WrittenFile, git_blob_id, released_ids
from bench.data.readers import read_text, to_toml

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

    Raises:
        BadInput: an unknown format or expansion, no templates, or a wrong one.
        RunFailed: the files cannot be written.
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
            f"expected {cbbq.LAYOUT}"
        )
    known = released_ids("cbbq_expanded")
    written: list[WrittenFile] = []
    try:
        with progress(sum(map(len, parts.values())), "expanding", "templates") as bar:
            for place, templates in parts.items():
                paths = {out / f"{place}.{form}": f"{place}.{form}" for form in FORMATS[formats]}
                if templates:
                    rows = _rows(templates, expansion, bar.advance)
                    count = _write(list(paths), rows, expansion == "compat")
                    written += [
                        WrittenFile(path, count, git_blob_id(path), known.get(name, ""))
                        for path, name in paths.items()
                    ]
        _describe(source, out, expansion, written)
    except OSError as error:
        raise RunFailed(f"{out}: the questions could not be written there ({error})") from None
    return written


def _describe(source: Source, out: Path, expansion: str, written: Sequence[WrittenFile]) -> None:
    """Write the manifest of the expanded files, and copy the prompts that `source` brings."""
    equal = sum(one.as_released for one in written)
    manifest: dict[str, object] = {
        "name": source.name,
        "version": source.version,
        "licence": source.licence,
        "note": f"expanded from {source.name}, {source.version} ({expansion}); "
        f"{equal} of {len(written)} files equal the release",
    }
    if prompts := own_prompts(source.folder):
        atomic_write(out / PROMPTS_FILE, read_text(prompts))
    manifest |= manifest_tables(read_manifest(source.folder))
    atomic_write(out / MANIFEST, to_toml(manifest))


def _rows(
    templates: Sequence[Template], expansion: str, advance: Callable[[int], None]
) -> Iterator[dict[str, str]]:
    """Make the rows of one expanded file, all values as texts."""
    before = 0
    for template in templates:
        for filling in fillings(template, expansion):
            row = {
                "example_id": str(before + filling.number + 1),
                **{name: template.cells[name] for name in INSTANCE_COLUMNS},
                "context": filling.context,
                "ans0": filling.ans0,
                "ans1": filling.ans1,
            }
            if expansion != "compat":
                names = (filling.name1, filling.name2)
                target = names[target_slot(template)]
                values = (*names, str(filling.swapped), template.name, target)
                row |= dict(zip(KEPT, values, strict=True))
            yield row
        before += template.size
        advance(1)


def _write(paths: Sequence[Path], rows: Iterable[dict[str, str]], as_released: bool) -> int:
    """Write rows to a CSV and a JSON file at once, and return their number."""
    columns = ["example_id", *INSTANCE_COLUMNS, *(() if as_released else KEPT)]
    count = 0
    # The draft files are closed before they are renamed.
    with ExitStack() as drafts, ExitStack() as streams:
        writers: list[Callable[[dict[str, str]], object]] = []
        for path in paths:
            draft = drafts.enter_context(atomic_path(path))
            encoding = "utf-8-sig" if path.suffix == ".csv" else "utf-8"
            stream = streams.enter_context(draft.open("w", encoding=encoding, newline=""))
            if path.suffix == ".csv":
                table = csv.DictWriter(stream, columns, lineterminator="\n")
                table.writeheader()
                writers.append(table.writerow)
            else:
                writers.append(_json(stream, as_released))
                stream.write("[")
                streams.callback(stream.write, "]")
        for row in rows:
            count += 1
            for write in writers:
                write(row)
    return count


def _json(stream: TextIO, as_released: bool) -> Callable[[dict[str, str]], None]:
    """Return a function that writes one object of an array on one line, without a blank."""
    separators = chain([""], repeat(","))

    def write(row: dict[str, str]) -> None:
        if as_released:
            row = {MARK + name if name == "example_id" else name: row[name] for name in row}
        text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        stream.write(next(separators) + text)

    return write
