"""Check the keys of a `run.json` that we read, to explain a changed file in one sentence."""

from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from bench.config import Preset
from bench.scorers.base import digest

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
AnswerMode = Literal["text", "letters", "options"]
RequestType = Literal["nll", "choose", "generate", "classify"]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Asked(_Part):
    """The identity of a run; see `bench.run.plan.Plan.options`."""

    model: str
    judge: str | None
    settings: dict[str, str]
    dtype: str | None
    repeats: Positive
    seed: int
    prompts: str
    as_model: str = ""
    as_judge: str = ""
    generation: dict[str, Any] = {}


class _Base(_Part):
    id: str
    revision: str


class _Model(_Part):
    kind: str
    id: Annotated[str, Field(min_length=1)]
    revision: str = ""
    base: _Base | None = None
    parameters: dict[str, Any] | Count = 0
    lacks: dict[str, str] = {}
    asked_with: dict[str, str] = {}
    prompted_as: str = ""
    prompt_date: date | None = None
    host: str = ""


class _Data(_Part):
    folder: str
    found: str
    name: str
    version: str
    language: str
    labels: dict[str, dict[str, str]]
    sha256: str


class _Wording(_Part):
    variant: str
    source: str
    foreign: dict[str, list[str]]
    file: str
    unbiased_instruction: bool


class _ItemCount(_Part):
    """The number of items of a task that were excluded or modified for a reason."""

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
    """A `run.json`, which can have further keys."""

    benchmark: str
    asked: _Asked
    identity: str
    model: _Model
    judge: _Model | None
    verbs: list[RequestType]
    reads: list[AnswerMode]
    judge_verbs: list[RequestType]
    read: dict[str, AnswerMode]
    left_out: dict[str, str]
    unfit: list[_ItemCount]
    touched: list[_ItemCount]
    probe: list[_Probed]
    requests: Count
    folder: str
    data: _Data
    wording: _Wording
    preset: Preset
    name: str = ""
    packages: dict[str, str]
    git_commit: str | None
    when: AwareDatetime
    workers: list[dict[str, Any]] = []
    files: dict[str, str] = {}

    @model_validator(mode="after")
    def _is_as_asked(self) -> Self:
        asked = self.asked.model_dump(exclude_unset=True)
        if digest([self.benchmark, asked])[:8] != self.identity:
            raise ValueError("`benchmark` and `asked` do not have the hash `identity`")
        return self
