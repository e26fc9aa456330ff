"""What is wrong or odd in a folder of CBBQ: every fault of its templates, and its numbers beside the release's.

The faults of one template are in `bench.data.cbbq.faults`; here are those that show between templates, files and folders.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.core.errors import BadInput, plain
from bench.data import audit, cbbq
from bench.data.audit import Finding, show_cell
from bench.data.cbbq.faults import (
    FAULTS,
    Fault,
    of_cells,
    of_options,
    of_template,
    of_text,
    polarity_blocks,
)
from bench.data.cbbq.labels import BIASED_LABEL, verdicts
from bench.data.cbbq.released import RELEASED, Numbers, total
from bench.data.cbbq.targets import declared_option, target_option, unknown_target, usual_option
from bench.data.cbbq.templates import (
    CATEGORIES,
    CONDITIONS,
    FILES,
    INSTANCE_COLUMNS,
    Filling,
    Template,
    expand,
    read,
)
from bench.data.readers import Row, read_csv, read_json_array

# What makes a template the same as another; the wording of its third option does not.
SAME_TEMPLATE = ("context", "NAME1", "NAME2", "question", "ans0", "ans1")
# Where a spreadsheet may have counted a number up, and how many values of a row make that likely.
FILLED = ("subcategory", "bias_targeted_groups", "source", "context", "NAME1", "NAME2")
SERIES = 3
NUMBER = re.compile(r"\d+")
LOCK = "~$"


class Asked(NamedTuple):
    """A question as a model sees it, with its label."""

    context: str
    question: str
    ans0: str
    ans1: str
    ans2: str
    label: str


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """Everything found in `folder`, a row a finding: `file`, `row`, `column`, `kind`, `what`, `value`, `fault`, `questions`.

    `kind` is `refused` (a file that `load` refuses, by its first fault), `odd` (read, but look at it) or `count` (numbers
    of the folder beside those of the release). `row` is that of the template, 0 where a finding concerns a whole file or
    folder. A template has at most one finding of each fault, which says how many of its questions are touched. The data are
    looked at as released, whatever the settings are; under `expansion=strict` what it refuses is listed too.

    Source: the faults that the authors' files were found to have (their repository, commit 95eaf2e).
    """
    folder = Path(folder)
    return audit.to_table(_check(folder, settings.get("expansion", "compat")), "questions")


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """A row for each fault that `check` found: `fault`, `what`, `files`, `templates`, `questions`, in the order of `FAULTS`.

    `templates` counts rows of files; faults of whole files have none. A question may be touched by several faults.
    """
    rows = []
    for fault, what in FAULTS.items():
        some = found[found.fault == fault]
        places = some[some.row > 0][["file", "row"]].drop_duplicates()
        rows.append((fault, what, some.file.nunique(), len(places), int(some.questions.sum())))
    table = pd.DataFrame(rows, columns=["fault", "what", "files", "templates", "questions"])
    return table[table.files > 0].reset_index(drop=True)


def _check(folder: Path, expansion: str) -> Iterator[Finding]:
    try:
        if not cbbq.files(folder):
            what = f"the folder holds no data of {cbbq.TITLE}; expected {cbbq.LAYOUT}"
            yield Finding("", 0, "", "refused", what, fault="refused")
    except (BadInput, OSError) as error:
        yield _refused(folder, folder, error)
    try:
        known = cbbq.categories_of(folder)
    except BadInput:  # told already
        known = CATEGORIES
    root = cbbq.root(folder, known)
    counts: dict[str, Numbers] = {}
    for category in known:
        found = []
        for condition in CONDITIONS:
            place = root / category / condition
            some, asked = yield from _condition(folder, place, category, expansion)
            found.append((some, asked))
        counts[category] = Numbers(
            tuple(sum(one.polarity == name for one in some) for some, _ in found for name in FILES),
            tuple(len(asked) for _, asked in found),
            len({one[:-1] for _, asked in found for one in asked}),
        )
    yield from _others(folder, root)
    yield from _counts(counts)


def _condition(
    folder: Path, place: Path, category: str, expansion: str
) -> Generator[Finding, None, tuple[list[Template], list[Asked]]]:
    """The findings of one condition of a category; returns its templates and its questions."""
    condition = place.name
    paths = [place / name for name in FILES.values() if (place / name).is_file()]
    expanded = [place / f"{condition}{suffix}" for suffix in (".csv", ".json")]
    expanded = [path for path in expanded if path.is_file()]
    yield from _marks(folder, paths)
    some: list[Template] = []
    whole = True
    for path in paths:
        try:
            for template in read(path, category, condition):
                some.append(template)  # those before the first that is refused
            if expansion == "strict":
                list(read(path, category, condition, expansion))
        except (BadInput, OSError) as error:
            whole = whole and expansion == "strict"
            yield _refused(path, folder, error)
    fillings = [list(expand(one)) for one in some]
    asked = [
        _asked(one, filling) for one, made in zip(some, fillings, strict=True) for filling in made
    ]
    yield from _in_templates(folder, some, fillings)
    if some or not expanded:
        for path in expanded if whole and len(paths) == 2 else []:
            yield from _beside(folder, path, condition, some, fillings)
    else:
        path = expanded[0]
        try:
            rows = _read(path)
            list(cbbq.from_instances([path], category, condition))
        except (BadInput, OSError) as error:
            yield _refused(path, folder, error)
            rows = []
        asked = [_asked_row(row) for row in rows]
        declared = declared_option(path, category)
        yield from _in_instances(audit.file_name(path, folder), category, condition, rows, declared)
    yield from _twice(audit.file_name(place, folder), asked)
    return some, asked


def _in_templates(
    folder: Path, some: Sequence[Template], fillings: Sequence[Sequence[Filling]]
) -> Iterator[Finding]:
    places = [(audit.file_name(one.path, folder), one.record) for one in some]
    usual = _usual_targets(some)
    for one in some:
        if one.target is None:
            group = one.cells["bias_targeted_groups"]
            error = BadInput(unknown_target(one.place, group, one.category))
            yield _refused(one.path, folder, error)
    halves, mended = verdicts(some), verdicts(some, "repair")
    for place, one, made, half, mend in zip(places, some, fillings, halves, mended, strict=True):
        for fault in of_template(
            one, made, half, mend, usual[one.category, one.cells["bias_targeted_groups"]]
        ):
            yield _finding(*place, fault)
    yield from _repeated(places, some, fillings)
    for file, pairs in groupby(zip(places, some, strict=True), key=lambda pair: pair[0][0]):
        of_file = [one for _, one in pairs]
        totals = [
            len(made) for made, place in zip(fillings, places, strict=True) if place[0] == file
        ]
        yield from _series(file, of_file, totals)
        yield from _index(file, of_file)


def _usual_targets(some: Sequence[Template]) -> dict[tuple[str, str], int | None]:
    """Find where each category has each of its groups: as declared, as released, or most often."""
    targets: dict[str, Counter[int]] = defaultdict(Counter)
    for one in some:
        if one.target is not None:
            targets[one.category][one.target] += 1
    usual: dict[tuple[str, str], int | None] = {}
    for one in some:
        group = one.cells["bias_targeted_groups"]
        option = one.declared
        if option is None:
            option = usual_option(one.category, group.strip())
        if option is None and targets[one.category]:
            option = targets[one.category].most_common(1)[0][0]
        usual[one.category, group] = option
    return usual


def _repeated(
    places: Sequence[tuple[str, int]],
    some: Sequence[Template],
    fillings: Sequence[Sequence[Filling]],
) -> Iterator[Finding]:
    """Templates that repeat an earlier one of their file, and those whose question stands in both polarities."""
    first: dict[tuple[str, ...], Template] = {}
    asked: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(
        lambda: {"neg": [], "non_neg": []}
    )
    for one in some:
        text = (one.cells["context"].strip(), one.cells["question"].strip())
        asked[text][one.polarity].append(one.record)
    for (file, row), one, made in zip(places, some, fillings, strict=True):
        earlier = first.setdefault(
            (one.polarity, *(one.cells[name].strip() for name in SAME_TEMPLATE)), one
        )
        if earlier is not one:
            other = (
                "" if one.cells["ans2"] == earlier.cells["ans2"] else ", with another third option"
            )
            what = f"repeats row {earlier.record}{other}"
            yield Finding(
                file,
                row,
                "",
                "odd",
                what,
                show_cell(one.cells["question"]),
                "duplicate_template",
                len(made),
            )
        text = (one.cells["context"].strip(), one.cells["question"].strip())
        rows = asked[text]["neg" if one.polarity == "non_neg" else "non_neg"]
        if rows:
            what = f"is asked of the same context in the other polarity's file, row {', '.join(map(str, rows))}: one of them is not negated"
            yield Finding(
                file,
                row,
                "question",
                "odd",
                what,
                show_cell(text[1]),
                "same_question_in_both_polarities",
                len(made),
            )


def _series(file: str, some: Sequence[Template], totals: Sequence[int]) -> Iterator[Finding]:
    """Cells that differ in one number, which goes up by one from row to row: all values but the first of such a series."""
    told: dict[int, str] = {}
    for column in FILLED:
        rows: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for k, one in enumerate(some):
            cell = one.cells[column]
            for match in NUMBER.finditer(cell):
                rows[cell[: match.start()], cell[match.end() :]][int(match[0])].append(k)
        for values in rows.values():
            # In a run, value less rank is constant.
            for _, run in groupby(enumerate(sorted(values)), key=lambda pair: pair[1] - pair[0]):
                _, *later = filled = [values[value] for _, value in run]
                if len(filled) >= SERIES and filled == sorted(filled):
                    told |= {k: column for rows_of in later for k in rows_of if k not in told}
    for k, column in sorted(told.items()):
        what = "counts a number up from row to row, as a spreadsheet fills cells"
        yield Finding(
            file,
            some[k].record,
            column,
            "odd",
            what,
            show_cell(some[k].cells[column]),
            "excel_autofill",
            totals[k],
        )


def _index(file: str, some: Sequence[Template]) -> Iterator[Finding]:
    cells = [one.cells["question_index"].strip() for one in some]
    wrong = next((cell for cell in cells if not cell.isdecimal()), None)
    numbers = [int(cell) for cell in cells if cell.isdecimal()]
    twice = sum(count > 1 for count in Counter(numbers).values())
    gaps = len(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    said = [f"holds {show_cell(wrong)}"] if wrong is not None else []
    said += [f"has {_several(twice)} more than once"] if twice else []
    said += [f"leaves out {_several(gaps)}"] if gaps else []
    said += ["is not in order"] if numbers != sorted(numbers) else []
    if said:
        yield Finding(
            file, 0, "question_index", "odd", f"{', '.join(said)}: it is no key", "", "index_no_key"
        )


def _several(numbers: int) -> str:
    return "1 number" if numbers == 1 else f"{numbers:,} numbers"


def _in_instances(
    file: str, category: str, condition: str, rows: Sequence[Row], declared: int | None
) -> Iterator[Finding]:
    """What can be said of expanded questions without their templates: each fault once for each cell that has it."""
    merged: dict[tuple[str, ...], tuple[int, Fault]] = {}
    for number, row in enumerate(rows, start=1):
        for fault in _of_instance(category, condition, row, declared):
            key = (
                fault.name,
                fault.column,
                row["question_index"],
                row["question"],
                row["bias_targeted_groups"],
            )
            first, before = merged.get(key, (number, fault._replace(questions=0)))
            merged[key] = (first, before._replace(questions=before.questions + 1))
    for number, fault in merged.values():
        more = (
            f" (and {fault.questions - 1:,} more of the same question)"
            if fault.questions > 1
            else ""
        )
        yield _finding(file, number, fault._replace(what=fault.what + more))
    for fault in polarity_blocks([row["question_polarity"] for row in rows]) if rows else ():
        yield _finding(file, 0, fault)


def _of_instance(category: str, condition: str, row: Row, declared: int | None) -> Iterator[Fault]:
    yield from of_text({name: row[name] for name in ("context", "ans0", "ans1")}, 1)
    yield from of_cells(row, 1)
    yield from of_options([(row["ans0"], row["ans1"])])
    if row["category"] != category:
        what = f"is not {category!r} as its folder says, which is believed"
        yield Fault("category_column_wrong", "category", what, show_cell(row["category"]), 1)
    options = (frozenset([row["ans0"]]), frozenset([row["ans1"]]))
    target = target_option(category, row["bias_targeted_groups"].strip(), options, declared)
    if target is None:
        return
    biased = target if row["question_polarity"] == "neg" else 1 - target
    if condition == "disambiguous" and row["label"] == str(biased):
        what = f"a question {BIASED_LABEL}; `--set labels=audited` leaves it out"
        yield Fault("label_is_biased", "label", what, show_cell(row["label"]), 1)


def _beside(
    folder: Path,
    path: Path,
    condition: str,
    some: Sequence[Template],
    fillings: Sequence[Sequence[Filling]],
) -> Iterator[Finding]:
    """An expanded file that is not what the templates beside it, which are read instead, yield."""
    name = audit.file_name(path, folder)
    wanted = [
        one.cells | {"context": each.context, "ans0": each.ans0, "ans1": each.ans1}
        for one, made in zip(some, fillings, strict=True)
        for each in made
    ]
    try:
        rows = _read(path)
    except (BadInput, OSError) as error:
        what = f"cannot be compared with the templates beside it: {audit.error_reason(path, error)}"
        yield Finding(name, 0, "", "odd", what, "", "expanded_differ")
        return
    differ = [
        (number, column, row[column])
        for number, (row, cells) in enumerate(zip(rows, wanted, strict=False), start=1)
        for column in INSTANCE_COLUMNS
        if row[column] != cells[column]
    ]
    if len(rows) != len(wanted):
        what = f"has {len(rows):,} rows, and the templates beside it, which are read, yield {len(wanted):,}"
        yield Finding(name, 0, "", "odd", what, "", "expanded_differ", abs(len(rows) - len(wanted)))
    elif differ:
        number, column, value = differ[0]
        count = len({row for row, *_ in differ})
        what = f"differs from what the templates beside it, which are read, yield; in {count:,} rows, this is the first"
        yield Finding(name, number, column, "odd", what, show_cell(value), "expanded_differ", count)


def _twice(place: str, asked: Sequence[Asked]) -> Iterator[Finding]:
    """Questions that stand twice in a folder of one condition, which is one file of the release."""
    surplus = len(asked) - len(set(asked))
    if surplus:
        what = f"{surplus:,} of its {len(asked):,} questions repeat an earlier one with its label; `--set dedupe=yes` leaves them out"
        yield Finding(place, 0, "", "odd", what, "", "duplicate_questions", surplus)
    labels: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for one in asked:
        labels[one[:-1]].append(one.label)
    opposite = [found for found in labels.values() if len(set(found)) > 1]
    if opposite:
        what = f"{len(opposite):,} prompts stand there with opposite labels"
        yield Finding(
            place, 0, "label", "odd", what, "", "opposite_labels", sum(map(len, opposite))
        )


def _marks(folder: Path, paths: Sequence[Path]) -> Iterator[Finding]:
    """The file of a condition that has no byte order mark where the other has one."""
    bare = [path for path in paths if path.read_bytes()[:3] != b"\xef\xbb\xbf"]
    if len(bare) < len(paths):
        for path in bare:
            what = "has no byte order mark, while the file beside it has one"
            yield Finding(
                audit.file_name(path, folder), 0, "", "odd", what, "", "no_byte_order_mark"
            )


def _others(folder: Path, root: Path) -> Iterator[Finding]:
    for path in sorted(root.rglob(f"{LOCK}*")):
        what = "is a lock file that a spreadsheet program left there, and is not read"
        yield Finding(audit.file_name(path, folder), 0, "", "odd", what, "", "lock_file")


def _counts(counts: dict[str, Numbers]) -> Iterator[Finding]:
    """The numbers of each category, and of all; beside the release's where there are categories of that."""
    known = any(sum(counts[name].questions) for name in CATEGORIES)
    for name, here in counts.items():
        if name not in RELEASED:
            yield Finding(
                "",
                0,
                "",
                "count",
                f"category {name}: {here}; the release has no such category",
                str(sum(here.questions)),
            )
    if not known:
        here = total(counts.values())
        yield Finding("", 0, "", "count", f"all categories: {here}", str(sum(here.questions)))
        return
    pairs = [(f"category {name}", counts[name], RELEASED[name]) for name in CATEGORIES]
    pairs.append(("all categories", total(counts.values()), total(RELEASED.values())))
    for name, here, released in pairs:
        same = "as the release has" if here == released else f"the release has {released}"
        yield Finding("", 0, "", "count", f"{name}: {here}; {same}", str(sum(here.questions)))


def _finding(file: str, row: int, fault: Fault) -> Finding:
    return Finding(
        file, row, fault.column, "odd", plain(fault.what), fault.value, fault.name, fault.questions
    )


def _refused(path: Path, folder: Path, error: Exception) -> Finding:
    """What the loader says, with the place it names in columns of its own."""
    reason = audit.error_reason(path, error)
    row = re.match(r"row (\d+)(?: \(header\))?[,:] ", reason)
    reason = reason[row.end() :] if row else reason
    column = re.match(r"(?:column|field) `(\w+)`(?:: )?", reason)
    reason = reason[column.end() :] if column else reason
    place = audit.file_name(path, folder) if path != folder else ""
    header = row is not None and "header" in row[0]
    number = int(row[1]) if row and not header else 0
    return Finding(
        place, number, column[1] if column else "", "refused", reason.lstrip(": "), "", "refused"
    )


def _read(path: Path) -> list[Row]:
    read = read_csv if path.suffix == ".csv" else read_json_array
    return read(path, INSTANCE_COLUMNS)


def _asked(template: Template, filling: Filling) -> Asked:
    cells = template.cells
    return Asked(
        filling.context,
        cells["question"],
        filling.ans0,
        filling.ans1,
        cells["ans2"],
        cells["label"],
    )


def _asked_row(row: Row) -> Asked:
    return Asked(*itemgetter("context", "question", "ans0", "ans1", "ans2", "label")(row))
