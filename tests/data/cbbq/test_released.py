"""CBBQ's released templates: counts, targets and bytes, and a slow expansion."""

import csv
import hashlib
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from bench import data
from bench.data import cbbq

# Instances by context, from the table of counts in the specification (section 1.6).
COUNTS = {
    "age": (7400, 7400),
    "disability": (1588, 1556),
    "disease": (586, 586),
    "educational_qualification": (1392, 1392),
    "ethnicity": (980, 980),
    "gender": (1534, 1838),
    "household_registration": (8700, 8700),
    "nationality": (11988, 11986),
    "physical_appearance": (1856, 1856),
    "sexual_orientation": (560, 560),
}
CONDITIONS = ("ambiguous", "disambiguous")
FILES = {"neg": "templates_generate_neg.csv", "non_neg": "templates_generate_nonneg.csv"}


@pytest.fixture(scope="module")
def questions(shared: Path) -> dict[tuple[str, str], list[cbbq.Question]]:
    found: dict[tuple[str, str], list[cbbq.Question]] = {}
    for item in data.load(data.find("cbbq", shared / "data" / "cbbq")):
        found.setdefault((item.category, item.condition), []).append(item)
    return found


def raw_templates(shared: Path, category: str, condition: str) -> dict[str, dict[str, str]]:
    """Polarity and record number to the released row."""
    found = {}
    for polarity, name in FILES.items():
        with (shared / "data/cbbq" / category / condition / name).open(
            encoding="utf-8-sig", newline=""
        ) as stream:
            found |= {f"{polarity}:{k}": row for k, row in enumerate(csv.DictReader(stream), 1)}
    return found


def test_the_ten_shared_categories_have_the_counts_of_the_release(questions) -> None:
    assert {key: len(items) for key, items in questions.items()} == {
        (name, condition): count
        for name, counts in COUNTS.items()
        for condition, count in zip(CONDITIONS, counts, strict=True)
    }


def test_the_target_of_every_template_is_the_audit_s(questions, shared: Path) -> None:
    with (shared / "data/cbbq/audit.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    wanted = {
        (
            row["category"],
            row["context"],
            f"{row['file_polarity']}:{row['record']}".replace("nonneg", "non_neg"),
        ): int(row["target_option"][-1])
        for row in rows
    }
    found: dict[tuple[str, str, str], set[int]] = {}
    for (category, condition), items in questions.items():
        for item in items:
            found.setdefault((category, condition, item.template), set()).add(item.target)
    assert len(rows) == len(wanted) == 2127
    assert found == {key: {target} for key, target in wanted.items()}


def test_each_template_yields_as_many_questions_as_the_audit_says(questions, shared: Path) -> None:
    counts = Counter(
        (item.category, item.condition, item.template)
        for items in questions.values()
        for item in items
    )
    with (shared / "data/cbbq/audit.csv").open(encoding="utf-8-sig", newline="") as stream:
        for row in csv.DictReader(stream):
            polarity = row["file_polarity"].replace("nonneg", "non_neg")
            assert counts[row["category"], row["context"], f"{polarity}:{row['record']}"] == int(
                row["instances"]
            )


def slow(category: str, condition: str, row: dict[str, str]) -> list[tuple[str, str, str]]:
    """The specification's section 2.2 once more: contexts and the two options of one template."""
    lists = [
        ["".join(name.split()) for name in row[slot].strip()[1:-1].split(",")]
        for slot in ("NAME1", "NAME2")
    ]
    found = []
    for one in lists[0]:
        for two in lists[1]:
            options = row["ans0"].replace("{{NAME1}}", one), row["ans1"].replace("{{NAME2}}", two)
            found.append(
                (row["context"].replace("{{NAME1}}", one).replace("{{NAME2}}", two), *options)
            )
            if category == "disease":
                continue
            text = row["context"]
            if condition == "disambiguous" and category != "educational_qualification":
                text = text.replace("{{NAME1}}", two, 1).replace("{{NAME2}}", one, 1)
                text = text.replace("{{NAME1}}", one).replace("{{NAME2}}", two)
            else:
                text = text.replace("{{NAME1}}", two).replace("{{NAME2}}", one)
            found.append((text, *options))
    return found


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(
    "category", ["disease", "ethnicity", "sexual_orientation", "educational_qualification"]
)
def test_expansion_agrees_with_a_slow_one_row_by_row(
    questions, shared: Path, category: str, condition: str
) -> None:
    wanted = []
    for number, row in raw_templates(shared, category, condition).items():
        wanted += [
            (number, *texts, row["ans2"], int(row["label"]))
            for texts in slow(category, condition, row)
        ]
    found = [
        (item.template, item.context, item.ans0, item.ans1, item.ans2, item.label)
        for item in questions[category, condition]
    ]
    assert found == wanted


def blob(raw: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("category", COUNTS)
def test_the_expanded_csv_and_json_have_the_release_s_own_bytes(
    questions, shared: Path, category: str, condition: str
) -> None:
    templates = raw_templates(shared, category, condition)
    columns = [name for name in next(iter(templates.values())) if name not in ("NAME1", "NAME2")]
    rows = [
        {
            "example_id": str(item.example_id),
            **{name: templates[item.template][name] for name in columns},
            "context": item.context,
            "question": item.question,
            "ans0": item.ans0,
            "ans1": item.ans1,
            "ans2": item.ans2,
            "label": str(item.label),
        }
        for item in questions[category, condition]
    ]
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, ["example_id", *columns], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # The released JSON was made from the CSV with its byte order mark in the first key.
    objects = [
        {"\ufeffexample_id": row["example_id"], **{name: row[name] for name in columns}}
        for row in rows
    ]
    text = json.dumps(objects, ensure_ascii=False, separators=(",", ":"))
    ids = dict(
        line.split("\t")
        for line in (shared / "data/cbbq/blobs.tsv").read_text("utf-8").splitlines()
    )
    place = f"data/{category}/{condition}/{condition}"
    assert blob(stream.getvalue().encode("utf-8-sig")) == ids[f"{place}.csv"]
    assert blob(text.encode()) == ids[f"{place}.json"]
