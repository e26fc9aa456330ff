"""Readers of NLI corpora: every style, what is left out, and hostile files."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import BadInput
from bench.data.nli_coal.corpora import Example, read

PAIR = {"sentence1": "a nurse reads", "sentence2": "a woman reads"}


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "snli.jsonl",
            json.dumps({**PAIR, "gold_label": "neutral", "annotator_labels": ["neutral"]}),
        ),
        (
            "ocnli.jsonl",
            json.dumps({**PAIR, "label": "neutral", "label0": "entailment", "genre": "news"}),
        ),
        ("train_r-3.json", json.dumps({**PAIR, "label": "neutral"})),
        (
            "hub.jsonl",
            json.dumps(
                {"premise": "a nurse reads", "hypothesis": "a woman reads", "label": "neutral"}
            ),
        ),
        ("jsnli.tsv", "neutral\ta nurse reads\ta woman reads"),
        ("xnli.train.tsv", "premise\thypo\tlabel\r\na nurse reads\ta woman reads\tneutral\r"),
        (
            "xnli.dev.tsv",
            "language\tgold_label\tsentence1\tsentence2\nen\tneutral\ta nurse reads\ta woman reads",
        ),
    ],
)
def test_every_style_gives_the_same_pair(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text + "\n", "utf-8", newline="")
    assert read([tmp_path / name]).examples == [
        Example("a nurse reads", "a woman reads", "neutral")
    ]


def test_rows_without_consensus_are_left_out_and_counted(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        *({**PAIR, "label": label} for label in ("-", "contradictory", -1, "entailment")),
    )
    other = tmp_path / "b.tsv"
    other.write_text("-\ta\tb\nneutral\ta\tb\n", "utf-8")
    corpus = read([path, other])
    assert [example.label for example in corpus.examples] == [
        "contradiction",
        "entailment",
        "neutral",
    ]
    assert [(one.rows, one.left_out) for one in corpus.files] == [(2, 2), (1, 1)]
    assert corpus.counts == {"entailment": 1, "contradiction": 1, "neutral": 1}


def test_numbers_are_read_only_where_it_is_said_what_they_mean(
    tmp_path: Path, refusal: Any
) -> None:
    path = lines(tmp_path / "a.jsonl", {**PAIR, "label": 2}, {**PAIR, "label": -1})
    assert "say what numbers mean" in refusal(read, [path])
    assert read([path], {"2": "contradiction"}).examples[0].label == "contradiction"
    assert "meaning of a label" in refusal(read, [path], {"2": "contra"})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.jsonl",
            '{"sentence1": "a", "label": "neutral"}',
            "line 1: field `sentence2` or `hypothesis` or `hypo` is missing",
        ),
        (
            "a.jsonl",
            '\n{"sentence1": "a", "sentence2": "", "label": "neutral"}',
            "line 2, field `hypothesis`: '' is not a text",
        ),
        (
            "a.jsonl",
            '{"sentence1": "a", "sentence2": 3, "label": "neutral"}',
            "field `hypothesis`: 3 is not a text",
        ),
        (
            "a.jsonl",
            '{"sentence1": "a", "sentence2": "b", "label": "Neutral"}',
            "'Neutral' is unknown; allowed: entailment",
        ),
        (
            "a.jsonl",
            '{"sentence1": "a", "sentence2": "b", "label": true}',
            "field `label`: True is unknown",
        ),
        (
            "a.jsonl",
            '{"sentence1": "a", "sentence2": "b", "label": null}',
            "field `label`: None is unknown",
        ),
        ("a.jsonl", "[]", "line 1: expected a JSON object"),
        ("a.jsonl", "{", "line 1: not JSON"),
        (
            "a.jsonl",
            '{"sentence1": "a", "sentence2": "b", "label": "-"}',
            "holds no pairs with a label",
        ),
        ("a.jsonl", "", "holds no pairs with a label"),
        ("a.tsv", "", "holds no pairs with a label"),
        ("a.tsv", "neutral\ta", "line 1: has 2 cells; expected 3: label, premise, hypothesis"),
        ("a.tsv", "premise\tlabel\na\tneutral", "(header): field `sentence2` or `hypothesis`"),
        ("a.tsv", "index\tpremise\thypothesis\tlabel\n0\ta\tb", "line 2: has 3 cells; expected 4"),
        ("a.csv", "neutral,a,b", "ending '.csv' is unknown; allowed: .jsonl"),
    ],
)
def test_a_fault_is_named_with_its_place(
    tmp_path: Path, refusal: Any, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    message = refusal(read, [tmp_path / name])
    assert said in message
    assert str(tmp_path / name) in message


def test_a_missing_file_is_refused(tmp_path: Path, refusal: Any) -> None:
    assert refusal(read, [tmp_path / "none.jsonl"]).endswith("none.jsonl: no such file")


def test_a_first_row_that_is_a_pair_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("neutral\tthe label reads\tit reads\n", "utf-8")
    assert len(read([tmp_path / "a.tsv"]).examples) == 1


@given(raw=st.binary(max_size=200), ending=st.sampled_from([".jsonl", ".tsv"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: Any, raw: bytes, ending: str) -> None:
    path = tmp_path_factory.mktemp("any") / f"a{ending}"
    path.write_bytes(raw)
    with suppress(BadInput):
        assert read([path]).examples


texts = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)


@given(
    st.lists(
        st.tuples(texts, texts, st.sampled_from(["entailment", "contradiction", "neutral"])),
        min_size=1,
    )
)
def test_what_is_written_is_read_back(
    tmp_path_factory: Any, rows: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("back")
    path = lines(
        folder / "a.jsonl",
        *({"sentence1": a, "sentence2": b, "gold_label": label} for a, b, label in rows),
    )
    table = folder / "a.tsv"
    table.write_text("".join(f"{label}\t{a}\t{b}\n" for a, b, label in rows), "utf-8", newline="")
    assert read([path]).examples == read([table]).examples == [Example(*row) for row in rows]
