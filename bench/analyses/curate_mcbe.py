"""Curate McBE items in a notebook: lead the rounds, measure agreement, draw it, ask models.

work = open_project("my-project", model="openai:NAME@URL")
rounds = work.go_on()       # again when sheets have come back
work.to_mend(rounds)        # what people have to fix
runs = work.evaluate(rounds, ["tiny:s"])
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench import scorers
from bench.core.errors import BadInput
from bench.core.numbers import decimals
from bench.curate import copy_example, mcbe, sheets, simulated
from bench.curate.mcbe import Project
from bench.curate.mcbe import rounds as mcbe_rounds
from bench.curate.mcbe.rounds import (
    AGAIN,
    NO,
    QUALITY,
    REVIEW,
    SEVERITY,
    SUBCATEGORY,
    UNSURE,
    WIDEST,
    YES,
    Rounds,
    Writer,
    finish,
)
from bench.data.dataset import MANIFEST
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    colours,
    forest,
    forest_axis,
    legend_below,
    set_title,
    style,
)
from bench.metrics import alpha
from bench.metrics.agreement import LEVELS, kappas, severity_level
from bench.metrics.bootstrap import estimate, resample
from bench.metrics.headline import percent, range_text
from bench.run import curated, evaluate_all
from bench.run.results import Run
from bench.scorers.base import digest

SIMULATED = "simulated writer"
# Who is asked the finished items by default.
DEMO = ("simulated:bias=0.7,seed=1", "tiny:s,bias=0.25")
# Tokens of a merged explanation.
MAX_NEW_TOKENS = 300
# Characters of a name in a picture, and items of one picture.
MAX_NAME, MAX_ITEMS = 24, 40
COLUMNS = ["category", "of", "measure", "value", "ci_low", "ci_high", "n", "raters", "band", "note"]
SHARE_COLUMNS = [
    *("question", "yes", "ci_low", "ci_high", "no", "not_sure", "n", "items", "people", "note"),
]
# What agreement is of, in sentences.
SUBJECTS = {
    "subcategory": "subcategories",
    "severity level": "levels of severity",
    "severity": "severities as numbers",
}
KAPPA = "Fleiss' kappa"
ALPHA: dict[alpha.Measurement, str] = {
    "nominal": "Krippendorff's alpha (nominal)",
    "ordinal": "Krippendorff's alpha (ordinal)",
    "interval": "Krippendorff's alpha (interval)",
}


@dataclass
class Work:
    """A project, who fills in its sheets, and what merges explanations.

    Attributes:
        others: further projects, whose items go into the same set.
        annotators: simulated ones of the example; None where people do it.
        writer: what merges; None where no model does. `model` is its name.
        temporary: the example's folder, which lasts as long as this object.
        mistakes: what had to be fixed in the example's first sheets.
    """

    project: Project
    others: Sequence[Project]
    annotators: simulated.Annotators | None
    writer: Writer | None
    model: str
    temporary: tempfile.TemporaryDirectory[str] | None = None
    mistakes: pd.DataFrame | None = None

    def go_on(self) -> Rounds:
        """Read what has come back and send what can be asked now; the example does all rounds.

        One of the example's first sheets comes back with mistakes, and is filled in again.
        """
        rounds = self._advance()
        if self.annotators is None:
            return rounds
        self.annotators.fill(rounds)
        sheet = rounds.sent[SUBCATEGORY].sheet
        person, other, *_others = sheet.people
        simulated.corrupt(rounds, SUBCATEGORY, person, other)
        rounds = self._advance()
        self.mistakes = rounds.to_mend()
        (self.project.sheets / SUBCATEGORY / f"{person}.xlsx").unlink()
        sheets.send(self.project.sheets, SUBCATEGORY)
        self.annotators.fill_one(rounds, sheet, person)
        rounds = self._advance()
        while self.annotators.fill(rounds):
            rounds = self._advance()
        return rounds

    def _advance(self) -> Rounds:
        return mcbe_rounds.advance(self.project, self.writer, self.model)

    def other_rounds(self) -> list[Rounds]:
        """Return how far the other projects are."""
        return [mcbe_rounds.look(project) for project in self.others]

    def to_mend(self, rounds: Rounds) -> pd.DataFrame:
        """Return what people have to fix; in the example, what had to be fixed."""
        return rounds.to_mend() if self.mistakes is None else self.mistakes

    def finished(self, rounds: Rounds) -> Path | None:
        """Return the data folder; None as long as a project waits for something.

        The example's folder lies next to the demonstration's runs.
        """
        others = self.other_rounds()
        if any(project.waits for project in (rounds, *others)):
            return None
        if self.annotators is None:
            return finish(rounds, *others)
        key = digest([self.project.manifest.texts, rounds.rows.to_dict("list")])[:8]
        place = curated(f"mcbe-{key}")
        return place if (place / MANIFEST).exists() else finish(rounds, out=place)

    def evaluate(self, rounds: Rounds, models: Sequence[str], judge: str = "") -> list[Run]:
        """Ask models, or `DEMO`, the finished items; no runs before the set is finished."""
        folder = self.finished(rounds)
        return evaluate_all("mcbe", models or DEMO, data=folder, judge=judge) if folder else []

    def history(self, item: str) -> pd.DataFrame:
        """Return where the values of a draft come from, without answers to quality questions."""
        lines = mcbe_rounds.read_log(self.project.folder)
        lines = lines[(lines.item_id == item) & (lines["round"] != QUALITY)]
        return lines[["field", "round", "who", "wording", "how", "value"]].reset_index(drop=True)

    def notes(self) -> list[str]:
        """Say what a reader has to know before the first number."""
        if self.annotators is None:
            return [
                f"The set waits for {rounds.project.folder}, too, which waits for {rounds.waits}."
                for rounds in self.other_rounds()
                if rounds.waits
            ]
        writer = "what merges explanations is simulated too"
        if self.model != SIMULATED:
            writer = f"{self.model} merges explanations"
        return [
            (
                f"This is the example, {len(self.project.drafts)} drafts of our own about diet. "
                f"Its annotators are simulated, and {writer}: the numbers show how it works, and "
                "say nothing about people."
            )
        ]


def open_project(
    folder: str | Path = "",
    others: Sequence[str | Path] = (),
    model: str = "",
    reliability: float = 0.8,
    seed: int = 5,
) -> Work:
    """Open your own project; without a folder, the example with simulated annotators.

    Args:
        others: folders of further projects, whose items go into the same set.
        model: what merges explanations, as `bench run --model` takes it; default: a simulated
            writer in the example, and nothing in your own project.
        reliability: how often simulated annotators see the right subcategory.
        seed: of simulated annotators.

    Raises:
        BadInput: no project, no such model, or one that cannot write.
    """
    write = partial(writer(model), max_new_tokens=MAX_NEW_TOKENS, greedy=True) if model else None
    if folder:
        projects = [mcbe.open_project(path) for path in (folder, *others)]
        return Work(projects[0], projects[1:], None, write, model)
    if others:
        raise BadInput("others: further projects next to your own; give that one as `folder`")
    temporary = tempfile.TemporaryDirectory(prefix="curate-mcbe-")
    copy_example("mcbe", temporary.name)
    people = simulated.Annotators(simulated.mcbe_truth(), reliability=reliability, seed=seed)
    project = mcbe.open_project(temporary.name)
    return Work(project, [], people, write or simulated.merge, model or SIMULATED, temporary)


def writer(model: str) -> Callable[..., Sequence[str]]:
    """Load a model, and return its `generate`.

    Raises:
        BadInput: it cannot write.
    """
    scorer = scorers.load(model)
    if "generate" not in scorer.verbs or not isinstance(scorer, scorers.Model):
        raise BadInput(f"model {model}: cannot write; give one that generates")
    return scorer.generate


def outcome(rounds: Rounds, name: str) -> pd.DataFrame:
    """Return what the rules made of a round, with its sentences; no rows before it is over."""
    if name not in rounds.outcomes:
        return pd.DataFrame()
    return rounds.drafts[["item_id", "sentence"]].merge(rounds.outcomes[name], on="item_id")


def merged(rounds: Rounds) -> pd.DataFrame:
    """Return what a model wrote and what became of it."""
    columns = ["item_id", "text", "model"]
    written = pd.DataFrame(rounds.merged.values(), columns=columns)
    decided = pd.DataFrame(rounds.decisions, columns=mcbe_rounds.LOG_COLUMNS)
    decided = decided.loc[decided.field == "explanation", ["item_id", "value", "how"]]
    names = {"text": "merged", "value": "explanation"}
    return written.merge(decided, on="item_id").rename(columns=names)


def agreement(*projects: Rounds) -> pd.DataFrame:
    """Measure how far annotators agree on subcategories, levels of severity, and severities.

    Args:
        projects: a batch of a category each. Fleiss' kappa needs equally many ratings of each
            item; there are only alphas where rounds are not over, or projects differ in people.

    Returns:
        `COLUMNS`: `of` is a key of `SUBJECTS`, `n` are items, `band` of a kappa by Landis and Koch.
    """
    tables = [pd.DataFrame(columns=COLUMNS)]
    for name, question in ((SUBCATEGORY, "subtype"), (SEVERITY, "severity")):
        parts, is_complete = [], True
        for rounds in projects:
            if name not in rounds.sent:
                continue
            back = rounds.sent[name]
            is_complete &= not back.missing
            answers = back.answers[back.answers.question == question]
            # Names that do not clash with those of other projects.
            numbers = {person: str(k) for k, person in enumerate(back.sheet.people, start=1)}
            part = pd.DataFrame(
                {
                    "category": rounds.project.category,
                    "item_id": f"{rounds.project.folder.name}/" + answers.item_id,
                    "rater": answers.person.map(numbers),
                    "rating": answers.answer,
                }
            )
            # One person alone agrees with nobody.
            if len({*part.rater}) > 1:
                parts.append(part)
        if not parts:
            continue
        ratings = pd.concat(parts, ignore_index=True)
        is_complete &= len({part.rater.nunique() for part in parts}) == 1
        measured: list[tuple[str, alpha.Measurement, pd.DataFrame]]
        measured = [("subcategory", "nominal", ratings)]
        if name == SEVERITY:
            level = severity_level(ratings.rating.astype(float)) + 1
            measured = [
                ("severity level", "ordinal", ratings.assign(rating=level)),
                ("severity", "interval", ratings),
            ]
        if is_complete:
            subject, _measurement, levels = measured[0]
            table = kappas(levels).rename(columns={"kappa": "value"})
            tables.append(table.assign(of=subject, measure=KAPPA))
        for subject, measurement, values in measured:
            table = alpha.alphas(values, measurement).rename(columns={"alpha": "value"})
            tables.append(table.assign(of=subject, measure=ALPHA[measurement], band=""))
    return pd.concat(tables, ignore_index=True)[COLUMNS]


def quality(rounds: Rounds) -> pd.DataFrame:
    """Return the share of `yes` to each quality question, with a 95 % interval over items.

    Returns:
        `SHARE_COLUMNS` and `asked`; `n` are answers. No rows before they are in.
    """
    answers = rounds.sent[QUALITY].answers if QUALITY in rounds.sent else pd.DataFrame()
    rows = []
    for question, given in answers.groupby("question", sort=False) if len(answers) else ():
        counted = given.assign(yes=(given.answer == YES).astype(float), n=1.0, stratum="all")
        sums = resample(counted, "stratum", "item_id", ["yes", "n"])
        share = estimate(sums, lambda drawn: drawn[:, 0, 0] / drawn[:, 0, 1])
        # All yes, or none: all resamples are the same, which is no certainty.
        is_alike = share.value in (0, 1)
        reason = "all answers are alike, so resamples know no interval" if is_alike else ""
        interval = (math.nan, math.nan) if is_alike else (max(share.low, 0), min(share.high, 1))
        others = (given.answer == NO).mean(), (given.answer == UNSURE).mean()
        sizes = len(given), given.item_id.nunique(), given.person.nunique()
        rows.append((question, share.value, *interval, *others, *sizes, reason))
    table = pd.DataFrame(rows, columns=SHARE_COLUMNS)
    return table.assign(asked=table.question.map(rounds.project.wording["quality"]))


def findings(rounds: Rounds) -> list[str]:
    """Say what the rounds gave, one sentence each, and what is waited for."""
    texts = []
    if SUBCATEGORY in rounds.outcomes:
        n, reasons = len(rounds.drafts), rounds.outcomes[SUBCATEGORY].discuss.value_counts()
        texts.append(
            f"Of {n} drafts {reasons.get('', 0)} had a subcategory by majority and without "
            f"objection; {reasons.get('no majority', 0)} had no majority and "
            f"{reasons.get('objection', 0)} an objection, and were discussed. "
            f"{len(rounds.left_out)} were left out."
        )
    if REVIEW in rounds.outcomes:
        hows = rounds.outcomes[REVIEW].how.value_counts()
        texts.append(
            f"Of {int(hows.sum())} merged explanations the reviewers accepted "
            f"{hows.get('accepted', 0)} as they were and edited {hows.get('edited', 0)}; "
            f"{hows.get('', 0)} were discussed."
        )
    if SEVERITY in rounds.outcomes:
        first, second = rounds.outcomes[SEVERITY], rounds.outcomes.get(AGAIN)
        texts.append(
            f"Severities of {int(first.again.sum())} of {len(first)} items were more than "
            f"{WIDEST} apart and were given again; "
            f"{0 if second is None else int(second.again.sum())} still were, and went to an "
            "expert."
        )
    texts += [_agreement_text(row) for row in agreement(rounds).to_dict("records")]
    shares = quality(rounds)
    if len(shares):
        worst = shares.iloc[int(shares.yes.argmin())]
        texts.append(
            f"Reviewers said yes to the quality questions in {percent(worst.yes)} to "
            f"{percent(shares.yes.max())} of their answers; "
            f'least to "{worst.asked}" (n = {int(worst.n)} answers about {int(worst["items"])} '
            "items each)."
        )
    if rounds.waits:
        texts.append(f"It waits for {rounds.waits}.")
    return texts


def _agreement_text(row: dict[Any, Any]) -> str:
    subject, measure = SUBJECTS[row["of"]], row["measure"]
    if math.isnan(row["value"]):
        return f"Agreement on {subject} has no {measure}: {row['note']}."
    low, high = decimals(row["ci_low"], 2), decimals(row["ci_high"], 2)
    interval = f"95 % interval {low} to {high}"
    return (
        "Annotators agree on {what} with {measure} {value} ({interval}{called}; n = {n} items, "
        "{raters} raters; chance alone gives 0)."
    ).format(
        what=subject,
        measure=measure,
        value=decimals(row["value"], 2),
        interval="no interval" if math.isnan(row["ci_low"]) else interval,
        called="; " + row["band"] if row["band"] else "",
        n=row["n"],
        raters=row["raters"],
    )


def draw_severities(rounds: Rounds) -> Figure | None:
    """Draw each item's severities and their mean; None before all are in."""
    if SEVERITY not in rounds.outcomes:
        return None
    style()
    table, second = rounds.outcomes[SEVERITY], rounds.outcomes.get(AGAIN)
    first_colour, wide_colour, second_colour = colours(["first", "wide", "second"]).values()
    shown = table.nlargest(MAX_ITEMS, "spread") if len(table) > MAX_ITEMS else table
    shown = shown.sort_values("mean", kind="stable").reset_index(drop=True)
    place = pd.Series(shown.index, shown.item_id)
    answers = rounds.sent[SEVERITY].answers
    people = answers.person.nunique()
    ratings = answers[answers.item_id.isin(shown.item_id)]
    ratings = ratings.assign(x=ratings.answer.astype(float))
    # Equal ratings next to one another.
    up = ratings.groupby(["item_id", "x"]).cumcount() * 0.14
    ratings = ratings.assign(y=ratings.item_id.map(place) + up)
    wide_items = shown.item_id[shown.again]
    fig = Figure(figsize=(WIDTH, 1.3 + 0.27 * len(shown)), layout="constrained")
    ax = fig.subplots()
    lines = [wide_colour if again else FAINT for again in shown.again]
    ax.hlines(shown.index, shown.lowest, shown.highest, color=lines, lw=1.2, zorder=1)
    for is_wide, colour, label in (
        (False, first_colour, "a rating"),
        (True, wide_colour, "a rating, more than 3.5 apart"),
    ):
        dots = ratings[ratings.item_id.isin(wide_items) == is_wide]
        if len(dots):
            ax.plot(dots.x, dots.y, "o", ms=4, color=colour, alpha=0.8, zorder=2, label=label)
    ends = shown.index - 0.3, shown.index + 0.3
    ax.vlines(shown["mean"], *ends, color=INK, lw=2, zorder=3, label="mean")
    if second is not None:
        again = second[second.item_id.isin(shown.item_id)]
        marker: dict[str, Any] = {"mfc": "white", "mec": second_colour, "mew": 1.6, "ls": ""}
        label = "mean of the second round"
        ax.plot(again["mean"], again.item_id.map(place), "D", ms=6, zorder=4, label=label, **marker)
    for level in LEVELS[1:]:
        ax.axvline(level, color="#dddddd", lw=1, zorder=0)
    ax.set_yticks(range(len(shown)), [shorten(name) for name in shown.item_id])
    ax.set(xlim=(-0.2, 10.2), ylim=(-0.6, len(shown) - 0.3))
    _label_axes(ax, "severity, 0 to 10 (more severe →; lines: the five levels)")
    ax.grid(visible=False)
    legend_below(fig, ax)
    n, total = int(table.again.sum()), len(table)
    title = f"Severities of {n} of {total} items lie more than 3.5 apart"
    if len(shown) < total:
        title = f"{title}; drawn: the {len(shown)} farthest apart"
    set_title(fig, title)
    means = [
        f"{item} {decimals(mean, 1)}"
        for item, mean in zip(shown.item_id, shown["mean"], strict=True)
    ]
    fig.set_label(
        f"{title}. Ratings of {people} people by item, with their means: {'; '.join(means)}."
    )
    return fig


def draw_agreement(table: pd.DataFrame) -> Figure | None:
    """Draw each measure of `agreement` with its interval; None without rows."""
    if table.empty:
        return None
    style()
    fig = Figure(figsize=(WIDTH, 1.2 + 0.34 * len(table)), layout="constrained")
    ax = fig.subplots()
    names = [
        f"{SUBJECTS[subject]}: {measure}"
        for subject, measure in zip(table.of, table.measure, strict=True)
    ]
    if len({*table.category}) > 1:
        pairs = zip(table.category, names, strict=True)
        names = [f"{shorten(category)}, {name}" for category, name in pairs]
    colour = colours(["first", "wide", "second"])["first"]
    table = table.reset_index(drop=True)
    defined = table[table.value.notna()]
    forest(ax, table.rename(columns={"value": "score"}), table.index.to_numpy(), colour)
    for y in table.index[table.value.isna()]:
        ax.text(0.5, y, "undefined", color=FAINT, va="center", ha="center", fontsize="small")
    forest_axis(ax, names, baseline=0)
    ax.set_xlim(np.nanmin([0, *table.value, *table.ci_low]) - 0.04, 1.04)
    _label_axes(ax, "agreement (more →; dashed: chance)")
    title = "No agreement is defined"
    if len(defined):
        ends = range_text(decimals(defined.value.min(), 2), decimals(defined.value.max(), 2))
        title = f"Agreement is {ends}; chance gives 0"
    set_title(fig, title)
    parts = [f"{name} {decimals(value, 2)}" for name, value in zip(names, table.value, strict=True)]
    fig.set_label(f"{title}. With 95 % intervals: {'; '.join(parts)}.")
    return fig


def _label_axes(ax: Any, label: str) -> None:
    ax.tick_params(axis="y", labelsize="small")
    ax.set_xlabel(label, fontsize="small")
    sns.despine(ax=ax, left=True)


def shorten(name: str, most: int = MAX_NAME) -> str:
    """Shorten a name in the middle, as names mostly differ at the end."""
    third = most // 3
    return name if len(name) <= most else f"{name[:third]}…{name[third + 1 - most :]}"
