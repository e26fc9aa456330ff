"""Predictions from a file: whatever an NLI model's output looks like, each pair gets its own, or a sentence says why not."""

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


def asked(*names: str) -> list[Request]:
    """A request for each item of `names`, like `zh:7`."""
    return [
        Request(
            name.partition(":")[0], "ps", name, "label", "classify", "p", "", Key(), hypothesis="h"
        )
        for name in names
    ]


def file(folder: Path, *rows: Any, name: str = "p.jsonl") -> Path:
    path = folder / name
    path.write_text(
        "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8"
    )
    return path


def answers(path: Path, *names: str, label_names: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """Label and rounded probabilities for each of `names`."""
    scorer: Any = load(f"predictions:{path}", label_names=label_names)
    found = scorer.answer(asked(*names))
    return [(one.response, one.logprobs and tuple(np.exp(one.logprobs).round(4))) for one in found]


def test_rows_are_matched_by_id_in_any_order(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        {"id": 7, "label": "neutral"},
        {"id": "3", "label": " Entailment"},
        {"id": 5, "label": "contradictory"},
    )
    assert answers(path, "en:3", "en:5", "en:7") == [
        ("entailment", None),
        ("contradiction", None),
        ("neutral", None),
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"entailment": 0.1, "contradiction": 0.2, "neutral": 0.7},
        {"entailment": "0.1", "contradiction": "0.2", "neutral": "0.7"},
        {"label": "entailment", "neutral": 0.7, "contradiction": 0.2, "entailment": 0.1},
        {"label": ["neutral", "contradiction", "entailment"], "scores": [0.7, 0.2, 0.1]},
        {"labels": ["NEUTRAL", "CONTRADICTION", "ENTAILMENT"], "scores": [0.7, 0.2, 0.1]},
        {
            "scores": [
                {"label": name, "score": value}
                for name, value in (("neutral", 0.7), ("entailment", 0.1), ("contradiction", 0.2))
            ]
        },
        {"label": ["LABEL_0", "LABEL_2", "LABEL_1"], "scores": [0.7, 0.2, 0.1]},
    ],
)
def test_three_probabilities_in_any_form(tmp_path: Path, row: dict[str, Any]) -> None:
    path = file(tmp_path, {"id": 1, **row})
    names = ("neutral", "entailment", "contradiction")
    assert answers(path, "en:1", label_names=names) == [("neutral", (0.1, 0.2, 0.7))]


def test_a_table_has_the_same_names(tmp_path: Path) -> None:
    path = file(tmp_path, CSV, "1,0.2,0.5,0.3\n", "2,.999,0.002,0\n", name="p.csv")
    assert answers(path, "en:1", "en:2") == [
        ("contradiction", (0.2, 0.5, 0.3)),
        ("entailment", (0.999, 0.002, 0)),
    ]
    path = file(
        tmp_path, "language,id,label\n", "en,1,neutral\n", "zh,1,entailment\n", name="q.csv"
    )
    assert [label for label, _ in answers(path, "zh:1", "en:1")] == ["entailment", "neutral"]


def test_logits_become_probabilities(tmp_path: Path) -> None:
    # Of a row of logits that could be probabilities, the others decide what it is.
    logits = [[2.0, -1.0, 0.5], [0.25, 0.25, 0.5], [-3.0, 4.0, 1.0]]
    path = file(
        tmp_path,
        *({"id": k, **dict(zip(LABELS, row, strict=True))} for k, row in enumerate(logits)),
    )
    wanted = [np.exp(row) / np.exp(row).sum() for row in logits]
    for (label, found), row in zip(answers(path, "en:0", "en:1", "en:2"), wanted, strict=True):
        np.testing.assert_allclose(found, row, atol=1e-4)
        assert label == LABELS[int(row.argmax())]
    assert load(f"predictions:{path}").describe()["kind"] == "predictions from a file (logits)"


def test_of_equals_the_first_is_the_label(tmp_path: Path) -> None:
    path = file(tmp_path, CSV, "1,0.4,0.4,0.2\n", "2,0.2,0.4,0.4\n", "3,0,0.5,0.5\n", name="p.csv")
    found = answers(path, "en:1", "en:2", "en:3")
    assert [label for label, _ in found] == ["entailment", "contradiction", "contradiction"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [{"id": 1, "entailment": 12, "contradiction": 0, "neutral": 3}],
            "line 1: entailment 12, contradiction 0, neutral 3 sum to 15; expected probabilities, which are 0 to 1 and sum to 1",
        ),
        (
            [{"id": 1, "entailment": 33, "contradiction": 33, "neutral": 34}],
            "not counts or percentages",
        ),
        ([{"id": 1, "entailment": 0.5, "contradiction": 0.2, "neutral": 0.297}], "sum to 0.997"),
        (
            [
                {"id": 1, "entailment": 0.5, "contradiction": 0.3, "neutral": 0.2},
                {"id": 2, "entailment": 0.9, "contradiction": 0.3, "neutral": -0.2},
            ],
            "line 2: entailment 0.9, contradiction 0.3, neutral -0.2 sum to 1;",
        ),
        (
            [{"id": 1, "label": "neutral"}, "\n", {"id": 1, "label": "neutral"}],
            "line 3: id 1 is in line 1 already",
        ),
        (
            [{"id": 1, "label": "maybe"}],
            "line 1, field `label`: 'maybe' is unknown; allowed: entailment, contradiction, neutral",
        ),
        (
            [{"id": 1, "label": "LABEL_1"}],
            "'LABEL_1' is unknown; allowed: entailment, contradiction, neutral; give their meaning with --label-names",
        ),
        ([{"id": 1, "label": 2}], "field `label`: 2 is unknown"),
        ([{"label": "neutral"}], "line 1: field `id` is missing; found: label"),
        ([{"id": "zh-1", "label": "neutral"}], "field `id`: 'zh-1' is not a whole number"),
        ([{"id": True, "label": "neutral"}], "field `id`: True is not a whole number"),
        (
            [{"id": 1, "score": 0.9}],
            "line 1: field `label` is missing; expected it, or entailment, contradiction, neutral; found: id, score",
        ),
        (
            [{"id": 1, "entailment": 0.9, "neutral": 0.1}],
            "field `contradiction` is missing beside entailment, neutral",
        ),
        (
            [{"id": 1, "entailment": None, "contradiction": 0.9, "neutral": 0.1}],
            "field `entailment` is missing",
        ),
        (
            [{"id": 1, "entailment": "high", "contradiction": 0.9, "neutral": 0.1}],
            "field `entailment`: 'high' is not a number",
        ),
        (
            ['{"id": 1, "entailment": NaN, "contradiction": 0.9, "neutral": 0.1}\n'],
            "field `entailment`: nan is not a number",
        ),
        (
            [{"id": 1, "scores": [0.5, 0.5], "label": ["neutral", "entailment"]}],
            "field `scores`: expected one for each of",
        ),
        (
            [{"id": 1, "scores": [0.5, 0.3, 0.2]}],
            "expected a list `label` of as many names beside it",
        ),
        (
            [{"id": 1, "scores": [0.5, 0.3, 0.2], "label": ["neutral", "neutral", "entailment"]}],
            "expected one for each",
        ),
        (
            [{"id": 1, "language": "en", "label": "neutral"}, {"id": 2, "label": "neutral"}],
            "line 2: field `language` is missing, which other rows have",
        ),
        ([{"id": 1, "language": 3, "label": "neutral"}], "field `language`: 3 is not a text"),
        (["[1]\n"], "expected a JSON object"),
        ([], "holds no predictions"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(
    tmp_path: Path, refusal: Any, rows: list[Any], said: str
) -> None:
    path = file(tmp_path, *rows)
    message = refusal(load, f"predictions:{path}")
    assert message.startswith(str(path))
    assert said in message


def test_a_missing_file_and_a_broken_table_are_refused(tmp_path: Path, refusal: Any) -> None:
    assert "no such file of predictions" in refusal(load, f"predictions:{tmp_path / 'no.jsonl'}")
    assert "no such file of predictions" in refusal(Predictions, tmp_path / "no.jsonl")
    path = file(tmp_path, "id,label\n", "1,neutral\n", "2\n", name="p.csv")
    assert "row 2: has 1 cells" in refusal(load, f"predictions:{path}")
    assert "column `id` is missing" in refusal(
        load, f"predictions:{file(tmp_path, 'label', name='q.csv')}"
    )


def test_every_pair_that_is_asked_needs_one_and_no_other_may_be_there(
    tmp_path: Path, refusal: Any
) -> None:
    path = file(tmp_path, *({"id": k, "label": "neutral"} for k in (0, 2, 9)))
    scorer = Predictions(path)
    known = ["en:0", "en:1", "en:2", "en:9"]
    scorer.cover(asked("en:0", "en:2"), known)
    assert refusal(scorer.cover, asked("en:0", "en:1", "en:2"), known) == (
        f"{path}: has no prediction for 1 of 3 pairs, the first is id 1 (en)"
    )
    assert (
        refusal(scorer.cover, asked("en:0"), known[:3])
        == f"{path}, line 3: id 9 is not in the data"
    )
    assert "field `language` is missing, and en, zh are asked" in refusal(
        scorer.cover, asked("en:0", "zh:0"), known
    )
    assert refusal(scorer.answer, asked("en:5")) == f"{path}: has no prediction for id 5"


def predicted(folder: Path, *languages: str, **settings: str) -> list[dict[str, Any]]:
    """What a model predicts that follows every stereotype."""
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
def test_the_exact_values_of_the_released_sets(
    shared: Path, own_folder: Path, language: str, fn: float
) -> None:
    """PS entailed, AS contradicted, NS neutral: CoAL is 2/3, and FN follows the sizes (specification 2.2)."""
    folder = shared / "data" / "nli_coal"
    path = file(own_folder, *reversed(predicted(folder, language)))
    run = evaluate(
        "nli_coal",
        f"predictions:{path}",
        data=folder,
        categories=[language],
        out=own_folder / "run",
    )
    scores = run.scores().query("category == @language and task == 'all'").set_index("metric").score
    assert scores["coal"] == pytest.approx(2 / 3)
    assert scores["fn"] == pytest.approx(fn, abs=5e-5)
    assert run.label == "p"


def test_predictions_of_the_whole_sets_serve_the_down_sampled_ones(
    shared: Path, own_folder: Path, refusal: Any
) -> None:
    folder = shared / "data" / "nli_coal"
    options: dict[str, Any] = {
        "data": folder,
        "categories": ["zh"],
        "settings": {"set": "downsample"},
    }
    small, whole = predicted(folder, "zh", set="downsample"), predicted(folder, "zh")
    for k, rows in enumerate((small, whole)):
        model = f"predictions:{file(own_folder, *rows, name=f'{k}.jsonl')}"
        scores = evaluate("nli_coal", model, out=own_folder / f"run {k}", **options).scores()
        found = scores.query("category == 'zh' and task == 'all'").set_index("metric")
        assert (found.score["fn"], found.n["fn"]) == (pytest.approx(2 / 3), 600)
    model = f"predictions:{file(own_folder, *small)}"
    said = refusal(
        evaluate, "nli_coal", model, data=folder, categories=["zh"], out=own_folder / "other"
    )
    assert "has no prediction for 4,720 of 5,320 pairs, the first is id " in said
    assert not (own_folder / "other").exists(), "nothing is written for a file that does not fit"


def test_probabilities_are_recorded(own_folder: Path) -> None:
    pairs = data.load(data.find("nli_coal", data.SAMPLES / "nli_coal"), ["en"])
    rows = [f"{pair.id},0.2,0.3,0.5\n" for pair in pairs]
    path = file(own_folder, CSV, *rows, name="p.csv")
    run = evaluate(
        "nli_coal", f"predictions:{path}", categories=["en"], tasks=["ps"], out=own_folder / "r"
    )
    assert run.records.parsed.eq("neutral").all()
    np.testing.assert_allclose(
        np.exp(np.vstack(run.records.logprobs)), [[0.2, 0.3, 0.5]] * len(run.records)
    )
    # Another file of that name is another run.
    file(own_folder, CSV, *rows[::-1], name="p.csv")
    with pytest.raises(Exception, match="model_content"):
        evaluate(
            "nli_coal", f"predictions:{path}", categories=["en"], tasks=["ps"], out=own_folder / "r"
        )
