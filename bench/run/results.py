"""Runs on disk and their score tables, which we compute from the records.

For example:

    run = Run.open("reports/runs/tiny_s/cbbq-0a1b2c3d")
    run.scores("official")
"""

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from bench import records
from bench.benchmarks import get
from bench.config import PRESETS
from bench.core.errors import BadInput, RunFailed, expected
from bench.core.export import to_rows
from bench.core.numbers import decimals
from bench.core.places import PACKAGE
from bench.core.text import as_html, reveal_invisible
from bench.data import by_id, dataset
from bench.metrics import engine
from bench.metrics.engine import Metric
from bench.metrics.primary import HALF, contenders, explain, primary_rows, without_chat_template
from bench.metrics.table import ALL, Score, join_notes, score_table
from bench.metrics.verdicts import read_replies, verdicts_of
from bench.records import KEYS
from bench.run.cache import code_hash, kept
from bench.scorers.base import digest
from bench.scorers.names import short_name

# Below this median probability of all letters, the model would rather write another reply.
MIN_LETTER_MASS = 0.1
# Differences below this are floating-point noise.
NOISE = 1e-9
# The source of the package's own prompts.
OUR_WORDING = "bias-workbench"


class Note(NamedTuple):
    """A note on a primary metric; `gap` is the note of an added row if its score is missing."""

    category: str
    task: str
    text: str
    gap: str = ""


@dataclass(frozen=True, repr=False)
class Run:
    """A run on disk: its folder, and the content of its `run.json`.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> len(bench.open(run.folder).items)
        280
    """

    folder: Path
    metadata: dict[str, Any]

    def __post_init__(self) -> None:
        dataset.remember_names(self.benchmark, self.metadata["data"])
        records.note_opened(self.folder)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the run in `folder`.

        Raises:
            BadInput: the folder holds no run.
        """
        return cls(Path(folder), records.read_run_json(Path(folder)))

    def __repr__(self) -> str:
        folder = str(self.folder)
        with suppress(ValueError):  # another drive on Windows
            folder = min(folder, os.path.relpath(folder), key=len)
        return reveal_invisible(f"<Run {self._summary()}, {folder}>")

    def _repr_html_(self) -> str | None:
        """Return the primary metrics over all categories as a table; None without an answer."""
        scores = self.scores() if records.count(self.folder) else pd.DataFrame()
        if scores.empty:
            return None
        primary_metrics = get(self.benchmark).metrics.primary_metrics
        rows = pd.concat([primary_rows(scores, primary) for primary in primary_metrics])
        names = ["task", "metric", "score", "ci_low", "ci_high", "n", "valid_rate"]
        table = rows.loc[rows.category == ALL, names].to_html(
            index=False, na_rep="—", float_format=partial(decimals, digits=3), border=0
        )
        return f"<p>{as_html(self._summary())}</p>{table}"

    def _summary(self) -> str:
        n, planned = records.count(self.folder), self.metadata["requests"]
        answers = f"{n:,} answers" if n == planned else f"{n:,} of {planned:,} answers"
        return f"{self.benchmark}, {self.label}, {answers}"

    @property
    def benchmark(self) -> str:
        return str(self.metadata["benchmark"])

    @property
    def model(self) -> str:
        """The model as the user named it; for recorded answers the model that gave them."""
        options = self.metadata["asked"]
        return str(options.get("as_model") or options["model"])

    @property
    def kind(self) -> str:
        """The kind of model without details, for example "simulated respondent"."""
        return str(self.metadata["model"]["kind"]).partition(" (")[0]

    @property
    def judge(self) -> str:
        """The judge, as `model`; empty without one."""
        options = self.metadata["asked"]
        return str(options.get("as_judge") or options.get("judge") or "")

    @property
    def label(self) -> str:
        """The model's name in pictures and tables."""
        return str(self.metadata.get("name") or short_name(self.model))

    @property
    def records(self) -> pd.DataFrame:
        """The recorded answers, a row each; "Formats of files" has the columns."""
        return records.read(self.folder)

    @property
    def replies(self) -> pd.DataFrame:
        """The recorded answers without the prompts, which are most of a run's size."""
        return records.read(self.folder, prompts=False)

    @property
    def items(self) -> pd.DataFrame:
        """The items of the data, a row each, as `bench.data.frame` makes them."""
        return records.read_items(self.folder)

    def answers(self, *, prompts: bool = True) -> pd.DataFrame:
        """Return the records with two more columns.

        - `verdict` is one of `bench.tasks.VERDICTS`, for example `stereotyped`; empty if no answer
          is right or wrong, and for the replies of a judge.
        - `mass` is the sum of the probabilities of all letters; NaN without letters. If it is
          small, the likeliest letter is weak evidence.

        Args:
            prompts: whether to read the prompts too, which are most of a run's size.
        """
        rows = records.read(self.folder, prompts=prompts)
        values = [value or "" for value in rows.parsed.tolist()]
        verdicts = verdicts_of(get(self.benchmark), rows, values, by_id(self.items))
        return rows.assign(verdict=verdicts, mass=self._letter_mass(rows))

    def scores(
        self,
        preset: str | None = None,
        common: Sequence[str] = (),
        metrics: Sequence[Metric] = (),
        answers: pd.MultiIndex | None = None,
    ) -> pd.DataFrame:
        """Compute the score table under a preset, by default the run's own.

        Args:
            common: the common tasks of all compared models, if their tasks differ.
            metrics: more metrics, see `bench.score`.
            answers: score only these, by `KEYS`; default: all.
        """
        preset = preset or str(self.metadata["preset"])
        check_preset(preset)
        # If `answers` has all answers, we use the kept table.
        is_part = answers is not None and not _keys(self.replies).isin(answers).all()
        if metrics or is_part:
            return self._scores(preset, common, metrics, answers)
        name = f"scores-{preset}-{digest(list(common))[:4]}" if common else f"scores-{preset}"
        home = get(self.benchmark).metadata.folder
        code = code_hash() if home.is_relative_to(PACKAGE) else code_hash() + code_hash(home)
        compute = partial(self._scores, preset, common)
        return kept(self.folder, name, [preset, list(common)], code, compute)

    def _scores(
        self,
        preset: str,
        common: Sequence[str],
        metrics: Sequence[Metric] = (),
        answers: pd.MultiIndex | None = None,
    ) -> pd.DataFrame:
        replies = rows = self.replies
        if answers is not None:
            rows = rows[_keys(rows).isin(answers)]
        benchmark = get(self.benchmark)
        scoring = benchmark.scoring(rows, self.items, preset, common)
        table = self._with_notes(scoring.table(), rows, preset)
        if metrics:
            own = engine.own_scores(scoring.outcomes(), metrics, preset, benchmark.tasks)
            table = pd.concat([table, own], ignore_index=True)
        table.insert(0, "benchmark", self.benchmark)
        if len(replies) < self.metadata["requests"]:
            unfinished = f"unfinished run: {len(replies)} of {self.metadata['requests']} answers"
            table["note"] = [join_notes(unfinished, note) for note in table.note]
        return table

    def scores_beside(self, preset: str | None = None, common: Sequence[str] = ()) -> pd.DataFrame:
        """Compute the score table; under `robust`, append the official rows that differ."""
        table = self.scores(preset, common)
        if table.empty or table.preset.iloc[0] != "robust":
            return table
        official, keys = self.scores("official", common), ["category", "task", "metric"]
        both = official.merge(
            table[[*keys, "score", "n"]], on=keys, how="left", suffixes=("", "_ours")
        )
        # The released code rounds, so that its numbers can differ by this much.
        rounding = both.task.map(dict(get(self.benchmark).metrics.rounding)).fillna(0.0)
        same = ((both.score - both.score_ours).abs() <= rounding + NOISE) & (both.n == both.n_ours)
        same |= both.score.isna() & both.score_ours.isna()
        return pd.concat([table, official[~same.to_numpy()]], ignore_index=True)

    def as_dict(self, preset: str | None = None) -> dict[str, Any]:
        """Return `run.json`, the scores, and the official rows that differ, for JSON."""
        scores = self.scores_beside(preset)
        own = len(self.scores(preset))
        metadata = {**self.metadata, "folder": str(self.folder)}
        return {"run": metadata, "scores": to_rows(scores[:own]), "official": to_rows(scores[own:])}

    def write_scores(self) -> None:
        """Write `scores.json`, unless the folder cannot be written."""
        with suppress(RunFailed):
            records.write_json(self.folder / records.SCORES, self.as_dict())

    def readable(self) -> pd.Series:
        """Return whether we can parse each answer, by `KEYS`."""
        rows = self.replies
        values = read_replies(get(self.benchmark), rows, by_id(self.items))
        return pd.Series([value != "" for value in values], index=_keys(rows), dtype=bool)

    def _with_notes(self, table: pd.DataFrame, rows: pd.DataFrame, preset: str) -> pd.DataFrame:
        """Add notes on skipped items, on the judge, and on settings outside the preset."""
        table, missing = table.copy(), list[Score]()
        primary = get(self.benchmark).metrics.primary_metrics
        primary_metrics = {primary.task: primary.metric for primary in reversed(primary)}
        if doubt := probe_failed(self.metadata):
            first = table.index[table.category == ALL][:1]
            table.loc[first, "note"] = [join_notes(doubt, note) for note in table.note[first]]
        notes = [*self._notes_on_data(), *self._notes_on_tasks(table, rows, preset)]
        for category, task, text, gap in notes:
            metric = primary_metrics.get(task, "")
            of_task = (table.category == category) & (table.task == task)
            own = of_task & (table.metric == metric)
            table.loc[own, "note"] = [join_notes(note, text) for note in table.note[own]]
            if gap and metric and not own.any():
                undefined = (np.nan, np.nan, np.nan, 0, np.nan, np.nan)
                missing.append(Score(category, task, metric, *undefined, preset, gap))
        return pd.concat([table, score_table(missing)], ignore_index=True) if missing else table

    def _notes_on_data(self) -> Iterator[Note]:
        """Yield notes on skipped tasks and items, and on items that a setting modified."""
        left_out = self.metadata["left_out"]
        for task, reason in left_out.items():
            yield Note(ALL, task, reason, f"not asked: {reason}")
        if left_out:
            yield Note(ALL, ALL, f"without {', '.join(left_out)}")
        for entry in self.metadata["unfit"]:
            category, task, reason, n = (entry[k] for k in ("category", "task", "why", "items"))
            are = "instance is" if n == 1 else "instances are"
            if task not in left_out:
                text = f"{n} {are} left out: {reason}"
                yield Note(category, task, text, f"not applicable: {reason}")
        for entry in self.metadata["touched"]:
            if entry["task"] not in left_out:
                text = f"{entry['items']:,} instances of the data: {entry['why']}"
                yield Note(entry["category"], entry["task"], text)

    def _letter_mass(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the sum of the letters' probabilities of each answer, NaN without letters."""
        by_letters = {task for task, read in self.metadata["read"].items() if read == "letters"}
        return np.array(
            [
                np.exp(np.asarray(values, dtype=float)).sum()
                if task in by_letters and values is not None
                else np.nan
                for task, values in zip(rows.task, rows.logprobs, strict=True)
            ],
            dtype=float,
        )

    def _notes_on_tasks(
        self, table: pd.DataFrame, rows: pd.DataFrame, preset: str
    ) -> Iterator[Note]:
        """Yield notes on the conditions under which the model answered each task."""
        tasks, options = get(self.benchmark).tasks, self.metadata["asked"]
        judge, lost = self.judge, rows[rows.error != ""]
        masses = pd.Series(self._letter_mass(rows)).groupby(rows.task.tolist()).median()
        for task in (task for task in dict.fromkeys(table.task) if task != ALL):
            reasons = lost.error[lost.task == task].value_counts()
            if len(reasons):
                n, total = reasons.sum(), int((rows.task == task).sum())
                often = f"most often: {reasons.index[0]}"
                yield Note(ALL, task, f"{n:,} of {total:,} answers did not come, {often}")
            # `cut` is null for likelihoods, letters and older runs.
            cut = rows.cut[(rows.task == task) & rows.cut.notna()]
            if cut.any():
                share = f"{cut.sum():,} of {len(cut):,} replies"
                yield Note(ALL, task, f"{share} were cut off at their limit of tokens")
            if masses.get(task, np.nan) < MIN_LETTER_MASS:
                yield Note(
                    ALL,
                    task,
                    f"the letters had a median probability mass of {masses[task]:.2g}: the model "
                    "would rather write something else; ask it with --read text",
                )
            if self.metadata["wording"]["unbiased_instruction"]:
                yield Note(ALL, task, "the wording asks for an unbiased answer (the paper's Q+IF)")
            if without_chat_template(self.metadata) and tasks[task].request_types_for() != ("nll",):
                yield Note(ALL, task, "asked in bare text: the model has no chat template")
            if judge and tasks[task].judged(options["settings"]):
                yield Note(ALL, task, f"marked by {short_name(judge).rstrip(':')}")
            if preset != "robust":
                for category in dict.fromkeys(table.category[table.task == task]):
                    if other := self._asked_otherwise(task, preset, category == ALL):
                        yield Note(category, task, f"asked with {', '.join(other)}")

    def _asked_otherwise(self, task: str, preset: str, for_all: bool) -> list[str]:
        """List the conditions of a task that differ from `preset`.

        Args:
            for_all: include conditions that hold for all categories.
        """
        own, given = get(self.benchmark), self.metadata["asked"]["settings"]
        otherwise = [
            f"{name}={given[name]} where this preset has {setting.under(preset)}"
            for name, setting in own.settings.items()
            if not setting.of_data
            and setting.task in ("", task)
            and given.get(name, setting.under(preset)) != setting.under(preset)
        ]
        if for_all:
            otherwise += [
                f"{name}={given[name]}"
                for name, setting in own.settings.items()
                # The encoding of a file does not change its rows.
                if setting.of_data
                and name != "encoding"
                and given.get(name, setting.allowed[0]) != setting.allowed[0]
            ]
            read = self.metadata["read"].get(task, "text")
            if read != "text":
                otherwise.append(f"{read} read from probabilities")
            ours = self.metadata["wording"]["source"] == OUR_WORDING
            if ours and own.tasks[task].request_types_for() != ("nll",):
                otherwise.append("our own wording")
        return otherwise


def table(
    runs: Sequence[Run],
    preset: str | None = None,
    *,
    beside: bool = True,
    metrics: Sequence[Metric] = (),
    answers: pd.MultiIndex | None = None,
) -> pd.DataFrame:
    """Join the score tables of several runs.

    Args:
        beside: append the official rows that differ; `metrics` and `answers` have no effect then.
        metrics: more metrics.
        answers: score only these, by `KEYS`; default: all.
    """
    if not runs:
        raise BadInput("no model is left: none was named, or none can be asked these tasks")
    common: list[str] = []
    if any(primary.common for primary in get(runs[0].benchmark).metrics.primary_metrics):
        tasks_of_runs = [set(run.replies.task) for run in runs]
        shared = set.intersection(*tasks_of_runs)
        if any(tasks != shared for tasks in tasks_of_runs):
            common = [task for task in get(runs[0].benchmark).tasks if task in shared]
    tables = []
    for run, name in zip(runs, labels(runs), strict=True):
        if beside:
            own = run.scores_beside(preset, common)
        else:
            own = run.scores(preset, common, metrics, answers)
        tables.append(own.assign(model=name, kind=run.kind))
    return pd.concat(
        [part[["model", *(name for name in part if name != "model")]] for part in tables],
        ignore_index=True,
    )


def open_runs(given: Sequence[Run | str | Path]) -> list[Run]:
    """Open runs, given as runs, their folders, or patterns of folders.

    Raises:
        BadInput: a folder without a run, a pattern without a match, or no run at all.
    """
    runs: list[Run] = []
    for one in given:
        found = find_runs(one)
        if not found:
            raise BadInput(f"{one}: matches no folder of a run, such as reports/runs/MODEL/cbbq-ID")
        runs += found
    if not runs:
        raise BadInput("no run was given; give runs, their folders, or a pattern of folders")
    return runs


def find_runs(given: Run | str | Path) -> list[Run]:
    """Open the runs whose folders match a pattern, the run of one folder, or a run itself."""
    return [given] if isinstance(given, Run) else list(map(Run.open, run_folders(str(given))))


def run_folders(pattern: str) -> list[Path]:
    """List the folders of runs that match a pattern, or the one folder that it names."""
    if not glob.has_magic(pattern):
        return [Path(pattern)]
    paths = sorted(map(Path, glob.glob(pattern)))
    return [path for path in paths if (path / records.RUN_JSON).is_file()]


def score(
    run: Run | str | Path,
    *more: Run | str | Path,
    preset: str | None = None,
    metrics: Sequence[Metric] = (),
    common: bool = False,
) -> pd.DataFrame:
    """Score recorded runs in one table with a column `model`, without asking a model.

    Args:
        run, more: runs, their folders, or patterns of folders, for example `reports/runs/*/cbbq-*`.
        preset: `robust`, `official` or `paper`; default: each run's own.
        metrics: metrics of your own, made of the columns of `bench.outcomes`; their rows come last.
        common: score only the requests with a parsed answer of every model, to compare models on
            the same items. We do not apply this to a model with fewer than half of its answers
            parsed.

    Raises:
        BadInput: a folder without a run, a pattern without one, an unknown preset, a metric with a
            column that is not in the outcomes, or, with `common`, runs on different data.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> undecided = bench.Metric("undecided", "ambiguous", "says_unknown", "parsed")
        >>> scores = bench.score(run, metrics=[undecided])
        >>> scores[["category", "metric", "score", "ci_low", "ci_high", "n"]].tail(1).round(2)
            category     metric  score  ci_low  ci_high    n
        179      all  undecided   0.28    0.21     0.36  140
    """
    runs = open_runs([run, *more])
    tables = []
    for name in dict.fromkeys(run.benchmark for run in runs):
        own = [run for run in runs if run.benchmark == name]
        answers = common_answers(own) if common else None
        tables.append(table(own, preset, beside=False, metrics=metrics, answers=answers))
    return pd.concat(tables, ignore_index=True)


def most_biased_first(runs: Sequence[Run]) -> list[Run]:
    """Sort runs of a benchmark by its first primary score, for one order of models on a page.

    Models with a doubtful score follow. References for real models, such as simulated respondents,
    come last.
    """
    scores = explain(score(*runs))
    # The first row of a model is that of the first primary score.
    first = scores[scores.primary & (scores.category == ALL)].drop_duplicates("model")
    bias = first.score.mask(first.worse == "lower", -first.score)
    is_reference = ~first.model.isin(contenders(first).model)
    keys = zip(is_reference, first.doubt != "", -bias.fillna(0), strict=True)
    places = dict(zip(first.model, keys, strict=True))
    by_name = dict(zip(labels(runs), runs, strict=True))
    return [by_name[name] for name in sorted(by_name, key=lambda name: places.get(name, (True,)))]


def common_answers(runs: Sequence[Run]) -> pd.MultiIndex:
    """List the requests with a parsed answer of all models that have this task, by `KEYS`.

    Raises:
        BadInput: the runs are on different data.
    """
    if conflict := data_conflict(runs):
        raise BadInput(conflict)
    rates = [run.readable() for run in runs]
    known = [rate.index[rate] for rate in rates if rate.mean() >= HALF]
    by_task = []
    for task in dict.fromkeys(task for names in known for task in names.unique("task")):
        parts = [names[names.get_level_values("task") == task] for names in known]
        by_task.append(reduce(pd.Index.intersection, [part for part in parts if len(part)]))
    if not by_task:
        return pd.MultiIndex.from_frame(pd.DataFrame(columns=KEYS))
    return by_task[0].append(by_task[1:])


def _keys(rows: pd.DataFrame) -> pd.MultiIndex:
    """Return the keys of answers; runs of one plan have equal keys."""
    return pd.MultiIndex.from_frame(rows[KEYS])


def all_items(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the items of several runs, each once; runs can have different categories.

    Raises:
        BadInput: two runs have different items of one name.
    """
    if conflict := data_conflict(runs):
        raise BadInput(conflict)
    items = runs[0].items
    for run in runs[1:]:
        others = run.items
        others = others[~others.item_id.isin(items.item_id)]
        items = pd.concat([items, others], ignore_index=True) if len(others) else items
    return items


def data_conflict(runs: Sequence[Run]) -> str:
    """Describe a conflict between runs: different items with one name; "" without a conflict.

    Runs on one version of a data set have the same items. We can join runs on two versions if all
    fields of their common items are equal.
    """
    versions: dict[str, Run] = {}
    for run in runs:
        versions.setdefault(run.metadata["data"]["sha256"], run)
    for first, second in combinations(versions.values(), 2):
        left, right = (run.items.set_index("item_id").astype(str) for run in (first, second))
        names = left.index.intersection(right.index)
        fields = left.columns.intersection(right.columns)
        differs = (left.loc[names, fields] != right.loc[names, fields]).any(axis=1)
        if differs.any():
            described = [
                "{name}, version {version} (SHA-256 {sha256:.8})".format_map(run.metadata["data"])
                for run in (first, second)
            ]
            return (
                f"{first.folder} and {second.folder} were asked different data, "
                f"{' and '.join(described)}: {differs.sum():,} of {len(names):,} items of the same "
                f"name are not the same, the first is {names[differs][0]}; name runs on one data "
                "set"
            )
    return ""


def labels(runs: Sequence[Run]) -> list[str]:
    """Name each run's model: its short name if this is unique, otherwise the user's name."""
    short = [label for _, label in dict.fromkeys((run.model, run.label) for run in runs)]
    return [run.label if short.count(run.label) == 1 else run.model for run in runs]


def check_preset(preset: str) -> None:
    if preset not in PRESETS:
        raise BadInput(expected(preset, PRESETS, "preset"))


def probe_failed(metadata: Mapping[str, Any]) -> str:
    """Describe the plain pairs that a probed classifier labelled wrongly; "" without any."""
    pairs = metadata["probe"]
    wrong = [row for row in pairs if row["found"] != row["expected"]]
    if not wrong:
        return ""
    first, languages = wrong[0], ", ".join(dict.fromkeys(row["language"] for row in wrong))
    return (
        f"the probe failed: of {len(pairs)} plain pairs {len(wrong)} got a wrong label "
        f"({languages}), the first {first['premise']!r}, {first['hypothesis']!r}: "
        f"{first['found']} for {first['expected']}"
    )
