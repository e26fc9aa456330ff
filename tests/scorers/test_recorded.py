"""Predictions of an NLI model that were made elsewhere: forms, ids, errors, and exact scores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import data
from bench.data import nli_coal
from bench.run import evaluate
from bench.scorers import load
from bench.scorers.stand_ins.recorded import Predictions
from bench.tasks.nli_coal import BIASED, LABELS
from bench.tasks.request import Key, Request

CSV = "id,entailment,contradiction,neutral\n"


def requests(*item_ids: str) -> list[Request]:
    """Requests for pairs like `zh:7`."""
    names = [(item_id.partition(":")[0], "ps", item_id) for item_id in item_ids]
    return [Request(*name, "label", "classify", "p", "", Key(), hypothesis="h") for name in names]


def write(folder: Path, *rows: Any, name: str = "p.jsonl") -> Path:
    path = folder / name
    lines = (row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    path.write_text("".join(lines), "utf-8")
    return path


def answers(path: Path, *item_ids: str, label_names: tuple[str, ...] = ()) -> list[Any]:
    """Label and rounded probabilities of each pair."""
    scorer: Any = load(f"predictions:{path}", label_names=label_names)
    return [
        (answer.response, answer.logprobs and tuple(np.exp(answer.logprobs).round(4)))
        for answer in scorer.answer(requests(*item_ids))
    ]


def test_rows_are_matched_by_id_in_any_order(tmp_path: Path) -> None:
    labels = {7: "neutral", "3": " Entailment", 5: "contradictory"}
    path = write(tmp_path, *({"id": number, "label": label} for number, label in labels.items()))
    expected = ["entailment", "contradiction", "neutral"]
    assert answers(path, "en:3", "en:5", "en:7") == [(label, None) for label in expected]
    rows = ("language,id,label\n", "en,1,neutral\n", "zh,1,entailment\n")
    path = write(tmp_path, *rows, name="q.csv")
    assert answers(path, "zh:1", "en:1") == [("entailment", None), ("neutral", None)]


SCORES = [("neutral", 0.7), ("entailment", 0.1), ("contradiction", 0.2)]


@pytest.mark.parametrize(
    "row",
    [
        {"entailment": 0.1, "contradiction": 0.2, "neutral": 0.7},
        {"entailment": "0.1", "contradiction": "0.2", "neutral": "0.7"},
        {"label": "entailment", "neutral": 0.7, "contradiction": 0.2, "entailment": 0.1},
        {"label": ["neutral", "contradiction", "entailment"], "scores": [0.7, 0.2, 0.1]},
        {"labels": ["NEUTRAL", "CONTRADICTION", "ENTAILMENT"], "scores": [0.7, 0.2, 0.1]},
        {"scores": [{"label": name, "score": value} for name, value in SCORES]},
        {"label": ["LABEL_0", "LABEL_2", "LABEL_1"], "scores": [0.7, 0.2, 0.1]},
    ],
)
def test_three_probabilities_in_any_form(tmp_path: Path, row: dict[str, Any]) -> None:
    path = write(tmp_path, {"id": 1, **row})
    names = ("neutral", "entailment", "contradiction")
    assert answers(path, "en:1", label_names=names) == [("neutral", (0.1, 0.2, 0.7))]


@pytest.mark.parametrize(
    ("numbers", "label"),
    [
        ((0.2, 0.5, 0.3), "contradiction"),
        ((0.999, 0.002, 0.0), "entailment"),  # rounded
        ((0.4, 0.4, 0.2), "entailment"),
        ((0.2, 0.4, 0.4), "contradiction"),
        ((0.0, 0.5, 0.5), "contradiction"),
    ],
)
def test_the_first_of_the_likeliest_is_the_label(
    tmp_path: Path, numbers: tuple[float, ...], label: str
) -> None:
    path = write(tmp_path, CSV, f"1,{','.join(map(str, numbers))}\n", name="p.csv")
    assert answers(path, "en:1") == [(label, numbers)]


def test_logits_become_probabilities(tmp_path: Path) -> None:
    # One row could be probabilities; the others decide what it is.
    logits = [[2.0, -1.0, 0.5], [0.25, 0.25, 0.5], [-3.0, 4.0, 1.0]]
    rows = [{"id": k, **dict(zip(LABELS, row, strict=True))} for k, row in enumerate(logits)]
    path = write(tmp_path, *rows)
    for (label, values), row in zip(answers(path, "en:0", "en:1", "en:2"), logits, strict=True):
        np.testing.assert_allclose(values, np.exp(row) / np.exp(row).sum(), atol=1e-4)
        assert label == LABELS[int(np.argmax(row))]
    assert load(f"predictions:{path}").describe()["kind"] == "predictions from a file (logits)"


def row(*numbers: Any, **more: Any) -> dict[str, Any]:
    return {"id": 1, **dict(zip(LABELS, numbers, strict=False)), **more}


IN_JSON: list[tuple[list[Any], str]] = [
    ([row(12, 0, 3)], "line 1: entailment 12, contradiction 0, neutral 3 sum to 15; expected"),
    ([row(33, 33, 34)], "not counts or percentages"),
    ([row(0.5, 0.2, 0.297)], "sum to 0.997"),
    ([row(0.5, 0.3, 0.2), row(0.9, 0.3, -0.2, id=2)], "line 2: entailment 0.9, contradiction 0.3"),
    ([row(label="neutral"), "\n", row(label="neutral")], "line 3: id 1 is in line 1 already"),
    ([row(label="maybe")], "line 1, field `label`: 'maybe' is unknown; allowed: entailment"),
    ([row(label="LABEL_1")], "neutral; give their meaning with --label-names"),
    ([row(label=2)], "field `label`: 2 is unknown"),
    ([{"label": "neutral"}], "line 1: field `id` is missing; found: label"),
    ([row(id="zh-1")], "field `id`: 'zh-1' is not a whole number"),
    ([row(id=True)], "field `id`: True is not a whole number"),
    ([row(score=0.9)], "line 1: field `label` is missing; expected it, or entailment"),
    ([row(0.9, neutral=0.1)], "field `contradiction` is missing; expected it beside entailment"),
    ([row(None, 0.9, 0.1)], "field `entailment` is missing"),
    ([row("high", 0.9, 0.1)], "field `entailment`: 'high' is not a number"),
    (['{"id": 1, "entailment": NaN, "contradiction": 0.9, "neutral": 0.1}\n'], "nan is not a"),
    ([row(scores=[0.5, 0.5], label=["neutral", "entailment"])], "`scores`: expected one for each"),
    ([row(scores=[0.5, 0.3, 0.2])], "beside a list `label` of their names"),
    ([row(scores=[0.5, 0.3, 0.2], label=["neutral", "neutral", "entailment"])], "one for each"),
    ([row(language="en", label="neutral"), row(id=2, label="neutral")], "line 2: field `language`"),
    ([row(language=3, label="neutral")], "field `language`: 3 is not a text"),
    (["[1]\n"], "expected a JSON object"),
    ([], "holds no predictions"),
]
IN_TABLES = [
    (["id,label\n", "1,neutral\n", "2\n"], "row 2: has 1 cells"),
    (["id,label\n", "x,neutral\n"], "row 1, column `id`: 'x' is not a whole number"),
    (["label"], "column `id` is missing"),
]


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [("p.jsonl", *case) for case in IN_JSON] + [("p.csv", *case) for case in IN_TABLES],
)
def test_a_wrong_row_is_refused_with_its_place(
    tmp_path: Path, refusal: Any, name: str, rows: list[Any], message: str
) -> None:
    path = write(tmp_path, *rows, name=name)
    error = refusal(load, f"predictions:{path}")
    assert error.startswith(str(path))
    assert message in error


def test_requests_and_predictions_have_to_match(tmp_path: Path, refusal: Any) -> None:
    path = write(tmp_path, *({"id": k, "label": "neutral"} for k in (0, 2, 9)))
    scorer = Predictions(path)
    known = ["en:0", "en:1", "en:2", "en:9"]
    scorer.cover(requests("en:0", "en:2"), known)
    missing = f"{path}: has no prediction for 1 of 3 pairs, the first is id 1 (en)"
    assert refusal(scorer.cover, requests("en:0", "en:1", "en:2"), known) == missing
    unknown = f"{path}, line 3: id 9 is not in the data"
    assert refusal(scorer.cover, requests("en:0"), known[:3]) == unknown
    message = refusal(scorer.cover, requests("en:0", "zh:0"), known)
    assert "field `language` is missing, and en, zh are asked" in message
    assert refusal(scorer.answer, requests("en:5")) == f"{path}: has no prediction for id 5"


def stereotyped(folder: Path, *languages: str, **settings: str) -> list[dict[str, Any]]:
    """The predictions of a model that follows every stereotype."""
    return [
        {"id": pair.id, "language": pair.category, "label": BIASED[pair.set]}
        for pair in nli_coal.load(folder, languages, **settings)
    ]


@pytest.mark.parametrize(
    ("language", "fn"),
    [
        pytest.param("en", 0.3690, marks=pytest.mark.slow),
        pytest.param("ja", 0.3690, marks=pytest.mark.slow),
        ("zh", 0.3759),
    ],
)
def test_scores_of_the_released_sets_are_exact(
    shared: Path, own_folder: Path, language: str, fn: float
) -> None:
    """PS entailed, AS contradicted, NS neutral: CoAL is 2/3, and FN follows the sizes."""
    folder = shared / "data" / "nli_coal"
    path = write(own_folder, *reversed(stereotyped(folder, language)))
    model = f"predictions:{path}"
    run = evaluate("nli_coal", model, data=folder, categories=[language], out="run")
    scores = run.scores().query("category == @language and task == 'all'").set_index("metric").score
    assert scores["coal"] == pytest.approx(2 / 3)
    assert scores["fn"] == pytest.approx(fn, abs=5e-5)
    assert run.label == "p"


def test_predictions_of_the_complete_sets_serve_the_down_sampled_ones(
    shared: Path, own_folder: Path, refusal: Any
) -> None:
    folder = shared / "data" / "nli_coal"
    options: dict[str, Any] = {"data": folder, "categories": ["zh"]}
    small, complete = stereotyped(folder, "zh", set="downsample"), stereotyped(folder, "zh")
    for k, rows in enumerate((small, complete)):
        model = f"predictions:{write(own_folder, *rows, name=f'{k}.jsonl')}"
        run = evaluate("nli_coal", model, out=f"{k}", settings={"set": "downsample"}, **options)
        row = run.scores().query("category == 'zh' and task == 'all' and metric == 'fn'")
        assert (row.score.item(), row.n.item()) == (pytest.approx(2 / 3), 600)
    model = f"predictions:{write(own_folder, *small)}"
    message = refusal(evaluate, "nli_coal", model, out=own_folder / "other", **options)
    assert "has no prediction for 4,720 of 5,320 pairs, the first is id " in message
    assert not (own_folder / "other").exists(), "nothing is written for a file that does not fit"


def test_probabilities_are_recorded(own_folder: Path) -> None:
    pairs = data.load(data.find("nli_coal", data.SAMPLES / "nli_coal"), ["en"])
    rows = [f"{pair.id},0.2,0.3,0.5\n" for pair in pairs]
    model = f"predictions:{write(own_folder, CSV, *rows, name='p.csv')}"
    options: dict[str, Any] = {"categories": ["en"], "tasks": ["ps"], "out": own_folder / "r"}
    records = evaluate("nli_coal", model, **options).records
    assert records.parsed.eq("neutral").all()
    expected = [[0.2, 0.3, 0.5]] * len(records)
    np.testing.assert_allclose(np.exp(np.vstack(records.logprobs)), expected)
    # Another file of that name is another run.
    write(own_folder, CSV, *rows[::-1], name="p.csv")
    with pytest.raises(Exception, match="model_content"):
        evaluate("nli_coal", model, **options)
