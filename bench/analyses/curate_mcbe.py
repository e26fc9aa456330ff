"""McBE items of one's own, as far as they have come: sheets out and back in, how good the items are, and the data set.

work = opened("my-project", model="openai:NAME@URL")
found = work.go_on()        # again when sheets have come back
work.to_mend(found)         # what people have to mend
scored = work.evaluate(found, ["tiny:s"])
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bench import scorers
from bench.core.errors import BadInput
from bench.core.i18n import _
from bench.curate import (
    mcbe,
    mcbe_findings,
    mcbe_rounds,
    mcbe_simulated,
    mcbe_write,
    provenance,
    sheets,
)
from bench.curate.mcbe import Project
from bench.curate.mcbe_rounds import SEVERITY, SUBCATEGORY, Rounds, Writer
from bench.curate.mcbe_simulated import Annotators
from bench.data.dataset import MANIFEST
from bench.run import curated, evaluate_all
from bench.run.results import Run
from bench.scorers.base import digest

SIMULATED = "simulated writer"
# Who is asked the finished items where nobody is named.
DEMO = ("simulated:bias=0.7,seed=1", "tiny:s,bias=0.25")
# Tokens of a merged explanation.
LONGEST = 300


@dataclass
class Work:
    """A project, who fills in its sheets, and what merges explanations.

    Attributes:
        others: further projects, whose items go into the same set.
        annotators: simulated ones of the example; None where people do it.
        writer: what merges; None where nothing does yet. `model` is its name.
        temporary: the example's folder, which lasts as long as this.
        mistakes: what the example's first sheets had to be mended for.
    """

    project: Project
    others: Sequence[Project]
    annotators: Annotators | None
    writer: Writer | None
    model: str
    temporary: tempfile.TemporaryDirectory[str] | None = None
    mistakes: pd.DataFrame | None = None

    def go_on(self) -> Rounds:
        """Read what has come back and send out what can be asked now; the example goes the whole way.

        One of the example's first sheets comes back with the mistakes that people make, and is filled in anew.
        """
        found = self._advance()
        if self.annotators is None:
            return found
        self.annotators.fill(found)
        sheet = found.sent[SUBCATEGORY].sheet
        person, other, *_unused = sheet.people
        mcbe_simulated.spoil(found, SUBCATEGORY, person, other)
        found = self._advance()
        self.mistakes = found.to_mend()
        (self.project.sheets / SUBCATEGORY / f"{person}.xlsx").unlink()
        sheets.send(self.project.sheets, SUBCATEGORY)
        self.annotators.fill_one(found, sheet, person)
        found = self._advance()
        while self.annotators.fill(found):
            found = self._advance()
        return found

    def _advance(self) -> Rounds:
        return mcbe_rounds.advance(self.project, self.writer, self.model)

    def beside(self) -> list[Rounds]:
        """How far the other projects are."""
        return [mcbe_rounds.look(one) for one in self.others]

    def to_mend(self, found: Rounds) -> pd.DataFrame:
        """What is to be mended; in the example, what was."""
        return found.to_mend() if self.mistakes is None else self.mistakes

    def finished(self, found: Rounds) -> Path | None:
        """The data folder; None as long as a project waits for something. The example's lies beside the demonstration's runs."""
        others = self.beside()
        if any(one.waits for one in (found, *others)):
            return None
        if self.annotators is None:
            return mcbe_write.finish(found, *others)
        place = curated(
            f"mcbe-{digest([self.project.manifest.told, found.rows.to_dict('list')])[:8]}"
        )
        return place if (place / MANIFEST).exists() else mcbe_write.finish(found, out=place)

    def evaluate(self, found: Rounds, models: Sequence[str], judge: str = "") -> list[Run]:
        """Runs of models, or of `DEMO`, on the finished items, as `bench run mcbe --data` makes them; none before the set is finished."""
        folder = self.finished(found)
        return evaluate_all("mcbe", models or DEMO, data=folder, judge=judge) if folder else []

    def history(self, item: str) -> pd.DataFrame:
        """Where the values of one draft come from; see `bench.curate.mcbe_findings.history`."""
        return mcbe_findings.history(provenance.read(self.project.folder), item)

    def notes(self) -> list[str]:
        """What a reader has to know before the first number."""
        if self.annotators is None:
            waiting = [one for one in self.beside() if one.waits]
            return [
                _(
                    "The set waits for {folder}, too, which waits for {what}.",
                    folder=one.project.folder,
                    what=one.waits,
                )
                for one in waiting
            ]
        simulated = _("what merges explanations is simulated too")
        writer = (
            simulated
            if self.model == SIMULATED
            else _("{model} merges explanations", model=self.model)
        )
        return [
            _(
                "This is the example, {n} drafts of our own about diet. Its annotators are simulated, and {writer}: the numbers show how the way goes, and say nothing about people.",
                n=len(self.project.drafts),
                writer=writer,
            )
        ]


def opened(
    folder: str | Path = "",
    others: Sequence[str | Path] = (),
    model: str = "",
    reliability: float = 0.8,
    seed: int = 5,
) -> Work:
    """A project of one's own; or, without a folder, the example with simulated annotators.

    Args:
        others: folders of further projects, whose items go into the same set.
        model: what merges explanations, as `bench run --model` takes it. Without one a simulated writer does it in the example,
            and explanations wait in a project of one's own.
        reliability: how often simulated annotators see the right subcategory.
        seed: of simulated annotators.

    Raises:
        BadInput: no project, no such model, or one that cannot write.
        RunFailed: the folder cannot be written.
    """
    writer = _writer(model) if model else None
    if folder:
        return Work(mcbe.opened(folder), [mcbe.opened(one) for one in others], None, writer, model)
    if others:
        raise BadInput("others: are further projects beside one's own; give that one as `folder`")
    temporary = tempfile.TemporaryDirectory(prefix="curate-mcbe-")
    annotators = Annotators(mcbe_simulated.truth(), reliability=reliability, seed=seed)
    return Work(
        mcbe.copied(temporary.name),
        [],
        annotators,
        writer or mcbe_simulated.writer,
        model or SIMULATED,
        temporary,
    )


def outcome(found: Rounds, name: str) -> pd.DataFrame:
    """What the rules made of a round beside its texts; no rows as long as it is not over."""
    if name not in found.outcomes:
        return pd.DataFrame()
    return found.drafts[["item_id", "sentence"]].merge(found.outcomes[name], on="item_id")


def severities(found: Rounds) -> pd.DataFrame:
    """The ratings of the first round of severities; no rows before they are all in."""
    return found.ratings(SEVERITY, "severity") if SEVERITY in found.outcomes else pd.DataFrame()


def merged(found: Rounds) -> pd.DataFrame:
    """What a model wrote, and what became of it: `item_id`, `merged`, `model`, `explanation` in the end, `how`."""
    values = found.values["explanation"]
    return pd.DataFrame(
        [
            {
                "item_id": item,
                "merged": line["text"],
                "model": line["model"],
                "explanation": values[item].value,
                "how": values[item].how,
            }
            for item, line in found.merged.items()
            if item in values
        ],
        columns=["item_id", "merged", "model", "explanation", "how"],
    )


def _writer(model: str) -> Writer:
    scorer = scorers.load(model)
    if "generate" not in scorer.verbs or not isinstance(scorer, scorers.Model):
        raise BadInput(
            f"model {model}: cannot write, so it cannot merge; give one that generates text"
        )

    def write(prompts: Sequence[str]) -> list[str]:
        return scorer.generate(prompts, max_new_tokens=LONGEST, greedy=True)

    return write
