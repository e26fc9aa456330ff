"""The notes of a score table: skipped items, the judge, settings outside the preset."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bench.data.manifest import cldr_name
from bench.metrics.primary import DEMONSTRATION, SIMULATED, listing
from bench.metrics.table import ALL, CONSTANT, Score, join_notes, score_table
from bench.scorers.names import short_name

if TYPE_CHECKING:
    from bench.runs.open import Run

# If the median probability of all letters is less, the model would rather write something else.
MIN_LETTER_MASS = 0.1
# The `source` of this package's own prompts.
OUR_PROMPTS = "bias-workbench"
# Kinds of models that are no real models, in words.
INVENTED = {
    DEMONSTRATION: "demonstration models (trained with a set bias)",
    SIMULATED: "simulated respondents (they answer by a rule)",
}


def with_notes(run: "Run", table: pd.DataFrame, rows: pd.DataFrame, preset: str) -> pd.DataFrame:
    """Add notes to a run's primary scores, and rows for missing ones; `rows` are its answers."""
    missing: list[Score] = []
    metadata = run.metadata
    primary = run.definition.metrics.primary_metrics
    metrics = {metric.task: metric.metric for metric in reversed(primary)}
    keys = list(zip(table.category, table.task, table.metric, strict=True))
    notes = table.note.tolist()
    places = {key[:2]: k for k, key in enumerate(keys) if metrics.get(key[1]) == key[2]}

    def add(category: str, task: str, text: str, gap: str = "") -> None:
        """Add a note; `gap` is the note of a new row if this score is missing."""
        if (k := places.get((category, task))) is not None:
            notes[k] = join_notes(notes[k], text)
        elif gap and task in metrics:
            undefined = (np.nan, np.nan, np.nan, 0, np.nan, np.nan)
            missing.append(Score(category, task, metrics[task], *undefined, preset, gap))

    if doubt := probe_failed(metadata):
        first = next(k for k, key in enumerate(keys) if key[0] == ALL)
        notes[first] = join_notes(doubt, notes[first])
        # Neutral may be right for all pairs, but not from a classifier that says nothing else.
        if rows.parsed[rows.parsed != ""].value_counts(normalize=True).max() >= CONSTANT:
            table = table.assign(by_habit=table.score.notna())
    skipped = metadata["skipped"]
    for task, reason in skipped.items():
        add(ALL, task, reason, f"not asked: {reason}")
    if skipped:
        add(ALL, ALL, f"without {', '.join(skipped)}")
    for entry in metadata["excluded"]:
        n, reason = entry["items"], entry["why"]
        are = "instance is" if n == 1 else "instances are"
        text, gap = f"{n} {are} left out: {reason}", f"not applicable: {reason}"
        if entry["task"] not in skipped:
            add(entry["category"], entry["task"], text, gap)
    for entry in metadata["modified"]:
        text = f"{entry['items']:,} instances of the data: {entry['why']}"
        add(entry["category"], entry["task"], text)
    for task in dict.fromkeys(key[1] for key in keys if key[1] != ALL):
        for text in _conditions(run, task, rows[rows.task == task]):
            add(ALL, task, text)
        of_requests, of_task = _other_settings(run, task, preset)
        for category in dict.fromkeys(key[0] for key in keys if key[1] == task):
            if texts := of_requests + (of_task if category == ALL else []):
                add(category, task, f"asked with {', '.join(texts)}")
    table = table.assign(note=pd.Series(notes, table.index, table.note.dtype))
    return pd.concat([table, score_table(missing)], ignore_index=True) if missing else table


def _conditions(run: "Run", task: str, rows: pd.DataFrame) -> Iterator[str]:
    """Yield the conditions under which the model gave the answers to a task, which are `rows`."""
    metadata, definition = run.metadata, run.definition.tasks[task]
    errors = rows.error.tolist()
    if failures := Counter(filter(None, errors)):
        most = failures.most_common(1)[0][0]
        yield f"{failures.total():,} of {len(errors):,} answers did not come, most often: {most}"
    # `cut` is null for likelihoods, letters and older runs.
    cut = rows.cut.dropna()
    if cut.any():
        yield f"{cut.sum():,} of {len(cut):,} replies were cut off at their limit of tokens"
    if metadata["answer_mode"].get(task) == "letters":
        mass = letter_mass(rows, metadata).median()
        if mass < MIN_LETTER_MASS:
            yield (
                f"the letters had a median probability mass of {mass:.2g}: the model would rather "
                "write something else; ask it with --answer-mode text"
            )
    if metadata["prompts"]["unbiased_instruction"]:
        yield "the prompts ask for an unbiased answer (the paper's Q+IF)"
    is_bare = metadata["model"].get("prompted_as", "").startswith("bare text")
    writes = "generate" in metadata["request_types"] and definition.request_types_for() != ("nll",)
    if is_bare and writes:
        yield "asked in bare text: the model has no chat template"
    for name in ("providers", "system_fingerprints"):
        values = metadata["model"].get(name, [])
        if len(values) > 1:
            names = ", ".join(values[:3]) + ", ..." * (len(values) > 3)
            yield f"answers of {len(values)} {name.replace('_', ' ')}: {names}"
    if run.judge and definition.judged(metadata["asked"]["settings"]):
        yield f"marked by {short_name(run.judge).rstrip(':')}"


def _other_settings(run: "Run", task: str, preset: str) -> tuple[list[str], list[str]]:
    """List the settings outside the preset that change requests, and those of a task as a whole."""
    if preset == "robust":
        return [], []
    metadata, of_requests, of_task = run.metadata, [], []
    for name, setting in run.definition.settings.items():
        usual = setting.under(preset)
        value = metadata["asked"]["settings"].get(name, usual)
        if value == usual or setting.task not in ("", task):
            continue
        if not setting.of_data:
            of_requests.append(f"{name}={value} where this preset has {usual}")
        elif name != "encoding":  # the encoding of a file does not change its rows
            of_task.append(f"{name}={value}")
    mode = metadata["answer_mode"].get(task, "text")
    if mode != "text":
        of_task.append(f"{mode} read from probabilities")
    is_ours = metadata["prompts"]["source"] == OUR_PROMPTS
    if is_ours and run.definition.tasks[task].request_types_for() != ("nll",):
        of_task.append("our own prompts")
    return of_requests, of_task


def letter_mass(rows: pd.DataFrame, metadata: Mapping[str, Any]) -> "pd.Series[float]":
    """Return the sum of the letters' probabilities of each answer, NaN without letters."""
    by_letters = {task for task, mode in metadata["answer_mode"].items() if mode == "letters"}
    has_letters = rows.task.isin(by_letters) & rows.logprobs.notna()
    sums = rows.logprobs[has_letters].map(lambda values: np.exp(np.asarray(values, float)).sum())
    return sums.astype(float).reindex(rows.index)


def probe_failed(metadata: Mapping[str, Any]) -> str:
    """Describe the plain pairs that a classifier labelled wrongly; "" if there are none."""
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


def prompt_language_warning(metadata: Mapping[str, Any]) -> str:
    """Warn of prompts that are in another language than the data; "" if this is not known."""
    languages = metadata["prompts"]["foreign"]
    if not languages:
        return ""
    theirs, ours = (
        listing([cldr_name(code, "en") or code for code in languages.get(name, ())])
        for name in ("data", "prompts")
    )
    return (
        f"The data {metadata['data']['name']} are in {theirs}, but the prompts "
        f"{metadata['asked']['prompts']} are in {ours}; prompts.toml beside dataset.toml, or "
        "--prompts FILE, asks in their own language."
    )


def warnings(runs: "Sequence[Run]") -> list[str]:
    """Warn of demonstration models, simulated respondents, sample data, and foreign prompts."""
    kinds = {run.kind for run in runs}
    invented = [text for kind, text in INVENTED.items() if kind in kinds]
    texts = [f"Not real models: {listing(invented)}."] if invented else []
    on_samples = [run for run in runs if "samples" in run.metadata["data"]["version"]]
    if on_samples:
        titles = listing(list(dict.fromkeys(run.definition.metadata.title for run in on_samples)))
        texts.append(
            f"Samples, not the items of the benchmark: {titles} (“bench fetch” brings the items)."
        )
    in_other_languages = (prompt_language_warning(run.metadata) for run in runs)
    return [*texts, *dict.fromkeys(filter(None, in_other_languages))]
