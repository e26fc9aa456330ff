"""CBBQ's templates written out as questions: the files of the release, to the byte, or cleaner ones.

Rows are written as they are made, beside the final place and renamed, so that a file that is found is whole.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from bench.core.errors import BadInput, RunFailed, expected
from bench.core.files import atomic_path, atomic_write
from bench.core.progress import progress
from bench.data import MANIFEST, Source, cbbq, readers
from bench.data.cbbq import KEPT
from bench.data.cbbq.labels import target_slot
from bench.data.cbbq.templates import CONDITIONS, EXPANSIONS, INSTANCE_COLUMNS, Template
from bench.data.cbbq.templates import expand as fillings
from bench.data.dataset import PROMPTS_FILE, manifest_tables, own_prompts
from bench.data.dataset import read_manifest as read_manifest
from bench.data.fetch import WrittenFile, git_blob_id, released_ids
from bench.data.readers import read_text

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
    """Write the questions of every category and context of `source` to `out`/CATEGORY/CONTEXT/CONTEXT.csv and .json.

    Under `compat` these are the bytes of the release. Under `repair` and `strict` (see `templates`) the files have
    five columns more, `name1`, `name2`, `swapped`, `template` and `target_name`, and JSON no byte order mark.

    Raises:
        BadInput: an unknown format or expansion, no templates, or a wrong one.
        RunFailed: the files cannot be written.
    """
    for value, allowed, what in (
        (formats, FORMATS, "format"),
        (expansion, EXPANSIONS, "expansion"),
    ):
        if value not in allowed:
            raise BadInput(expected(value, allowed, what))
    found = cbbq.files(source.folder)
    parts = {
        (category, condition): cbbq.read_templates(paths, category, condition, expansion)
        for category, paths in found.items()
        for condition in CONDITIONS
    }
    if not any(parts.values()):
        raise BadInput(
            f"{source.folder}: holds no templates of CBBQ, so there is nothing to expand; expected {cbbq.LAYOUT}"
        )
    known = released_ids("cbbq_expanded")
    written = []
    try:
        with progress(sum(map(len, parts.values())), "expanding", "templates") as bar:
            for (category, condition), some in parts.items():
                if some:
                    place = f"{category}/{condition}/{condition}"
                    paths = {form: out / f"{place}.{form}" for form in FORMATS[formats]}
                    questions = _write(
                        paths, _rows(some, expansion, bar.advance), expansion == "compat"
                    )
                    written += [
                        WrittenFile(
                            path, questions, git_blob_id(path), known.get(f"{place}.{form}", "")
                        )
                        for form, path in paths.items()
                    ]
        equal = sum(one.as_released for one in written)
        about = f"expanded from {source.name}, {source.version} ({expansion}); {equal} of {len(written)} files equal the release"
        told: dict[str, object] = {
            "name": source.name,
            "version": source.version,
            "licence": source.licence,
            "note": about,
        }
        told |= manifest_tables(read_manifest(source.folder))
        if wording := own_prompts(source.folder):
            atomic_write(out / PROMPTS_FILE, read_text(wording))
        atomic_write(out / MANIFEST, readers.to_toml(told))
    except OSError as error:
        raise RunFailed(f"{out}: the questions could not be written there ({error})") from None
    return written


def _rows(
    templates: Sequence[Template], expansion: str, done: Callable[[int], None]
) -> Iterator[dict[str, str]]:
    """The rows of one expanded file, all values as texts."""
    before = 0
    for template in templates:
        for one in fillings(template, expansion):
            row = {
                "example_id": str(before + one.number + 1),
                **{name: template.cells[name] for name in INSTANCE_COLUMNS},
            }
            row |= {"context": one.context, "ans0": one.ans0, "ans1": one.ans1}
            if expansion != "compat":
                target = (one.name1, one.name2)[target_slot(template)]
                kept = (one.name1, one.name2, str(one.swapped), template.name, target)
                row |= dict(zip(KEPT, kept, strict=True))
            yield row
        before += template.size
        done(1)


def _write(paths: Mapping[str, Path], rows: Iterable[dict[str, str]], as_released: bool) -> int:
    """Write rows to a file of each form at once; the number of rows."""
    columns = ["example_id", *INSTANCE_COLUMNS, *(() if as_released else KEPT)]
    questions = 0
    # What is entered later is left earlier: every file is closed before one of them takes its place.
    with ExitStack() as places:
        drafts = {form: places.enter_context(atomic_path(path)) for form, path in paths.items()}
        with ExitStack() as stack:
            writers = []
            for form, draft in drafts.items():
                encoding = "utf-8-sig" if form == "csv" else "utf-8"
                stream = stack.enter_context(draft.open("w", encoding=encoding, newline=""))
                writers.append(
                    _csv(stream, columns) if form == "csv" else _json(stream, as_released, stack)
                )
            for row in rows:
                questions += 1
                for write in writers:
                    write(row)
    return questions


def _csv(stream: TextIO, columns: Sequence[str]) -> Callable[[dict[str, str]], object]:
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    return writer.writerow


def _json(
    stream: TextIO, as_released: bool, stack: ExitStack
) -> Callable[[dict[str, str]], object]:
    """Writes one array of objects on one line, without a blank."""
    between = iter([""])
    stream.write("[")

    def write(row: dict[str, str]) -> None:
        if as_released:
            number, *_ = row
            row = {MARK + number: row[number], **{name: row[name] for name in INSTANCE_COLUMNS}}
        stream.write(
            next(between, ",") + json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        )

    stack.callback(stream.write, "]")
    return write
