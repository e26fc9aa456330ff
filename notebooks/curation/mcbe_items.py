"""Write items for McBE with other people, after Lan et al. (Findings of ACL 2025, section 3.3).

    drafts.csv    draft (its id), category, context, sentence, words, author, source

Five people choose a subcategory by majority; three explain the bias, a model merges, two review;
six score the severity, again if scores are more than 3.5 apart, then an expert decides. At the end
people answer questions about the quality of the items.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import rounds
from rounds import ITEM, Project, Question, Round, Row, State

from bench.benchmarks.mcbe import items as mcbe
from bench.core.cells import as_csv
from bench.core.files import atomic_write

# The least and the most people in a role. The paper had 5, 3, 2, 6 and 8 people, a panel and an
# expert.
ROLES = {
    **dict.fromkeys(["subcategory", "severity"], (3, rounds.MANY)),
    "review": (2, rounds.MANY),
    **dict.fromkeys(["explanation", "quality"], (1, rounds.MANY)),
    **dict.fromkeys(["writer", "panel", "expert"], (1, 1)),
}
DRAFTS = "drafts.csv"
COLUMNS = ("draft", "category", "context", "sentence", "words", "author", "source")
TEXTS = ["category", "context", "sentence", "words"]
LEAVE_OUT = "leave out"
# Questions about the finished items.
QUALITY = ("natural", "biased", "comparable", "label", "explained", "fair")
FORMAT = f"sentences with {mcbe.SLOT}, words separated by `，`"
# If scores are farther apart, we ask for them again.
WIDEST = 3.5
# Columns that rounds fill.
FILLED = ("votes", "objections", "discuss", "subtype", "left_out", "merged", "edits", "explanation")
FILLED += ("score", "lowest", "highest")


def subcategories(project: Project) -> dict[str, list[str]]:
    """Return the subcategories of each category that has two or more."""
    lists = rounds.table_of(project.values, "subcategories").items()
    return {name: texts for name, texts in lists if isinstance(texts, list) and len(texts) > 1}


def read_drafts(project: Project) -> tuple[pd.DataFrame, list[str]]:
    """Read the drafts, indexed by `item_id`, and list their mistakes by McBE's loader."""
    drafts = rounds.read_table(project.folder / DRAFTS, COLUMNS)
    groups = mcbe.categories_of(project.folder) | {
        name: category.groups for name, category in project.manifest.categories.items()
    }
    known = [name for name in subcategories(project) if name in groups]
    is_known = drafts.category.isin(known)
    allowed = f"{', '.join(known)}; others need two or more [subcategories] in {rounds.PROJECT}"
    is_double = drafts.duplicated(["category", "sentence", "words"])
    rules = [
        *rounds.id_rules(drafts, "draft"),
        ("category", ~is_known, "is no category of the project", allowed),
        ("sentence", is_double, "repeats an earlier draft", "each sentence once"),
    ]
    # Categories that compare no groups need no words.
    without = drafts.category.isin([name for name in groups if not groups[name]])
    complete = drafts.assign(words=drafts.words.mask(without & (drafts.words == ""), "-"))
    faults = rounds.check_table(DRAFTS, complete, rules)
    for category, rows in drafts[is_known].groupby("category", sort=False):
        # The loader needs complete rows, so the columns that people will fill hold something.
        table = rows.assign(subtype="?", explanation="?", score=0)[list(mcbe.COLUMNS)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{category}.csv"
            atomic_write(path, as_csv(table))
            read = mcbe.read(path, str(category), groups=groups[category])
        for row, (_, item) in zip(rows.index, read, strict=True):
            column, mistake = "words", "lists one word, where two or more are compared"
            if isinstance(item, mcbe.RowError):
                column, mistake = item.column, item.what
            elif not groups[category] or len(item.words) > 1:
                continue
            # Empty cells are reported already.
            if cell := drafts.loc[row, column]:
                faults.append(rounds.problem(DRAFTS, row, column, cell, mistake, FORMAT))
    drafts = drafts.set_index("draft").rename_axis(ITEM)
    return drafts.assign(**dict.fromkeys(FILLED, "")), faults


def majority(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Give each item the subcategory that more than half of the people chose.

    Without such a majority, or with an objection, `discuss` says why a panel has to decide.
    """
    votes = answers.groupby([ITEM, "subtype"], sort=False).size().rename("n").reset_index()
    votes = votes.sort_values("n", ascending=False, kind="stable")
    votes["share"] = votes.n / votes.groupby(ITEM).n.transform("sum")
    votes["text"] = votes.subtype + " " + votes.n.astype(str)
    objections = answers[answers.objection != ""].groupby(ITEM).objection.agg("; ".join)
    items = items.assign(
        subtype=votes[votes.share > 0.5].set_index(ITEM).subtype,
        votes=votes.groupby(ITEM).text.agg(", ".join),
        objections=objections,
    ).fillna("")
    discuss = items.objections.mask(items.objections != "", "objection")
    discuss = discuss.mask(items.subtype == "", "no majority")
    return items.assign(subtype=items.subtype.mask(discuss != "", ""), discuss=discuss)


def decide(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Give items the subcategory of the panel, or leave them out with its reason."""
    decided = answers.set_index(ITEM)
    is_out = decided.decision == LEAVE_OUT
    return rounds.update(
        items, left_out=decided.reason.where(is_out, ""), subtype=decided.decision.mask(is_out, "")
    )


def add_each(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Put the explanations of an item side by side, in columns `explanation_1` and so on."""
    number = answers.groupby(ITEM).cumcount() + 1
    table = answers.assign(column="explanation_" + number.astype(str))
    return items.join(table.pivot_table("explanation", ITEM, "column", aggfunc="first")).fillna("")


def review(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Take the merged explanation if all accept it, or the edited one if all edits are alike.

    An explanation that somebody rejects, or that is edited in several ways, stays empty.
    """
    texts = answers.edited.where(answers.verdict == "edit", "")
    texts = texts.mask(answers.verdict == "reject", None)
    rows = []
    for item, given in texts.groupby(answers[ITEM]):
        edits = [*given[given != ""].dropna().unique()]
        text = edits[0] if edits else items.merged[item]
        is_open = given.isna().any() or len(edits) > 1
        rows.append((item, "" if is_open else text, "\n".join(edits)))
    table = pd.DataFrame(rows, columns=[ITEM, "explanation", "edits"]).set_index(ITEM)
    return items.assign(**table).fillna("")


def average(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Take the mean severity of items if their scores are at most `WIDEST` apart.

    Other items have no `score` yet, but the `lowest` and the `highest` one.
    """
    table = answers.severity.astype(float).groupby(answers[ITEM]).agg(["mean", "min", "max"])
    # A difference of decimals may miss 3.5 by a hair, which is not too wide.
    is_wide = table["max"] - table["min"] > WIDEST + 1e-9
    scores = table["mean"].map("{:.5g}".format).mask(is_wide, "")
    return items.assign(
        score=scores.combine_first(items.score),
        lowest=table["min"].map("{:g}".format),
        highest=table["max"].map("{:g}".format),
    ).fillna("")


def plan(project: Project) -> list[Round]:
    """Return the rounds of a project."""
    labels = subcategories(project)

    def choices(row: Row) -> list[str]:
        return labels[row["category"]]

    def prompt(row: Row) -> str:
        texts = [text for name, text in row.items() if name.startswith("explanation_") and text]
        fields = {
            "context": row["context"],
            "sentence": row["sentence"].replace(mcbe.SLOT, row["words"].split("，")[0]),
            "explanations": "\n".join(f"{k}. {text}" for k, text in enumerate(texts, start=1)),
        }
        return rounds.fill_prompt(project, "merge", fields)

    def with_columns(*columns: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
        return lambda items: items[[*TEXTS, *columns]]

    def explained(items: pd.DataFrame) -> pd.DataFrame:
        return items[TEXTS].join(items.filter(regex="^explanation_"))

    def with_merged(items: pd.DataFrame) -> pd.DataFrame:
        return explained(items).join(items.merged)

    def disputed(items: pd.DataFrame) -> pd.DataFrame:
        return items.loc[items.discuss != "", [*TEXTS, "votes", "objections"]]

    def unexplained(items: pd.DataFrame) -> pd.DataFrame:
        return with_merged(items).join(items.edits)[items.explanation == ""]

    def too_wide(items: pd.DataFrame) -> pd.DataFrame:
        return items.loc[items.score == "", [*TEXTS, "lowest", "highest"]]

    subtype, reason = Question("subtype", choices), Question("reason")
    objection = Question("objection", needed=lambda _row: False)
    decision = Question("decision", lambda row: [*choices(row), LEAVE_OUT])
    explanation, merged = [Question("explanation")], [Question("merged"), Question("author")]
    verdict = Question("verdict", ("accept", "edit", "reject"))
    edited = Question("edited", needed=lambda row: row["verdict"] == "edit")
    severity = Question("severity", limits=(0, 10))
    scores = [severity, reason]
    quality = [Question(name, ("yes", "no", "not sure")) for name in QUALITY]
    take_explanation = rounds.take("explanation", "explanation")
    take_merged = rounds.take("merged", "merged")
    take_severity = rounds.take("score", "severity")
    labelled, finished = with_columns("subtype"), with_columns("subtype", "explanation", "score")
    return [
        Round("1-subcategory", "subcategory", [subtype, objection], with_columns(), majority),
        Round("1-discussion", "panel", [decision, reason], disputed, decide, ["1-subcategory"]),
        Round("2-explanation", "explanation", explanation, labelled, add_each, ["1-discussion"]),
        Round("2-merge", "writer", merged, explained, take_merged, ["2-explanation"], prompt),
        Round("2-review", "review", [verdict, edited], with_merged, review, ["2-merge"]),
        Round("2-discussion", "panel", explanation, unexplained, take_explanation, ["2-review"]),
        Round("3-severity", "severity", [severity], with_columns(), average, ["1-discussion"]),
        Round("3-severity-again", "severity", [severity], too_wide, average, ["3-severity"]),
        Round("3-expert", "expert", scores, too_wide, take_severity, ["3-severity-again"]),
        Round("4-quality", "quality", quality, finished, after=["2-discussion", "3-expert"]),
    ]


def release(project: Project, state: State) -> Path:
    """Write the items as a data folder in McBE's format; see `rounds.write_release`."""
    items = rounds.finished(project, state)
    tables = {
        f"{category}.csv": rows[list(mcbe.COLUMNS)].assign(score=rows.score.astype(float))
        for category, rows in items.groupby("category", sort=False)
    }
    numbers = items.groupby("category").cumcount() + 1
    ids = items.category + ":" + numbers.astype(str)
    origin = rounds.provenance(state).rename(columns={ITEM: "draft"})
    origin.insert(0, ITEM, origin.draft.map(ids).fillna(""))
    return rounds.write_release(project, tables, origin)
