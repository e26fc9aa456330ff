"""The class `Benchmark`, and the classes that describe its data and tasks.

A benchmark is a package with an object `BENCHMARK` of a subclass of `Benchmark`;
docs/new_benchmark.md shows a short example.
"""

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.core.inputs import PACKAGE_CODE, Code
from bench.core.shipped import NOTEBOOKS
from bench.tasks import ANSWER_MODES
from bench.tasks.request import AnswerMode, Request, Setting

if TYPE_CHECKING:
    import pandas as pd

    from bench.data import Loaded
    from bench.data.official_wording import OfficialPrompts
    from bench.metrics.engine import Scoring
    from bench.metrics.table import Metrics
    from bench.tasks.prompts import PromptSet


class Paper(NamedTuple):
    """The publication of a benchmark."""

    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    url: str


@dataclass(frozen=True)
class Release:
    """The released data of a benchmark, for `bench fetch`.

    Attributes:
        host: `github` or `hub`; empty if no address is known.
        repository, commit: the address at this host.
        tolerant: settings with which `bench fetch` accepts the faults of the release.
        arrange: maps the paths of a repository's tables to the names that the loader knows, for
            example `Gender.xlsx` to `xlsx_files/gender.xlsx`.
        prompts: the prompts in the authors' scripts.
        reply_limit: returns the limit of tokens in the authors' script for a prompt set.

    Examples:
        >>> from bench import benchmarks
        >>> benchmarks.get("cbbq").metadata.release.repository
        'YFHuangxxxx/CBBQ'
    """

    host: str = ""
    repository: str = ""
    commit: str = ""
    tolerant: Mapping[str, str] = field(default_factory=dict)
    arrange: Callable[[Sequence[str]], Mapping[str, str]] = lambda names: {}
    prompts: "OfficialPrompts | None" = None
    reply_limit: Callable[[str], int | None] = lambda prompt_version: None


@dataclass(frozen=True)
class Metadata:
    """The description of a benchmark.

    Attributes:
        folder: the folder with `samples/`, `prompts.toml` and `NAME.ipynb`.
        layout: a description of its data files, for messages.
        categories: names of the release's categories in the language of the data.
        language: code of the release's language; empty if each category is a language.
        units: the units that the bootstrap resamples, as a plural noun, for example scenes.
        notebook: the notebook of its page in reports; default: `NAME.ipynb` in the folder.
        fault: returns the fault of an item that is asked in spite of it; "" if there is none.

    Examples:
        >>> from bench import benchmarks
        >>> benchmarks.get("cbbq").metadata.units
        'scenes'
    """

    name: str
    title: str
    homepage: str
    licence: str
    paper: Paper
    folder: Path
    layout: str
    categories: Mapping[str, str]
    language: str
    units: str
    notebook: Path | None = None
    release: Release = Release()
    fault: Callable[[Any], str] = lambda item: ""

    @property
    def samples(self) -> Path:
        """The folder of the sample data that come with the package."""
        return self.folder / "samples"

    @property
    def no_data(self) -> str:
        """The message for a folder without its data: the fault and the remedy."""
        return (
            f"holds no data of {self.title} in the layout of its release; expected {self.layout}; "
            "put the released files there, or write a plug-in benchmark (docs/new_benchmark.md)"
        )

    @property
    def prompts(self) -> Path:
        """The file of the default prompt set."""
        return self.folder / "prompts.toml"

    @property
    def page(self) -> Path:
        """The notebook that is its page in reports."""
        return self.notebook or self.folder / f"{self.name}.ipynb"


def read_metadata(
    package: Path,
    fault: Callable[[Any], str] = lambda item: "",
    **release: Any,
) -> Metadata:
    """Read the description of a benchmark of this package from its `metadata.toml`.

    Args:
        release: fields of `Release` that cannot stand in a TOML file: functions and prompts.
    """
    values = tomllib.loads((package / "metadata.toml").read_text("utf-8"))
    paper = values.pop("paper")
    return Metadata(
        **{**values, "release": Release(**values["release"], **release)},
        paper=Paper(**{**paper, "authors": tuple(paper["authors"])}),
        folder=package,
        notebook=NOTEBOOKS / f"{values['name']}.ipynb",
        fault=fault,
    )


def settings_of_data(allowed: Mapping[str, tuple[str, ...]]) -> dict[str, Setting]:
    """Describe the settings of a loader by their allowed values, the default first."""
    return {name: Setting(values, of_data=True) for name, values in allowed.items()}


@dataclass(frozen=True)
class Task:
    """A task of a benchmark.

    Attributes:
        request_types: request types that can answer the task, in addition to those of a choice.
        answer_modes: the ways to read a choice, the best first; empty if there is no choice.
        applies_to: fields and values that an item must have, for example
            `{"condition": "ambiguous"}`. Default: the task is about every item.
        excluded: returns why an item of this task cannot be asked; empty if it can.
        judge: `needed` or `wanted` if a judge rates its replies; else "".
        judge_if: the settings under which the judge is used.
        choices: the names of the answers to a choice, in the order of their log-probabilities.
        unit: the unit of answers that are numbers.

    Examples:
        >>> Task("Ambiguous questions").request_types_for("letters")
        ('choose',)
    """

    title: str
    request_types: tuple[str, ...] = ()
    answer_modes: tuple[str, ...] = ("text", "letters")
    applies_to: Mapping[str, str] = field(default_factory=dict)
    excluded: Callable[[Any], str] = lambda item: ""
    judge: str = ""
    judge_if: Mapping[str, str] = field(default_factory=dict)
    choices: Sequence[str] = ()
    unit: str = ""

    def request_types_for(self, answer_mode: str | None = None) -> tuple[str, ...]:
        """Return the request types that can answer this task, the best first.

        Args:
            answer_mode: the chosen one; default: all.
        """
        modes = [mode for mode in self.answer_modes if answer_mode in (None, mode)]
        return (*self.request_types, *dict.fromkeys(ANSWER_MODES[mode] for mode in modes))

    def applies(self, item: Any) -> bool:
        """Return whether this task is about an item."""
        return {name: getattr(item, name) for name in self.applies_to} == self.applies_to

    def judged(self, settings: Mapping[str, str]) -> str:
        """Return `needed` or `wanted` if the settings involve a judge; else ""."""
        return self.judge if self.judge_if.items() <= settings.items() else ""


class Values(NamedTuple):
    """The answers to a request.

    Attributes:
        choices: each answer as the prompt shows it, with the value that `parse` returns for it; or
            the range of a number.
        verdicts: the verdict of each value, see `bench.tasks.VERDICTS`; values that are not named
            are `other`. Empty if no answer is right or wrong.
        unknown: the value for "cannot tell", if there is one. Its verdict is `unknown` unless
            `verdicts` has another one, for example `right`.

    Examples:
        >>> values = Values({"A": "yes", "B": "no"}, {"yes": "stereotyped"})
        >>> values.verdict("yes"), values.verdict("no"), values.verdict("")
        ('stereotyped', 'other', 'unreadable')
    """

    choices: Mapping[str, str] | range
    verdicts: Mapping[str, str] = {}
    unknown: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The possible values in alphabetical order."""
        values = self.choices.values() if isinstance(self.choices, Mapping) else self.choices
        return tuple(sorted(set(map(str, values))))

    def verdict(self, value: str) -> str:
        """Return the verdict of a value; "" if no answer is right or wrong."""
        if not self.verdicts:
            return ""
        if value and value == self.unknown:
            return self.verdicts.get(value, "unknown")
        return self.verdicts.get(value, "other") if value else "unreadable"


class Benchmark(ABC):
    """A benchmark: its data, its requests and its scores.

    Attributes:
        metadata: its description.
        tasks: its tasks by name, in the order in which they are asked.
        settings: the settings of its loader (`of_data`), then the settings of its requests.
        metrics: its metrics: primary metrics and cards.
        parse_by: the fields of an item on which `parse` depends. Equal replies to items with the
            same fields are parsed once. Default: replies to different items are never shared.
        code: the code of its package as this process imported it.

    Examples:
        >>> from bench import benchmarks
        >>> list(benchmarks.get("cbbq").tasks)
        ['ambiguous', 'disambiguous']
    """

    metadata: Metadata
    tasks: Mapping[str, Task]
    settings: Mapping[str, Setting] = {}
    parse_by: Sequence[str] = ("item_id",)
    code: Code = PACKAGE_CODE

    @property
    def name(self) -> str:
        """Its name in the command, and in tables."""
        return self.metadata.name

    @property
    def parser(self) -> str:
        """A hash of the code that parses replies, which changes with the files of the code."""
        # A benchmark of this package has the same code as the package, so it counts once.
        return "-".join(code.key()[:16] for code in dict.fromkeys([PACKAGE_CODE, self.code]))

    @property
    @abstractmethod
    def metrics(self) -> "Metrics":
        """Return the metrics."""

    # Data

    @abstractmethod
    def files(self, folder: Path) -> Mapping[str, Sequence[Path]]:
        """Return the files of each category in a folder; empty if it holds no such data.

        `folder` can be a single file if its name or its rows tell the category.
        """

    @abstractmethod
    def load(self, folder: Path, categories: Sequence[str], **settings: str) -> "Loaded":
        """Read the items of some categories, in the order of the files.

        An item is a dataclass with `item_id`, `category` and `cluster`, the unit that was sampled.
        """

    def check(self, folder: Path, **settings: str) -> "pd.DataFrame":
        """List refused and odd rows, and the counts of rows (see `bench.data.checks`)."""
        from bench.data.checks import check_tables, items_of

        return check_tables(self, folder, lambda errors: items_of(self, folder, errors, **settings))

    # Requests

    @abstractmethod
    def requests(
        self,
        items: Sequence[Any],
        prompts: "PromptSet",
        task: str,
        answer_mode: AnswerMode,
        settings: Mapping[str, str],
        seed: int,
    ) -> Iterator[Request]:
        """Make the requests of a task, item by item.

        Args:
            items: those that the task is about and does not exclude.
        """

    @abstractmethod
    def parse(self, task: str, request: str, response: str, item: Any) -> str:
        """Read a reply; return a value, or an empty text if it holds none.

        This is called when answers are read, not when they are recorded.
        """

    @abstractmethod
    def values(self, task: str, request: str, item: Any) -> Values:
        """Return the answers to a request, and their verdicts."""

    # Scores

    def scoring(
        self,
        records: "pd.DataFrame",
        items: "pd.DataFrame",
        preset: str,
        common: Sequence[str] = (),
    ) -> "Scoring":
        """Prepare the scores of a run: its outcomes, its table, and resamples.

        By default, an outcome is the verdict of an answer, in columns of 0 and 1.

        Args:
            records: the answers, with `parsed`, the value that `parse` returned for each.
            common: the tasks of a score over all tasks, for a benchmark that has one.
        """
        from bench.metrics.verdicts import scoring

        return scoring(self, records, items, preset)


class PackagedBenchmark(Benchmark):
    """A benchmark of this package: its modules `checks` and `scores` stand beside its class.

    The modules are imported at the first use, because they import pandas.
    """

    def _module(self, name: str) -> Any:
        return import_module(f"{type(self).__module__}.{name}")

    def check(self, folder: Path, **settings: str) -> "pd.DataFrame":
        from bench.data.checks import check_tables

        checks = self._module("checks")
        return check_tables(
            self,
            folder,
            lambda errors: checks.rows(folder, errors, **settings),
            checks.COLUMNS,
            checks.RULES,
            checks.RELEASED,
        )

    @property
    def metrics(self) -> "Metrics":
        return self._module("scores").METRICS

    def scoring(
        self,
        records: "pd.DataFrame",
        items: "pd.DataFrame",
        preset: str,
        common: Sequence[str] = (),
    ) -> "Scoring":
        return self._module("scores").scoring(records, items, preset, common)
