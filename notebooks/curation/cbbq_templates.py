"""Write templates for CBBQ with other people, after Huang and Xiong (LREC-COLING 2024, section 3).

    biases.csv       groups, the properties that people ascribe to them, and a source
    templates.csv    ambiguous contexts that people wrote, with names, questions and options

A model adds facts that contradict the bias, and an editor accepts them, edits them, or has the
model try once more. Each template then has four forms: ambiguous and disambiguous, each with the
negative and the non-negative question. Two reviewers answer all forms blind; a panel decides about
the templates to which they object.
"""

import re
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd
import rounds
from rounds import ITEM, PERSON, Project, Question, Round, Row, Rule, State

from bench.benchmarks.cbbq import templates as cbbq
from bench.benchmarks.cbbq.targets import target_option
from bench.benchmarks.cbbq.templates import SLOT_NAMES, SLOTS, malformed, names

# The least and the most people in a role; Cohen's kappa compares exactly two.
ROLES = {"writer": (1, 1), "editor": (1, 1), "reviewers": (2, 2), "panel": (1, 1)}
BIASES = ("bias", "category", "group", "property", "reversed", "source", "topic")
OPTIONS = ["ans0", "ans1", "ans2"]
QUESTIONS = {"neg": "question_neg", "non_neg": "question_nonneg"}
TEMPLATES = ("template", "bias", "scenario", "context", *SLOT_NAMES, *QUESTIONS.values())
TEMPLATES += (*OPTIONS, "author")
# A bias has to show in more than one situation.
LEAST_SCENARIOS = 2
# Categories of the release with options and rules of expansion of their own.
OWN_RULES = ("disease", "educational_qualification")
LETTERS = ["A", "B", "C"]
# The questions of reviewers about a template, besides its answer.
JUDGED = ("asks_the_bias", "reads_well")
# Columns that rounds fill.
FILLED = ("draft", "decision", "facts", "said", "left_out")
# Names of columns in the release.
NAMES = {
    "polarity": "question_polarity",
    "condition": "context_condition",
    "topic": "subcategory",
    "group": "bias_targeted_groups",
}
LEAVE_OUT = "leave out"
MAX_FACTS = 300
ENDS = tuple("。！？…”」』.!?")
FACTS = f"one or two whole sentences that name {SLOTS[0]} and {SLOTS[1]}, up to {MAX_FACTS} letters"


def read_templates(project: Project) -> tuple[pd.DataFrame, list[str]]:
    """Read the templates, indexed by `item_id`, with their biases, and list all mistakes."""
    biases = rounds.read_table(project.folder / "biases.csv", BIASES)
    templates = rounds.read_table(project.folder / "templates.csv", TEMPLATES)
    known = [
        *project.manifest.categories,
        *(name for name in cbbq.CATEGORIES if name not in OWN_RULES),
    ]
    allowed = f"{', '.join(known)}; another one needs [categories.NAME] in {rounds.PROJECT}"
    bias_rules = [
        *rounds.id_rules(biases, "bias"),
        ("category", ~biases.category.isin(known), "is unknown", allowed),
        ("reversed", biases.reversed == biases.property, "is the property", "its contrary"),
    ]
    faults = [
        *rounds.check_table("biases.csv", biases, bias_rules),
        *rounds.check_table("templates.csv", templates, _template_rules(templates, biases)),
    ]
    items = templates.reset_index(names="row").merge(biases, on="bias", how="inner")
    if not faults:
        items["target"] = [_target(row, project) for row in items.to_dict("records")]
        mistake = "does not tell whether it or NAME2 is the stereotyped group"
        allowed = f'names of `group`, or target = "NAME1" or "NAME2" in {rounds.PROJECT}'
        rule = ("NAME1", items.target < 0, mistake, allowed)
        faults = rounds.check_table("templates.csv", items.set_index("row"), [rule])
    items = items.set_index("template").rename_axis(ITEM)
    return items.assign(**dict.fromkeys(FILLED, "")), faults


def _template_rules(templates: pd.DataFrame, biases: pd.DataFrame) -> list[Rule]:
    scenarios = templates.groupby("bias").scenario.transform("nunique")
    few = f"{LEAST_SCENARIOS} or more scenarios a bias"
    known = ", ".join(biases.bias)
    rules = [
        *rounds.id_rules(templates, "template"),
        ("bias", ~templates.bias.isin(biases.bias), "is unknown", known),
        ("scenario", scenarios < LEAST_SCENARIOS, "is the only one of its bias", few),
    ]
    for slot in SLOTS:
        times = templates.context.str.count(re.escape(slot))
        rules.append(("context", times != 1, f"does not name {slot} once", f"a text with {slot}"))
    for column in ("context", *OPTIONS, *QUESTIONS.values()):
        is_bad = templates[column].map(lambda text: bool(malformed(text)))
        rules.append((column, is_bad, "has a misspelt placeholder", " and ".join(SLOTS)))
    for column, slot, other in (("ans0", *SLOTS), ("ans1", *SLOTS[::-1])):
        texts = templates[column].str
        is_bad = ~texts.contains(slot, regex=False) | texts.contains(other, regex=False)
        rules.append((column, is_bad, f"is not about {slot} alone", slot))
    is_bad = templates.ans2.str.contains("{{", regex=False)
    rules.append(("ans2", is_bad, "names somebody", "a text that it is not known who"))
    lists = {column: templates[column].map(_names) for column in SLOT_NAMES}
    for column, values in lists.items():
        rules.append((column, ~values.astype(bool), "is no list of names", "[甲, 乙] or the like"))
    pairs = zip(*lists.values(), strict=True)
    is_bad = pd.Series([bool({*a} & {*b}) for a, b in pairs], templates.index, dtype=bool)
    rules.append(("NAME2", is_bad, "has a name of NAME1", "other names"))
    for column in QUESTIONS.values():
        is_bad = ~templates[column].str.endswith(("？", "?"))
        rules.append((column, is_bad, "is no question", "a text that ends with a question mark"))
    is_same = templates.question_neg == templates.question_nonneg
    rules.append(("question_nonneg", is_same, "is the negative question", "its contrary"))
    return rules


def _names(cell: str) -> list[str]:
    try:
        return names(cell)
    except ValueError:
        return []


def _target(row: dict, project: Project) -> int:
    """Return the option that names the stereotyped group; -1 if this is unknown."""
    texts = tuple(
        frozenset(row[option].replace(slot, name) for name in names(row[column]))
        for option, slot, column in zip(("ans0", "ans1"), SLOTS, SLOT_NAMES, strict=True)
    )
    category = project.manifest.categories.get(row["category"])
    slot = SLOT_NAMES.index(category.target) if category and category.target else None
    target = target_option(row["category"], row["group"], texts, slot)
    return -1 if target is None else target


def fill_names(text: str, row: Row) -> str:
    """Put the first name of each list into the slots."""
    for slot, column in zip(SLOTS, SLOT_NAMES, strict=True):
        text = text.replace(slot, names(row[column])[0])
    return text


def read_facts(reply: str, row: Row) -> str:
    """Return the facts in a reply, with slots for names, without a repeated context."""
    lists = [(slot, names(row[column])) for slot, column in zip(SLOTS, SLOT_NAMES, strict=True)]
    slots = {name: slot for slot, people in lists for name in people}
    # The longest first: a name may be part of another one.
    known = "|".join(map(re.escape, sorted(slots, key=len, reverse=True)))
    text = re.sub(r"\s*\n\s*", "", rounds.plain_text(reply))
    text = re.sub(known, lambda name: slots[name[0]], text)
    return text.rpartition(row["context"])[2].strip()


def is_complete(facts: str) -> bool:
    """Return whether facts can stand: whole sentences that name both people."""
    has_both = all(slot in facts for slot in SLOTS) and not malformed(facts)
    return has_both and len(facts) <= MAX_FACTS and facts.endswith(ENDS)


def forms(items: pd.DataFrame) -> pd.DataFrame:
    """Return the four forms of each template that has facts, indexed by their ids."""
    kinds = pd.DataFrame([*product(cbbq.CONDITIONS, QUESTIONS)], columns=["condition", "polarity"])
    table = items[items.facts != ""].rename_axis("template").reset_index().merge(kinds, how="cross")
    is_ambiguous, is_negative = table.condition == cbbq.CONDITIONS[0], table.polarity == "neg"
    # The facts contradict the bias: the other person is the negative answer.
    label = (table.target - is_negative.astype(int)).abs().mask(is_ambiguous, 2)
    ids = table.template + ":" + table.condition + ":" + table.polarity
    return table.assign(
        context=table.context + table.facts.mask(is_ambiguous, ""),
        question=table.question_neg.where(is_negative, table.question_nonneg),
        label=label,
    ).set_index(ids.rename(ITEM))


def review_rows(items: pd.DataFrame) -> pd.DataFrame:
    """Return the forms as reviewers see them: names in the slots, and without the label."""
    table = forms(items).rename(columns=dict(zip(OPTIONS, LETTERS, strict=True)))
    for column in ("context", *LETTERS):
        table[column] = [fill_names(row[column], row) for row in table.to_dict("records")]
    table["bias"] = table.group + "：" + table.property
    return table[["context", "question", *LETTERS, "bias"]]


def with_objections(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Add to reviewers' answers the form, its right letter, and whether they object to it."""
    table = answers.join(forms(items)[["template", "condition", "polarity", "label"]], on=ITEM)
    label = table.label.map(dict(enumerate(LETTERS)))
    is_no = (table[[*JUDGED]] == "no").any(axis=1)
    return table.assign(label=label, objection=(table.answer != label) | is_no)


def add_drafts(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Add the drafts of facts, read as a reply of a model."""
    replies = answers.set_index(ITEM).draft
    facts = {name: read_facts(reply, items.loc[name]) for name, reply in replies.items()}
    return rounds.update(items, draft=pd.Series(facts))


def take_facts(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Take the facts that the editor accepted or wrote."""
    table = answers.set_index(ITEM)
    drafts = items.draft[table.index].where(table.decision == "accept", "")
    return rounds.update(
        items,
        decision=table.decision,
        facts=table.edited.where(table.decision == "edit", drafts),
        left_out=table.decision.map({LEAVE_OUT: "no draft could stand"}),
    )


def collect_objections(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Collect the answers of reviewers about the templates to which one of them objects."""
    table = with_objections(items, answers)
    said = table.condition + " " + table.polarity + ", " + table[PERSON] + ": " + table.answer
    said += " (label " + table.label + ")"
    for name in (*JUDGED, "note"):
        said += f", {name}: " + table[name]
    by_template = said[table.objection].groupby(table.template).agg("\n".join)
    return items.assign(said=by_template.reindex(items.index).fillna(""))


def decide(items: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Leave out the templates that the panel does not keep, with its reason."""
    table = answers.set_index(ITEM)
    return rounds.update(items, left_out=table.reason.where(table.outcome == LEAVE_OUT, ""))


def plan(project: Project) -> list[Round]:
    """Return the rounds of a project."""
    draft = [Question("draft"), Question("author")]
    edited = Question(
        "edited", needed=lambda row: row["decision"] == "edit", is_right=is_complete, allowed=FACTS
    )
    review = [
        Question("answer", LETTERS),
        *(Question(name, ("yes", "no")) for name in JUDGED),
        Question("note", needed=lambda _row: False),
    ]
    outcome = [Question("outcome", ("keep", LEAVE_OUT)), Question("reason")]

    def prompt(key: str, row: Row) -> str:
        people = [names(row[column])[0] for column in SLOT_NAMES]
        target = int(row["target"])
        fields = {
            "context": fill_names(row["context"], row),
            "target": people[target],
            "other": people[1 - target],
            "property": row["property"],
            "reversed": row["reversed"],
        }
        return rounds.fill_prompt(project, key, fields)

    def choices(last: str, row: Row) -> list[str]:
        # A draft with a fault cannot be accepted as it is.
        return [*(["accept"] if is_complete(row["draft"]) else []), "edit", last]

    def undecided(items: pd.DataFrame) -> pd.DataFrame:
        return items[items.decision.isin(["", "again"])]

    def source(items: pd.DataFrame) -> pd.DataFrame:
        return undecided(items)[["context", *SLOT_NAMES, "target", "property", "reversed"]]

    def drafted(items: pd.DataFrame) -> pd.DataFrame:
        return undecided(items)[["context", "draft", "group", "property", "reversed"]]

    def objected(items: pd.DataFrame) -> pd.DataFrame:
        columns = ["context", "facts", *QUESTIONS.values(), *OPTIONS, "said"]
        return items.loc[items.said != "", columns]

    first = [Question("decision", partial(choices, "again")), edited]
    again = [Question("decision", partial(choices, LEAVE_OUT)), edited]
    prompts = [partial(prompt, "draft"), partial(prompt, "draft_again")]
    return [
        Round("1-draft", "writer", draft, source, add_drafts, prompt=prompts[0]),
        Round("1-facts", "editor", first, drafted, take_facts, ["1-draft"]),
        Round("1-draft-again", "writer", draft, source, add_drafts, ["1-facts"], prompts[1]),
        Round("1-facts-again", "editor", again, drafted, take_facts, ["1-draft-again"]),
        Round("2-review", "reviewers", review, review_rows, collect_objections, ["1-facts-again"]),
        Round("3-discussion", "panel", outcome, objected, decide, ["2-review"]),
    ]


def release(project: Project, state: State) -> Path:
    """Write the templates as a data folder in CBBQ's format; see `rounds.write_release`."""
    items = rounds.finished(project, state)
    table = forms(items)
    paths = table.category + "/" + table.condition + "/" + table.polarity.map(cbbq.FILES)
    table["question_index"] = table.groupby(paths).cumcount() + 1
    places = paths + ":" + table.question_index.astype(str)
    named = table.rename(columns=NAMES)
    tables = {str(path): rows[[*cbbq.COLUMNS]] for path, rows in named.groupby(paths)}
    origin = rounds.provenance(state)
    origin.insert(0, "row", origin[ITEM].map(places).fillna(""))
    return rounds.write_release(project, tables, origin)
