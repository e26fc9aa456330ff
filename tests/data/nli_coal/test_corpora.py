"""Corpora are read in every style, and frames found in pairs."""

import json

import pytest

from bench.benchmarks.nli_coal.corpora import Example, read
from bench.benchmarks.nli_coal.frames import RELEASED_TERMS, align, match_of
from tests.helpers.cases import cases

PAIR = {"sentence1": "a nurse reads", "sentence2": "a woman reads"}
HUB = {"premise": "a nurse reads", "hypothesis": "a woman reads", "label": "neutral"}
HEADER = "x\tgold_label\tsentence1\tsentence2\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("snli.jsonl", json.dumps(PAIR | {"gold_label": "neutral", "annotator_labels": []})),
        ("ocnli.json", json.dumps(PAIR | {"label": "neutral", "label0": "entailment"})),
        ("hub.jsonl", json.dumps(HUB)),
        ("jsnli.tsv", "neutral\ta nurse reads\ta woman reads"),
        ("xnli.tsv", "premise\thypo\tlabel\r\na nurse reads\ta woman reads\tneutral\r"),
        ("dev.txt", HEADER + "0\tneutral\ta nurse reads\ta woman reads"),
    ],
)
def test_every_style_gives_the_same_pair(tmp_path, name, text):
    (tmp_path / name).write_text(text + "\n", "utf-8", newline="")
    pair = Example("a nurse reads", "a woman reads", "neutral")
    assert read([tmp_path / name]).examples == [pair]


def test_rows_without_consensus_are_left_out_and_counted(tmp_path, refusal):
    def lines(*labels):
        text = "\n".join(json.dumps(PAIR | {"label": label}) for label in labels)
        (tmp_path / "a.jsonl").write_text(text, "utf-8")
        return tmp_path / "a.jsonl"

    # The first row is a pair and no header, though it holds the name of a field.
    (tmp_path / "b.tsv").write_text("-\ta\tb\nneutral\tthe label\tb\n", "utf-8")
    corpus = read([lines("-", "contradictory", -1, "entailment"), tmp_path / "b.tsv"])
    found = [example.label for example in corpus.examples]
    assert found == ["contradiction", "entailment", "neutral"] == sorted(corpus.counts)
    assert [(file.rows, file.left_out) for file in corpus.files] == [(2, 2), (1, 1)]
    # Numbers are read where it is said what they mean.
    assert "say what numbers mean" in refusal(read, [lines(2, -1)])
    assert read([lines(2, -1)], {"2": "contradiction"}).examples[0].label == "contradiction"


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.jsonl", '{"sentence1": "a", "label": ""}', ", line 1: field `sentence2` or `hypothes"),
        ("a.jsonl", "\n" + json.dumps(HUB | {"hypothesis": ""}), ", line 2, field `hypothesis`: "),
        ("a.tsv", HEADER + "0\ta\tb", ", line 2: has 3 cells; expected 4: x, gold_label, sen"),
        ("a.csv", "neutral,a,b", ": ending '.csv' is unknown; allowed: .jsonl"),
    ],
)
def test_an_error_names_its_place(tmp_path, refusal, name, text, error):
    (tmp_path / name).write_text(text, "utf-8")
    assert refusal(read, [tmp_path / name]).startswith(f"{tmp_path / name}{error}")


@cases(__file__, "pairs.csv")
def test_pairs_are_aligned(case):
    """`named` is the occupation that the row names, if it does."""
    terms, match = RELEASED_TERMS[case["language"]], match_of(case["language"])
    made = [case[name] for name in ("frame", "occupation", "term")]
    for occupation in (case["named"], ""):
        aligned = align(case["premise"], case["hypothesis"], terms, match, occupation)
        found = [aligned.frame, aligned.occupation, aligned.term] if aligned else ["", "", ""]
        assert found == made
