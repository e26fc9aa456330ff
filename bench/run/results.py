"""A run on disk, and its score table: computed from the records whenever it is looked at.

result = Run.open("reports/runs/tiny_s/cbbq-0a1b2c3d")
result.scores("official")
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Self

import numpy as np
import pandas as pd

from bench import records
from bench.benchmarks import module
from bench.core.errors import BadInput, expected
from bench.data import dataset
from bench.metrics.bootstrap import Draw, Replicates, resample
from bench.metrics.readings import precision, precision_note
from bench.metrics.table import ALL, Score, join_notes, score_table
from bench.scorers.local import hub

# Two ways to compute the same number differ by less.
NOISE = 1e-9
# The source that our own wording names.
OUR_WORDING = "bias-workbench"
PRESETS = ("robust", "official", "paper")
# What names an answer in the records of a run.
KEYS = ["task", "item_id", "request", "repeat"]


@dataclass(frozen=True)
class Run:
    """A run on disk: its folder and what `run.json` says of it."""

    folder: Path
    about: dict[str, Any]

    def __post_init__(self) -> None:
        dataset.remember_names(self.benchmark, self.about.get("data"))
        records.note_opened(self.folder)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """The run in `folder`.

        Raises:
            BadInput: not a run's folder.
        """
        return cls(Path(folder), records.read_run_json(Path(folder)))

    @property
    def benchmark(self) -> str:
        return str(self.about["benchmark"])

    @property
    def model(self) -> str:
        return str(self.about["asked"]["model"])

    @property
    def label(self) -> str:
        """The model's name as pictures and tables show it."""
        return str(self.about.get("name") or short_name(self.model))

    @property
    def records(self) -> pd.DataFrame:
        return records.read(self.folder)

    @property
    def items(self) -> pd.DataFrame:
        return records.read_items(self.folder)

    @property
    def readings(self) -> pd.DataFrame:
        """The replies that a person read by hand: `task`, and what `reader` and `person` read in them.

        The reader is asked again, as scores do it, so that a better one shows in older runs too.
        """
        given = records.read_readings(self.folder)
        if given.empty:
            return pd.DataFrame(columns=["task", "reader", "person"])
        rows = self.records.merge(given, on=KEYS)
        rows = rows[rows.response.map(records.reply_hash) == rows.reply_hash]
        items = {item.item_id: item for item in self.items.itertuples(index=False)}
        parse = module("tasks", self.benchmark).parse
        values = [
            parse(row["task"], row["request"], row["response"], items[row["item_id"]])
            for row in rows.to_dict("records")
        ]
        return rows[["task", "person"]].assign(reader=values)

    def scores(self, preset: str | None = None, common: Sequence[str] = ()) -> pd.DataFrame:
        """The score table under `preset`, the run's own if None; `scores_beside` has the official numbers too.

        Args:
            common: the tasks that all models beside it were asked, where they differ in these.

        Raises:
            BadInput: an unknown preset, or no records yet.
        """
        preset = preset or str(self.about["preset"])
        check_preset(preset)
        rows = self.records
        score = module("metrics", self.benchmark).score_records
        options = {"common": common} if common else {}
        table = self._told(score(rows, self.items, preset, **options), rows, preset)
        table.insert(0, "benchmark", self.benchmark)
        if len(rows) < self.about["requests"]:
            unfinished = f"unfinished run: {len(rows)} of {self.about['requests']} answers"
            table["note"] = [join_notes(unfinished, note) for note in table.note]
        return table

    def scores_beside(self, preset: str | None = None, common: Sequence[str] = ()) -> pd.DataFrame:
        """The score table under `preset`; behind that of `robust`, the official rows that differ.

        Raises:
            BadInput: an unknown preset, or no records yet.
        """
        table = self.scores(preset, common)
        if (preset or self.about["preset"]) != "robust":
            return table
        rounding = module("metrics", self.benchmark).ROUNDING
        official = _differing(self.scores("official", common), table, rounding)
        return pd.concat([table, official], ignore_index=True)

    def readable(self) -> pd.Series:
        """Tell of each answer, by `KEYS`, whether it can be read; one that did not come cannot."""
        rows, parse = self.records, module("tasks", self.benchmark).parse
        items = {item.item_id: item for item in self.items.itertuples()}
        names = ("task", "request", "response", "error", "item_id")
        # A list is read many times faster than a column of Arrow's texts.
        columns = [rows[name].tolist() for name in names]
        told = [
            not error and parse(task, request, response, items[item_id]) != ""
            for task, request, response, error, item_id in zip(*columns, strict=True)
        ]
        return pd.Series(told, index=pd.MultiIndex.from_frame(rows[KEYS]), dtype=bool)

    def replicates(
        self,
        preset: str | None = None,
        like: Sequence["Run"] = (),
        draw: Draw = resample,
    ) -> Replicates:
        """The headline scores, observed and resampled; of the answers that could be read of all runs `like` it too.

        The k-th resample of two runs over the same answers draws the same items, so scores can be subtracted one by one.

        Raises:
            BadInput: an unknown preset, no records yet, or nothing that all were asked.
        """
        preset = preset or str(self.about["preset"])
        check_preset(preset)
        rows = self.records
        for one in (self, *like) if like else ():
            readable = one.readable()
            rows = rows[pd.MultiIndex.from_frame(rows[KEYS]).isin(readable.index[readable])]
        if rows.empty:
            raise BadInput(
                f"{self.folder}: no answer could be read of it and of "
                f"{', '.join(str(one.folder) for one in like)}"
            )
        return module("metrics", self.benchmark).replicates(rows, self.items, preset, draw)

    def _told(self, table: pd.DataFrame, rows: pd.DataFrame, preset: str) -> pd.DataFrame:
        """A score table that tells what was left out, who judged, and where it was not asked as the preset does."""
        room, asked = module("tasks", self.benchmark), self.about["asked"]
        settings, judge = asked.get("settings", {}), asked.get("judge")
        table = table.copy()
        room_of_metrics = module("metrics", self.benchmark)
        headlines = {h.task: h.metric for h in reversed(room_of_metrics.HEADLINES)}
        gone: list[Score] = []

        def tell(category: str, task: str, said: str, gap: str = "") -> None:
            metric = headlines.get(task, "")
            here = (table.category == category) & (table.task == task) & (table.metric == metric)
            table.loc[here, "note"] = [join_notes(note, said) for note in table.note[here]]
            if gap and metric and not here.any():
                nothing = (np.nan, np.nan, np.nan, 0, np.nan, np.nan)
                gone.append(
                    Score(category, task, metric, *nothing, preset, f"not applicable: {gap}")
                )

        left_out = self.about.get("left_out", {})
        for task, why in left_out.items():
            tell(ALL, task, why, why)
        if left_out:
            tell(ALL, ALL, f"without {', '.join(left_out)}")
        for entry in self.about.get("unfit", ()):
            if entry["task"] not in left_out:
                count = f"{entry['items']} instance{' is' if entry['items'] == 1 else 's are'} left out: {entry['why']}"
                tell(entry["category"], entry["task"], count, entry["why"])
        for entry in self.about.get("touched", ()):
            if entry["task"] not in left_out:
                tell(
                    entry["category"],
                    entry["task"],
                    f"{entry['items']:,} instances of the data: {entry['why']}",
                )
        # The released code reads replies in its own way, which nobody has checked.
        readings = self.readings if preset != "official" else pd.DataFrame()
        for checked in precision(readings).itertuples() if len(readings) else ():
            headline = [h.metric for h in room_of_metrics.HEADLINES if h.task == checked.task]
            rows_of_task = (table.category == ALL) & (table.task == checked.task)
            shown = rows_of_task & table.metric.isin(headline)
            table.loc[shown, "note"] = [
                join_notes(note, precision_note(checked)) for note in table.note[shown]
            ]
        if doubt := probe_failed(self.about):
            first = table.index[table.category == ALL][:1]
            table.loc[first, "note"] = [join_notes(doubt, note) for note in table.note[first]]
        lost = rows[rows.error != ""]
        for task in (task for task in dict.fromkeys(table.task) if task != ALL):
            reasons = lost.error[lost.task == task].value_counts()
            if len(reasons):
                total = int((rows.task == task).sum())
                tell(
                    ALL,
                    task,
                    f"{reasons.sum():,} of {total:,} answers did not come, most often: {reasons.index[0]}",
                )
            # Whether a reply was cut off is not known of likelihoods, letters and older runs.
            cut = rows.cut[(rows.task == task) & rows.cut.notna()]
            if cut.any():
                tell(
                    ALL,
                    task,
                    f"{cut.sum():,} of {len(cut):,} replies were cut off at their limit of tokens",
                )
            if self.about.get("wording", {}).get("unbiased_instruction"):
                tell(ALL, task, "the wording asks for an unbiased answer (the paper's Q+IF)")
            if judge and room.judged(task, settings):
                tell(ALL, task, f"marked by {short_name(judge).rstrip(':')}")
            if preset != "robust":
                for category in dict.fromkeys(table.category[table.task == task]):
                    otherwise = self._asked_otherwise(task, preset, whole=category == ALL)
                    if otherwise:
                        tell(category, task, f"asked with {', '.join(otherwise)}")
        return pd.concat([table, score_table(gone)], ignore_index=True) if gone else table

    def _asked_otherwise(self, task: str, preset: str, whole: bool) -> list[str]:
        """Where a task was not asked as `preset` does; with what holds for all categories if `whole`."""
        room, asked = module("tasks", self.benchmark), self.about["asked"]
        given = asked.get("settings", {})
        found = [
            f"{name}={given[name]} where this preset has {setting.under(preset)}"
            for name, setting in room.SETTINGS.items()
            if setting.task in ("", task)
            and given.get(name, setting.under(preset)) != setting.under(preset)
        ]
        if whole:
            defaults = {
                name: allowed[0]
                for name, allowed in module("data", self.benchmark).SETTINGS.items()
            }
            # How a file is encoded changes nothing about its rows.
            found += [
                f"{n}={given[n]}"
                for n in defaults
                if n != "encoding" and given.get(n, defaults[n]) != defaults[n]
            ]
            how = self.about.get("read", {}).get(task, "text")
            if how != "text":
                found.append(f"{how} read from probabilities")
            if (
                room.verbs(task, None) != ("nll",)
                and self.about.get("wording", {}).get("source") == OUR_WORDING
            ):
                found.append("our own wording")
        return found


class UnchangingRun(Run):
    """A run whose records no longer change, so its score tables are computed once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_tables", {})

    def scores(self, preset: str | None = None, common: Sequence[str] = ()) -> pd.DataFrame:
        """The score table, as that of `Run`."""
        known: dict[Any, pd.DataFrame] = self.__dict__["_tables"]
        key = preset or self.about["preset"], tuple(common)
        if key not in known:
            known[key] = super().scores(preset, common)
        return known[key].copy()


def table(runs: Sequence[Run], preset: str | None = None, *, beside: bool = True) -> pd.DataFrame:
    """The score tables of several runs in one, with a column `model`; official rows that differ stand behind.

    Args:
        beside: whether these rows are wanted.

    Raises:
        BadInput: there is no run.
    """
    if not runs:
        raise BadInput(
            "no model is left to tell of: none was named, or none can be asked these tasks"
        )
    names = labels(runs)
    common = _common_tasks(runs)
    tables = [
        (run.scores_beside if beside else run.scores)(preset, common).assign(model=name)
        for run, name in zip(runs, names, strict=True)
    ]
    return pd.concat(
        [part[["model", *(name for name in part if name != "model")]] for part in tables],
        ignore_index=True,
    )


def _common_tasks(runs: Sequence[Run]) -> list[str]:
    """The tasks that all runs were asked; none where they do not differ in them, or a score over tasks is not made."""
    if not any(headline.common for headline in module("metrics", runs[0].benchmark).HEADLINES):
        return []
    asked = [set(run.records.task) for run in runs]
    common = set.intersection(*asked)
    if all(tasks == common for tasks in asked):
        return []
    return [task for task in module("tasks", runs[0].benchmark).TASKS if task in common]


def all_items(runs: Sequence[Run]) -> pd.DataFrame:
    """The items of several runs, each once: models may have been asked different categories."""
    items = pd.concat([run.items for run in runs], ignore_index=True)
    return items.drop_duplicates("item_id", ignore_index=True)


def labels(runs: Sequence[Run]) -> list[str]:
    """A name a run: short where that tells the models apart, else as it was asked for."""
    short = [label for _, label in dict.fromkeys((run.model, run.label) for run in runs)]
    return [run.label if short.count(run.label) == 1 else run.model for run in runs]


def check_preset(preset: str) -> None:
    """Refuse an unknown preset."""
    if preset not in PRESETS:
        raise BadInput(expected(preset, PRESETS, "preset"))


def probe_failed(about: Mapping[str, Any]) -> str:
    """What speaks against a classifier: plain pairs that it labels otherwise than is beyond doubt; "" where none does."""
    asked = about.get("probe", [])
    wrong = [row for row in asked if row["found"] != row["expected"]]
    if not wrong:
        return ""
    (first, *_), languages = wrong, ", ".join(dict.fromkeys(row["language"] for row in wrong))
    return (
        f"the probe failed: of {len(asked)} plain pairs {len(wrong)} got a wrong label ({languages}), the first "
        f"{first['premise']!r}, {first['hypothesis']!r}: {first['found']} for {first['expected']}"
    )


def short_name(model: str) -> str:
    """A model's name without the path to it; a commit in it is shown by its first digits."""
    if reference := hub.parse(model):
        revision = reference.revision or ""
        revision = revision[:7] if hub.COMMIT.fullmatch(revision) else revision
        return f"{reference.name.rpartition('/')[2]}{'@' if revision else ''}{revision}"
    if model.partition(":")[0] in ("tiny", "simulated", "openai"):
        return model.partition("@")[0]
    return PureWindowsPath(model).name.removesuffix(".gguf").removesuffix(".jsonl")


def _differing(
    official: pd.DataFrame, table: pd.DataFrame, rounding: Mapping[str, float]
) -> pd.DataFrame:
    """The rows of `official` whose score or n is not that of the same row in `table`, or that has no such row.

    Args:
        rounding: by task, how far a number may be off because the released code rounds.
    """
    keys = ["category", "task", "metric"]
    both = official.merge(table[[*keys, "score", "n"]], on=keys, how="left", suffixes=("", "_ours"))
    near = (both.score - both.score_ours).abs() <= both.task.map(dict(rounding)).fillna(0.0) + NOISE
    same = (near & (both.n == both.n_ours)) | (both.score.isna() & both.score_ours.isna())
    return official[~same.to_numpy()]
