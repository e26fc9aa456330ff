"""Curate CBBQ templates in a notebook: lead the rounds, measure agreement and novelty, ask models.

work = go_on("my-project", "openai:NAME@URL", "ada", reviewers=["bo", "cy"], panel="di")
work.waiting()              # who is waited for; call `go_on` again when sheets have come back
runs = work.evaluate(["tiny:s"])
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from bench import data
from bench.analyses.curate_mcbe import shorten, writer
from bench.core.numbers import decimals
from bench.core.text import sentences
from bench.curate import EXAMPLES, cbbq, copy_example, simulated
from bench.curate.cbbq import Project, release, rounds
from bench.curate.cbbq.release import Release
from bench.curate.cbbq.rounds import (
    AS_DRAFTED,
    ASKED,
    FACTS,
    KEEP,
    KINDS,
    LEAVE_OUT,
    MEND,
    REVIEW_MISSING,
    SMALL,
    SMALL_EDIT,
    UNDECIDED,
    YES,
    Rounds,
)
from bench.data import Source, texts
from bench.data.cbbq import audit, files, read_templates
from bench.data.cbbq.templates import CONDITIONS, SLOTS
from bench.figures.style import (
    FAINT,
    INK,
    MARKS,
    WIDTH,
    colours,
    legend_below,
    legend_height,
    set_title,
    style,
)
from bench.metrics import agreement, diversity
from bench.metrics.diversity import NEAR
from bench.metrics.headline import percent
from bench.run import curated, evaluate_all
from bench.run.results import Run
from bench.scorers.base import digest

# The project's own other templates, as one of the sets that a context is compared with.
OWN = "this set"
# Templates of one panel, and characters of a set's name.
MAX_TEMPLATES, MAX_SET = 25, 36
COUNT_COLUMNS = ["category", "condition", "polarity", "templates", "questions"]
NOVELTY_COLUMNS = [
    *("item_id", "condition", "set", "rouge_l", "nearest", "text", "nearest_text", "too_near"),
]


class Work(NamedTuple):
    """How far a project is.

    Attributes:
        is_example: it is the example, with simulated people.
        drafter: what drafts; "" if no model does.
        release: the data set of the templates that are ready; None if there are none.
        source: the data set as every room finds it; None if there is none.
    """

    project: Project
    is_example: bool
    drafter: str
    rounds: Rounds
    release: Release | None
    source: Source | None

    def to_mend(self) -> pd.DataFrame:
        """List what people have to fix, in tables and in sheets."""
        tables = cbbq.faults(self.project).rename(columns={"file": "where"})
        listed = self.rounds.to_mend
        listed = listed.assign(where=listed.person + ": " + listed.file)[[*tables]]
        parts = [part for part in (tables, listed) if len(part)]
        return pd.concat(parts or [tables], ignore_index=True)

    def waiting(self) -> pd.DataFrame:
        """Count what is done, step by step, and say who is waited for."""
        state, standing = self.rounds, self.rounds.standing
        sound, n = {*state.scenarios}, len(standing)
        drafted = {row["template"] for row in self.project.table("drafts")} & sound
        complete = int((~standing.note.isin([MEND, FACTS])).sum())
        # Ambiguous forms are reviewed before there are facts.
        forms = int((state.forms.lacks == "").sum())
        settled = int((standing.decision != "").sum())
        authors = f"whoever wrote the {n - len(sound)} others" if n > len(sound) else ""
        editor = "the editor, or another draft" if drafted - {*state.facts} else ""
        readers, panel = ("; ".join(sorted({*t.people})) for t in (state.unread, state.undecided))
        rows = [
            ("templates without a fault", len(sound), n, authors),
            ("drafted", len(drafted), len(sound), "the model" if sound - drafted else ""),
            ("decided on", len(state.facts), len(sound), editor),
            ("four forms complete", complete, n, ""),
            ("forms reviewed by two", forms - len(state.unread), forms, readers),
            ("objections discussed", settled, settled + len(state.undecided), panel),
            ("in the data set", int(standing.ready.sum()), n, ""),
        ]
        return pd.DataFrame(rows, columns=["step", "done", "of", "waits_for"])

    def table(self, name: str) -> pd.DataFrame:
        """Return the table `biases` or `templates`."""
        return pd.DataFrame(self.project.table(name), columns=list(cbbq.TABLES[name]))

    def provenance(self) -> pd.DataFrame:
        """Return where each row of the data set comes from, without times."""
        if self.release is None:
            return pd.DataFrame()
        return self.release.provenance.drop(columns=["decided_when", "discussed_when"])

    def audit(self) -> pd.DataFrame:
        """Return what the audit of CBBQ's data finds in the data set, without counts."""
        if self.release is None:
            return pd.DataFrame(columns=["file", "row", "column", "kind", "what", "value"])
        table = audit.check(self.release.folder)
        return table[table.kind != "count"].reset_index(drop=True)

    def counts(self) -> pd.DataFrame:
        """Count templates and questions of the data set; no rows without one."""
        keys = ["category", "condition", "polarity"]
        rows = [
            (category, condition, template.polarity, template.size)
            for category, paths in (files(self.source.folder).items() if self.source else ())
            for condition in CONDITIONS
            for template in read_templates(paths, category, condition)
        ]
        table = pd.DataFrame(rows, columns=[*keys, "size"])
        sizes = table.groupby(keys, sort=False, as_index=False)
        counts = sizes.agg(templates=("size", "size"), questions=("size", "sum"))
        total = [("all", "", "", len(rows), table["size"].sum())] if rows else []
        return pd.concat([counts, pd.DataFrame(total, columns=[*counts])], ignore_index=True)

    def evaluate(self, models: Sequence[str], limit: int = 0, seed: int = 0) -> list[Run]:
        """Ask models the new questions; no runs without a data set."""
        if self.source is None:
            return []
        return evaluate_all("cbbq", models, data=self.source.folder, limit=limit, seed=seed)


def go_on(
    folder: str | Path = "",
    model: str = "",
    editor: str = simulated.EDITOR,
    reviewers: Sequence[str] = simulated.REVIEWERS,
    panel: str = simulated.PANEL,
    reliability: float = 0.9,
    seed: int = 0,
) -> Work:
    """Draft, write sheets and read those that are back, as far as a project goes without people.

    Without a folder simulated people work on the example, in `reports/curated`.

    Args:
        model: what drafts, as `bench run --model` takes it; default: a simulated one in the
            example, and nothing in your own project.
        editor: who decides about drafts.
        reviewers: two people who have not written the templates.
        panel: who decides, on one sheet, about templates that reviewers objected to.
        reliability: of simulated reviewers.

    Raises:
        BadInput: no project, no such model, or one that cannot write.
    """
    write = writer(model) if model else None
    if folder:
        project = cbbq.open_project(folder)
        if write:
            rounds.draw(project, write, model, seed)
        for kind, people in (
            (rounds.DECIDE, [editor]),
            (rounds.REVIEW, reviewers),
            (rounds.DISCUSS, [panel]),
        ):
            rounds.hand_out(project, kind, people, seed)
        rounds.resend(project)
    else:
        model = model or simulated.MODEL
        project = _example(model, reliability, seed)
        simulated.work(project, write, model, reliability, seed)
    state = Rounds(project)
    made = release.write(state) if state.standing.ready.any() else None
    if made is None:
        release.withdraw(project)
    source = data.find("cbbq", made.folder) if made else None
    return Work(project, not folder, model, state, made, source)


def _example(model: str, reliability: float, seed: int) -> Project:
    """Continue or begin the example's copy for these settings and these simulated people."""
    examples = sorted((EXAMPLES / "cbbq").iterdir())
    paths = [*examples, rounds.WORDINGS, Path(simulated.__file__)]
    key = digest([model, reliability, seed, [path.read_text("utf-8") for path in paths]])[:8]
    place = curated(f"cbbq-{key}")
    if not (place / "templates.csv").is_file():
        copy_example("cbbq", place)
    return cbbq.open_project(place)


def draft_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Count what became of drafts: first drafts, all drafts, and by instruction.

    Returns:
        `drafts`, `n` (decided on), one column per kind, `usable` (share that stands as drafted or
        after a small edit), `ci_low`, `ci_high` (Wilson; of first drafts only), `note`.
    """
    decided = table[table.kind != UNDECIDED]
    parts = [("first drafts", decided[decided.draw == 1]), ("all drafts", decided)]
    parts += [(f"wording {name}", rows) for name, rows in decided.groupby("wording")]
    shares = []
    for name, rows in parts:
        counts = {kind: int((rows.kind == kind).sum()) for kind in KINDS[:-1]}
        n, usable = len(rows), counts[AS_DRAFTED] + counts[SMALL_EDIT]
        reason, low, high = "", np.nan, np.nan
        if not n:
            reason = "no draft was decided on"
        elif name == "first drafts":
            low, high = proportion_confint(usable, n, method="wilson")
        else:
            reason = "several draws of a template are not independent, so there is no interval"
        share = {"usable": usable / n if n else np.nan, "ci_low": low, "ci_high": high}
        shares.append({"drafts": name, "n": n, **counts, **share, "note": reason})
    return pd.DataFrame(shares)


def kappas(answers: pd.DataFrame) -> pd.DataFrame:
    """Compute Cohen's kappa of the blind answers by category, see `agreement.kappas`.

    Forms that one reviewer alone has answered are left out; no rows if none is left. Templates are
    the clusters of the interval, as forms of one are not independent.
    """
    blind = answers[answers.question == "answer"]
    both = blind[blind.groupby("item_id").person.transform("nunique") == rounds.REVIEWERS]
    ratings = both.rename(columns={"answer": "rating", "template": "cluster"})
    if both.empty:
        columns = ["category", "kappa", "ci_low", "ci_high", "n", "clusters", "raters", "agreed"]
        return pd.DataFrame(columns=[*columns, "band", "note"])
    return agreement.kappas(ratings[["category", "item_id", "rater", "rating", "cluster"]])


def review_shares(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the share of templates of which reviewers said only what they should, by category.

    Returns:
        `category`, `said`, `templates` (the share), `ci_low`, `ci_high` (Wilson), `n` (templates),
        `of_answers` (the share of answers), `answers`.
    """
    right = {
        "answered as labelled": ("answer", answers.answer == answers.label),
        "asks the recorded bias": (ASKED[0], answers.answer == YES),
        "reads well and is respectful": (ASKED[1], answers.answer == YES),
    }
    rows = []
    for category in answers.category.unique():
        for statement, (question, is_right) in right.items():
            asked = is_right[(answers.category == category) & (answers.question == question)]
            templates = asked.groupby(answers.template).all()
            n, share = len(templates), np.nan
            low = high = np.nan
            if n:
                share = templates.mean()
                low, high = proportion_confint(int(templates.sum()), n, method="wilson")
            rows.append((category, statement, share, low, high, n, asked.mean(), len(asked)))
    columns = ["category", "said", "templates", "ci_low", "ci_high", "n", "of_answers", "answers"]
    return pd.DataFrame(rows, columns=columns)


def compared_sets(folders: Sequence[str] = (), *, installed: bool = True) -> list[Source]:
    """Return the sets that new contexts are compared with: the samples, and those in `folders`.

    Args:
        installed: also what `bench data` finds; without it the result is the same on every machine.
    """
    places = [*([None] if installed else []), data.OWN_SAMPLES, *folders]
    sources = [data.find("cbbq", folder) for folder in places]
    return list({source.folder: source for source in sources}.values())


def novelty(state: Rounds, others: Sequence[Source] = ()) -> pd.DataFrame:
    """Find the text that each new context shares most with, in its own set and in each other one.

    Contexts are compared with those of the same condition.

    Returns:
        `NOVELTY_COLUMNS`: `nearest` is an id, `too_near` marks near-duplicates; the nearest first.
    """
    forms = state.forms[(state.forms.lacks == "") & (state.forms.polarity == "neg")]
    context = forms.context.str.replace(SLOTS[0], texts.FIRST, regex=False)
    own = pd.DataFrame(
        {
            "item_id": forms.template + ":" + forms.condition,
            "language": next(iter(state.project.manifest.languages), "zh"),
            "text": context.str.replace(SLOTS[1], texts.SECOND, regex=False),
        }
    )
    sets = {OWN: own, **{source.name: texts.texts(source) for source in others}}
    rows = []
    for condition in CONDITIONS:
        new = _of_condition(own, condition)
        for name, table in sets.items():
            known = _of_condition(table, condition)
            known = known[known.language.isin(new.language)]
            if new.empty or known.empty:
                continue
            values = diversity.rouge_l(list(new.text), list(known.text)).copy()
            if name == OWN:
                np.fill_diagonal(values, -1)
            best, shares = values.argmax(axis=1), values.max(axis=1).astype(float)
            nearest = known.iloc[best]
            part = new[["item_id", "text"]].assign(
                condition=condition,
                set=name,
                rouge_l=shares,
                nearest=nearest.item_id.to_numpy(),
                nearest_text=nearest.text.to_numpy(),
                too_near=shares >= NEAR,
            )
            rows.append(part[shares >= 0])
    table = pd.concat(rows) if rows else pd.DataFrame(columns=NOVELTY_COLUMNS)
    table = table.sort_values("rouge_l", ascending=False, kind="stable", ignore_index=True)
    return table[NOVELTY_COLUMNS]


def usual(source: Source) -> pd.DataFrame:
    """Measure how much each context of a set shares with the nearest other one there."""
    rows = []
    table = texts.texts(source)
    for condition in CONDITIONS:
        own = list(_of_condition(table, condition).text.drop_duplicates())
        if len(own) > 1:
            values = diversity.rouge_l(own, own)
            np.fill_diagonal(values, -1)
            rows += [(condition, float(value)) for value in values.max(axis=1)]
    return pd.DataFrame(rows, columns=["condition", "rouge_l"]).assign(set=source.name)


def _of_condition(table: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Select the texts of a condition, which their ids name after the first colon."""
    return table[table.item_id.str.split(":").str[1] == condition]


def notes(work: Work) -> list[str]:
    """Say what a reader has to know before the first number."""
    lines = []
    if work.is_example:
        lines.append(
            "This is the example, four templates of our own about accents, with drafts by "
            f"{work.drafter}. Its editor, reviewers and panel are simulated: the numbers show "
            "how it works, and say nothing about people."
        )
    if n := len(work.to_mend()):
        lines.append(f"To be fixed: {n}; the list is below.")
    standing = work.rounds.standing
    open_ = standing[~standing.ready & (standing.decision == "")].note.value_counts(sort=False)
    if len(open_):
        lines.append(
            "Of {all} templates {n} are not settled, and so not in the data set: {why}.".format(
                all=len(standing),
                n=int(open_.sum()),
                why="; ".join(f"{reason!s} ({n})" for reason, n in open_.items()),
            )
        )
    return lines


def findings(work: Work, novelty: pd.DataFrame, usual: pd.DataFrame) -> list[str]:
    """Say what was found: the set, drafts, reviews and objections, what is new, the audit."""
    standing, answers = work.rounds.standing, work.rounds.answers
    lines = [f"Of {len(standing)} templates none is ready yet, so there is no data set."]
    if work.source:
        counts = work.counts().iloc[-1]
        lines = [
            (
                f"Of {len(standing)} templates {int(standing.ready.sum())} are in the data set, "
                "each with its four forms (ambiguous and disambiguous, each with both "
                f"questions): {counts.templates} rows in the release's format, which yield "
                f"{counts.questions:,} questions."
            )
        ]
    first = draft_shares(work.rounds.drafts).iloc[0]
    if first.n:
        lines.append(
            f"Of {first.n} first drafts {percent(first.usable)} could stand as they were or "
            f"after an edit of at most {percent(SMALL)} of the characters (95\u00a0% interval "
            f"{percent(first.ci_low)} to {percent(first.ci_high)})."
        )
    table = kappas(answers)
    if len(table):
        who = "two simulated reviewers" if work.is_example else "the two reviewers"
        blind = answers[answers.question == "answer"]
        right = (
            f"Of their {len(blind)} blind answers "
            f"{percent((blind.answer == blind.label).mean())} are the label (who guesses gets a "
            "third)."
        )
        lines.append(sentences([agreement.kappa_sentence(table, who), right]))
    reviewed = standing[~standing.note.isin([MEND, FACTS, REVIEW_MISSING])]
    disputed = reviewed[reviewed.objections > 0]
    if len(reviewed):
        kept, out = ((disputed.decision == decision).sum() for decision in (KEEP, LEAVE_OUT))
        lines.append(
            f"Of {len(reviewed)} templates that both reviewers have answered, {len(disputed)} "
            f"had objections: a discussion kept {int(kept)} and left out {int(out)}; "
            f"{int(len(disputed) - kept - out)} wait for it."
        )
    if len(novelty):
        nearest = novelty.iloc[0]
        text = (
            "Of all new contexts {item} is nearest to a text that is there: it shares {share} with "
            "{other}{of} (ROUGE-L); near-duplicates ({near} or more): {n}."
        ).format(
            item=nearest.item_id,
            share=decimals(nearest.rouge_l, 2),
            other=nearest.nearest,
            of="" if nearest.set == OWN else f" of {nearest.set}",
            near=NEAR,
            n=int(novelty.too_near.sum()),
        )
        same = usual[usual.condition == nearest.condition]
        within = (
            f"Within {', '.join(same.set.unique())} itself a context shares "
            f"{decimals(same.rouge_l.median(), 2)} with the nearest other one "
            f"(median of {len(same)})."
        )
        lines.append(sentences([text, within if len(same) else ""]))
    if work.release:
        lines.append(f"The audit of CBBQ's data lists {len(work.audit())} findings in the new set.")
    return lines


def draw_novelty(table: pd.DataFrame, usual: pd.DataFrame) -> Figure | None:
    """Draw how much each new context shares with the nearest text of each set; None without rows.

    One panel per condition, one row per template, one mark per set. The grey band holds nine in ten
    contexts of an existing set, compared with the nearest other one there.
    """
    if table.empty:
        return None
    style()
    template = table.item_id.str.rpartition(":")[0]
    highest = table.rouge_l.groupby(template).max().sort_values(ascending=False, kind="stable")
    names = list(highest.index[:MAX_TEMPLATES])
    sets = sorted(table.set.unique(), key=lambda name: name != OWN)
    palette = colours(sets)
    height = 1.25 + legend_height([*sets, "band", "line"]) + 0.24 * len(names)
    fig = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = fig.subplots(1, len(CONDITIONS), sharey=True)
    for ax, condition in zip(axes, CONDITIONS, strict=True):
        band = usual[usual.condition == condition].rouge_l
        if len(band):
            label = f"within {_set_name(usual.set.iloc[0])}, nine in ten"
            ax.axvspan(*np.quantile(band, [0.05, 0.95]), color=FAINT, alpha=0.25, lw=0, label=label)
        label = f"near-duplicate from {NEAR} on"
        ax.axvline(NEAR, color=INK, ls="--", lw=1, label=label)
        for k, name in enumerate(sets):
            rows = table[(table.condition == condition) & (table.set == name)]
            rows = rows[template[rows.index].isin(names)]
            ax.plot(
                rows.rouge_l,
                template[rows.index].map(names.index),
                MARKS[k % len(MARKS)],
                ms=5.5,
                ls="",
                color=palette[name],
                alpha=0.85,
                label=f"nearest in {_set_name(name)}",
            )
        ax.set(xlim=(0, 1), title=condition, xlabel="highest ROUGE-L (more alike →)")
        ax.xaxis.label.set_size("small")
        ax.set_yticks(range(len(names)), map(shorten, names))
        ax.tick_params(labelsize="small")
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    legend_below(fig, axes[0])
    first, near = table.iloc[0], int(table.too_near.sum())
    share = decimals(first.rouge_l, 2)
    title = f"No new context is a near-duplicate: the nearest shares {share}"
    if near:
        title = f"Comparisons that reach {NEAR}, a near-duplicate: {near}"
    set_title(fig, title, letters=80)
    text = (
        f"{title}. Marks by template and set; the nearest, {first.item_id}, shares {share} with "
        f"{first.nearest} of {_set_name(first.set)}."
    )
    drawn = f"Drawn are the {len(names)} nearest of {len(highest)} templates."
    fig.set_label(sentences([text, drawn if len(highest) > len(names) else ""]))
    return fig


def _set_name(name: str) -> str:
    return OWN if name == OWN else shorten(name, MAX_SET)
