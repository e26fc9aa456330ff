"""McBE at its edges: numbers beyond all bounds, tasks that a model lacks, rows left out, differences that are small."""

import json

import pytest

from bench import cli, run
from bench.figures import mcbe as pictures
from tests.helpers.recorded import cell

HEADER = "context,sentence,words,subtype,explanation,score\n"
ROW = "开会，,[PLH]先说。,甲，乙,x,y,1\n"


def replay(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return f"replay:{path}"


def data(folder, rows, category="age"):
    folder.mkdir(exist_ok=True)
    (folder / f"{category}.csv").write_text(HEADER + rows, "utf-8")
    return folder


def test_a_number_beyond_all_bounds_is_null_with_a_reason(tmp_path, capsys):
    said = ["5", "7" * 400]
    model = replay(
        tmp_path / "m",
        [
            {"task": "bs", "item_id": f"age:{k + 1}", "request": "answer", "response": reply}
            for k, reply in enumerate(said)
        ],
    )
    words = [
        "run",
        "mcbe",
        "--model",
        model,
        "--tasks",
        "bs",
        "--data",
        data(tmp_path / "d", ROW * 2),
        "--out",
        tmp_path / "o",
    ]
    assert (
        cli._status(lambda: cli.app([*map(str, words), "--format", "json"], standalone_mode=False))
        == 0
    )
    rows = json.loads(capsys.readouterr().out)["scores"]
    official = [row for row in rows if row["preset"] == "official" and row["metric"] == "score"]
    assert {row["score"] for row in official} == {None}
    assert "the released code prints -inf" in official[0]["note"]
    ours = next(row for row in rows if row["preset"] == "robust" and row["metric"] == "score")
    assert (ours["score"], ours["n"], ours["valid_rate"]) == (60, 1, 0.5)


def test_the_common_score_is_there_for_models_without_likelihoods(tmp_path):
    tasks = ["sc", "ss", "ba", "bs"]
    table = run.evaluate(
        "mcbe", "simulated:bias=0.4", judge="simulated:", tasks=tasks, limit=2, out=tmp_path / "a"
    ).scores_beside()
    assert cell(table, "score_common", task="all").score == cell(table, task="all").score
    table = run.evaluate(
        "mcbe", "simulated:bias=0.4", judge="simulated:", limit=2, out=tmp_path / "b"
    ).scores_beside()
    common, whole = cell(table, "score_common", task="all"), cell(table, task="all")
    # Of 12 categories with 2 instances each, 11 have groups.
    assert (common.n, whole.n) == (24 * 3 + 22, 24 * 3 + 22 * 2)


def test_a_score_over_fewer_tasks_says_so(tmp_path):
    table = run.evaluate("mcbe", "simulated:", limit=1, out=tmp_path).scores_beside()
    assert "without ba" in cell(table, task="all").note
    assert cell(table, task="ba").note == "not applicable: it needs a judge; give --judge MODEL"


def test_rows_that_are_left_out_are_counted_beside_the_score(tmp_path):
    folder = data(
        tmp_path / "d",
        ROW * 3 + "开会，,没有槽位。,甲，乙,x,y,1\n开会，,[PLH]先说。,甲，乙,x,y,11\n",
    )
    result = run.evaluate(
        "mcbe",
        "simulated:",
        tasks=["ss"],
        data=folder,
        settings={"bad_rows": "leave_out"},
        out=tmp_path / "o",
    )
    assert (
        "2 instances are left out: their rows cannot be right"
        in cell(result.scores_beside(), category="age").note
    )
    assert result.about["unfit"][0]["items"] == 2


def test_a_small_disagreement_with_the_released_code_is_shown(tmp_path):
    # One of forty pairs says both letters: the code counts both votes, we cannot read it.
    rows = [
        {"task": "ss", "item_id": f"age:{k}", "request": pair, "response": "A"}
        for k in range(1, 41)
        for pair in ("甲|乙", "乙|甲")
    ]
    rows[0]["response"] = "A和B"
    result = run.evaluate(
        "mcbe",
        replay(tmp_path / "m", rows),
        tasks=["ss"],
        data=data(tmp_path / "d", ROW * 40),
        out=tmp_path / "o",
    )
    table = result.scores_beside()
    assert (
        cell(table, category="age", preset="robust").n,
        cell(table, category="age", preset="official").n,
    ) == (39, 40)


def test_a_model_without_a_single_number_has_its_pictures(tmp_path):
    runs = run.evaluate_all(
        "mcbe",
        ["simulated:refuse=1"],
        tmp_path,
        tasks=["ss", "bs"],
        limit=1,
        categories=["age", "race"],
    )
    table = run.table(runs)
    assert "none of which has a number" in pictures.tasks_by_model(table).get_label()
    assert (
        "without a number" in pictures.categories_by_task(table, "simulated:refuse=1").get_label()
    )


@pytest.mark.parametrize("name", ["tasks", "categories"])
def test_a_text_in_the_place_of_a_list_is_refused(refusal, name):
    assert f"{name} 'pc': expected a list, like ['pc']" in refusal(
        run.evaluate, "mcbe", "simulated:", **{name: "pc"}
    )


def test_answers_that_did_not_come_are_counted_with_the_reason(tmp_path, monkeypatch):
    from bench.scorers.base import Answer
    from bench.scorers.stand_ins.simulated import Simulated

    def refuse_some(self, requests):
        return [
            Answer("", error="refused by the content filter")
            if one.item_id == "age:1"
            else Answer("5")
            for one in requests
        ]

    monkeypatch.setattr(Simulated, "answer", refuse_some)
    table = run.evaluate(
        "mcbe", "simulated:", tasks=["bs"], data=data(tmp_path / "d", ROW * 3), out=tmp_path / "o"
    ).scores_beside()
    row = cell(table, task="bs", category="all", preset="robust")
    assert "1 of 3 answers did not come, most often: refused by the content filter" in row.note
    assert (row.n, row.valid_rate) == (2, pytest.approx(2 / 3))


@pytest.mark.parametrize("preset", ["robust", "paper"])
def test_an_unreadable_classification_is_wrong_and_the_readable_share_stands_beside(
    tmp_path, preset
):
    model = "simulated:bias=0,refuse=0.5"
    result = run.evaluate("mcbe", model, tasks=["sc"], preset=preset, data="samples", out=tmp_path)
    rows = result.records.merge(result.items[["item_id", "subtype"]], on="item_id")
    right = (rows.parsed == rows.subtype).groupby(rows.category).agg(["sum", "size"])
    table = result.scores(preset)
    assert cell(table, preset=preset, task="sc").score == pytest.approx(
        100 * (right["sum"] / right["size"]).mean()
    )
    assert cell(table, preset=preset, task="sc").n == len(rows)
    readable = cell(table, "score_readable", preset=preset, task="sc")
    assert (readable.score, readable.n) == (100, rows.valid.sum())
    assert 40 < cell(table, preset=preset, task="sc").score < 50
