"""CBBQ templates of one's own, as far as they have come: what waits for whom, how good they are, and the data set.

curated = worked("my-project", model="openai:NAME@URL", editor="ada", reviewers=["bo", "cy"])
curated.waiting()           # what waits for people; call `worked` again when sheets have come back
scored = evaluate_all("cbbq", ["tiny:s"], data=curated.source.folder)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench import data, scorers
from bench.curate import cbbq, cbbq_drafts, cbbq_review, cbbq_simulated, cbbq_write
from bench.curate.begin import EXAMPLES
from bench.curate.cbbq import Project
from bench.curate.cbbq_drafts import Decided
from bench.curate.cbbq_review import Reviewed
from bench.curate.cbbq_write import Made
from bench.data import Source, cbbq_check
from bench.errors import BadInput
from bench.metrics import diversity_findings
from bench.metrics.annotators import Simulated
from bench.metrics.diversity import NEAR
from bench.results import Run
from bench.run import curated, evaluate_all
from bench.scorers.base import digest


class Curated(NamedTuple):
    """A project as far as it has come.

    Attributes:
        example: it is the example, worked on by simulated people.
        drafter: what drafts, "" where nothing was to be drafted.
        known: the kappa that simulated reviewers were made to have; NaN of people.
        decided: what people made of the drafts.
        reviewed: what reviewers said.
        made: the data set, of the templates that are complete; None where none is.
        source: the data set as every room finds it; None where there is none.
    """

    project: Project
    example: bool
    drafter: str
    known: float
    decided: Decided
    reviewed: Reviewed
    made: Made | None
    source: Source | None

    def kappas(self) -> pd.DataFrame:
        """Cohen's kappa of the blind answers, by category; no rows as long as no form has two answers."""
        try:
            return cbbq_review.kappas(self.reviewed.answers)
        except BadInput:
            return pd.DataFrame(columns=["category", "kappa", "ci_low", "ci_high", "n", "raters", "agreed", "band", "note"])  # fmt: skip

    def to_mend(self) -> pd.DataFrame:
        """Everything that people have to mend, in tables and in sheets: `where`, `row`, `column`, `what`, `value`."""
        tables = cbbq.faults(self.project).rename(columns={"file": "where"})
        parts = [tables] + [
            some.assign(where=some.person + ": " + some.file)[["where", "row", "column", "what", "value"]]
            for some in (self.decided.to_mend, self.reviewed.to_mend)
            if len(some)
        ]
        return pd.concat([part for part in parts if len(part)] or [tables], ignore_index=True)

    def waiting(self) -> pd.DataFrame:
        """What waits, step by step: `step`, `done`, `of`, `waits_for`."""
        every = self.project.table("templates")
        sound = self.project.templates()
        drafted = {row["template"] for row in self.project.table("drafts")}
        complete = 0 if self.made is None else len(every) - len(self.made.left_out)
        undecided = len({one.name for one in sound if one.name in drafted} - set(self.decided.facts))
        faults = len(every) - len(sound)
        reviews = len(self.reviewed.waiting)
        rows = [
            ("templates without a fault", len(sound), len(every), f"whoever wrote the {faults} others" if faults else ""),
            ("drafted", len({one.name for one in sound} & drafted), len(sound), "the model" if len({one.name for one in sound} - drafted) else ""),
            ("decided on", len(self.decided.facts), len(sound), "the editor, or another draft" if undecided else ""),
            ("four forms complete", complete, len(every), ""),
            ("forms reviewed by two", 4 * complete - reviews, 4 * complete, "; ".join(sorted(set(self.reviewed.waiting.people)))),
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["step", "done", "of", "waits_for"])

    def audit(self) -> pd.DataFrame:
        """What the audit of CBBQ's data finds in the data set: see `bench.data.cbbq_check.check`, without the counts."""
        if self.made is None:
            return pd.DataFrame(columns=["file", "row", "column", "kind", "what", "value"])
        found = cbbq_check.check(self.made.folder)
        return found[found.kind != "count"].reset_index(drop=True)


def worked(
    folder: str | Path = "",
    model: str = "",
    editor: str = cbbq_simulated.EDITOR,
    reviewers: Sequence[str] = cbbq_simulated.REVIEWERS,
    reliability: float = 0.9,
    seed: int = 0,
) -> Curated:
    """Go on with a project as far as one can without people: draft what is to be drafted, write sheets, read those that are back.

    Without a folder the example is worked on by simulated people, in `reports/curated`.

    Args:
        model: what drafts, as `bench run --model` takes it; nothing is drafted in a project of one's own without one.
        editor: who decides about drafts; reviewers: two people who have not written the templates.
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
    else:
        project, known = _example(model, reliability, seed), Simulated(reliability).kappa
        cbbq_simulated.work(project, write, model or cbbq_simulated.MODEL, reliability, seed)
    state = cbbq_review.completeness(project)
    made = cbbq_write.write(project) if len(state) and state.complete.any() else None
    drafter = model or ("" if folder else cbbq_simulated.MODEL)
    return Curated(
        project, not folder, drafter, known, cbbq_drafts.decided(project), cbbq_review.reviewed(project), made,
        data.find("cbbq", made.folder) if made else None,
    )  # fmt: skip


def beside(folders: Sequence[str] = ()) -> list[Source]:
    """The sets that new contexts are held against: what `bench data` finds for CBBQ, the samples, and those in `folders`."""
    found = [data.find("cbbq"), data.find("cbbq", data.SAMPLES / "cbbq"), *(data.find("cbbq", one) for one in folders)]  # fmt: skip
    return list({source.folder: source for source in found}.values())


def notes(curated: Curated) -> list[str]:
    """What a reader has to know before the first number."""
    told = []
    if curated.example:
        told.append(
            "This is the example, four templates of our own about accents. Its editor and reviewers are simulated"
            + (" and so is what drafts" if curated.drafter == cbbq_simulated.MODEL else "")
            + ": the numbers show how the way goes, and say nothing about people or models."
        )
    mend = curated.to_mend()
    if len(mend):
        told.append(f"{len(mend)} {'thing is' if len(mend) == 1 else 'things are'} to be mended; the list is below.")  # fmt: skip
    return told


def findings(curated: Curated, novelty: pd.DataFrame, usual: pd.DataFrame) -> list[str]:
    """What was found, in sentences: what there is, the drafts, the reviewers, what is new, the audit."""
    return [
        _of_set(curated),
        cbbq_drafts.sentence(curated.decided.drafts),
        _of_reviews(curated),
        _of_novelty(novelty, usual),
        *_of_audit(curated),
    ]


def _of_set(curated: Curated) -> str:
    every = len(curated.project.table("templates"))
    if curated.made is None or curated.source is None:
        return f"None of {every} templates has its four forms yet, so there is no data set."
    counts = cbbq_write.counts(curated.source).iloc[-1]
    ready = every - len(curated.made.left_out)
    return (
        f"{ready} of {every} templates have their four forms (ambiguous and disambiguous, each with both questions): "
        f"{counts.templates} rows in the release's format, which yield {counts.questions:,} questions."
    )


def _of_reviews(curated: Curated) -> str:
    found = curated.kappas()
    if found.empty:
        return "No form has been answered by two reviewers yet."
    who = "two simulated reviewers" if curated.example else "the two reviewers"
    said = diversity_findings.of_kappas(found, who)
    given = curated.reviewed.answers[curated.reviewed.answers.question == "answer"]
    right = (given.answer == given.label).mean()
    return f"{said} {right:.0%} of their {len(given)} blind answers are the label."


def _of_novelty(novelty: pd.DataFrame, usual: pd.DataFrame) -> str:
    if novelty.empty:
        return "There is no context to be compared with another yet."
    first, near = novelty.iloc[0], int(novelty.too_near.sum())
    told = (
        f"{near} of the comparisons are near-duplicates (ROUGE-L of {NEAR} or more)"
        if near
        else f"no new context is a near-duplicate (ROUGE-L of {NEAR} or more)"
    )
    said = f"The nearest is {first.item_id}, which shares {first.rouge_l:.2f} with {first.nearest} of {first.set}; {told}."
    of = usual[usual.condition == first.condition]
    if of.empty:
        return said
    return f"{said} Within {of.set.iloc[0]} itself a context shares {of.rouge_l.median():.2f} with the nearest other one (median of {len(of)})."


def _of_audit(curated: Curated) -> list[str]:
    if curated.made is None:
        return []
    found = curated.audit()
    if found.empty:
        return ["The audit of CBBQ's data finds nothing wrong or odd in the new set."]
    return [f"The audit of CBBQ's data finds {len(found)} {'thing' if len(found) == 1 else 'things'} in the new set; the table lists them."]  # fmt: skip


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
    """Where each row of the data set comes from; without the hour, which changes from run to run."""
    if curated.made is None:
        return pd.DataFrame()
    return curated.made.provenance.drop(columns="decided_when")


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
        raise BadInput(f"model {model}: cannot write, so it cannot draft; give one that generates text")
    write: cbbq_drafts.Writer = scorer.generate
    return write


def _example(model: str, reliability: float, seed: int) -> Project:
    """The example's copy for these settings, begun or as it was left."""
    texts = [
        path.read_text("utf-8") for path in [*sorted((EXAMPLES / "cbbq").iterdir()), cbbq_drafts.WORDINGS]
    ]
    place = curated(f"cbbq-{digest([model, reliability, seed, texts])[:8]}")
    return cbbq.opened(place) if (place / "templates.csv").is_file() else cbbq.copied(place)
