"""McBE items of one's own, as far as they have come: sheets out and back in, how good the items are, and the data set.

work = opened("my-project", model="openai:NAME@URL")
found = work.advance()      # again when sheets have come back
found.to_mend()             # what people have to mend
scored = work.evaluate(["tiny:s"])
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bench import scorers
from bench.curate import mcbe, mcbe_findings, mcbe_rounds, mcbe_simulated, mcbe_write, provenance, sheets
from bench.curate.mcbe import Project
from bench.curate.mcbe_rounds import SEVERITY, SUBCATEGORY, Rounds, Writer
from bench.curate.mcbe_simulated import Annotators
from bench.errors import BadInput
from bench.results import Run
from bench.run import curated, evaluate_all
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
        annotators: simulated ones of the example; None where people do it.
        writer: what merges; None where nothing does yet. `model` is its name.
        temporary: the example's folder, which lasts as long as this.
    """

    project: Project
    annotators: Annotators | None
    writer: Writer | None
    model: str
    temporary: tempfile.TemporaryDirectory[str] | None = None

    def advance(self) -> Rounds:
        """Read what has come back and send out what can be asked now; see `bench.curate.mcbe_rounds.advance`."""
        return mcbe_rounds.advance(self.project, self.writer, self.model)

    def spoilt(self) -> Rounds:
        """The example's first sheets filled in, one of them with the mistakes that people make; else as `advance`."""
        found = self.advance()
        if self.annotators is None:
            return found
        self.annotators.fill(found)
        person, other, *_ = found.sent[SUBCATEGORY].sheet.people
        mcbe_simulated.spoil(found, SUBCATEGORY, person, other)
        return self.advance()

    def mended(self) -> Rounds:
        """The example's spoilt sheet filled in anew; else as `advance`."""
        found = self.advance()
        if self.annotators is None:
            return found
        sheet = found.sent[SUBCATEGORY].sheet
        person = sheet.people[0]
        (self.project.sheets / SUBCATEGORY / f"{person}.xlsx").unlink()
        sheets.send(self.project.sheets, SUBCATEGORY)
        self.annotators.fill_one(found, sheet, person)
        return self.advance()

    def to_the_end(self) -> Rounds:
        """All rounds of the example; else as `advance`."""
        found = self.advance()
        while self.annotators is not None and self.annotators.fill(found):
            found = self.advance()
        return found

    def finished(self) -> Path | None:
        """The data folder; None as long as the project waits for something. The example's lies beside the demonstration's runs."""
        found = mcbe_rounds.look(self.project)
        if found.waits:
            return None
        if self.annotators is None:
            return mcbe_write.finish(found)
        place = curated(f"mcbe-{digest([dict(self.project.told), found.rows.to_dict('list')])[:8]}")  # fmt: skip
        return place if (place / mcbe_write.MANIFEST).exists() else mcbe_write.finish(found, place)

    def evaluate(self, models: Sequence[str], judge: str = "") -> list[Run]:
        """Runs of models, or of `DEMO`, on the finished items, as `bench run mcbe --data` makes them; none before the set is finished."""
        folder = self.finished()
        return evaluate_all("mcbe", models or DEMO, data=folder, judge=judge) if folder else []

    def history(self, item: str) -> pd.DataFrame:
        """Where the values of one draft come from; see `bench.curate.mcbe_findings.history`."""
        return mcbe_findings.history(provenance.read(self.project.folder), item)

    def notes(self) -> list[str]:
        """What a reader has to know before the first number."""
        if self.annotators is None:
            return []
        writer = "what merges explanations is simulated too" if self.model == SIMULATED else f"{self.model} merges explanations"  # fmt: skip
        return [
            f"This is the example, {len(self.project.drafts)} drafts of our own about diet. Its annotators are simulated, and {writer}: "
            "the numbers show how the way goes, and say nothing about people."
        ]


def opened(folder: str | Path = "", model: str = "", reliability: float = 0.8, seed: int = 5) -> Work:
    """A project of one's own; or, without a folder, the example with simulated annotators.

    Args:
        model: what merges explanations, as `bench run --model` takes it. Without one a simulated writer does it in the example,
            and explanations wait in a project of one's own.
        reliability: how often simulated annotators see the right subcategory.
        seed: of simulated annotators.

    Raises:
        BadInput: no project, no such model, or one that cannot write.
        OSError: the folder cannot be written.
    """
    writer = _writer(model) if model else None
    if folder:
        return Work(mcbe.begin(folder), None, writer, model)
    temporary = tempfile.TemporaryDirectory(prefix="curate-mcbe-")
    annotators = Annotators(mcbe_simulated.truth(), reliability=reliability, seed=seed)
    return Work(
        mcbe.begin(temporary.name), annotators, writer or mcbe_simulated.writer, model or SIMULATED, temporary
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
            {"item_id": item, "merged": line["text"], "model": line["model"], "explanation": values[item].value, "how": values[item].how}
            for item, line in found.merged.items() if item in values
        ],
        columns=["item_id", "merged", "model", "explanation", "how"],
    )  # fmt: skip


def _writer(model: str) -> Writer:
    scorer = scorers.load(model)
    if "generate" not in scorer.verbs or not isinstance(scorer, scorers.Model):
        raise BadInput(f"model {model}: cannot write, so it cannot merge; give one that generates text")

    def write(prompts: Sequence[str]) -> list[str]:
        return scorer.generate(prompts, max_new_tokens=LONGEST, greedy=True)

    return write
