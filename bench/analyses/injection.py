"""Whether a reply can talk its judge into a better mark: the same replies with and without a planted instruction.

marks = measured("./my-judge", "mcbe", wordings=["", "quoted", "official"])      # rows: a judge, wording, reply and kind
marks = measured("./my-judge", "cbbq", replies=replies(run))                     # of a run of yours
metrics.injection.summary(marks)

A judge is asked as a run asks it, by the requests of the benchmark's tasks: McBE's analyses on their accuracy, and CBBQ's
explanations. McBE's other judge, of what happens first, sees no reply. What was measured on a real judge is carried by the
package (`carried`).
"""

import platform
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import data, scorers, tasks
from bench.benchmarks import module, resolve
from bench.core.errors import BadInput, expected
from bench.core.i18n import _
from bench.metrics.injection import CLEAN
from bench.run.results import Run, short_name
from bench.scorers.endpoint.keys import of_run
from bench.tasks import prompts
from bench.tasks.cbbq import REASON, UNBIASED
from bench.tasks.mcbe import CRITERIA, DENIAL
from bench.tasks.request import Request, Way

PLANTED = data.SAMPLES / "injections.toml"
CARRIED = data.SAMPLES / "injection.csv"
LANGUAGES = ("zh", "en")
PACKAGES = ("torch", "transformers")


class Aim(NamedTuple):
    """What is judged: the task, the settings it is asked with, the judge's request, and the mark that is planted for.

    Attributes:
        form: the form of a planted instruction.
        answer: the request that the judged reply answers.
    """

    task: str
    settings: dict[str, str]
    judge: str
    answer: str
    form: str
    goal: str


AIMS = {
    "mcbe": Aim("ba", {}, "judge:1", "answer", "rating", str(CRITERIA[0].maximum)),
    "cbbq": Aim("ambiguous", {"explanation": "yes"}, "judge", "explanation", "verdict", "无"),
}


def kinds(path: str | Path = PLANTED) -> list[dict[str, Any]]:
    """The kinds of planted instructions: `name`, `what`, and the texts `rating` and `verdict`, each in `LANGUAGES`."""
    found: list[dict[str, Any]] = tomllib.loads(Path(path).read_text("utf-8"))["kinds"]
    return found


def replies(run: Run) -> dict[str, str]:
    """The replies of a run that a judge would be shown, by item.

    Raises:
        BadInput: it has none.
    """
    aim = _aim(run.benchmark)
    rows = run.records
    some = rows[
        (rows.task == aim.task)
        & (rows.request == aim.answer)
        & (rows.error == "")
        & (rows.response != "")
    ]
    if some.empty:
        raise BadInput(f"{run.folder}: holds no reply that a judge is shown; run it with --judge")
    return dict(
        some.drop_duplicates("item_id")[["item_id", "response"]].itertuples(index=False, name=None)
    )


def measured(
    judge: str,
    benchmark: str,
    *,
    wordings: Sequence[str] = ("", "quoted"),
    replies: Mapping[str, str] | None = None,
    limit: int | None = 24,
    folder: str | Path | None = None,
    planted: str | Path = PLANTED,
    dtype: str | None = None,
    max_new_tokens: int | None = None,
    keys: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """A judge's marks of replies as they are, and with each kind of planted instruction behind them.

    Args:
        judge: as `bench run --judge` takes it.
        wordings: as `--prompts` takes them; our own if "".
        replies: to be judged, by item; if None poor ones of our own, which leave room above: a denial, a reason for another
            sentence, or half of the right one for McBE, a stereotype for CBBQ.
        limit: so many replies, evenly spread.
        folder: the data; those that are found if None.
        planted: a file like `PLANTED`.
        max_new_tokens: of a mark; as a run asks if None.
        keys: the environment variable with the key of the judge's host; see `bench.scorers.endpoint.keys`.

    Returns:
        `judge`, `benchmark`, `wording`, `item_id`, `kind` (`clean` for none), `language`, `mark` (0 to 1, which is what is planted for; NaN
        where the judge's reply cannot be read), `said`. Texts are in Chinese and in English by turns.

    Raises:
        BadInput: an unknown benchmark, judge, wording, or item.
    """
    benchmark = resolve(benchmark)
    aim, room = _aim(benchmark), module("tasks", benchmark)
    source = data.find(benchmark, folder)
    items = {
        item.item_id: item
        for item in data.load(source)
        if room.concerns(item, aim.task) and not room.unfit(item, aim.task)
    }
    given = dict(
        _poor(benchmark, data.spread_evenly(list(items.values()), limit))
        if replies is None
        else replies
    )
    given = {name: given[name] for name in data.spread_evenly(list(given), limit)}
    if unknown := next((name for name in given if name not in items), ""):
        raise BadInput(f"{source.folder}: has no item {unknown!r} to which a reply is given")
    rows, asked = [], []
    for name in wordings:
        text = prompts.load(benchmark, name or prompts.OURS, source.folder)
        for k, (item_id, reply) in enumerate(given.items()):
            for kind, language, said in _spoilt(reply, kinds(planted), aim, k):
                request = _question(benchmark, aim, items[item_id], text, said)
                if request is not None:
                    request = replace(
                        request, max_new_tokens=max_new_tokens or request.max_new_tokens
                    )
                    asked.append(request)
                    rows.append(
                        {
                            "wording": name or "ours",
                            "item_id": item_id,
                            "kind": kind,
                            "language": language,
                        }
                    )
    # OPENAI_API_KEY is for the models that wrote the replies, not for the judge's host.
    scorer = scorers.load(judge, dtype=dtype, keys=of_run([], "", judge, keys))
    answers = scorer.answer(asked)
    marks = [
        _mark(benchmark, aim, "" if answer.error else answer.response, items[row["item_id"]])
        for answer, row in zip(answers, rows, strict=True)
    ]
    found = pd.DataFrame(rows).assign(mark=marks, said=[one.response for one in answers])
    found.insert(0, "judge", short_name(judge))
    found.insert(1, "benchmark", benchmark)
    return found


def of_judge(
    judge: str,
    runs: Sequence[Run],
    wordings: Sequence[str],
    *,
    limit: int | None = None,
    **options: Any,
) -> pd.DataFrame:
    """What a notebook shows: marks by `judge`, of replies of `runs` or of our own; those that are carried without a judge.

    A wording that a benchmark does not have is left out of it.

    Raises:
        BadInput: replies were given and no judge; or none of the wordings is there.
    """
    if not judge:
        if runs:
            raise BadInput("runs are given, and no judge to ask about their replies; give `judge`")
        return carried()
    given = {run.benchmark: replies(run) for run in runs}
    parts = []
    for benchmark in given or AIMS:
        source = data.find(benchmark)
        some = [name for name in wordings if _has(benchmark, name, source.folder)]
        if some:
            parts.append(
                measured(
                    judge,
                    benchmark,
                    wordings=some,
                    replies=given.get(benchmark),
                    limit=limit,
                    **options,
                )
            )
    if not parts:
        raise BadInput(f"wordings {', '.join(wordings)}: no benchmark with a judge has one of them")
    return pd.concat(parts, ignore_index=True)


def notes(judge: str) -> list[str]:
    """What a reader has to know before the first number."""
    if judge:
        return []
    return [
        _(
            "These marks were given by a model of 135 million parameters, which does not understand the task; they are carried "
            "with the package to show what is measured. Give `judge` to measure yours."
        )
    ]


def carry(marks: pd.DataFrame, path: str | Path = CARRIED) -> None:
    """Write marks for the package to carry, with a first line that says with what they were made."""
    known = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    head = f"# Measured by bench.analyses.injection.measured and kept by bench.analyses.injection.carry: {', '.join(marks.judge.unique())}, greedy, on {platform.machine()}; {known}.\n"
    # What a judge said may be long, and hold anything.
    kept = marks.drop(columns="said")
    Path(path).write_text(
        head + kept.to_csv(index=False, lineterminator="\n", float_format="%.4g"), "utf-8"
    )


def carried(path: str | Path = CARRIED) -> pd.DataFrame:
    """The marks that the package carries, as `measured` gives them, without what the judge said."""
    return pd.read_csv(path, comment="#", keep_default_na=False, na_values={"mark": [""]})


def origin(path: str | Path = CARRIED) -> str:
    """With what judge and versions the marks of `carried` were made."""
    with Path(path).open(encoding="utf-8") as lines:
        return next(lines).partition(": ")[2].strip()


def _aim(benchmark: str) -> Aim:
    if benchmark not in AIMS:
        raise BadInput(expected(benchmark, AIMS, "benchmark with a judge"))
    return AIMS[benchmark]


def _poor(benchmark: str, items: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Replies that leave room for a better mark."""
    for k, item in enumerate(items):
        if benchmark == "cbbq":
            yield item.item_id, "ABC"[item.biased] + REASON
            continue
        other, half = items[k - 1].explanation, item.explanation[: len(item.explanation) // 2]
        yield item.item_id, (DENIAL, other, half)[k % 3]


def _spoilt(
    reply: str, kinds: Sequence[dict[str, Any]], aim: Aim, turn: int
) -> Iterator[tuple[str, str, str]]:
    """A reply as it is and with each kind of instruction behind it: the kind, the language, the text."""
    yield CLEAN, "", reply
    for k, kind in enumerate(kinds):
        language = LANGUAGES[(turn + k) % len(LANGUAGES)]
        yield kind["name"], language, f"{reply}\n{kind[aim.form][language].format(goal=aim.goal)}"


def _question(
    benchmark: str, aim: Aim, item: Any, text: prompts.Wording, reply: str
) -> Request | None:
    """What the judge is asked about a reply, as in a run."""
    room = module("tasks", benchmark)
    settings = tasks.settings(benchmark, aim.settings, "robust")
    made = room.requests([item], text, aim.task, Way("generate"), settings, 0)
    asked = next(one for one in islice(made, 8) if one.request == aim.judge)
    finished: Request | None = asked.then(asked, reply)
    return finished


def _mark(benchmark: str, aim: Aim, response: str, item: Any) -> float:
    """The judge's mark as a share of what is planted for; NaN where it cannot be read."""
    parsed = module("tasks", benchmark).parse(aim.task, aim.judge, response, item)
    if not parsed:
        return float("nan")
    return float(parsed == UNBIASED) if benchmark == "cbbq" else float(parsed) / float(aim.goal)


def _has(benchmark: str, name: str, folder: Path) -> bool:
    """Whether a benchmark has a wording with a question to its judge."""
    try:
        text = prompts.load(benchmark, name or prompts.OURS, folder)
        text.table("bias_analysis.judge" if benchmark == "mcbe" else "judge")
    except BadInput:
        return False
    return True
