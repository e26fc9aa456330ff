"""Describe the options of a run once, for `evaluate`, the command, studies and repeats."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bench.core.errors import BadInput, expected, explained, quoted

Preset = Literal["robust", "official", "paper"]
PRESETS: tuple[str, ...] = get_args(Preset)
# How the errors of pydantic about numbers read here.
BOUNDS = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "finite_number": "finite",
}


def option(default: Any, help: str, flag: str = "", metavar: str = "", **constraints: Any) -> Any:
    """Describe an option; `help` is its help text and its documentation.

    Args:
        flag: its name on the command line, if that is not the field's.
        metavar: its value in help texts.
        constraints: of pydantic's `Field`.
    """
    extra: Any = {"flag": flag, "metavar": metavar}
    return Field(default, description=help, json_schema_extra=extra, **constraints)


class Options(BaseModel):
    """Options by name, which are checked when they are read."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def of(cls, given: Mapping[str, Any] | Self | None, *, command: bool = False) -> Self:
        """Read options by name; an option that is None keeps its default.

        Args:
            command: errors spell the options as the command line does.

        Raises:
            BadInput: an option is unknown, or its value is not allowed.
        """
        if not isinstance(given, Mapping):
            return given or cls()
        values = {name: value for name, value in given.items() if value is not None}
        try:
            return cls(**values)
        except ValidationError as error:
            raise BadInput(explain(error, cls.model_fields, command=command)) from None

    def changed(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        return self.model_dump(exclude_defaults=True)


def _off(value: Any) -> Any:
    """Read `off`, which YAML takes for false, as 0."""
    return 0 if value is False or value == "off" else value


class Generation(Options):
    """How a language model generates replies, by default as the model itself does."""

    temperature: float | None = option(
        None, "Sampling temperature, 0 for greedy decoding; default: the model's own.", ge=0
    )
    top_p: float | None = option(
        None,
        "Share of probability to sample from, up to 1; default: the model's own.",
        gt=0,
        le=1,
    )
    system: str = option("", "File with a system message; default: none.", metavar="FILE")
    thinking_tokens: Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_off)] = option(
        None,
        "Limit of tokens for a thought before the reply, in addition to --max-new-tokens; "
        "`off` switches thinking off. Default: both share --max-new-tokens.",
        metavar="N|off",
    )
    template_arguments: Mapping[str, Any] = option(
        {},
        "Argument of the chat template, like enable_thinking=false; repeat for several. "
        "Endpoints get it as chat_template_kwargs.",
        flag="--template",
        metavar="NAME=VALUE",
    )
    request_fields: Mapping[str, Any] = option(
        {},
        "Further field of an endpoint's requests, like reasoning_effort=low; repeat for several.",
        flag="--request-field",
        metavar="NAME=VALUE",
    )

    def describe(self) -> dict[str, Any]:
        """Return the fields of `run.json`; none if all options are the model's own."""
        return {"generation": self.changed()} if self.changed() else {}

    def refuse(self, names: Iterable[str], reason: str) -> None:
        """Raise BadInput if one of `names` was given."""
        for name in names:
            if name in self.changed():
                raise BadInput(f"{as_flag(name)}: {reason}; leave it out")


class Limits(Options):
    """The limits of an endpoint; a run's model and judge share its budgets.

    Attributes:
        budgets: the counters (`bench.scorers.budget.Budget`) of a study; by default, a run counts
            by itself.
    """

    concurrency: int = option(8, "Concurrent requests to an endpoint; default: 8.", ge=1)
    timeout: float = option(
        120.0, "Seconds that an endpoint may take per request; default: 120.", gt=0
    )
    budget_requests: int | None = option(
        None,
        "Send endpoints at most N requests in all, repeated ones included; default: no budget.",
        ge=1,
    )
    budget_tokens: int | None = option(
        None,
        "Let endpoints read and write at most N tokens in all, then end; default: no budget.",
        ge=1,
    )
    budgets: tuple[Any, ...] = ()


LIMITS = tuple(name for name in Limits.model_fields if name != "budgets")


class Where(Options):
    """Where a model comes from and runs, and within which limits."""

    device: str | None = option(
        None,
        "cpu, cuda, cuda:N, or auto (spread over all accelerators); default: an "
        "accelerator if there is one.",
    )
    dtype: str | None = option(
        None,
        "float32, bfloat16 or float16; default: bfloat16 on an accelerator, else float32.",
    )
    batch_tokens: int | None = option(
        None, "Tokens per batch, padding included; default: by device."
    )
    trust_remote_code: bool = option(False, "Run code that comes with a Hub model; default: off.")
    scheduler: str | None = option(
        None,
        "Address of a Dask scheduler whose workers run the model, like tcp://HOST:8786; "
        "default: it runs here.",
    )
    resources: Mapping[str, float] | None = option(
        None, "Resources that a Dask worker needs per shard, like GPU=1; default: none."
    )
    limits: Limits = option(Limits(), "Limits of endpoints by name; see `bench.config.Limits`.")
    keys: Mapping[str, str] | None = option(
        None,
        "Environment variable with the key of an endpoint's host, like "
        "api.deepseek.com=DEEPSEEK_API_KEY; repeat for several. Default: OPENAI_API_KEY__HOST "
        "(in capitals, _ for other characters), then OPENAI_API_KEY for the model's host alone.",
        flag="--key",
        metavar="HOST=NAME",
    )
    price: Sequence[float] | None = option(
        None,
        "Money per million tokens that the model reads, and writes, like 0.8,2; for --dry-run. "
        "Default: no costs are given.",
        metavar="IN,OUT",
    )
    judge_price: Sequence[float] | None = option(
        None,
        "The same of the judge; default: --price where model and judge are one.",
        metavar="IN,OUT",
    )
    out: str | Path | None = option(
        None, "Folder of the run; default: ./reports/runs/MODEL/BENCHMARK-ID.", metavar="DIR"
    )


class RunConfig(Generation, Where):
    """The options of a run: all that the command, a study, and `bench.evaluate` can be given."""

    benchmark: str = option("", "mcbe, cbbq or nli_coal; not with --from.")
    model: str = option(
        "",
        "A Hub id (NAME or NAME@REVISION), a folder, a .gguf file, openai:NAME@URL, "
        "replay:FILE, predictions:FILE, lm-eval:SAMPLES, simulated:..., tiny:SIZE.",
        metavar="MODEL",
    )
    as_model: str | None = option(
        None,
        "Name of the model whose answers replay:FILE holds, as its service spells it; needed for "
        "results of `bench requests`. Default: the file's name.",
        metavar="NAME",
    )
    revision: str | None = option(
        None, "Branch, tag or commit of a Hub model, as in NAME@REVISION; default: main."
    )
    base: str | None = option(
        None,
        "Base model of an adapter, spelt like --model; default: the one that the adapter names.",
        metavar="MODEL",
    )
    label_names: Sequence[str] | Mapping[str, Sequence[str]] | None = option(
        None,
        "Meaning of an NLI classifier's LABEL_0, LABEL_1, LABEL_2, like "
        "entailment,neutral,contradiction; default: as the classifier names them.",
    )
    name: str | None = option(
        None, "Name of the model in tables and pictures; default: a short form of --model."
    )
    judge: str | None = option(
        None,
        "Model that grades replies where a task needs it, spelt like --model; it answers "
        "without sampling. Default: tasks that need a judge are left out.",
        metavar="MODEL",
    )
    as_judge: str | None = option(
        None, "The same for a judge that is replay:FILE; default: the file's name.", metavar="NAME"
    )
    categories: Sequence[str] | None = option(
        None, "Only these categories, comma-separated; default: all.", metavar="NAMES"
    )
    tasks: Sequence[str] | None = option(
        None,
        "Only these tasks, comma-separated; default: all that the model can do.",
        metavar="NAMES",
    )
    limit: int | None = option(
        None, "At most N items per category and task, evenly spread; default: all.", ge=1
    )
    repeats: int = option(1, "Number of repeats, each with its own seed; default: 1.", ge=1)
    seed: int = option(0, "Seed of the first repeat; default: 0.")
    read: Literal["text", "letters", "options"] | None = option(
        None,
        "How a choice is read: text (generated reply), letters or options (their "
        "probabilities); default: the first that the model can do.",
        metavar="WAY",
    )
    max_new_tokens: int | None = option(
        None, "Limit of tokens per reply; default: set by each task.", ge=1
    )
    settings: Mapping[str, str] | None = option(
        None,
        "Setting of the benchmark; repeat for several. mcbe: context_order, label_order, "
        "bos, replies, separators, encoding, bad_rows; cbbq: prompting, explanation, option_order, "
        "labels, polarity, dedupe, expansion; nli_coal: set, tokens, anomalies, definitional.",
        flag="--set",
        metavar="NAME=VALUE",
    )
    preset: Preset = option(
        "robust",
        "How answers are scored: robust, official or paper; default: robust.",
        metavar="NAME",
    )
    prompts: str | None = option(
        None,
        "Prompt set: ours or a variant of it, official (fetched), FILE or FILE#NAME; "
        "default: the data's own, else ours.",
        metavar="NAME",
    )
    data: str | Path | None = option(
        None,
        "Folder or file of the data set, or samples for the package's own; default: $BENCH_DATA, "
        "else the user's data folder, else the samples.",
        metavar="DIR",
    )

    @property
    def generation(self) -> Generation:
        """The options of generation."""
        return Generation(**{name: getattr(self, name) for name in Generation.model_fields})

    def labels_of(self, model: str) -> Sequence[str] | None:
        """Return the label names of `model`, given for one or for several models by name."""
        names = self.label_names
        return names.get(model) if isinstance(names, Mapping) else names


def of_command(name: str) -> dict[str, str]:
    """Return the flag and the metavar of an option on the command line, "" for the usual ones."""
    field = RunConfig.model_fields.get(name) or Limits.model_fields[name]
    return dict(field.json_schema_extra or {})  # type: ignore[arg-type]


def as_flag(name: str) -> str:
    """Spell an option's name as the command line does."""
    return of_command(name).get("flag") or f"--{name.replace('_', '-')}"


def explain(
    error: ValidationError, allowed: Iterable[str], kind: str = "option", *, command: bool = False
) -> str:
    """Say in one sentence which option is wrong and what is allowed, by the first of the errors.

    Args:
        allowed: the names of the options.
        kind: what the names are, such as `option`.
        command: spell the options as the command line does.
    """
    first = error.errors()[0]
    place, value, reason = [str(part) for part in first["loc"]], first["input"], first["type"]
    if place[0] == "limits" and len(place) > 1:
        allowed, kind, key = LIMITS, "limit", place[1]
        name = f"limits: {key}"
    else:
        key = name = place[0]
    if reason == "extra_forbidden":
        return expected(key, list(allowed), kind)
    if command:
        name = as_flag(key)
    if reason == "literal_error":
        names = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return expected(value, names.split(", "), name)
    if reason in BOUNDS:
        return f"{name} {value}: has to be {BOUNDS[reason].format(**first.get('ctx', {}))}"
    if reason in ("sequence_str", "is_instance_of") and isinstance(value, str):
        return f"{name} {value!r}: expected a list, like [{value!r}]"
    if len(place) > 1 and reason == "string_type":
        return f"{name}: {quoted(value)} is not a text; put quotes around it"
    return f"{name}: {explained(first)}"
