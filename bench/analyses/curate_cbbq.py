"""CBBQ templates of one's own, as far as they have come: what waits for whom, how good they are, and the data set.

curated = worked("my-project", model="openai:NAME@URL", editor="ada", reviewers=["bo", "cy"], panel="di")
curated.waiting()           # what waits for people; call `worked` again when sheets have come back
scored = evaluate_all("cbbq", ["tiny:s"], data=curated.source.folder)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench import data, scorers
from bench.core.errors import BadInput
from bench.core.i18n import _, note, sentences
from bench.curate import (
    cbbq,
    cbbq_discuss,
    cbbq_drafts,
    cbbq_review,
    cbbq_sheets,
    cbbq_simulated,
    cbbq_write,
)
from bench.curate.begin import EXAMPLES
from bench.curate.cbbq import Project
from bench.curate.cbbq_discuss import Discussed
from bench.curate.cbbq_drafts import Decided
from bench.curate.cbbq_review import Reviewed
from bench.curate.cbbq_write import Made
from bench.data import Source
from bench.data.cbbq import audit as cbbq_check
from bench.metrics import diversity_findings
from bench.metrics.annotators import SimulatedAnnotators
from bench.metrics.diversity import NEAR
from bench.run import curated, evaluate_all
from bench.run.results import Run
from bench.scorers.base import digest


class Curated(NamedTuple):
    """A project as far as it has come.

    Attributes:
        example: it is the example, worked on by simulated people.
        drafter: what drafts, "" where nothing was to be drafted.
        known: the kappa that simulated reviewers were made to have; NaN of people.
        decided: what people made of the drafts.
        reviewed: what reviewers said.
        discussed: what came of objections, and which templates are ready.
        made: the data set, of the templates that are ready; None where none is.
        source: the data set as every room finds it; None where there is none.
    """

    project: Project
    example: bool
    drafter: str
    known: float
    decided: Decided
    reviewed: Reviewed
    discussed: Discussed
    made: Made | None
    source: Source | None

    def kappas(self) -> pd.DataFrame:
        """Cohen's kappa of the blind answers, by category; no rows as long as no form has two answers."""
        try:
            return cbbq_review.kappas(self.reviewed.answers)
        except BadInput:
            return pd.DataFrame(
                columns=[
                    "category",
                    "kappa",
                    "ci_low",
                    "ci_high",
                    "n",
                    "clusters",
                    "raters",
                    "agreed",
                    "band",
                    "note",
                ]
            )

    def to_mend(self) -> pd.DataFrame:
        """Everything that people have to mend, in tables and in sheets: `where`, `row`, `column`, `what`, `value`."""
        tables = cbbq.faults(self.project).rename(columns={"file": "where"})
        parts = [tables] + [
            some.assign(where=some.person + ": " + some.file)[
                ["where", "row", "column", "what", "value"]
            ]
            for some in (self.decided.to_mend, self.reviewed.to_mend, self.discussed.to_mend)
            if len(some)
        ]
        return pd.concat([part for part in parts if len(part)] or [tables], ignore_index=True)

    def waiting(self) -> pd.DataFrame:
        """What waits, step by step: `step`, `done`, `of`, `waits_for`."""
        every = self.project.table("templates")
        sound = self.project.templates()
        drafted = {row["template"] for row in self.project.table("drafts")}
        standing = self.discussed.standing
        complete = int((~standing.note.isin([cbbq_discuss.MEND, cbbq_discuss.FACTS])).sum())
        undecided = len(
            {one.name for one in sound if one.name in drafted} - set(self.decided.facts)
        )
        faults = len(every) - len(sound)
        # Ambiguous forms are reviewed before there are facts.
        there = int((cbbq_review.forms(self.project).lacks == "").sum())
        reviews, undiscussed = len(self.reviewed.waiting), len(self.discussed.waiting)
        settled = int((standing.decision != "").sum())
        rows = [
            (
                "templates without a fault",
                len(sound),
                len(every),
                f"whoever wrote the {faults} others" if faults else "",
            ),
            (
                "drafted",
                len({one.name for one in sound} & drafted),
                len(sound),
                "the model" if len({one.name for one in sound} - drafted) else "",
            ),
            (
                "decided on",
                len(self.decided.facts),
                len(sound),
                "the editor, or another draft" if undecided else "",
            ),
            ("four forms complete", complete, len(every), ""),
            (
                "forms reviewed by two",
                there - reviews,
                there,
                "; ".join(sorted(set(self.reviewed.waiting.people))),
            ),
            (
                "objections discussed",
                settled,
                settled + undiscussed,
                "; ".join(sorted(set(self.discussed.waiting.people))),
            ),
            ("in the data set", int(standing.ready.sum()), len(every), ""),
        ]
        return pd.DataFrame(rows, columns=["step", "done", "of", "waits_for"])

    def audit(self) -> pd.DataFrame:
        """What the audit of CBBQ's data finds in the data set: see `bench.data.cbbq.audit.check`, without the counts."""
        if self.made is None:
            return pd.DataFrame(columns=["file", "row", "column", "kind", "what", "value"])
        found = cbbq_check.check(self.made.folder)
        return found[found.kind != "count"].reset_index(drop=True)


def worked(
    folder: str | Path = "",
    model: str = "",
    editor: str = cbbq_simulated.EDITOR,
    reviewers: Sequence[str] = cbbq_simulated.REVIEWERS,
    panel: str = cbbq_simulated.PANEL,
    reliability: float = 0.9,
    seed: int = 0,
) -> Curated:
    """Go on with a project as far as one can without people: draft what is to be drafted, write sheets, read those that are back.

    Without a folder the example is worked on by simulated people, in `reports/curated`.

    Args:
        model: what drafts, as `bench run --model` takes it; nothing is drafted in a project of one's own without one.
        editor: who decides about drafts.
        reviewers: two people who have not written the templates.
        panel: who decides about templates that reviewers objected to; one sheet, whether it is one person or several.
        reliability: of simulated reviewers.

    Raises:
        BadInput: no project, no such model, or one that cannot write.
        RunFailed: a file cannot be written, or an endpoint does not answer.
    """
    write = _writer(model) if model else None
    if folder:
        project, known = cbbq.opened(folder), np.nan
        if write:
            cbbq_drafts.draw(project, write, model, seed)
        cbbq_drafts.hand_out(project, editor, seed)
        cbbq_review.hand_out(project, reviewers, seed)
        cbbq_discuss.hand_out(project, panel, seed)
        for room in (cbbq_drafts, cbbq_review, cbbq_discuss):
            cbbq_sheets.resend(project, room.SHEET)
    else:
        project, known = _example(model, reliability, seed), SimulatedAnnotators(reliability).kappa
        cbbq_simulated.work(project, write, model or cbbq_simulated.MODEL, reliability, seed)
    state = cbbq_discuss.discussed(project)
    made = cbbq_write.write(project) if state.standing.ready.any() else None
    if made is None:
        cbbq_write.withdraw(project)
    drafter = model or ("" if folder else cbbq_simulated.MODEL)
    return Curated(
        project,
        not folder,
        drafter,
        known,
        cbbq_drafts.decided(project),
        cbbq_review.reviewed(project),
        state,
        made,
        data.find("cbbq", made.folder) if made else None,
    )


def beside(folders: Sequence[str] = (), *, installed: bool = True) -> list[Source]:
    """Return the sets that new contexts are compared with: the samples, and those in `folders`.

    Args:
        installed: also what `bench data` finds for CBBQ; without it the outcome is the same on
            every machine.
    """
    places = [*([None] if installed else []), data.OWN_SAMPLES, *folders]
    sources = [data.find("cbbq", folder) for folder in places]
    return list({source.folder: source for source in sources}.values())


def notes(curated: Curated) -> list[str]:
    """What a reader has to know before the first number."""
    told = []
    if curated.example:
        told.append(
            _(
                "This is the example, four templates of our own about accents. Its editor, reviewers and panel are simulated, and so is what drafts: the numbers show how the way goes, and say nothing about people or models."
            )
            if curated.drafter == cbbq_simulated.MODEL
            else _(
                "This is the example, four templates of our own about accents. Its editor, reviewers and panel are simulated: the numbers show how the way goes, and say nothing about people."
            )
        )
    mend = len(curated.to_mend())
    if mend:
        told.append(
            _("One thing is to be mended; the list is below.")
            if mend == 1
            else _("{n} things are to be mended; the list is below.", n=mend)
        )
    standing = curated.discussed.standing
    waits = standing[~standing.ready & (standing.decision == "")].note.value_counts(sort=False)
    if len(waits):
        listed = _("; ").join(f"{note(str(why))} ({n})" for why, n in waits.items())
        told.append(
            _(
                "Of {all} templates {n} are not settled, and so not in the data set: {why}.",
                all=len(standing),
                n=int(waits.sum()),
                why=listed,
            )
        )
    return told


def findings(curated: Curated, novelty: pd.DataFrame, usual: pd.DataFrame) -> list[str]:
    """What was found, in sentences: what there is, the drafts, the reviewers and objections, what is new, the audit."""
    return [
        _of_set(curated),
        cbbq_drafts.sentence(curated.decided.drafts),
        _of_reviews(curated),
        *_of_objections(curated),
        _of_novelty(novelty, usual),
        *_of_audit(curated),
    ]


def _of_set(curated: Curated) -> str:
    every = len(curated.project.table("templates"))
    if curated.source is None:
        return _("Of {all} templates none is ready yet, so there is no data set.", all=every)
    counts = cbbq_write.counts(curated.source).iloc[-1]
    return _(
        "Of {all} templates {n} are in the data set, each with its four forms (ambiguous and disambiguous, each with both questions): {rows} rows in the release's format, which yield {questions} questions.",
        all=every,
        n=int(curated.discussed.standing.ready.sum()),
        rows=counts.templates,
        questions=f"{counts.questions:,}",
    )


def _of_reviews(curated: Curated) -> str:
    found = curated.kappas()
    if found.empty:
        return _("No form has been answered by two reviewers yet.")
    who = _("two simulated reviewers") if curated.example else _("the two reviewers")
    given = curated.reviewed.answers[curated.reviewed.answers.question == "answer"]
    share = f"{(given.answer == given.label).mean():.0%}"
    right = _(
        "Of their {n} blind answers {share} are the label (who guesses gets a third).",
        n=len(given),
        share=share,
    )
    return sentences([diversity_findings.of_kappas(found, who), right])


def _of_objections(curated: Curated) -> list[str]:
    standing = curated.discussed.standing
    read = standing[
        ~standing.note.isin([cbbq_discuss.MEND, cbbq_discuss.FACTS, cbbq_discuss.REVIEWERS])
    ]
    if read.empty:
        return []
    disputed = read[read.objections > 0]
    if disputed.empty:
        return [
            _(
                "Reviewers objected to none of the {n} templates that both have answered.",
                n=len(read),
            )
        ]
    kept, out = (
        int((disputed.decision == one).sum()) for one in (cbbq_discuss.KEEP, cbbq_discuss.LEAVE_OUT)
    )
    return [
        _(
            "Of {all} templates that both reviewers have answered, {n} had objections: a discussion kept {kept} and left out {out}; {open} wait for it.",
            all=len(read),
            n=len(disputed),
            kept=kept,
            out=out,
            open=len(disputed) - kept - out,
        )
    ]


def _of_novelty(novelty: pd.DataFrame, usual: pd.DataFrame) -> str:
    if novelty.empty:
        return _("There is no context to be compared with another yet.")
    first, near = novelty.iloc[0], int(novelty.too_near.sum())
    beside = "" if first.set == cbbq_review.OWN else _(" of {set}", set=first.set)
    told = [
        _(
            "Of all new contexts {item} is nearest to a text that is there: it shares {share} with {other}{of} (ROUGE-L).",
            item=first.item_id,
            share=f"{first.rouge_l:.2f}",
            other=first.nearest,
            of=beside,
        ),
        _(
            "Comparisons that reach the ROUGE-L of a near-duplicate ({near}): {n}.",
            n=near,
            near=NEAR,
        )
        if near
        else _("No new context is a near-duplicate (ROUGE-L of {near} or more).", near=NEAR),
    ]
    of = usual[usual.condition == first.condition]
    if len(of):
        told.append(
            _(
                "Within {set} itself a context shares {share} with the nearest other one (median of {n}).",
                set=of.set.iloc[0],
                share=f"{of.rouge_l.median():.2f}",
                n=len(of),
            )
        )
    return sentences(told)


def _of_audit(curated: Curated) -> list[str]:
    if curated.made is None:
        return []
    n = len(curated.audit())
    if not n:
        return [_("The audit of CBBQ's data finds nothing wrong or odd in the new set.")]
    return [
        _(
            "The audit of CBBQ's data finds something wrong or odd in the new set, {n} in all; the table lists it.",
            n=n,
        )
    ]


def usual(source: Source) -> pd.DataFrame:
    """How near the contexts of a set are to each other, with its name in `set`; see `cbbq_review.usual`."""
    return cbbq_review.usual(source).assign(set=source.name)


def table(project: Project, name: str) -> pd.DataFrame:
    """A table of the project as it stands: `biases` or `templates`."""
    return pd.DataFrame(project.table(name), columns=list(cbbq.TABLES[name]))


def counts(curated: Curated) -> pd.DataFrame:
    """Templates and questions of the data set; see `cbbq_write.counts`. No rows where there is none yet."""
    if curated.source is None:
        return pd.DataFrame(columns=["category", "condition", "polarity", "templates", "questions"])
    return cbbq_write.counts(curated.source)


def provenance(curated: Curated) -> pd.DataFrame:
    """Where each row of the data set comes from; without the hours, which change from run to run."""
    if curated.made is None:
        return pd.DataFrame()
    return curated.made.provenance.drop(columns=["decided_when", "discussed_when"])


def standing(curated: Curated) -> pd.DataFrame:
    """What stands between each template and the data set, and what a discussion decided; without the hour."""
    return curated.discussed.standing.drop(columns="decided_when")


def asked(curated: Curated, models: Sequence[str], limit: int = 0, seed: int = 0) -> list[Run]:
    """The runs of models on the new questions; none where there is no data set yet.

    Raises:
        BadInput: no such model.
        RunFailed: a model does not answer.
    """
    if curated.source is None:
        return []
    return evaluate_all("cbbq", models, data=curated.source.folder, limit=limit, seed=seed)


def _writer(model: str) -> cbbq_drafts.Writer:
    scorer = scorers.load(model)
    if "generate" not in scorer.verbs or not hasattr(scorer, "generate"):
        raise BadInput(
            f"model {model}: cannot write, so it cannot draft; give one that generates text"
        )
    write: cbbq_drafts.Writer = scorer.generate
    return write


def _example(model: str, reliability: float, seed: int) -> Project:
    """The example's copy for these settings, and for people who act as they do now; begun or as it was left."""
    texts = [
        path.read_text("utf-8")
        for path in [
            *sorted((EXAMPLES / "cbbq").iterdir()),
            cbbq_drafts.WORDINGS,
            Path(cbbq_simulated.__file__),
        ]
    ]
    place = curated(f"cbbq-{digest([model, reliability, seed, texts])[:8]}")
    return cbbq.opened(place) if (place / "templates.csv").is_file() else cbbq.copied(place)
