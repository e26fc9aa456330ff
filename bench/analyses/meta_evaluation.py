"""Meta-evaluate NLI-CoAL: does a measure give back a bias that was put into a model?

We train models on sets that teach a stereotype at a known rate, from 0 to 1. We ask each model the
down-sampled evaluation sets, with occupations that it knows, and compare every measure with the
rate. If a model gets less than .99 of its set right, we train it again from another seed, and mark
it as not passed after four tries.

    scores = evaluate(["en"])       # the package's own words and frames; results that it carries
    rates = scores.assign(score=scores.rate)
    bench.correlate(rates, scores, by=["language", "measure"], on=["rate", "seed"])

We cache answers, so that an interrupted call continues with the next model. Sources: Anantaprayoon
et al., LREC-COLING 2024, section 5, after Kaneko et al., EACL 2023.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import platformdirs
import pyarrow

from bench import scorers
from bench.benchmarks.nli_coal.build import NS_WORDS, Row, build_controlled, build_eval, downsample
from bench.benchmarks.nli_coal.extract import extract
from bench.benchmarks.nli_coal.formulas import SOFT, WHOLE
from bench.benchmarks.nli_coal.frames import SLOT
from bench.benchmarks.nli_coal.items import CATEGORIES, Pair
from bench.benchmarks.nli_coal.language_pack import MANIFEST, PACKS, Pack, read_pack
from bench.benchmarks.nli_coal.outcomes import SUMS, answers
from bench.config import RATES
from bench.core.errors import BadInput, RunFailed, expected
from bench.core.files import atomic_path
from bench.core.locks import lock
from bench.core.numbers import decimals
from bench.core.progress import progress, say
from bench.data import RELEASED, find, frame
from bench.metrics.engine import Sums
from bench.scorers.base import digest
from bench.tasks.nli_labels import LABELS

SEEDS = (0, 1)
# The least accuracy of a model on its own set.
GATE = 0.99
# The most trainings of a model.
TRIES = 4
# The distance between the seeds of two tries, far beyond the seeds that a user gives.
SEED_STEP = 100_003
SETS = ("ps", "as", "ns")
# Scores of tiny transformers (see tests/benchmarks/carried.py); a row holds the key of its model.
CARRIED = Path(__file__).parent / "nli_meta.csv"
ANSWERS = "answers.parquet"
# The columns about a model and its training.
ROW = ["language", "rate", "seed", "ns_words", "model", "train_accuracy", "tries", "passed"]
ROW += ["seconds", "key"]
# A function of pairs of sentences that returns the probabilities of entailment, contradiction and
# neutral: float64 [n, 3].
Classify = Callable[[Sequence[tuple[str, str]]], np.ndarray]


class FromScratch:
    """Train the tiny transformer of `bench.scorers.tiny_nli`, with the pack's words."""

    name = "tiny transformer"

    def describe(self) -> Mapping[str, Any]:
        """Return the options of the recipe."""
        from bench.scorers.tiny import RECIPE

        return {"model": self.name, **RECIPE}

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> Classify:
        """Train a model on `rows`, in a `folder` that may have files of an interrupted training."""
        from bench.scorers.local.checkpoint import Pretrained
        from bench.scorers.local.device import placement
        from bench.scorers.local.encoders import Classifier
        from bench.scorers.tiny_nli import tokenizer, train

        terms = [term for terms in pack.terms.values() for term in terms]
        coder = tokenizer([*(word.word for word in pack.occupations), *terms], pack.frames)
        words = sorted({(row.occupation.word, row.term, row.label) for row in rows})
        pairs = [(row.premise, row.hypothesis, row.label) for row in rows]
        network = train(coder, words, pairs, seed, f"{self.name}, from scratch")
        where, identity = placement("cpu", None, None), {"id": self.name}
        return Classifier(Pretrained(network, coder, where, identity)).classify


@dataclass(frozen=True)
class Continued:
    """Fine-tune a checkpoint on each set, as in the paper, by `options` of `bench.train.nli`."""

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return Path(self.model.rstrip("/")).name

    def describe(self) -> Mapping[str, Any]:
        # The result does not depend on these options.
        elsewhere = ("device", "save_every")
        options = {name: value for name, value in self.options.items() if name not in elsewhere}
        return {"model": self.model, "content": scorers.content(self.model), **options}

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> Classify:
        from bench import train

        file = folder / "train.jsonl"
        table = pd.DataFrame(
            [(row.premise, row.hypothesis, row.label) for row in rows],
            columns=["sentence1", "sentence2", "label"],
        )
        table.to_json(file, orient="records", lines=True, force_ascii=False)
        train.train(self.model, file, folder / "model", self.options.get("epochs"), seed)
        model: Any = scorers.load(str(folder / "model"), device=self.options.get("device"))
        classify: Classify = model.classify
        return classify


def evaluate(
    languages: Sequence[str] = ("en", "zh"),
    *,
    rates: Sequence[float] = RATES,
    seeds: Sequence[int] = SEEDS,
    ns_words: str = NS_WORDS[0],
    learner: FromScratch | Continued | None = None,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    assignment: str = "word",
    carried: bool = True,
) -> pd.DataFrame:
    """Score models of known bias: one row per model and measure.

    Args:
        ns_words: the neutral occupations of NS: of the released down-sampled set (`shipped`), or of
            the controlled sets (`trained`).
        learner: makes the models; default: the tiny transformer.
        data: a language pack, a folder of released or built sets, or `released` for the data of
            `bench fetch`; default: the package's packs.
        cache: the folder that keeps answers; default: in the user's cache.
        assignment: which pairs follow the stereotype at a rate below 1; see
            `bench.benchmarks.nli_coal.build`.
        carried: use results that the package carries, if they are of the very same model.

    Returns:
        The columns of `ROW`, `measure`, `score`, `expected` (the score of a model that knows
        exactly its set), `source` (of the answers) and `data`.

    Raises:
        BadInput: a language, a rate, a list of words or a folder is wrong.
        RunFailed: a training failed, or the cache cannot be written; the same call continues.
    """
    for name, values in (("languages", languages), ("rates", rates), ("seeds", seeds)):
        if not list(values):
            raise BadInput(f"{name}: is empty; give one at least")
    if ns_words not in NS_WORDS:
        raise BadInput(expected(ns_words, NS_WORDS, "ns_words"))
    learner = learner or FromScratch()
    root = Path(cache or platformdirs.user_cache_path("bias-workbench", appauthor=False) / "meta")
    known = _carried() if carried else {}
    chosen = packs(languages, data)
    table = []
    with progress(len(chosen) * len(rates) * len(seeds), "meta-evaluation", "models") as bar:
        for pack in chosen:
            pack = replace(pack, splits={**pack.splits, "train": training_frames(pack)})
            sets = build_eval(pack)
            pairs_of = {words: _pairs(pack, downsample(pack, sets, words)) for words in NS_WORDS}
            pairs = {pair.id: pair for pairs in pairs_of.values() for pair in pairs}
            every = [pair for pairs in pairs_of.values() for pair in pairs]
            questions = [(pair.id, pair.premise, pair.hypothesis) for pair in every]
            for rate in rates:
                rows = build_controlled(pack, rate, assignment=assignment)
                content = [[(row.premise, row.hypothesis, row.label) for row in rows], questions]
                ideal = _expected(rows, pairs_of[ns_words])
                for seed in seeds:
                    key = digest([learner.describe(), content, seed, GATE, TRIES])
                    row, scores = known.get((key, ns_words), ({}, {}))
                    source = "carried by the package"
                    if not row:
                        name = f"{pack.language}, rate {rate:g}, seed {seed}"
                        folder = root.expanduser() / key
                        given, source = _model(learner, pack, rows, pairs, seed, folder, name)
                        scores = _scores(pairs_of[ns_words], given)
                        row = {"language": pack.language, "rate": rate, "seed": seed, "key": key}
                        row |= {"ns_words": ns_words, "model": learner.name, **given.attrs}
                    row |= {"source": source, "data": f"{pack.name}, {pack.version}"}
                    for name, score in scores.items():
                        numbers = {"score": score, "expected": ideal.get(name, np.nan)}
                        table.append({**row, "measure": name, **numbers})
                    bar.update()
    columns = [*ROW, "measure", "score", "expected", "source", "data"]
    return pd.DataFrame(table, columns=columns)


def packs(languages: Sequence[str], data: str | Path | None = None) -> list[Pack]:
    """Read the language packs of `data`: a pack, a folder of sets, `released`; default: our own.

    Raises:
        BadInput: a language that is not there, or a folder that holds neither.
    """
    if not data:
        for name in languages:
            if not (PACKS / name / MANIFEST).is_file():
                raise BadInput(expected(name, CATEGORIES, "language"))
        return [read_pack(PACKS / name) for name in languages]
    folder = find("nli_coal", data).folder if data == RELEASED else Path(data).expanduser()
    if not (folder / MANIFEST).is_file():
        return extract(folder, languages)
    pack = read_pack(folder)
    if pack.language not in languages:
        raise BadInput(
            f"{folder}: is a pack of language {pack.language!r}, not of {', '.join(languages)}"
        )
    return [pack]


def training_frames(pack: Pack) -> tuple[int, int]:
    """Return the first frame to train on, from 0, and the number of frames per word.

    We take the pack's frames if it has them all, else the longest stretch of known frames after the
    evaluation sets. In the release this is the 109 frames of its dev and test sets.

    Raises:
        BadInput: there are too few.
    """
    try:
        build_controlled(pack, 0)
        return pack.splits["train"]
    except BadInput as error:
        used = 1 + max(row.frame for rows in build_eval(pack).values() for row in rows)
        free = [k for k in range(used, len(pack.frames)) if pack.frames[k]]
        # Consecutive frames have the same distance from their place in the list.
        stretches = groupby(enumerate(free), lambda pair: pair[1] - pair[0])
        longest = max(([k for _place, k in part] for _, part in stretches), key=len, default=[])
        probe = build_controlled(replace(pack, splits={"train": (0, 1)}), 0)
        words = {row.occupation for row in probe}
        number = len(longest) - (len(words) - 1 if pack.design == "window" else 0)
        if number < 1:
            raise error
        return longest[0], number


def _pairs(pack: Pack, sets: Mapping[str, Sequence[Row]]) -> list[Pair]:
    """Return rows as the benchmark's items; no measure uses the pairs with neutral terms."""
    pairs = []
    for name in SETS:
        for row in sets[name]:
            texts = (row.premise, row.hypothesis, row.occupation.word, row.occupation.type)
            metadata = (row.gender, row.term, pack.frames[row.frame] or SLOT)
            pairs.append(Pair(pack.language, int(row.id or 0), name, *texts, *metadata))
    return pairs


def _model(
    learner: FromScratch | Continued,
    pack: Pack,
    rows: Sequence[Row],
    pairs: Mapping[int, Pair],
    seed: int,
    folder: Path,
    name: str,
) -> tuple[pd.DataFrame, str]:
    """Return a model's answers, with facts about its training as `attrs`, and their source."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / ".lock", "training the same model"):
            if (folder / ANSWERS).is_file():
                return pd.read_parquet(folder / ANSWERS), "cache"
            started = time.perf_counter()
            questions = [(row.premise, row.hypothesis) for row in rows]
            right = np.array([LABELS.index(row.label) for row in rows])
            accuracies: list[float] = []
            while len(accuracies) < TRIES and max(accuracies, default=0) < GATE:
                k = len(accuracies)
                place = folder / f"try-{k + 1}"
                place.mkdir(exist_ok=True)
                model = learner.learn(pack, rows, seed + k * SEED_STEP, place)
                accuracies.append(float((model(questions).argmax(1) == right).mean()))
                if np.argmax(accuracies) == k:
                    best = model
                if accuracies[k] < GATE:
                    share = decimals(accuracies[k], 3)
                    say(f"{name}: {share} of its set right, try {k + 1} of {TRIES}")
            values = best([(pair.premise, pair.hypothesis) for pair in pairs.values()])
            given = _probabilities(values, list(pairs))
            given.attrs = {
                "train_accuracy": max(accuracies),
                "tries": len(accuracies),
                "passed": max(accuracies) >= GATE,
                "seconds": round(time.perf_counter() - started, 1),
            }
            with atomic_path(folder / ANSWERS) as draft:
                given.to_parquet(draft)
            for path in folder.glob("try-*"):
                shutil.rmtree(path)
            return given, "trained now"
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise RunFailed(f"{folder}: the answers cannot be kept or read there ({error})") from None


def _probabilities(values: np.ndarray, ids: Any) -> pd.DataFrame:
    return pd.DataFrame(values, columns=list(LABELS), index=pd.Index(ids, name="id"))


def _scores(pairs: Sequence[Pair], given: pd.DataFrame) -> dict[str, float]:
    """Compute every measure of all three sets together, by name. For example: `coal`, `fn`."""
    items = frame(list(pairs))
    values = given.loc[[pair.id for pair in pairs], list(LABELS)].to_numpy()
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    records = items[["category", "item_id"]].assign(
        task=items.set,
        request="label",
        repeat=0,
        response=[LABELS[k] for k in values.argmax(1)],
        logprobs=list(logs),
        error="",
    )
    # As `scoring` computes them, without the resamples that its intervals need.
    sums = Sums.of_rows(answers(records, items), SUMS)
    return {metric.name: float(metric.values(sums)[0]) for metric in (*WHOLE, *SOFT)}


def _expected(rows: Sequence[Row], pairs: Sequence[Pair]) -> dict[str, float]:
    """Score a model that knows its set by heart, and calls all other pairs neutral.

    Returns nothing if frames, not words, follow the stereotype, because then a word has no single
    answer.
    """
    taught: dict[tuple[str, str], str] = {}
    for row in rows:
        if taught.setdefault((row.occupation.word, row.gender), row.label) != row.label:
            return {}
    labels = [taught.get((pair.occupation, pair.gender), "neutral") for pair in pairs]
    sure = np.array([[float(label == name) for name in LABELS] for label in labels])
    return _scores(pairs, _probabilities(sure, [pair.id for pair in pairs]))


def _carried() -> dict[tuple[str, str], tuple[dict[Any, Any], dict[Any, float]]]:
    """Read the results in this package: by key and NS words, a model's row and its scores."""
    table = pd.read_csv(CARRIED, comment="#")
    scores = table.drop(columns=ROW).astype(float).to_dict("records")
    return {
        (row["key"], row["ns_words"]): (row, own)
        for row, own in zip(table[ROW].to_dict("records"), scores, strict=True)
    }
