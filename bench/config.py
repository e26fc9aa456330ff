"""The options of a run, described once for `evaluate`, the command and studies."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic.fields import FieldInfo

from bench.core.errors import BadInput, BudgetSpent, expected, explained
from bench.core.text import read_list

Preset = Literal["robust", "official", "paper"]
PRESETS: tuple[str, ...] = get_args(Preset)
KEY_EXPECTED = (
    "--key: expected HOST=NAME, once per host, with the name of an environment variable in "
    "capitals, like api.deepseek.com=DEEPSEEK_API_KEY; the key itself belongs in that variable"
)


def option(
    default: Any, flag: str = "", metavar: str = "", alias: str = "", **constraints: Any
) -> Any:
    """Describe an option with constraints of pydantic; the text below it is its help.

    In the command, it has the name `flag` or `alias`, and its value is called `metavar`.
    """
    extra: Any = {"flag": flag, "metavar": metavar, "alias": alias}
    return Field(default, json_schema_extra=extra, **constraints)


class Options(BaseModel):
    """Options by name; `of` checks them."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @classmethod
    def of(cls, options: Mapping[str, Any] | Self | None, *, command: bool = False) -> Self:
        """Read options by name; an option that is None keeps its default.

        An option of a group, for example `concurrency` of `limits`, can be given without the group.
        `BadInput` names a wrong option by its key or, with `command`, by its flag.
        """
        if not isinstance(options, Mapping):
            return options or cls()
        values = {name: value for name, value in options.items() if value is not None}
        for name, field in cls.model_fields.items():
            group = group_of(field)
            nested = [key for key in (group.described() if group else ()) if key in values]
            if nested and isinstance(values.get(name, {}), Mapping):
                members = {key: values.pop(key) for key in nested}
                values[name] = {**values.get(name, {}), **members}
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            keys = [str(part) for part in first["loc"]]
            group = group_of(cls.model_fields[keys[0]]) if len(keys) > 1 else None
            keys = keys[:2] if group else keys[:1]
            if first["type"] == "extra_forbidden":
                raise BadInput(expected(keys[-1], (group or cls).described(), "option")) from None
            spelled = cls.flag(keys[-1]) if command else ": ".join(keys)
            raise BadInput(explain(first, spelled)) from None

    @classmethod
    def described(cls) -> dict[str, FieldInfo]:
        """Return the options by name, also those of groups."""
        options: dict[str, FieldInfo] = {}
        for name, field in cls.model_fields.items():
            if group := group_of(field):
                options |= group.described()
            elif field.description:
                options[name] = field
        return options

    @classmethod
    def signature(cls, function: Callable[..., Any]) -> inspect.Signature:
        """Return the signature of a function with these options in place of its `**options`.

        Python's help and the completion in notebooks show it.
        """
        *parameters, _options = inspect.signature(function).parameters.values()
        names = {parameter.name for parameter in parameters}
        parameters += [
            option.replace(annotation=inspect.Parameter.empty)
            for option in inspect.signature(cls).parameters.values()
            if option.name not in names
        ]
        return inspect.Signature(parameters)

    @classmethod
    def flag(cls, name: str) -> str:
        """Return the name of an option in the command."""
        return of_command(cls.described()[name]).get("flag") or f"--{name.replace('_', '-')}"

    def changed(self) -> dict[str, Any]:
        return self.model_dump(exclude_defaults=True)


def group_of(field: FieldInfo) -> type[Options] | None:
    """Return the class of a field that is a group of options; None for other fields."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Options) else None


def of_command(field: FieldInfo) -> dict[str, str]:
    """Return the flag, the alias and the metavar of an option; see `option`."""
    return dict(field.json_schema_extra or {})  # type: ignore[arg-type]


def explain(error: Mapping[str, Any], name: str = "") -> str:
    """Explain an error of pydantic in a sentence that begins with the name of the option."""
    if error["type"] == "value_error":  # a sentence of ours
        return f"{name} {error['msg'].removeprefix('Value error, ')}".lstrip()
    if error["type"] == "literal_error":
        names = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return expected(error["input"], names.split(", "), name or "value")
    return f"{name}: {explained(error)}" if name else explained(error)


def _names(value: Any) -> Any:
    """Read names from texts with commas between them, as the command and papermill's `-p` do."""
    texts = [value] if isinstance(value, str) else value
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return [name for text in texts for name in read_list(text)]
    return value


def _pairs(texts: Any, read: Callable[[str], Any] = str) -> Any:
    """Read texts such as NAME=VALUE (of the command), or a JSON object (of papermill's `-p`)."""
    texts = read_list(texts)
    if not isinstance(texts, list):
        return texts
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in str(text).partition("="))
        if not equals or not name:
            raise ValueError(f"{text}: expected NAME=VALUE")
        if name in values:
            raise ValueError(f"{name}: is given twice; give it once")
        values[name] = read(value)
    return values


def _keys(value: Any) -> Any:
    """Read names of variables by host; an error does not repeat the value, which can be a key."""
    try:
        return _pairs(value)
    except ValueError:
        raise BadInput(KEY_EXPECTED) from None


def _resources(value: Any) -> Any:
    """Read resources as Dask does, several with commas between them."""
    return _pairs(",".join(value).split(",") if isinstance(value, list) else value)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def _off(value: Any) -> Any:
    """Read `off` as 0 (YAML reads it as false), and a number of the command line."""
    if value is False or value == "off":
        return 0
    if isinstance(value, str) and not value.isdecimal():
        raise ValueError(f"{value}: expected a whole number, or off")
    return int(value) if isinstance(value, str) else value


def _prices(prices: Sequence[float]) -> Sequence[float]:
    if len(prices) != 2 or min(prices) < 0:
        text = ",".join(f"{price:g}" for price in prices)
        raise ValueError(f"{text}: expected IN,OUT, two numbers like 0.8,2")
    return prices


Names = Annotated[Sequence[str], BeforeValidator(_names)]
Number = Annotated[float, Field(strict=False)]
Resources = Annotated[Mapping[str, Annotated[Number, Field(gt=0)]], BeforeValidator(_resources)]
Keys = Annotated[Mapping[str, str], BeforeValidator(_keys)]
Price = Annotated[Sequence[Number], BeforeValidator(_names), AfterValidator(_prices)]
Settings = Annotated[Mapping[str, str], BeforeValidator(_pairs)]
Fields = Annotated[Mapping[str, Any], BeforeValidator(lambda value: _pairs(value, _json))]


class Generation(Options):
    """How a language model generates replies; the defaults are the model's own.

    Examples:
        >>> Generation(temperature=0.0, thinking_tokens=0).changed()
        {'temperature': 0.0, 'thinking_tokens': 0}
    """

    temperature: float | None = option(None, ge=0)
    """Sampling temperature, 0 for greedy decoding; default: the model's own."""

    system: str = option("", metavar="FILE")
    """File with a system message; default: none."""

    thinking_tokens: Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_off)] = option(
        None, metavar="N|off"
    )
    """Limit of tokens for a thought before the reply, in addition to --max-new-tokens; `off`
    switches thinking off. Default: both share --max-new-tokens."""

    template_arguments: Fields = option({}, flag="--template", metavar="NAME=VALUE")
    """Argument of the chat template, like enable_thinking=false; repeat for several. Endpoints get
    it as chat_template_kwargs."""

    request_fields: Fields = option({}, flag="--request-field", metavar="NAME=VALUE")
    """Further field of an endpoint's requests, like reasoning_effort=low; repeat for several."""

    def describe(self) -> dict[str, Any]:
        """Return the fields of `run.json`; none if all options are defaults."""
        return {"generation": self.changed()} if self.changed() else {}

    def refuse(self, names: Iterable[str], reason: str) -> None:
        """Raise BadInput if one of `names` was given."""
        for name in names:
            if name in self.changed():
                raise BadInput(f"{self.flag(name)}: {reason}; leave it out")


class Budget:
    """Counts requests up to a limit; messages name the `owner`, for example "the study"."""

    def __init__(self, requests: int, owner: str = "") -> None:
        self.requests, self.owner, self._used, self._lock = requests, owner, 0, Lock()

    def take_request(self) -> None:
        """Count a request before sending it."""
        with self._lock:
            if self._used >= self.requests:
                owner = f" of {self.owner}" if self.owner else ""
                problem = f"the budget of {self.requests:,} requests{owner} is spent"
                raise BudgetSpent(f"{problem}; give more by --budget-requests, or a study's limits")
            self._used += 1


class Limits(Options):
    """The limits of an endpoint; a run's model and judge share its budget.

    Examples:
        >>> Limits(concurrency=2, budget_requests=100).changed()
        {'concurrency': 2, 'budget_requests': 100}
    """

    concurrency: int = option(8, ge=1)
    """Concurrent requests to an endpoint; default: 8."""

    timeout: float = option(120.0, gt=0)
    """Seconds that an endpoint may take per request; default: 120."""

    budget_requests: int | None = option(None, ge=1)
    """Send endpoints at most N requests in all, repeated ones included; default: no budget."""

    leave_out: Names = option((), metavar="FIELDS")
    """Fields of requests that an endpoint refuses, of max_tokens (sent as max_completion_tokens),
    seed, temperature and top_p; default: none."""

    # The budgets of a study, of type `Budget`.
    budgets: tuple[Any, ...] = ()

    def shared(self, owner: str = "") -> tuple[Budget, ...]:
        """Return the budgets that several endpoints share, by default a new one."""
        if self.budgets or self.budget_requests is None:
            return self.budgets
        return (Budget(self.budget_requests, owner),)


class Where(Options):
    """The device of a model, its limits and prices, and the folder of the run."""

    device: str | None = None
    """cpu, cuda, cuda:N, or auto (spread over all accelerators); default: an accelerator if there
    is one."""

    dtype: str | None = None
    """float32, bfloat16 or float16; default: bfloat16 on an accelerator, else float32."""

    batch_tokens: int | None = None
    """Tokens per batch, padding included; default: by device."""

    trust_remote_code: bool = False
    """Run code that comes with a Hub model; default: off."""

    scheduler: str | None = None
    """Address of a Dask scheduler with workers that run the model, like tcp://HOST:8786; default:
    it runs here."""

    resources: Resources | None = None
    """Resources that a Dask worker needs per block of requests, like GPU=1; default: none."""

    limits: Limits = Limits()
    """Limits of endpoints by name; see `bench.config.Limits`."""

    keys: Keys | None = option(None, flag="--key", metavar="HOST=NAME")
    """Environment variable with the key of an endpoint's host, like
    api.deepseek.com=DEEPSEEK_API_KEY; repeat for several. Default: OPENAI_API_KEY__HOST (in
    capitals, _ for other characters), then OPENAI_API_KEY for the model's host only."""

    price: Price | None = option(None, metavar="IN,OUT")
    """Money per million tokens that the model reads, and writes, like 0.8,2; for --dry-run.
    Default: no costs are given."""

    judge_price: Price | None = option(None, metavar="IN,OUT")
    """The same of the judge; default: --price if model and judge are one."""

    out: str | Path | None = option(None, metavar="DIR")
    """Folder of the run; default: ./reports/runs/MODEL/BENCHMARK-ID."""


class RunConfig(Generation, Where):
    """All options of a run, for the command, a study, and `bench.evaluate`.

    Examples:
        >>> config = RunConfig.of({"benchmark": "cbbq", "temperature": 0.0, "limit": 20})
        >>> config.changed()
        {'temperature': 0.0, 'benchmark': 'cbbq', 'limit': 20}
    """

    benchmark: str = ""
    """mcbe, cbbq or nli_coal; not with --from."""

    model: str = option("", metavar="MODEL")
    """A Hub id (NAME or NAME@REVISION), a folder, a .gguf file, openai:NAME, openai:NAME@URL,
    python:MODULE:FUNCTION, replay:FILE, predictions:FILE, simulated:..., tiny:SIZE."""

    as_model: str | None = option(None, metavar="NAME")
    """Name of the model that gave the answers in replay:FILE, as its service spells it; needed for
    results of `bench requests`. Default: the file's name."""

    base: str | None = option(None, metavar="MODEL")
    """Base model of an adapter, spelt like --model; default: the one that the adapter names."""

    label_names: Names | Mapping[str, Names] | None = None
    """Meaning of an NLI classifier's LABEL_0, LABEL_1, LABEL_2, like
    entailment,neutral,contradiction; default: as the classifier names them."""

    name: str | None = None
    """Name of the model in tables and pictures; default: a short form of --model."""

    judge: str | None = option(None, metavar="MODEL")
    """Model that grades replies if a task needs it, spelt like --model; it answers without
    sampling. Default: tasks that need a judge are skipped."""

    as_judge: str | None = option(None, metavar="NAME")
    """The same for a judge that is replay:FILE; default: the file's name."""

    categories: Names | None = option(None, metavar="NAMES")
    """Only these categories, comma-separated; default: all."""

    tasks: Names | None = option(None, metavar="NAMES")
    """Only these tasks, comma-separated; default: all that the model can do."""

    limit: int | None = option(None, ge=1)
    """At most N items per category and task, a balanced sample; default: all."""

    repeats: int = option(1, ge=1)
    """Number of repeats, each with its own seed; default: 1."""

    seed: int = 0
    """Seed of the first repeat; default: 0."""

    answer_mode: Literal["text", "letters", "options"] | None = option(
        None, metavar="MODE", alias="--read"
    )
    """Answer mode of choices: text (generated reply), letters or options (their probabilities);
    default: the first that the model supports."""

    max_new_tokens: int | None = option(None, ge=1)
    """Limit of tokens per reply; default: set by each task."""

    settings: Settings | None = option(None, flag="--set", metavar="NAME=VALUE")
    """Setting of the benchmark; repeat for several. mcbe: context_order, label_order, bos, replies,
    separators, encoding, bad_rows; cbbq: prompting, explanation, option_order, labels, polarity,
    dedupe, expansion; nli_coal: set, tokens, anomalies, definitional."""

    preset: Preset = option("robust", metavar="NAME")
    """How answers are scored: robust, official or paper; default: robust."""

    prompts: str | None = option(None, metavar="NAME")
    """Prompt set: ours or a variant of it, official (fetched), FILE or FILE#NAME; default: the
    data's own, else ours."""

    data: str | Path | None = option(None, metavar="DIR")
    """Folder or file of the data set, samples for the package's own, or released for the copy of
    `bench fetch`; default: $BENCH_DATA, else the user's data folder, else the samples."""

    @property
    def generation(self) -> Generation:
        return Generation(**{name: getattr(self, name) for name in Generation.model_fields})

    def labels_of(self, model: str) -> Sequence[str] | None:
        """Return the label names of `model`, given for one or for several models by name."""
        names = self.label_names
        return names.get(model) if isinstance(names, Mapping) else names
