"""Runs on disk and their score tables, which we compute from the records.

For example:

    run = Run.open("reports/runs/tiny_s/cbbq-0a1b2c3d")
    run.scores("official")
"""

import glob
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from bench.benchmarks import get
from bench.benchmarks.base import Benchmark
from bench.config import PRESETS
from bench.core import default_folders
from bench.core.errors import BadInput, RunFailed, expected
from bench.core.export import to_rows
from bench.core.files import atomic_path
from bench.core.inputs import PACKAGE_CODE, hash_file
from bench.core.numbers import decimals
from bench.core.text import as_html, column, reveal_invisible
from bench.data import by_id
from bench.data.manifest import category_names
from bench.metrics import engine
from bench.metrics.engine import Metric
from bench.metrics.primary import primary_rows
from bench.metrics.table import ALL, join_notes
from bench.metrics.verdicts import parsed, verdicts_of
from bench.runs import records
from bench.runs.notes import letter_mass, with_notes
from bench.runs.records import KEYS
from bench.scorers.base import DECLINED_BY, digest
from bench.scorers.names import short_name
from bench.tasks.replies import declines

# Differences below this share of the scores are floating-point noise.
NOISE = 1e-9
# Options whose values come first in the name of a run, without the name of the option.
ASKED_HOW = ("answer_mode", "prompts")
# Entries of `asked` that the name of a run does not show, or shows under other names.
NOT_IN_LABELS = {"model", "model_content", "judge_content", "base_content", "data_sha256"}
NOT_IN_LABELS |= {"prompts_hash", "sample", "settings", "generation"}


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
        return reveal_invisible(f"<Run {self._summary()}, {self.relative_folder}>")

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
    def relative_folder(self) -> Path:
        """The folder, relative to the working folder if it is in this one."""
        here = Path.cwd()
        return self.folder.relative_to(here) if self.folder.is_relative_to(here) else self.folder

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
        """The judge as the user named it; empty without one."""
        options = self.metadata["asked"]
        return str(options.get("as_judge") or options.get("judge") or "")

    @property
    def label(self) -> str:
        """The model's name in pictures and tables."""
        return str(self.metadata.get("name") or short_name(self.model))

    @property
    def records(self) -> pd.DataFrame:
        """The recorded answers, one per row; docs/formats.md describes the columns."""
        return records.read(self.folder)

    @property
    def replies(self) -> pd.DataFrame:
        """The recorded answers without the prompts, which are most of a run's size."""
        return records.read(self.folder, prompts=False)

    @property
    def items(self) -> pd.DataFrame:
        """The items of the data, one per row, as `bench.data.frame` makes them."""
        return records.read_items(self.folder)

    def answers(self, *, prompts: bool = True) -> pd.DataFrame:
        """Return the records with four more columns.

        - `parsed` is the letter, label or number in the reply; empty if there is none. We parse
          replies once, when the run is complete, and record these values; for an older run, we
          use the parsers of today, and keep their values with the scores.
        - `valid` is whether there is one.
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
        rows = self._parsed(prompts)
        verdicts = verdicts_of(self.definition, rows, by_id(self.items))
        mass = letter_mass(rows, self.metadata)
        return rows.assign(valid=rows.parsed != "", verdict=verdicts, mass=mass)

    def _parsed(self, prompts: bool = False) -> pd.DataFrame:
        """Read the records with the values in the replies, parsed by the code of today."""
        rows = records.read(self.folder, prompts=prompts)
        if "parsed" in rows and self.metadata.get(records.PARSED_BY) == self.definition.parser:
            return rows

        def compute() -> pd.DataFrame:
            return pd.DataFrame({"parsed": parsed(self.definition, rows, self.items)})

        # This raises an error if another process has changed the records meanwhile.
        return rows.assign(parsed=self._kept(["parsed"], compute).parsed.to_numpy())

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
            answers: score only these answers, given by `KEYS`; default: all.

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
            rows = self._parsed()
            is_chosen = _keys(rows).isin(answers)
            rows = None if is_chosen.all() else rows[is_chosen]

        def compute() -> pd.DataFrame:
            used = self._parsed() if rows is None else rows
            table = self.definition.scoring(used, self.items, preset, common).table()
            return self._completed(with_notes(self, table, used, preset))

        # There can be any number of selections of answers, so we keep no table of them.
        table = self._kept([preset, list(common)], compute) if rows is None else compute()
        if not metrics:
            return table
        outcomes = self._outcomes(preset, common, rows)
        more = engine.own_scores(outcomes, metrics, preset, self.definition.tasks)
        return pd.concat([table, self._completed(more)], ignore_index=True)

    def outcomes(self, preset: str | None = None) -> pd.DataFrame:
        """List the scored units of all answers; see `bench.outcomes`."""
        preset = self._preset(preset)
        return self._kept(["outcomes", preset], lambda: self._outcomes(preset))

    def _outcomes(
        self, preset: str, common: Sequence[str] = (), rows: pd.DataFrame | None = None
    ) -> pd.DataFrame:
        """List the scored units of some records, with the number of refusals in each."""
        rows = self._parsed() if rows is None else rows
        outcomes = self.definition.scoring(rows, self.items, preset, common).outcomes()
        unread = rows[(rows.parsed == "") & ~rows.request.str.startswith("judge")]
        is_refused = [
            declines(response) or error.startswith(DECLINED_BY)
            for response, error in zip(unread.response, unread.error, strict=True)
        ]
        names = [name for name in KEYS if name in outcomes]
        counts = unread[np.array(is_refused, dtype=bool)].groupby(names).size()
        units = pd.MultiIndex.from_frame(outcomes[names])
        return outcomes.assign(refused=counts.reindex(units, fill_value=0).to_numpy(float))

    def _kept(self, options: Sequence[Any], compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return a table that was kept beside the records, or else compute it and keep it.

        It is a file `cache/OPTIONS-KEY-SHA256.parquet`. KEY is a hash of the run's files and of the
        code, so that we never read a table of other answers or of other code. You can delete the
        folder: the tables are then computed again.

        A run that is still being asked keeps none, and neither does a folder that cannot be
        written, or a process whose code has been updated since it was imported. A newer table
        replaces the one with the same options.
        """
        folder, name, key = self.folder / "cache", digest(options), self._key()
        for path in folder.glob(f"{name}-{key}-*.parquet") if key else ():
            with suppress(OSError):
                content = path.read_bytes()
                if path.stem.endswith(_short_hash(content)):
                    return records.parquet(content).to_pandas(use_threads=False)
        table = compute()
        # Another process may have changed the run or the code meanwhile.
        if key and key == self._key():
            content = table.to_parquet(index=False)
            with suppress(OSError, RunFailed):
                folder.mkdir(exist_ok=True)
                for older in folder.glob(f"{name}-*.parquet"):
                    older.unlink(missing_ok=True)
                with atomic_path(folder / f"{name}-{key}-{_short_hash(content)}.parquet") as draft:
                    draft.write_bytes(content)
        return table

    def _key(self) -> str:
        """Hash what the tables of this run are made of; "" if we must not keep any."""
        if (self.folder / records.ANSWERS).exists():
            return ""
        code = [PACKAGE_CODE.key(), self.definition.code.key()]
        files = [self.folder / records.ITEMS, *sorted(self.folder.glob("records/*.parquet"))]
        # We compute from this content of `run.json`, even if another process has changed the file.
        return digest([self.metadata, {path.name: hash_file(path) for path in files}, code])

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
        """Compute the score table; under `robust`, add the official scores that differ."""
        table, metrics = self.scores(preset, common), self.definition.metrics
        if table.empty or table.preset.iloc[0] != "robust" or metrics.presets_agree:
            return table
        official, keys = self.scores("official", common), ["category", "task", "metric"]
        ours = table[[*keys, "score", "n"]]
        both = official.merge(ours, on=keys, how="left", suffixes=("", "_ours"))
        # The released code rounds its numbers.
        rounding = both.task.map(dict(metrics.rounding)).fillna(0.0)
        rounding += NOISE * both.score.abs().max()
        same = ((both.score - both.score_ours).abs() <= rounding) & (both.n == both.n_ours)
        same |= both.score.isna() & both.score_ours.isna()
        return pd.concat([table, official[~same.to_numpy()]], ignore_index=True)

    def as_dict(self, preset: str | None = None) -> dict[str, Any]:
        """Return `run.json`, the scores, and the official scores that differ, for JSON."""
        scores = self.scores_beside(preset)
        n = len(self.scores(preset))
        metadata = {**self.metadata, "folder": str(self.folder)}
        return {"run": metadata, "scores": to_rows(scores[:n]), "official": to_rows(scores[n:])}

    def write_scores(self) -> None:
        """Write `scores.json`, unless the folder cannot be written."""
        with suppress(RunFailed):
            records.write_json(self.folder / "scores.json", self.as_dict())

    def readable(self) -> pd.Series:
        """Return whether we can parse each answer, by `KEYS`."""
        rows = self._parsed()
        return pd.Series((rows.parsed != "").to_numpy(bool), index=_keys(rows))


def open_runs(patterns: Sequence[Run | str | Path]) -> list[Run]:
    """Open runs by their folders, folders above them, or patterns; they can also be runs."""
    runs: list[Run] = []
    for name in patterns:
        named = find_runs(name)
        if not named:
            raise BadInput(
                f"{name}: matches no folder of a run, such as reports/runs/MODEL/cbbq-ID"
            )
        runs += named
    if not runs:
        raise BadInput("no run was given; give runs, their folders, or a pattern of folders")
    return runs


def find_runs(pattern: Run | str | Path) -> list[Run]:
    """Open the runs that a pattern or a folder names; a run stands for itself."""
    return [pattern] if isinstance(pattern, Run) else list(map(Run.open, run_folders(pattern)))


def run_folders(pattern: str | Path) -> list[Path]:
    """List the folders of runs that match a pattern, or are below a folder that does.

    A relative path that does not exist here is looked for where `bench run` writes, too, so that a
    notebook can name a folder as the command printed it.
    """
    reports = default_folders.reports()
    starts = (Path(), reports.parent, reports / "runs")
    for places in dict.fromkeys(str(start / pattern) for start in starts):
        matches = sorted(map(Path, glob.glob(places)))
        runs = [file.parent for path in matches for file in sorted(path.rglob(records.RUN_JSON))]
        if runs:
            return list(dict.fromkeys(runs))
    return [] if glob.has_magic(str(pattern)) else [Path(pattern)]


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _keys(rows: pd.DataFrame) -> pd.MultiIndex:
    """Return the keys of answers; runs of one plan have equal keys."""
    return pd.MultiIndex.from_frame(rows[KEYS])


def model_names(runs: Sequence[Run]) -> list[str]:
    """Name each run's model: its short name, or the user's name if two models share that one."""
    models = {(run.benchmark, run.label, run.model) for run in runs}
    n_models = Counter((benchmark, label) for benchmark, label, _ in models)
    return [run.label if n_models[run.benchmark, run.label] == 1 else run.model for run in runs]


def labels(runs: Sequence[Run]) -> list[str]:
    """Name each run by its model; runs of one model also by the options in which they differ.

    Examples:
        >>> import bench
        >>> options = {"data": "samples", "limit": 10}
        >>> modes = ("text", "letters")
        >>> runs = [bench.evaluate("cbbq", "tiny:s", answer_mode=mode, **options) for mode in modes]
        >>> labels(runs[:1]), labels(runs)
        (['tiny:s'], ['tiny:s (text)', 'tiny:s (letters)'])
    """
    names = model_names(runs)
    folders = [run.folder.resolve() for run in runs]
    groups: dict[tuple[str, str], dict[Path, Run]] = {}
    for run, name, folder in zip(runs, names, folders, strict=True):
        groups.setdefault((run.benchmark, name), {})[folder] = run
    labels: dict[Path, str] = {}
    for (_benchmark, name), by_folder in groups.items():
        texts = _differences([*by_folder.values()]) if len(by_folder) > 1 else [""]
        for folder, text in zip(by_folder, texts, strict=True):
            labels[folder] = f"{name} ({text})" if text else name
    return [labels[folder] for folder in folders]


def _differences(runs: Sequence[Run]) -> list[str]:
    """Describe the runs of a model by the options that differ, or by their folders."""
    descriptions = []
    for run in runs:
        recorded = run.metadata["asked"]
        options = {**recorded, **recorded.get("generation", {}), **recorded["settings"]}
        options["answer_mode"] = " and ".join(dict.fromkeys(run.metadata["answer_mode"].values()))
        names = [name for name in options if name not in NOT_IN_LABELS]
        descriptions.append({name: _option(name, options[name]) for name in names})
    table = pd.DataFrame(descriptions).fillna("")
    differ = [name for name in table if len(set(table[name])) > 1]
    differ.sort(key=lambda name: name not in ASKED_HOW)
    texts = [", ".join(filter(None, row)) for row in table[differ].itertuples(index=False)]
    return texts if len(set(texts)) == len(runs) else [str(run.folder) for run in runs]


def _option(name: str, value: Any) -> str:
    """Write an option in a label; "" if it was not given."""
    if value in (None, "", [], {}):
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if name in ASKED_HOW else f"{column(name)} {text}"
