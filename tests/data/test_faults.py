"""The faults of the released data, as the package's tables list them, against the data."""

import pandas as pd
import pytest

from bench import data
from bench.benchmarks import get
from bench.data.checks import faults
from bench.data.readers import read_json_lines
from tests.helpers.cases import table

BENCHMARKS = ("cbbq", "mcbe", "nli_coal")
POLARITY = {"templates_generate_neg.csv": "neg", "templates_generate_nonneg.csv": "non_neg"}


def rows_of(cell):
    """List the rows of a cell such as `3 7-9`."""
    parts = [part.partition("-") for part in cell.split()]
    return [row for first, _, last in parts for row in range(int(first), int(last or first) + 1)]


def by_row(benchmark, fault):
    """The places of a fault, a row each."""
    one = faults(get(benchmark)).query("fault == @fault")
    one = one.assign(row=one.rows.map(rows_of)).explode("row")
    return one.drop_duplicates(["file", "row"])


@pytest.fixture(scope="module")
def questions(shared):
    return data.frame(data.load(data.find("cbbq", shared / "data/cbbq")))


def test_each_of_the_95_faults_has_its_place_its_effect_and_what_robust_does():
    tables = pd.concat({name: faults(get(name)) for name in BENCHMARKS})
    tables = tables.assign(benchmark=tables.index.get_level_values(0))
    category = tables.file.str.partition("/")[0]
    assert len(tables.assign(category=category).groupby(["benchmark", "fault", "category"])) == 95
    assert tables.groupby("benchmark").times.sum().to_dict() == {
        "cbbq": 1501,
        "mcbe": 1,
        "nli_coal": 304,
    }
    assert (tables[["file", "fault", "effect", "robust"]] != "").all(axis=None)
    texts = tables.drop_duplicates(["benchmark", "fault", "effect", "robust"])
    assert not texts.duplicated(["benchmark", "fault"]).any(), "one effect for each kind"


def test_the_tables_count_as_many_questions_as_the_specification():
    listed = faults(get("cbbq"))
    for case in table(__file__, "released_cbbq.csv").itertuples():
        of_place = listed[(listed.fault == case.fault) & listed.file.str.startswith(case.place)]
        assert of_place["items"].sum() == int(case.questions), (case.fault, case.place)


@pytest.mark.parametrize("benchmark", ["cbbq", "nli_coal"])
def test_every_place_is_a_row_of_the_released_file(shared, benchmark):
    folder = shared / "data" / benchmark
    for file, of_file in faults(get(benchmark)).groupby("file"):
        assert (folder / file).exists()
        rows = [row for cell in of_file.rows for row in rows_of(cell)]
        if file.endswith(".json"):
            present = {number for number, _ in read_json_lines(folder / file)}
        else:
            present = range(1, len(pd.read_csv(folder / file)) + 1 if file.endswith(".csv") else 1)
        assert {*rows} <= {*present}, file


def templates_with(fault):
    """The templates with a fault of CBBQ, as `category condition template`."""
    places = by_row("cbbq", fault)
    category, condition, name = places.file.str.split("/", expand=True).T.to_numpy()
    polarity = [POLARITY[one] for one in name]
    return {*zip(category, condition, polarity, places.row, strict=True)}


def both_labels(rows):
    """Whether a question occurs with both labels."""
    asked = ["category", "condition", "context", "question", "ans0", "ans1", "ans2"]
    return rows.groupby(asked).label.transform("nunique") > 1


LABELS = (
    "facts_support_stereotype label_contradicts_facts label_is_biased swap_breaks_facts "
    "label_wrong_in_unswapped_half no_disambiguating_facts"
)


@pytest.mark.parametrize(
    ("some", "is_faulty"),
    [
        ("polarity_column_wrong", lambda rows: rows.polarity != rows.polarity_column),
        ("options_equal", lambda rows: rows.ans0 == rows.ans1),
        ("name_in_both_lists", lambda rows: rows.name1 == rows.name2),
        ("two_wordings", lambda rows: rows.question.str.contains("(?<![他她])/")),
        ("question_mark", lambda rows: ~rows.question.str.strip().str.endswith("？")),
        ("malformed_placeholder", lambda rows: rows.context.str.contains("[{}]")),
        (LABELS, lambda rows: rows.label_audited.ne(rows.label_column) & ~both_labels(rows)),
    ],
)
def test_a_fault_of_cbbq_is_where_the_questions_have_it(questions, some, is_faulty):
    rows = questions[is_faulty(questions)]
    places = zip(rows.category, rows.condition, rows.polarity, rows.template, strict=True)
    found = {(*key, int(name.partition(":")[2])) for *key, name in places}
    assert found == set().union(*map(templates_with, some.split()))


def test_questions_of_cbbq_that_occur_before_are_counted(questions):
    asked = ["category", "condition", "context", "question", "ans0", "ans1", "ans2", "label"]
    repeated = questions[questions.duplicated(asked)]
    counts = repeated.groupby(["category", "condition"]).size()
    listed = faults(get("cbbq")).query("fault == 'duplicate_questions'").set_index("file")["items"]
    assert {"/".join(key): count for key, count in counts.items()} == listed.to_dict()


def test_rows_of_nli_coal_that_name_another_occupation_are_those_that_the_loader_repairs(shared):
    source = data.find("nli_coal", shared / "data/nli_coal")
    kept, repaired = (data.frame(data.load(source, anomalies=name)) for name in ("keep", "repair"))
    differ = kept[kept.occupation != repaired.occupation]
    rows = by_row("nli_coal", "wrong_occupation")
    rows = rows[~rows.file.str.contains("tokenized/") | rows.file.str.contains("untokenized/")]
    assert set(rows.file.str[:2]) == set(differ.category) == {"ja"}
    # Rows of NS follow those of PS and AS.
    assert sorted(rows.row + 2000 - 1) == sorted(differ.id)
