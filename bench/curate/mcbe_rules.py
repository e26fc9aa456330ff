"""How people's answers about McBE items become values: frames in, frames out.

After the paper (Lan et al., Findings of ACL 2025, section 3.3 and appendix): a subcategory by the majority of five, an
explanation that two reviewers check, a severity that is the mean of six, asked again where they lie more than 3.5 apart.
"""

from collections.abc import Mapping

import pandas as pd

from bench.metrics.agreement import severity_level
from bench.metrics.bootstrap import estimate, resample

# Severities of an item that lie farther apart are given again.
WIDEST = 3.5
LEAVE_OUT = "leave out"
VERDICTS = ACCEPT, EDIT, REJECT = ("accept", "edit", "reject")
YES, NO, UNSURE = "yes", "no", "not sure"
_SAME = 1e-9


def majority(chosen: pd.DataFrame, objections: Mapping[str, str]) -> pd.DataFrame:
    """The subcategory that more than half of the people chose, and the items that have to be discussed.

    Args:
        chosen: a row an item and a column a person.
        objections: by item, what people said against it; items without one are not in it.

    Returns:
        `item_id`, `chosen` ("" where there is no majority), `votes` in words, `share` of the winner, `objections`, and
        `discuss`: why the item has to be discussed, or "".
    """
    rows = []
    for item, given in chosen.iterrows():
        # Ties in the order of the names, so that the same answers are told alike.
        votes = sorted(given.value_counts().items(), key=lambda one: (-one[1], str(one[0])))
        label, most = votes[0]
        won = most > len(given) / 2
        against = objections.get(str(item), "")
        rows.append(
            {
                "item_id": item,
                "chosen": label if won else "",
                "votes": ", ".join(f"{name} {n}" for name, n in votes),
                "share": most / len(given),
                "objections": against,
                "discuss": "no majority" if not won else "objection" if against else "",
            }
        )
    return pd.DataFrame(
        rows, columns=["item_id", "chosen", "votes", "share", "objections", "discuss"]
    )


def reviewed(
    verdicts: pd.DataFrame, edits: Mapping[tuple[str, str], str], merged: Mapping[str, str]
) -> pd.DataFrame:
    """What reviewers made of merged explanations.

    All accept: it stands. One accepts and the other edits, or both edit alike: the edited text stands. Else, and where an edit
    has no text, it has to be discussed.

    Args:
        verdicts: one of `VERDICTS`, a row an item and a column a reviewer.
        edits: by item and reviewer, the text of those who edited.
        merged: by item, what the model wrote.

    Returns:
        `item_id`, `text` ("" where it is open), `how` (`accepted`, `edited` or ""), `discuss` (why, or "").
    """
    rows = []
    for item, given in verdicts.iterrows():
        texts = [edits.get((str(item), str(name)), "") for name in given.index[given == EDIT]]
        why = ""
        if (given == REJECT).any():
            why = "rejected"
        elif texts and not all(texts):
            why = "edited without a text"
        elif len(set(texts)) > 1:
            why = "edited otherwise"
        elif not texts and not merged[str(item)]:
            why = "the model wrote nothing"
        text = "" if why else texts[0] if texts else merged[str(item)]
        how = "" if why else "edited" if texts else "accepted"
        rows.append({"item_id": item, "text": text, "how": how, "discuss": why})
    return pd.DataFrame(rows, columns=["item_id", "text", "how", "discuss"])


def severities(given: pd.DataFrame) -> pd.DataFrame:
    """The mean of people's severities, and the items where they lie more than `WIDEST` apart.

    Args:
        given: numbers from 0 to 10, as texts or numbers, a row an item and a column a person.

    Returns:
        `item_id`, `mean`, `lowest`, `highest`, `spread` (the highest less the lowest), `again` (whether it is too wide).
    """
    numbers = given.astype(float)
    found = pd.DataFrame(
        {
            "mean": numbers.mean(axis=1),
            "lowest": numbers.min(axis=1),
            "highest": numbers.max(axis=1),
        }
    )
    found["spread"] = found.highest - found.lowest
    # 3.5 itself, which a difference of decimals may miss by a hair, is not too wide.
    found["again"] = found.spread > WIDEST + _SAME
    return found.rename_axis("item_id").reset_index()


def levels(ratings: pd.DataFrame) -> pd.DataFrame:
    """The same ratings as one of McBE's five levels of severity, 1 to 5."""
    return ratings.assign(rating=severity_level(ratings.rating.astype(float)) + 1)


def shares(answers: pd.DataFrame) -> pd.DataFrame:
    """The share of `yes` to each question, with a 95 % interval by bootstrap over items.

    Args:
        answers: `item_id`, `person`, `question`, `answer`.

    Returns:
        `question`, `yes`, `ci_low`, `ci_high`, `no` and `not_sure` (shares), `n` (answers), `items`, `people`, `note`.
    """
    rows = []
    for question, some in answers.groupby("question", sort=False):
        counted = some.assign(yes=(some.answer == YES).astype(float), one=1.0, stratum="all")
        found = estimate(
            resample(counted, "stratum", "item_id", ["yes", "one"]),
            lambda sums: sums[:, 0, 0] / sums[:, 0, 1],
        )
        # All yes, or none: each resample is the same, which is no certainty.
        alike = found.value in (0, 1)
        note = "all answers are alike, so resamples know no interval" if alike else ""
        low, high = (float("nan"),) * 2 if alike else (max(found.low, 0.0), min(found.high, 1.0))
        rows.append(
            {
                "question": question,
                "yes": found.value,
                "ci_low": low,
                "ci_high": high,
                "no": (some.answer == NO).mean(),
                "not_sure": (some.answer == UNSURE).mean(),
                "n": len(some),
                "items": some.item_id.nunique(),
                "people": some.person.nunique(),
                "note": note,
            }
        )
    columns = [
        "question",
        "yes",
        "ci_low",
        "ci_high",
        "no",
        "not_sure",
        "n",
        "items",
        "people",
        "note",
    ]
    return pd.DataFrame(rows, columns=columns)
