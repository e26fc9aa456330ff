"""Which runs and scores an analysis is about, and which conditions it compares."""

import pandas as pd
import pytest

import bench
from bench import run
from bench.analyses import open_scores, opened, parameters
from bench.analyses.conditions import doubts, open_conditions

MODELS = ["simulated:bias=0.2", "simulated:bias=0.8"]


def test_runs_are_named_by_folder_or_pattern(tmp_path, refusal):
    for name in ("cbbq", "nli_coal"):
        run.evaluate_all(name, MODELS, tmp_path, limit=2)
    (tmp_path / "notes").mkdir()
    pattern = tmp_path / "*" / "*"
    every = opened([pattern])
    expected = [(model, name) for model in MODELS for name in ("cbbq", "nli_coal")]
    assert [(one.model, one.benchmark) for one in every] == expected
    assert [one.model for one in opened([pattern], benchmarks=["cbbq"])] == MODELS
    (second,) = opened([every[0].folder, every[2].folder], models=MODELS[1:])
    assert second.model == MODELS[1]
    message = refusal(opened, [pattern], models=["gpt"], benchmarks=["mcbe"])
    assert message.startswith("no run of gpt on mcbe: ")
    assert "run.json" in refusal(opened, [tmp_path / "notes"])


@pytest.mark.parametrize("place", ["reports/runs/sim*", "sim*", "reports/runs", "reports/runs/*/*"])
def test_a_notebook_names_runs_as_the_command_printed_them(own_folder, monkeypatch, place):
    bench.evaluate("cbbq", MODELS[0], data="samples", limit=1)
    monkeypatch.setenv("BENCH_REPORTS", str(own_folder / "reports"))
    (own_folder / "notebooks").mkdir()
    monkeypatch.chdir(own_folder / "notebooks")
    assert [one.model for one in opened([place])] == MODELS[:1]


def test_runs_of_a_model_are_named_by_what_differs(own_folder):
    common = {"data": "samples", "limit": 5}
    runs = [
        bench.evaluate("cbbq", "simulated:", **{**common, **options})
        for options in ({}, {"answer_mode": "letters"}, {"answer_mode": "text", "seed": 3})
    ]
    assert list(bench.score(*runs).model.unique()) == [
        "simulated: (text, seed 0)",
        "simulated: (letters, seed 0)",
        "simulated: (text, seed 3)",
    ]
    outcomes = bench.outcomes(*runs[:2])
    assert list(outcomes.model.unique()) == ["simulated: (text)", "simulated: (letters)"]
    assert len(bench.differences(bench.score(*runs[:2]), outcomes))
    assert list(bench.score(runs[0], runs[0].folder).model.unique()) == ["simulated:"]
    overall = bench.score(*runs[:2], overall=True)
    assert list(overall.metric) == [
        "s_amb",
        "s_amb",
        "s_disamb",
        "s_disamb",
        "accuracy",
        "accuracy",
    ]
    assert list(overall.worse) == ["higher"] * 4 + ["lower"] * 2


def test_an_analysis_says_which_runs_it_opened_and_why(own_folder, monkeypatch, capsys):
    options = {"benchmarks": "cbbq", "options": {"cbbq": {"limit": 1}}}
    opened([], demo=MODELS, **options)
    said = capsys.readouterr().err
    demo = "a demonstration of simulated:bias=0.2, simulated:bias=0.8"
    assert f"no runs of real models in reports/runs: {demo}" in said
    monkeypatch.setattr("bench.analyses.REFERENCES", ())  # as if these were real models
    opened([], **options)
    names = "simulated:bias=0.2 on cbbq, simulated:bias=0.8 on cbbq"
    assert f"2 runs in reports/runs: {names}; name others in `runs`" in capsys.readouterr().err
    opened(["reports/runs/*0.8/*"])
    assert "1 run for reports/runs/*0.8/*: simulated:bias=0.8" in capsys.readouterr().err


def test_without_runs_a_demonstration_is_asked(own_folder, monkeypatch):
    options = {"benchmarks": "cbbq", "options": {"cbbq": {"limit": 1}}}
    found = opened([], demo=MODELS, **options)
    assert [one.model for one in found] == MODELS
    assert found[0].metadata["asked"]["limit"] == 1
    assert [one.model for one in opened([], demo=MODELS[:1], **options)] == MODELS[:1]
    monkeypatch.setattr("bench.analyses.REFERENCES", ())  # as if these were real models
    assert [one.model for one in opened([], demo=MODELS[:1], **options)] == MODELS


def test_scores_of_runs_are_also_those_on_common_answers(tmp_path):
    models = ["simulated:bias=0.3", "simulated:bias=0.3,refuse=0.4"]
    run.evaluate_all("cbbq", models, tmp_path, limit=20, categories=["age", "gender"])
    columns = {"billions": {models[0]: 7}}
    own, common, runs = open_scores([tmp_path / "*/*"], benchmarks='["cbbq"]', columns=columns)
    assert [one.model for one in runs] == models
    rates = [bench.measure(table).valid_rate.min() for table in (own, common)]
    assert rates[0] < rates[1] == 1
    assert set(own.billions.dropna()) == {7}


def test_scores_measured_elsewhere_get_the_columns_of_scores(tmp_path, refusal):
    path = tmp_path / "mine.csv"
    path.write_text("model,topic,score,tokens\na,x,0.5,1e9\nb,x,0.25,2e9\n", "utf-8")
    own, common, runs = open_scores([], path, columns={"year": {"a": 2024}})
    assert own is common
    assert not runs
    assert list(bench.measure(own).score) == [0.5, 0.25]
    first = own.iloc[0][["category", "title", "family", "tokens", "year"]].to_list()
    assert first == ["all", "score", "mine", 1e9, 2024]
    assert "no such score; there are all score" in refusal(bench.measure, own, "ss")
    path.write_text("model,score\na,much\n", "utf-8")
    assert "mine.csv, row 1, column `score`: 'much'" in refusal(open_scores, [], path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["c"], ["c"]),
        (None, []),
        ("a, b,", ["a", "b"]),
        ("x:a=1", ["x:a=1"]),
        ("x:a=1,b=2, y:a=1 ,z", ["x:a=1,b=2", "y:a=1", "z"]),
        ('["x,y"]', ["x,y"]),
    ],
)
def test_a_list_may_be_nothing_or_a_text_in_which_options_belong_to_their_model(given, expected):
    assert parameters(models=given) == [expected]


def test_a_text_that_is_no_list_or_mapping_is_refused(refusal):
    assert "sizes: the key 'a' occurs twice" in refusal(parameters, sizes='{"a": 1, "a": 2}')
    assert "models '[a': expected names" in refusal(parameters, models="[a")
    message = "options 'limit=2': expected a mapping, in JSON"
    assert message in refusal(run.evaluate_all, "cbbq", MODELS, options="limit=2")


def test_an_option_of_a_notebook_may_be_none():
    given = dict.fromkeys(["options", "settings", "data", "categories", "tasks", "recorded"])
    (one,) = run.evaluate_all("cbbq", MODELS[0], limit=1, **given)
    assert one.metadata["asked"]["limit"] == 1


OPTIONS = {
    "plain": {},
    "instructed": {"settings": {"prompting": "Q+IF"}, "categories": ["age", "race"]},
    "reworded": {"prompts": "reworded"},
    "warm": {"seed": 7, "prompts": "reworded"},
    "hot": {"seed": 8, "prompts": "reworded"},
    "other": {"model": MODELS[1]},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, common = tmp_path_factory.mktemp("runs"), {"model": MODELS[0], "limit": 2}
    return {
        name: bench.evaluate("cbbq", out=folder / name, **{**common, **own})
        for name, own in OPTIONS.items()
    }


@pytest.mark.parametrize("first", ["plain", "instructed"])
def test_the_runs_count_that_were_asked_most_alike(runs, first):
    order = sorted(runs, key=lambda name: name != first)
    outcomes, chosen = open_conditions([runs[name].folder for name in order])
    assert [one.folder.name for one in chosen] == ["plain", "reworded"]
    assert list(outcomes.prompts.unique()) == ["bench-cbbq-3", "bench-cbbq-3#reworded"]
    # A model without a second prompt set is left out.
    assert list(outcomes.model.unique()) == MODELS[:1]
    # Only questions that were asked under both conditions count.
    outcomes, _chosen = open_conditions(
        list(runs.values()),
        condition=lambda run: run.metadata["asked"]["settings"]["prompting"],
    )
    assert list(outcomes.prompts.unique()) == ["Q", "Q+IF"]
    assert set(outcomes.category) == {"age", "race"}


def test_a_question_is_the_same_with_and_without_an_explanation(runs, tmp_path):
    own = {"settings": {"explanation": "yes"}, "judge": "simulated:", "limit": 2}
    explained = bench.evaluate("cbbq", MODELS[0], out=tmp_path / "explained", **own)
    outcomes, _chosen = open_conditions(
        [runs["plain"], explained],
        condition=lambda run: run.metadata["asked"]["settings"]["explanation"],
    )
    counts = outcomes.groupby(["item_id", "request"]).prompts.agg(list)
    assert counts.map(sorted).map(tuple).unique().tolist() == [("no", "yes")]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["plain", "other"], "no model was asked under two prompt sets; there is simulated:bias=0"),
        (["plain", "warm", "hot"], "was asked under one condition in both"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs, refusal, names, message):
    assert message in refusal(open_conditions, [runs[name] for name in names])


def test_a_csv_is_compared_over_categories(tmp_path, refusal):
    file, header = tmp_path / "mine.csv", "model,category,prompts,score\n"
    file.write_text(f"{header}m,all,a,9\nm,age,a,0\nm,age,b,1\nm,race,a,10\nm,race,b,11\n")
    scores, chosen = open_conditions([], file)
    assert chosen == []
    assert list(scores.category) == ["age", "age", "race", "race"]
    (row,) = bench.compare(scores, "score", between="prompts", by="model").itertuples()
    assert (row.estimate, row.n) == (pytest.approx(-1), 2)
    file.write_text(f"{header}m,age,a,0.5\nm,race,b,0.5\n")
    assert "m: no question was asked under all of a, b" in refusal(open_conditions, [], file)
    file.write_text("model,score\nm,0.5\n")
    assert "mine.csv: column 'prompts'" in refusal(open_conditions, [], file)


def test_a_model_that_says_a_under_all_prompts_is_in_doubt(tmp_path):
    models = {
        "A": ["simulated:answer=A"] * 2,
        "turns": ["simulated:answer=A", "simulated:bias=0.7"],
    }
    runs = []
    for name, (first, other) in models.items():
        for model, prompts in ((first, None), (other, "reworded")):
            options = {"name": name, "prompts": prompts, "categories": ["age"], "limit": 10}
            out = tmp_path / f"{name}-{prompts}"
            runs.append(bench.evaluate("cbbq", model, data="samples", out=out, **options))
    rows = pd.DataFrame({"model": ["A", "A", "turns"], "task": ["ambiguous", "none", "ambiguous"]})
    same = "the same answer to everything"
    assert doubts(rows, runs).tolist() == [same, same, ""]
    assert doubts(rows, []).tolist() == ["", "", ""]


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_conditions_of_each_benchmark_have_their_common_units(own_folder, benchmark):
    demo = [{"model": "simulated:bias=0.5", "prompts": words} for words in (None, "reworded")]
    units, runs = open_conditions("", benchmark=benchmark, demo=demo, limit=2)
    assert [run.benchmark for run in runs] == [benchmark] * 2
    first, second = (own for _, own in units.groupby("prompts", sort=False))
    assert len(first) == len(second) > 0
