"""Meta-evaluation: does a measure give back a bias that was put in?

Models are trained on sets that teach a stereotype at a known rate, from 0 to 1; each is asked the down-sampled evaluation
sets, whose occupations it knows, and every measure is set against the rate. A model that did not learn its set says
nothing about a measure, so one that has less than .99 of it right is trained again from another seed, and left out if
four did not.

found = evaluate(["en", "zh"])               # the package's own words and frames, results that it carries
correlations(found)

A model's answers are kept in the user's cache, so that a call that was killed goes on with the next model, and a second
one trains nobody; scores are computed from the answers.

Sources: Anantaprayoon et al., LREC-COLING 2024, section 5, after Kaneko et al., EACL 2023.
"""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import platformdirs
from filelock import FileLock

from bench.core.errors import BadInput, RunFailed, expected
from bench.core.files import atomic_path, atomic_write
from bench.core.progress import progress, say
from bench.data import SAMPLES, frame
from bench.data.nli_coal import CATEGORIES, Pair
from bench.data.nli_coal.build import NS_WORDS, Row, build_controlled, build_eval, downsample
from bench.data.nli_coal.extract import extract
from bench.data.nli_coal.frames import SLOT
from bench.data.nli_coal.language_pack import MANIFEST, Pack, read_pack
from bench.metrics.correlation import PEARSON, by_group
from bench.metrics.nli_coal.answers import SUMS, answers, arranged
from bench.metrics.nli_coal.formulas import measures
from bench.metrics.table import ALL
from bench.scorers.base import digest
from bench.tasks.nli_labels import LABELS
from bench.train_learners import Continued, FromScratch, Learner

__all__ = [
    "Continued",
    "FromScratch",
    "correlations",
    "evaluate",
    "packs",
    "training_frames",
    "wide",
]

RATES = tuple(k / 10 for k in range(11))
SEEDS = (0, 1)
GATE, TRIES = 0.99, 4
# Seeds of later tries, far from any that people give.
APART = 100_003
SETS = ("ps", "as", "ns")
PACKS = SAMPLES / "nli_packs"
# Scores of tiny transformers that this module made; a row names the key of its model, so it cannot be taken for another's.
CARRIED = SAMPLES / "nli_meta.csv"
ABOUT, ANSWERS = "model.json", "answers.csv"
GROUPS = ["language", "measure", "seed"]
# Which row of a table is whose.
ROW = [
    "language",
    "rate",
    "seed",
    "ns_words",
    "model",
    "train_accuracy",
    "tries",
    "passed",
    "seconds",
    "key",
]


class Cell(NamedTuple):
    """A model to make: a rate and a seed, with the set that it learns, and by `NS_WORDS` the pairs that it is asked."""

    pack: Pack
    rate: float
    seed: int
    rows: list[Row]
    asked: dict[str, list[Pair]]
    key: str

    @property
    def name(self) -> str:
        return f"{self.pack.language}, rate {self.rate:g}, seed {self.seed}"


class Made(NamedTuple):
    """A model's answers, by the pair's id, and what is known of it."""

    answers: pd.DataFrame
    about: dict[str, Any]


def evaluate(
    languages: Sequence[str] = ("en", "zh"),
    *,
    rates: Sequence[float] = RATES,
    seeds: Sequence[int] = SEEDS,
    ns_words: str = NS_WORDS[0],
    learner: Learner | None = None,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    assignment: str = "word",
    keep_models: bool = False,
    carried: bool = True,
) -> pd.DataFrame:
    """A row a model and measure: rate, seed, score, what a model that knows just its set would get, and train accuracy.

    Args:
        ns_words: which neutral occupations NS has: those of the released down-sampled set (`shipped`), or those that the
            controlled sets have (`trained`).
        learner: makes the models; the tiny transformer if None.
        data: a language pack, or a folder of released or built sets; the package's own packs if None.
        cache: the folder that keeps answers; in the user's cache if None.
        assignment: who is against the stereotype at a rate below 1; see `bench.data.nli_coal.build`.
        keep_models: keep what was trained, too.
        carried: take results that the package carries, where they are of the very same model.

    Raises:
        BadInput: a language, a rate, a list of words or a folder is wrong.
        RunFailed: a training broke off, or the cache cannot be written; the same call continues.
    """
    for name, values in (("languages", languages), ("rates", rates), ("seeds", seeds)):
        if not list(values):
            raise BadInput(f"{name}: is empty; give one at least")
    if ns_words not in NS_WORDS:
        raise BadInput(expected(ns_words, NS_WORDS, "ns_words"))
    learner = learner or FromScratch()
    folder = Path(cache or platformdirs.user_cache_path("bias-workbench", appauthor=False) / "meta")
    known = _carried() if carried else {}
    found = []
    every = packs(languages, data)
    with progress(len(every) * len(rates) * len(seeds), "meta-evaluation", "models") as bar:
        for pack in every:
            should: dict[float, dict[str, float]] = {}
            for cell in _cells(pack, rates, seeds, learner, assignment):
                row, scores = known.get((cell.key, ns_words), ({}, {}))
                source = "carried by the package"
                if not row:
                    made, source = _made(cell, learner, folder.expanduser(), keep_models)
                    scores = _scores(cell.asked[ns_words], made.answers)
                    row = {
                        "language": pack.language,
                        "rate": cell.rate,
                        "seed": cell.seed,
                        "ns_words": ns_words,
                        "model": learner.name,
                        **{
                            name: made.about[name]
                            for name in ("train_accuracy", "tries", "seconds")
                        },
                        "passed": made.about["train_accuracy"] >= GATE,
                        "key": cell.key,
                    }
                if cell.rate not in should:
                    should[cell.rate] = _expected(cell, ns_words)
                found += [
                    {
                        **row,
                        "measure": name,
                        "score": score,
                        "expected": should[cell.rate].get(name, np.nan),
                        "source": source,
                        "data": f"{pack.name}, {pack.version}",
                    }
                    for name, score in scores.items()
                ]
                bar.advance()
    return pd.DataFrame(found)


def correlations(found: pd.DataFrame, only: Sequence[str] = ()) -> pd.DataFrame:
    """Pearson, Spearman and Kendall of rate and score with n and p, by language, measure and seed; models that passed alone.

    In the rows of seed `all` are the models of every seed. `off` is how far scores are from what they should be, on
    average, which no correlation sees.
    """
    some = found[found.passed & (found.measure.isin(list(only)) if only else True)]
    tables = [some.assign(seed=some.seed.astype(str))]
    if len(set(found.seed)) > 1:
        tables.append(some.assign(seed=ALL))
    every = pd.concat(tables, ignore_index=True)
    off = every.assign(off=every.score - every.expected).groupby(GROUPS, sort=False).off.mean()
    return by_group(every, GROUPS).merge(off.reset_index(), on=GROUPS, how="left")


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """`correlations` as people read it: a row a language, measure and seed; a value and a p a coefficient, Pearson's first,
    with its interval."""
    rows = []
    for keys, some in table.groupby(GROUPS, sort=False):
        row: dict[str, Any] = {**dict(zip(GROUPS, keys, strict=True)), "n": int(some.n.iloc[0])}
        for one in some.itertuples():
            row |= {str(one.coefficient): one.value}
            if one.coefficient == PEARSON:
                row |= {"ci_low": one.ci_low, "ci_high": one.ci_high}
            row |= {f"p_{one.coefficient}": one.p}
        rows.append(row | {"off": some.off.iloc[0], "note": some.reason.iloc[0]})
    return pd.DataFrame(rows)


def models(found: pd.DataFrame) -> pd.DataFrame:
    """A row a model: how well it learned, after how many tries, from what, and where its answers are from."""
    columns = [
        "language",
        "rate",
        "seed",
        "model",
        "train_accuracy",
        "tries",
        "passed",
        "seconds",
        "data",
        "source",
        "key",
    ]
    return found.drop_duplicates("key")[columns]


def origin(found: pd.DataFrame) -> pd.DataFrame:
    """Which models the numbers rest on, and where their answers are from: trained now, the cache, or the package."""
    every = models(found)
    return every.groupby(["model", "data", "source"], sort=False, as_index=False).agg(
        models=("key", "count"), seconds_each=("seconds", "median")
    )


def packs(languages: Sequence[str], data: str | Path | None = None) -> list[Pack]:
    """The language packs of `data`, which is one, or a folder of sets to take words and frames from; our own without it.

    Raises:
        BadInput: a language that is not there, or a folder that holds neither.
    """
    if not data:
        for name in languages:
            if not (PACKS / name / MANIFEST).is_file():
                raise BadInput(expected(name, CATEGORIES, "language"))
        return [read_pack(PACKS / name) for name in languages]
    folder = Path(data).expanduser()
    if (folder / MANIFEST).is_file():
        pack = read_pack(folder)
        if pack.language not in languages:
            raise BadInput(
                f"{folder}: is a pack of language {pack.language!r}, not of {', '.join(languages)}"
            )
        return [pack]
    return extract(folder, languages)


def training_frames(pack: Pack) -> tuple[int, int]:
    """The first frame to train on, from 0, and how many a word gets: the pack's, where it has them all.

    Else the longest stretch of known frames behind those of the evaluation sets: of the release, whose training sets
    cannot be built from its other files, the 109 of its dev and test sets.

    Raises:
        BadInput: there are too few.
    """
    try:
        build_controlled(pack, 0, "train")
        return pack.splits["train"]
    except BadInput as error:
        used = 1 + max(row.frame for rows in build_eval(pack).values() for row in rows)
        free = [k for k in range(used, len(pack.frames)) if pack.frames[k]]
        runs = [
            [k for _, k in some]
            for _, some in groupby(enumerate(free), lambda pair: pair[1] - pair[0])
        ]
        longest = max(runs, key=len, default=[])
        words = {
            row.occupation for row in build_controlled(pack, 0, "train", start=0, frames_per_word=1)
        }
        many = len(longest) - (len(words) - 1 if pack.design == "window" else 0)
        if many < 1:
            raise error
        return longest[0], many


def _cells(
    pack: Pack, rates: Sequence[float], seeds: Sequence[int], learner: Learner, assignment: str
) -> Iterator[Cell]:
    start, many = training_frames(pack)
    atomic_path = build_eval(pack)
    asked = {words: _pairs(pack, downsample(pack, atomic_path, words)) for words in NS_WORDS}
    of_learner = learner.describe()
    for rate in rates:
        rows = build_controlled(
            pack, rate, "train", start=start, frames_per_word=many, assignment=assignment
        )
        content = [
            [(row.premise, row.hypothesis, row.label) for row in rows],
            [(pair.id, pair.premise, pair.hypothesis) for some in asked.values() for pair in some],
        ]
        for seed in seeds:
            yield Cell(
                pack, rate, seed, rows, asked, digest([of_learner, content, seed, GATE, TRIES])
            )


def _pairs(pack: Pack, sets: Mapping[str, Sequence[Row]]) -> list[Pair]:
    """Rows as the items that the benchmark has; of the pairs with neutral terms no measure is made."""
    return [
        Pair(
            pack.language,
            int(row.id or 0),
            name,
            row.premise,
            row.hypothesis,
            row.occupation.word,
            row.occupation.type,
            row.gender,
            row.term,
            pack.frames[row.frame] or SLOT,
        )
        for name in SETS
        for row in sets[name]
    ]


def _made(cell: Cell, learner: Learner, root: Path, keep_models: bool) -> tuple[Made, str]:
    """A model's answers, read if they are kept; and where they are from."""
    folder = root / cell.key
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Another process may be at the same model.
        with FileLock(folder / ".lock"):
            if (folder / ABOUT).is_file():
                about = json.loads((folder / ABOUT).read_text("utf-8"))
                return Made(pd.read_csv(folder / ANSWERS, index_col="id"), about), "cache"
            made = _train(cell, learner, folder)
            with atomic_path(folder / ANSWERS) as draft:
                made.answers.to_csv(draft)
            # Written last: a folder that has it is whole.
            atomic_write(
                folder / ABOUT,
                json.dumps(made.about, ensure_ascii=False, indent=2, default=str) + "\n",
            )
            if not keep_models:
                for path in folder.glob("try-*"):
                    shutil.rmtree(path)
    except (OSError, KeyError, json.JSONDecodeError, pd.errors.ParserError) as error:
        raise RunFailed(f"{folder}: the answers cannot be kept or read there ({error})") from None
    return made, "trained now"


def _train(cell: Cell, learner: Learner, folder: Path) -> Made:
    """The first of a few models that has learned its set, or the best of them, and its answers."""
    best: tuple[float, Any] = (-1.0, None)
    began, accuracies = time.perf_counter(), []
    for k in range(TRIES):
        place = folder / f"try-{k + 1}"
        place.mkdir(exist_ok=True)
        model = learner.learn(cell.pack, cell.rows, cell.seed + k * APART, place)
        given = model.classify([(row.premise, row.hypothesis) for row in cell.rows]).argmax(1)
        right = np.array([LABELS.index(row.label) for row in cell.rows])
        accuracies.append(float((given == right).mean()))
        if accuracies[-1] > best[0]:
            best = accuracies[-1], model
        if best[0] >= GATE:
            break
        say(f"{cell.name}: {accuracies[-1]:.3f} of its set right, try {k + 1} of {TRIES}")
    pairs = {pair.id: pair for some in cell.asked.values() for pair in some}
    given = best[1].classify([(pair.premise, pair.hypothesis) for pair in pairs.values()])
    kept = pd.DataFrame(given, columns=list(LABELS), index=pd.Index(pairs, name="id"))
    about = {
        "learner": dict(learner.describe()),
        "language": cell.pack.language,
        "pack": cell.pack.name,
        "rate": cell.rate,
        "seed": cell.seed,
        "train_accuracy": best[0],
        "tries": len(accuracies),
        "accuracies": accuracies,
        "seconds": round(time.perf_counter() - began, 1),
    }
    return Made(kept, about)


def _scores(pairs: Sequence[Pair], given: pd.DataFrame) -> dict[str, float]:
    """Every measure of all three sets together, by name."""
    items = frame(list(pairs))
    some = given.loc[[pair.id for pair in pairs], list(LABELS)].to_numpy()
    with np.errstate(divide="ignore"):
        logs = np.log(some)
    records = pd.DataFrame(
        {
            "category": items.category,
            "task": items.set,
            "item_id": items.item_id,
            "request": "label",
            "repeat": 0,
            "response": [LABELS[k] for k in some.argmax(1)],
            "logprobs": list(logs),
            "error": "",
        }
    )
    rows = answers(records, items)
    # As `score_records` has them, without the resamples that its intervals need.
    tables = arranged(rows[SUMS].sum().to_numpy()[None])
    return {
        one.metric: float(one.of(tables)[0])
        for one in measures(set(SETS), soft=True)
        if one.task == ALL
    }


def _expected(cell: Cell, ns_words: str) -> dict[str, float]:
    """What every measure says of a model that knows its set by heart and calls neutral what it was not taught.

    Nothing where frames, not words, follow the stereotype: then a word has no one answer.
    """
    taught: dict[tuple[str, str], str] = {}
    for row in cell.rows:
        if taught.setdefault((row.occupation.word, row.gender), row.label) != row.label:
            return {}
    pairs = cell.asked[ns_words]
    labels = [taught.get((pair.occupation, pair.gender), "neutral") for pair in pairs]
    sure = np.array([[float(label == name) for name in LABELS] for label in labels])
    ids = pd.Index([pair.id for pair in pairs], name="id")
    return _scores(pairs, pd.DataFrame(sure, columns=list(LABELS), index=ids))


def _carried() -> dict[tuple[str, str], tuple[dict[str, Any], dict[str, float]]]:
    """By key and NS words: a model's row, and its scores by measure."""
    if not CARRIED.is_file():
        return {}
    found = {}
    for row in pd.read_csv(CARRIED, comment="#").to_dict("records"):
        scores = {str(name): float(value) for name, value in row.items() if name not in ROW}
        found[str(row["key"]), str(row["ns_words"])] = (
            {str(name): row[name] for name in ROW},
            scores,
        )
    return found


def carry(found: pd.DataFrame, path: str | Path = CARRIED) -> None:
    """Write results for the package to carry: a row a model, with a first line that says how they were made."""
    rows = found.pivot_table(index=ROW, columns="measure", values="score", sort=False).reset_index()
    made = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "tokenizers"))
    head = f"# Made by bench.analyses.meta.evaluate and kept by bench.analyses.meta.carry, with {made}; scores of models of our own, no text of any data set.\n"
    atomic_write(Path(path), head + rows.round(6).to_csv(index=False, lineterminator="\n"))
