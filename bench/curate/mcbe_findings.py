"""How good curated McBE items are: agreement of annotators, shares of the quality questions, and sentences about both."""

import math
from typing import Any

import pandas as pd

from bench.core.i18n import N_, _, note
from bench.curate import mcbe_rules
from bench.curate.mcbe_rounds import (
    AGAIN,
    QUALITY,
    REVIEW,
    SEVERITY,
    SUBCATEGORY,
    Rounds,
)
from bench.metrics import alpha, annotators

COLUMNS = ["category", "of", "measure", "value", "ci_low", "ci_high", "n", "raters", "band", "note"]
# What agreement is of, as sentences call it.
OF = {
    "subcategory": N_("subcategories"),
    "severity level": N_("levels of severity"),
    "severity": N_("severities as numbers"),
}
KAPPA = N_("Fleiss' kappa")
ALPHA: dict[alpha.Measurement, str] = {
    "nominal": N_("Krippendorff's alpha (nominal)"),
    "ordinal": N_("Krippendorff's alpha (ordinal)"),
    "interval": N_("Krippendorff's alpha (interval)"),
}


def agreement(*found: Rounds) -> pd.DataFrame:
    """How far annotators agree, by category: of subcategories, of the five levels of severity, and of severities as numbers.

    Args:
        found: projects, a batch of a category each. Of rounds that are not over, and where projects have not the same number of
            people, there are alphas alone: Fleiss' kappa needs as many ratings of each item, by whomever (Fleiss, 1971).

    Returns:
        `category`, `of` (`subcategory`, `severity level`, `severity`), `measure`, `value`, `ci_low`, `ci_high`, `n` (items),
        `raters`, `band` (of a kappa, after Landis and Koch), `note`.
    """
    rows: list[dict[Any, Any]] = []
    for of, name, question in (
        ("subcategory", SUBCATEGORY, "subtype"),
        ("severity", SEVERITY, "severity"),
    ):
        sent = [one for one in found if name in one.sent]
        ratings = [_numbered(one, name, question) for one in sent]
        # One who is alone agrees with nobody.
        ratings = [some for some in ratings if len(set(some.rater)) > 1]
        if not ratings:
            continue
        whole = (
            all(one.sent[name].complete for one in sent)
            and len({len(set(some.rater)) for some in ratings}) == 1
        )
        every = pd.concat(ratings, ignore_index=True)
        if of == "subcategory":
            rows += [*(_kappas(of, every) if whole else []), *_alphas(of, every, "nominal")]
        else:
            levels = mcbe_rules.levels(every)
            rows += _kappas("severity level", levels) if whole else []
            rows += _alphas("severity level", levels, "ordinal") + _alphas(of, every, "interval")
    return pd.DataFrame(rows, columns=COLUMNS)


def quality(found: Rounds) -> pd.DataFrame:
    """The shares of the quality questions, with the question `asked`; see `mcbe_rules.shares`. No rows before they are in."""
    none = pd.DataFrame(columns=["question"])
    shares = mcbe_rules.shares(
        found.sent[QUALITY].returned.answers if QUALITY in found.sent else none
    )
    return shares.assign(asked=shares.question.map(found.project.wording["quality"]))


def findings(found: Rounds) -> list[str]:
    """What the rounds gave, in sentences; of rounds that are not over, what is waited for."""
    told = []
    n = len(found.drafts)
    if SUBCATEGORY in found.outcomes:
        outcome = found.outcomes[SUBCATEGORY]
        split, against = (
            int((outcome.discuss == why).sum()) for why in ("no majority", "objection")
        )
        told.append(
            _(
                "Of {n} drafts {most} had a subcategory by majority and without objection; {split} had no majority and {against} an objection, and went to a discussion. {out} were left out.",
                n=n,
                most=n - split - against,
                split=split,
                against=against,
                out=len(found.left_out),
            )
        )
    if REVIEW in found.outcomes:
        outcome = found.outcomes[REVIEW]
        settled = outcome.discuss == ""
        accepted, edited = (
            int((settled & (outcome.how == how)).sum()) for how in ("accepted", "edited")
        )
        told.append(
            _(
                "Of {n} merged explanations the reviewers accepted {accepted} as they were and edited {edited}; {open} went to a discussion.",
                n=len(outcome),
                accepted=accepted,
                edited=edited,
                open=int((~settled).sum()),
            )
        )
    if SEVERITY in found.outcomes:
        first = found.outcomes[SEVERITY]
        second = found.outcomes.get(AGAIN)
        told.append(
            _(
                "Severities of {wide} of {n} items lay more than {widest} apart and were given again; those of {expert} still did, and went to an expert.",
                wide=int(first.again.sum()),
                n=len(first),
                widest=mcbe_rules.WIDEST,
                expert=0 if second is None else int(second.again.sum()),
            )
        )
    told += [_agree(row) for row in agreement(found).to_dict("records")]
    shares = quality(found)
    if len(shares):
        worst = shares.iloc[int(shares.yes.argmin())]
        told.append(
            _(
                'Reviewers said yes to the quality questions in {low} to {high} of their answers; least to "{question}" (n = {n} answers about {items} items each).',
                low=f"{worst.yes:.0%}",
                high=f"{shares.yes.max():.0%}",
                question=worst.asked,
                n=int(worst.n),
                items=int(worst["items"]),
            )
        )
    if found.waits:
        told.append(_("It waits for {what}.", what=found.waits))
    return told


def history(log: pd.DataFrame, item: str) -> pd.DataFrame:
    """Where the values of one draft come from: its lines of the log, without the answers to quality questions."""
    some = log[(log.item_id == item) & (log["round"] != QUALITY)]
    return some[["field", "round", "who", "wording", "how", "value"]].reset_index(drop=True)


def _agree(row: dict[Any, Any]) -> str:
    what, measure = _(OF[row["of"]]), _(row["measure"])
    if math.isnan(row["value"]):
        return _(
            "Agreement on {what} has no {measure}: {why}.",
            what=what,
            measure=measure,
            why=note(row["note"]),
        )
    interval = (
        _("no interval")
        if math.isnan(row["ci_low"])
        else _(
            "95 % interval {low} to {high}",
            low=f"{row['ci_low']:.2f}",
            high=f"{row['ci_high']:.2f}",
        )
    )
    called = _("; ") + _(row["band"]) if row["band"] else ""
    return _(
        "Annotators agree on {what} with {measure} {value} ({interval}{called}; n = {n} items, {raters} raters; chance alone gives 0).",
        what=what,
        measure=measure,
        value=f"{row['value']:.2f}",
        interval=interval,
        called=called,
        n=row["n"],
        raters=row["raters"],
    )


def _numbered(one: Rounds, name: str, question: str) -> pd.DataFrame:
    """The ratings of a project beside those of others, who may call other people and other drafts alike."""
    some = one.ratings(name, question)
    places = {person: str(k) for k, person in enumerate(one.sent[name].sheet.people, start=1)}
    return some.assign(
        item_id=f"{one.project.folder.name}/" + some.item_id, rater=some.rater.map(places)
    )


def _kappas(of: str, ratings: pd.DataFrame) -> list[dict[Any, Any]]:
    found = annotators.kappas(ratings).rename(columns={"kappa": "value"})
    return found.assign(of=of, measure=KAPPA)[COLUMNS].to_dict("records")


def _alphas(of: str, ratings: pd.DataFrame, measurement: alpha.Measurement) -> list[dict[Any, Any]]:
    found = alpha.alphas(ratings, measurement).rename(columns={"alpha": "value"})
    return found.assign(of=of, measure=ALPHA[measurement], band="")[COLUMNS].to_dict("records")
