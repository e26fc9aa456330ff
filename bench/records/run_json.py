"""What a `run.json` holds."""

from contextlib import suppress
from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from bench.benchmarks import resolve
from bench.core.errors import BadInput
from bench.scorers.base import digest


def _known(benchmark: str) -> str:
    """Refuse a benchmark that there is not, or that is spelt otherwise."""
    try:
        name = resolve(benchmark)
    except BadInput as error:
        raise ValueError(str(error)) from None
    if name != benchmark:
        raise ValueError(f"its name is {name}")
    return benchmark


def _with_zone(time: str) -> str:
    """Refuse what is no time, or one without a time zone."""
    with suppress(ValueError):
        if datetime.fromisoformat(time).tzinfo:
            return time
    raise ValueError("it has to be a time with its zone, like 2026-11-23T12:51:04+00:00")


def _day(text: str) -> str:
    """Refuse what is no date."""
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError("it has to be a date, like 2026-11-23") from None
    return text


Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Positive = Annotated[int, Field(ge=1, lt=1 << 63)]
Way = Literal["text", "letters", "options"]
Verb = Literal["nll", "choose", "generate", "classify"]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Asked(_Part):
    """What identifies a run; see `bench.run.plan.Plan.asked`."""

    model: str
    judge: str | None
    categories: list[str] | None
    tasks: list[str]
    settings: dict[str, str]
    limit: Positive | None
    repeats: Positive
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
    read: Way | None
    dtype: str | None
    prompts: str
    wording_hash: str
    data_sha256: str
    model_content: str | None
    judge_content: str | None
    as_model: str = ""
    as_judge: str = ""
    label_names: list[str] = []
    generation: dict[str, Any] = {}
    base: str = ""
    base_content: str | None = None


class _Base(_Part):
    id: str
    revision: str


class _Model(_Part):
    kind: str
    id: Annotated[str, Field(min_length=1)]
    revision: str = ""
    base: _Base | None = None
    dtype: str = ""
    device: str = ""
    batch_tokens: Positive = 1
    parameters: dict[str, Any] | Count = 0
    labels: dict[str, int] = {}
    lacks: dict[str, str] = {}
    asked_with: dict[str, str] = {}
    prompted_as: str = ""
    prompt_date: Annotated[str, AfterValidator(_day)] | None = None
    host: str = ""
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _has_host(self) -> Self:
        if self.id.startswith("openai:") and not self.host:
            raise ValueError("the `host` of an endpoint is missing")
        return self


class _Data(_Part):
    folder: str
    found: str
    name: str
    version: str
    licence: str
    note: str
    language: str
    labels: dict[str, dict[str, str]]
    sha256: str


class _Foreign(_Part):
    data: list[str] = []
    wording: list[str] = []


class _Wording(_Part):
    variant: str
    source: str
    foreign: _Foreign
    file: str
    unbiased_instruction: bool


class _Concerned(_Part):
    """Items of a task that were left out or changed, and why."""

    category: str
    task: str
    why: str
    items: Count


class _Probed(_Part):
    language: str
    premise: str
    hypothesis: str
    expected: str
    found: str


class RunJson(_Part):
    """What every `run.json` has."""

    benchmark: Annotated[str, AfterValidator(_known)]
    asked: _Asked
    identity: str
    model: _Model
    judge: _Model | None
    verbs: list[Verb]
    reads: list[Way]
    judge_verbs: list[Verb]
    read: dict[str, Way]
    left_out: dict[str, str]
    unfit: list[_Concerned]
    touched: list[_Concerned]
    probe: list[_Probed]
    requests: Count
    folder: str
    data: _Data
    wording: _Wording
    preset: Literal["robust", "official", "paper"]
    name: str = ""
    packages: dict[str, str]
    git_commit: str | None
    when: Annotated[str, AfterValidator(_with_zone)]
    workers: list[dict[str, Any]] = []
    files: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_as_asked(self) -> Self:
        asked = self.asked.model_dump(exclude_unset=True)
        if digest([self.benchmark, asked])[:8] != self.identity:
            raise ValueError("`benchmark` and `asked` do not have the hash `identity`")
        return self
