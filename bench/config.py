"""Describe the options of a run, once: `evaluate`, the command, studies and repeats use these."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bench.core.errors import BadInput, expected, explained, quoted

if TYPE_CHECKING:
    from bench.scorers.options import GenerationOptions


def option(
    default: Any, help: str, *uses: str, flag: str = "", metavar: str = "", **constraints: Any
) -> Any:
    """Describe an option.

    Args:
        uses: `asked`: run.json keeps the value as it was given. `loads`: it is an argument of
            `bench.scorers.load`. `outside_studies`: studies decide it or leave it to the command.
        flag: its name on the command line, where that is not the field's.
        metavar: what the help calls its value.
    """
    extra: Any = {"uses": uses, "flag": flag, "metavar": metavar}
    return Field(default, description=help, json_schema_extra=extra, **constraints)


BOUNDS = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "finite_number": "finite",
}


class Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def of(cls, given: Any = None, *, command: bool = False, **more: Any) -> Any:
        values = {n: v for n, v in {**(given or {}), **more}.items() if v is not None}
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] in BOUNDS:
                name = flag_of(first["loc"][0], cls.model_fields[first["loc"][0]])
                raise BadInput(
                    f"{name} {first['input']}: has to be "
                    f"{BOUNDS[first['type']].format(**first.get('ctx', {}))}"
                ) from None
            raise BadInput(explain(error, "option", cls.model_fields)) from None

    def changed(self) -> dict[str, Any]:
        return self.model_dump(exclude_defaults=True)


def flag_of(name: str, field: Any) -> str:
    return (field.json_schema_extra or {}).get("flag") or f"--{name.replace('_', '-')}"


def metavar_of(field: Any) -> str:
    return (field.json_schema_extra or {}).get("metavar") or ""


def _off(value: Any) -> Any:
    """Read `off`, which YAML takes for false, as 0."""
    return 0 if value is False or value == "off" else value


class RunConfig(Options):
    """The options of a run. A description here is the option's help text and its documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    benchmark: str = option("", "mcbe, cbbq or nli_coal; not with --from.", "outside_studies")
    model: str = option(
        "",
        "A Hub id (NAME or NAME@REVISION), a folder, a .gguf file, openai:NAME@URL, "
        "replay:FILE, predictions:FILE, lm-eval:SAMPLES, simulated:..., tiny:SIZE.",
        "outside_studies",
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
    name: str | None = option(
        None,
        "Name of the model in tables and pictures; default: a short form of --model.",
        "outside_studies",
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
        None,
        "At most N items per category and task, evenly spread; default: all.",
        "asked",
        metavar="N",
    )
    repeats: int = option(
        1, "Number of repeats, each with its own seed; default: 1.", "asked", metavar="N"
    )
    seed: int = option(0, "Seed of the first repeat; default: 0.", "asked", metavar="N")
    read: str | None = option(
        None,
        "How a choice is read: text (generated reply), letters or options (their "
        "probabilities); default: the first that the model can do.",
        "asked",
        metavar="WAY",
    )
    max_new_tokens: int | None = option(
        None, "Limit of tokens per reply; default: set by each task.", metavar="N"
    )
    thinking_tokens: Annotated[int | None, BeforeValidator(_off)] = option(
        None,
        "Limit of tokens for a thought before the reply, in addition to --max-new-tokens; "
        "`off` switches thinking off. Default: both share --max-new-tokens.",
        metavar="N|off",
    )
    temperature: float | None = option(
        None, "Sampling temperature, 0 for greedy decoding; default: the model's own."
    )
    top_p: float | None = option(
        None, "Share of probability to sample from, up to 1; default: the model's own."
    )
    system: str = option("", "File with a system message; default: none.", metavar="FILE")
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
    settings: Mapping[str, str] | None = option(
        None,
        "Setting of the benchmark; repeat for several. mcbe: context_order, label_order, "
        "bos, replies, separators, encoding, bad_rows; cbbq: prompting, explanation, option_order, "
        "labels, polarity, dedupe, expansion; nli_coal: set, tokens, anomalies, definitional.",
        flag="--set",
        metavar="NAME=VALUE",
    )
    preset: str = option(
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
    out: str | Path | None = option(
        None,
        "Folder of the run; default: ./reports/runs/MODEL/BENCHMARK-ID.",
        "outside_studies",
        metavar="DIR",
    )
    device: str | None = option(
        None,
        "cpu, cuda, cuda:N, or auto (spread over all accelerators); default: an "
        "accelerator if there is one.",
        "loads",
    )
    dtype: str | None = option(
        None,
        "float32, bfloat16 or float16; default: bfloat16 on an accelerator, else float32.",
        "asked",
        "loads",
    )
    batch_tokens: int | None = option(
        None, "Tokens per batch, padding included; default: by device.", "loads"
    )
    trust_remote_code: bool = option(
        False, "Run code that comes with a Hub model; default: off.", "loads", "outside_studies"
    )
    label_names: Sequence[str] | Mapping[str, Sequence[str]] | None = option(
        None,
        "Meaning of an NLI classifier's LABEL_0, LABEL_1, LABEL_2, like "
        "entailment,neutral,contradiction; default: as the classifier names them.",
    )
    scheduler: str | None = option(
        None,
        "Address of a Dask scheduler whose workers run the model, like tcp://HOST:8786; "
        "default: it runs here.",
    )
    resources: Mapping[str, float] | None = option(
        None, "Resources that a Dask worker needs per shard, like GPU=1; default: none."
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
    limits: Mapping[str, Any] | None = option(
        None, "Limits of endpoints by name; see `bench.scorers.options.Limits`."
    )
    keys: Mapping[str, str] | None = option(
        None,
        "Environment variable with the key of an endpoint's host, like "
        "api.deepseek.com=DEEPSEEK_API_KEY; repeat for several. Default: OPENAI_API_KEY__HOST "
        "(in capitals, _ for other characters), then OPENAI_API_KEY for the model's host alone.",
        "outside_studies",
        flag="--key",
        metavar="HOST=NAME",
    )

    @classmethod
    def fields_with(cls, use: str) -> list[str]:
        """Return the names of the options that have a use; see `option`."""
        return [name for name in cls.model_fields if use in cls.extra(name)["uses"]]

    @classmethod
    def extra(cls, name: str) -> dict[str, Any]:
        """Return the uses, flag and metavar of an option."""
        return dict(cls.model_fields[name].json_schema_extra or {})  # type: ignore[arg-type]

    @property
    def generation(self) -> "GenerationOptions":
        """The options of generation."""
        from bench.scorers.options import GENERATION, GenerationOptions

        return GenerationOptions.of({name: getattr(self, name) for name in GENERATION})

    def labels_of(self, model: str) -> Sequence[str] | None:
        """Return the label names of `model`, given for one or for several models by name."""
        names = self.label_names
        return names.get(model) if isinstance(names, Mapping) else names


def explain(error: ValidationError, kind: str, allowed: Iterable[str]) -> str:
    """Say in one sentence what is wrong with an option, and what is allowed.

    Args:
        error: the first of its errors is explained.
        kind: what the names are, such as `option`.
        allowed: the names that there are.
    """
    first = error.errors()[0]
    name, value = str(first["loc"][0]), first["input"]
    if first["type"] == "extra_forbidden":
        return expected(name, list(allowed), kind)
    if first["type"] in ("sequence_str", "is_instance_of") and isinstance(value, str):
        return f"{name} {value!r}: expected a list, like [{value!r}]"
    if len(first["loc"]) > 1 and first["type"] == "string_type":
        return f"{name}: {quoted(value)} is not a text; put quotes around it"
    return f"{name}: {explained(first)}"
