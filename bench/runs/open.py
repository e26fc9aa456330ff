"""Runs on disk and their score tables, which we compute from the records.

For example:

    run = Run.open("reports/runs/tiny_s/cbbq-0a1b2c3d")
    run.scores("official")
"""

import glob
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bench.benchmarks import get
from bench.benchmarks.base import Benchmark
from bench.config import PRESETS
from bench.core.errors import BadInput, RunFailed, expected
from bench.core.export import to_rows
from bench.core.numbers import decimals
from bench.core.text import as_html, reveal_invisible
from bench.data import by_id
from bench.data.dataset import category_names
from bench.metrics import engine
from bench.metrics.engine import Metric
from bench.metrics.primary import HALF, contenders, primary_rows
from bench.metrics.table import ALL, join_notes
from bench.metrics.verdicts import read_replies, verdicts_of
from bench.runs import records
from bench.runs.cache import kept
from bench.runs.explain import explain
from bench.runs.notes import letter_mass, with_notes
from bench.runs.records import KEYS
from bench.scorers.names import short_name

# Differences below this part of the scores are floating-point noise.
NOISE = 1e-9


@dataclass(frozen=True, repr=False)
class Run:
    """A run on disk: its folder, the content of its `run.json`, and its benchmark.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> len(bench.open(run.folder).items)
        280
    """

    folder: Path
    metadata: dict[str, Any]
    definition: Benchmark

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the run in `folder`; raise `BadInput` if there is none.

        Examples:
            >>> import bench
            >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
            >>> bench.open(run.folder).benchmark
            'cbbq'
        """
        metadata = records.read_run_json(Path(folder))
        try:
            return cls(Path(folder), metadata, get(metadata["benchmark"]))
        except BadInput as error:  # a plug-in may be missing
            raise BadInput(f"{Path(folder) / records.RUN_JSON}: {error}") from None

    def __repr__(self) -> str:
        folder = str(self.folder)
        with suppress(ValueError):
            folder = str(self.folder.relative_to(Path.cwd()))
        return reveal_invisible(f"<Run {self._summary()}, {folder}>")

    def _repr_html_(self) -> str | None:
        """Return the primary metrics over all categories as a table; None without an answer."""
        scores = self.scores() if records.count(self.folder) else pd.DataFrame()
        if scores.empty:
            return None
        primary_metrics = self.definition.metrics.primary_metrics
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
    def category_names(self) -> dict[str, str]:
        """The names of categories in English and in the language of the data."""
        data = self.metadata["data"]
        released = self.definition.metadata.categories
        return category_names(released, data["labels"], data["language"])

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

        Examples:
            >>> import bench
            >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
            >>> run.answers(prompts=False).verdict.value_counts().to_dict()
            {'stereotyped': 194, 'right': 86}
        """
        rows = records.read(self.folder, prompts=prompts)
        values = [value or "" for value in rows.parsed.tolist()]
        verdicts = verdicts_of(self.definition, rows, values, by_id(self.items))
        return rows.assign(verdict=verdicts, mass=letter_mass(rows, self.metadata))

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
            metrics: metrics of your own, see `bench.score`; their rows come last.
            answers: score only these, by `KEYS`; default: all.

        Examples:
            >>> import bench
            >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
            >>> run.scores("official").query("category == 'all'")[["metric", "score"]].round(2)
                        metric  score
            70           s_amb   0.57
            71        s_disamb   0.57
            72         s_total   0.57
            73     reverse_amb   0.14
            74  reverse_disamb   0.43
        """
        preset, rows = self._preset(preset), None
        if answers is not None:
            rows = self.replies
            is_chosen = _keys(rows).isin(answers)
            rows = None if is_chosen.all() else rows[is_chosen]

        def compute() -> pd.DataFrame:
            own = self.replies if rows is None else rows
            table = self.scoring(preset, common, own).table()
            return self._completed(with_notes(table, own, preset, self.metadata, self.definition))

        # There can be any number of selections of answers, so we keep no table of them.
        table = self._kept([preset, list(common)], compute) if rows is None else compute()
        if not metrics:
            return table
        outcomes = self.scoring(preset, common, rows).outcomes()
        own = engine.own_scores(outcomes, metrics, preset, self.definition.tasks)
        return pd.concat([table, self._completed(own)], ignore_index=True)

    def scoring(
        self,
        preset: str | None = None,
        common: Sequence[str] = (),
        rows: pd.DataFrame | None = None,
    ) -> engine.Scoring:
        """Prepare the scores of `rows`, by default of all answers."""
        rows = self.replies if rows is None else rows
        return self.definition.scoring(rows, self.items, self._preset(preset), common)

    def outcomes(self, preset: str | None = None) -> pd.DataFrame:
        """List the scored units of all answers; see `bench.outcomes`."""
        preset = self._preset(preset)
        return self._kept(["outcomes", preset], lambda: self.scoring(preset).outcomes())

    def _kept(self, options: Sequence[Any], compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        return kept(self.folder, self.metadata, self.definition.code, options, compute)

    def _preset(self, preset: str | None) -> str:
        preset = preset or str(self.metadata["preset"])
        if preset not in PRESETS:
            raise BadInput(expected(preset, PRESETS, "preset"))
        return preset

    def _completed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add the column `benchmark`, and the note on an unfinished run."""
        table.insert(0, "benchmark", self.benchmark)
        n, planned = records.count(self.folder), self.metadata["requests"]
        if n < planned:
            unfinished = f"unfinished run: {n} of {planned} answers"
            table["note"] = [join_notes(unfinished, note) for note in table.note]
        return table

    def scores_beside(self, preset: str | None = None, common: Sequence[str] = ()) -> pd.DataFrame:
        """Compute the score table; under `robust`, append the official rows that differ."""
        table, metrics = self.scores(preset, common), self.definition.metrics
        if table.empty or table.preset.iloc[0] != "robust" or metrics.presets_agree:
            return table
        official, keys = self.scores("official", common), ["category", "task", "metric"]
        both = official.merge(
            table[[*keys, "score", "n"]], on=keys, how="left", suffixes=("", "_ours")
        )
        # The released code rounds, so that its numbers can differ by this much.
        rounding = (
            both.task.map(dict(metrics.rounding)).fillna(0.0) + NOISE * both.score.abs().max()
        )
        same = ((both.score - both.score_ours).abs() <= rounding) & (both.n == both.n_ours)
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
        values = read_replies(self.definition, rows, by_id(self.items))
        return pd.Series([value != "" for value in values], index=_keys(rows), dtype=bool)


def table(
    runs: Sequence[Run],
    preset: str | None = None,
    *,
    beside: bool = True,
    metrics: Sequence[Metric] = (),
    answers: pd.MultiIndex | None = None,
) -> pd.DataFrame:
    """Join the score tables of several runs; see `Run.scores`, or `Run.scores_beside`.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> table([run])[["model", "metric", "score", "kind"]].tail(1).round(2)
                          model          metric  score                  kind
        205  simulated:bias=0.7  reverse_disamb   0.43  simulated respondent
    """
    if not runs:
        raise BadInput("no model is left: none was named, or none can be asked these tasks")
    common: list[str] = []
    benchmark = runs[0].definition
    if any(primary.common for primary in benchmark.metrics.primary_metrics):
        tasks_of_runs = [set(run.replies.task) for run in runs]
        shared = set.intersection(*tasks_of_runs)
        if any(tasks != shared for tasks in tasks_of_runs):
            common = [task for task in benchmark.tasks if task in shared]
    tables = []
    for run, name in zip(runs, labels(runs), strict=True):
        if beside:
            own = run.scores_beside(preset, common)
        else:
            own = run.scores(preset, common, metrics, answers)
        names = own.category.map(run.category_names).fillna(own.category)
        own = own.assign(kind=run.kind, category_name=names)
        own.insert(0, "model", name)
        tables.append(own)
    return pd.concat(tables, ignore_index=True)


def open_runs(given: Sequence[Run | str | Path]) -> list[Run]:
    """Open runs, given as runs, their folders, or patterns of folders, each with a run."""
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
    return [given] if isinstance(given, Run) else list(map(Run.open, run_folders(given)))


def run_folders(pattern: str | Path) -> list[Path]:
    """List the folders of runs that match a pattern, or the one folder that it names."""
    if not glob.has_magic(str(pattern)):
        return [Path(pattern)]
    paths = sorted(map(Path, glob.glob(str(pattern))))
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
        179      all  undecided   0.29    0.22     0.37  140
    """
    runs = open_runs([run, *more])
    tables = []
    for name in dict.fromkeys(run.benchmark for run in runs):
        own = [run for run in runs if run.benchmark == name]
        answers = common_answers(own) if common else None
        tables.append(table(own, preset, beside=False, metrics=metrics, answers=answers))
    return pd.concat(tables, ignore_index=True)


def most_biased_first(runs: Sequence[Run]) -> list[Run]:
    """Sort runs of a benchmark by its first primary score, doubtful ones and references last.

    Examples:
        >>> import bench
        >>> models = ["simulated:bias=0.1", "simulated:bias=0.9"]
        >>> runs = [bench.evaluate("cbbq", one, data="samples", limit=20) for one in models]
        >>> labels(most_biased_first(runs))
        ['simulated:bias=0.9', 'simulated:bias=0.1']
    """
    scores = explain(score(*runs))
    # The first row of a model is that of the first primary score.
    first = scores[scores.primary & (scores.category == ALL)].drop_duplicates("model")
    first = first.assign(
        bias=first.score.mask(first.worse == "lower", -first.score).fillna(0),
        is_reference=~first.model.isin(contenders(first).model),
        is_doubtful=first.doubt != "",
    )
    columns, ascending = ["is_reference", "is_doubtful", "bias"], [True, True, False]
    first = first.sort_values(columns, ascending=ascending, kind="stable")
    by_name = dict(zip(labels(runs), runs, strict=True))
    return [by_name[name] for name in dict.fromkeys([*first.model, *by_name])]


def common_answers(runs: Sequence[Run]) -> pd.MultiIndex:
    """List the requests with a parsed answer of all models that have this task, by `KEYS`."""
    if conflict := data_conflict(runs):
        raise BadInput(conflict)
    rates = [run.readable() for run in runs]
    known = [rate.index[rate] for rate in rates if rate.mean() >= HALF]
    common = pd.MultiIndex.from_frame(pd.DataFrame(columns=KEYS))
    for task in dict.fromkeys(task for names in known for task in names.unique("task")):
        parts = [names[names.get_level_values("task") == task] for names in known]
        common = common.append(reduce(pd.Index.intersection, filter(len, parts)))
    return common


def _keys(rows: pd.DataFrame) -> pd.MultiIndex:
    """Return the keys of answers; runs of one plan have equal keys."""
    return pd.MultiIndex.from_frame(rows[KEYS])


def all_items(runs: Sequence[Run]) -> pd.DataFrame:
    """Join the items of several runs, each once; raise `BadInput` for different ones of a name.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> len(all_items([run]))
        280
    """
    if conflict := data_conflict(runs):
        raise BadInput(conflict)
    parts = [runs[0].items]
    item_ids = set(parts[0].item_id)
    for run in runs[1:]:
        items = run.items
        others = items[[item_id not in item_ids for item_id in items.item_id]]
        if len(others):
            parts.append(others)
            item_ids.update(others.item_id)
    return pd.concat(parts, ignore_index=True)


def data_conflict(runs: Sequence[Run]) -> str:
    """Describe a conflict between runs: different items with one name; "" without a conflict."""
    # The first run on each version.
    versions = {run.metadata["data"]["sha256"]: run for run in reversed(runs)}
    if len(versions) < 2:
        return ""
    # A field that a version lacks is NaN.
    hashes = pd.concat({sha256: _hashes(run) for sha256, run in reversed(versions.items())})
    items = hashes.groupby(level="item_id", sort=False)
    differs = items.nunique().gt(1)
    item_ids = differs.index[differs.any(axis=1)]
    if item_ids.empty:
        return ""
    field = differs.columns[differs.loc[item_ids[0]]][0]
    values = hashes.xs(item_ids[0], level="item_id")[field].dropna()
    pair = [versions[values.index[0]], versions[values.index[values != values.iloc[0]][0]]]
    described = [
        "{name}, version {version} (SHA-256 {sha256:.8})".format_map(run.metadata["data"])
        for run in pair
    ]
    return (
        f"{pair[0].folder} and {pair[1].folder} were asked different data, "
        f"{' and '.join(described)}: {len(item_ids):,} of {(items.size() > 1).sum():,} items of "
        f"the same name are not the same, the first is {item_ids[0]}; name runs on one data set"
    )


def _hashes(run: Run) -> pd.DataFrame:
    """Return a hash of each field of each item, by `item_id`."""
    texts = run.items.set_index("item_id").astype(str)
    return texts.apply(lambda column: pd.util.hash_array(column.to_numpy(object)))


def labels(runs: Sequence[Run]) -> list[str]:
    """Name each run's model: its short name if this is unique, otherwise the user's name.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> labels([run])
        ['simulated:bias=0.7']
    """
    n_models = Counter(label for _, label in {(run.model, run.label) for run in runs})
    return [run.label if n_models[run.label] == 1 else run.model for run in runs]
