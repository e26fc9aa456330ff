"""A study: which models answer which benchmarks, and which notebooks show it; read from a YAML file.

title: Two models and their bias
question: Does the larger one stereotype less?
language: en          # of headings, warnings and findings: en or zh
models:
  - Qwen/Qwen2.5-0.5B-Instruct
  - {model: Qwen/Qwen2.5-1.5B-Instruct, name: Qwen 1.5B, dtype: float32}   # with options of its own
benchmarks:
  mcbe: {judge: openai:glm-4-air@https://example.org/v1, repeats: 4}
  cbbq:               # several named variants of one benchmark
    - {name: Q, categories: [gender, age], limit: 200}
    - {name: Q+IF, categories: [gender, age], limit: 200, settings: {prompting: Q+IF}}
analyses:
  compare_models: {}                              # the first variant of each benchmark
  self_correction: {variants: [Q, Q+IF]}          # or those that are named
  prompt_robustness: {runs: [../reports/other/runs/*/*]}   # other runs beside the study's own
options: {seed: 0, preset: robust, device: cuda}  # of all models and benchmarks, as of `bench run`;
                      # `system` is the message itself here, not a file
keys: {example.org: EXAMPLE_API_KEY}     # environment variables with the keys of endpoints, by host
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from bench import data, scorers, tasks
from bench.benchmarks import module, resolve
from bench.config import RunConfig, explain
from bench.core.errors import BadInput, expected, quoted
from bench.core.i18n import LANGUAGES
from bench.data import readers
from bench.data.readers import as_path
from bench.run import PRESETS, path_slug
from bench.run.results import short_name
from bench.scorers.endpoint import keys as key_names
from bench.scorers.endpoint.limits import Limits
from bench.scorers.generation_options import GENERATION, GenerationOptions
from bench.tasks.nli_labels import label_order

KEYS = ("title", "question", "models", "benchmarks", "analyses", "options", "keys", "language")
# Options of a run that a study decides by itself, or leaves to the command.
NOT_IN_A_STUDY = ("benchmark", "model", "name", "out", "trust_remote_code", "keys")
# Options that are put together, name by name, where they stand in several places.
MERGED = ("settings", "template_arguments", "request_fields", "limits")
# Of numbers: seeds are 64 bits, and no run asks or repeats more than this.
LARGEST = 2**31 - 1


# The options of runs as a study may give them: for everything, for a variant, or for a model.
StudyOptions: type[BaseModel] = create_model(  # type: ignore[call-overload]
    "StudyOptions",
    __config__=ConfigDict(extra="forbid", strict=True),
    **{
        name: (field.annotation, field)
        for name, field in RunConfig.model_fields.items()
        if name not in NOT_IN_A_STUDY
    },
)


@dataclass(frozen=True)
class StudyModel:
    """A model of a study.

    Attributes:
        model: as the command takes it.
        name: what tables call it; empty for a short form of `model`.
        folder: where its runs are kept; no two models of a study share one.
        options: of its runs alone.
        key: environment variable with the key of its host; empty for the study's.
    """

    model: str
    name: str = ""
    folder: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""

    @property
    def label(self) -> str:
        """The name of the model for messages."""
        return self.name or short_name(self.model)


@dataclass(frozen=True)
class Variant:
    """A benchmark as a study asks it.

    Attributes:
        benchmark: its name.
        name: of the variant; empty where the benchmark is asked in one way only.
        options: of its runs.
        page: whether it has a page of its own; if not, only analyses show it.
    """

    benchmark: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    page: bool = True

    @property
    def key(self) -> str:
        """What its runs and its page are kept under."""
        return f"{self.benchmark}-{path_slug(self.name)}" if self.name else self.benchmark

    @property
    def title(self) -> str:
        """The benchmark's title, with the variant's name where it has one."""
        title = str(module("data", self.benchmark).TITLE)
        return f"{title} ({self.name})" if self.name else title


@dataclass(frozen=True)
class Analysis:
    """An analysis of a study.

    Attributes:
        parameters: of its notebook.
        variants: the variants that it is about; None for its default.
    """

    parameters: Mapping[str, Any]
    variants: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Study:
    """A study file, checked."""

    name: str
    title: str
    question: str
    models: tuple[StudyModel, ...]
    variants: tuple[Variant, ...]
    analyses: Mapping[str, Analysis]
    options: Mapping[str, Any]
    language: str = "en"
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def benchmarks(self) -> list[str]:
        """The names of its benchmarks."""
        return list(dict.fromkeys(variant.benchmark for variant in self.variants))

    @property
    def first_variants(self) -> list[str]:
        """The key of the first variant of each benchmark, which stands for it where one is enough."""
        first: dict[str, str] = {}
        for variant in self.variants:
            first.setdefault(variant.benchmark, variant.key)
        return list(first.values())

    def run_options(self, model: StudyModel, variant: Variant) -> dict[str, Any]:
        """The options of one run: a model's own before those of the variant, and these before all others."""
        options = merged(self.options, variant.options, model.options)
        if model.name:
            options["name"] = model.name
        if not scorers.writes_replies(model.model):
            # Sampling is an option of language models, which others in the study may be.
            shared = set(GENERATION) - set(model.options)
            options = {name: value for name, value in options.items() if name not in shared}
        own = {key_names.host_of(model.model): model.key} if model.key else {}
        specs = [other.model for other in self.models]
        if keys := key_names.of_run(specs, model.model, options.get("judge"), {**self.keys, **own}):
            options["keys"] = keys
        return options


def merged(*options: Mapping[str, Any]) -> dict[str, Any]:
    """Options put together: the last one counts, of `MERGED` name by name."""
    result: dict[str, Any] = {}
    for given in options:
        for name, value in given.items():
            result[name] = {**result.get(name, {}), **value} if name in MERGED else value
    return result


def load(path: Path) -> Study:
    """Read a study file.

    Raises:
        BadInput: not YAML, a misspelt or missing key, a wrong value, an unknown model, benchmark,
            task or category, or an option that a benchmark does not have.
    """
    if not path.exists():
        raise BadInput(f"{path}: no such study file")
    content = readers.read_yaml(path)
    if not isinstance(content, dict):
        raise BadInput(f"{path}: expected keys {', '.join(KEYS)}, found {type(content).__name__}")
    _check_keys(path, "study", content, KEYS)
    for key, kind in (("title", str), ("models", list), ("benchmarks", dict)):
        if not isinstance(content.get(key), kind) or not content[key]:
            raise BadInput(f"{path}: key `{key}` is missing or not a {kind.__name__}")
    language = content.get("language", "en")
    if language not in LANGUAGES:
        raise BadInput(f"{path}, key `language`: " + expected(language, LANGUAGES, "language"))
    options = _options(path, "options", content.get("options"))
    models = _models(path, content["models"])
    variants = _variants(path, content["benchmarks"])
    analyses = content.get("analyses") or {}
    if not isinstance(analyses, dict):
        raise BadInput(f"{path}, key `analyses`: expected notebook names, each with its parameters")
    study = Study(
        name=path.stem,
        title=content["title"],
        question=str(content.get("question", "")),
        models=models,
        variants=variants,
        analyses={
            str(name): _analysis(path, str(name), given, variants)
            for name, given in analyses.items()
        },
        options=options,
        language=language,
        keys=_keys(
            path,
            content.get("keys"),
            models,
            # Analyses have judges too.
            [options, *(variant.options for variant in variants), *filter(None, analyses.values())],
        ),
    )
    for model in models:
        for variant in variants:
            _check_run(path, study, model, variant)
    for variant in variants:
        names = variant.options.get("label_names")
        for spec in names if isinstance(names, Mapping) else ():
            if spec not in [model.model for model in models]:
                raise BadInput(
                    f"{path}, key `benchmarks: {variant.benchmark}`: label_names: expected models of "
                    f"this study, each with a list of its labels in order; found {quoted(spec)}"
                )
    return study


def _models(path: Path, entries: Sequence[Any]) -> tuple[StudyModel, ...]:
    models: list[StudyModel] = []
    for entry in entries:
        given = entry if isinstance(entry, dict) and "model" in entry else {"model": entry}
        spec = _model(path, given["model"])
        where = f"models: {spec}"
        name = given.get("name", "")
        if not isinstance(name, str) or (not name.strip() and "name" in given):
            raise BadInput(f"{path}, key `{where}: name`: {quoted(name)} is not a text")
        key = given.get("key", "")
        if key:
            _check_key(path, where, spec, key)
        own = {key: value for key, value in given.items() if key not in ("model", "name", "key")}
        options = _options(path, where, own, more=("model", "name", "key"))
        if any((other.model, other.name) == (spec, name) for other in models):
            raise BadInput(
                f"{path}, key `models`: names a model twice ({spec}); give each a `name` of its own"
            )
        if any(name and other.label == name for other in models):
            raise BadInput(f"{path}, key `models`: two models have the name {name!r}")
        again = any(other.model == spec for other in models)
        folder = f"{path_slug(spec)}-{path_slug(name)}" if again else path_slug(spec)
        models.append(StudyModel(spec, name, folder, options, key))
    return tuple(models)


def _check_key(path: Path, where: str, model: str, key: Any) -> None:
    host = key_names.host_of(model)
    try:
        if not host:
            raise BadInput("is no endpoint, so it has no key; leave it out")
        key_names.check({host: key}, [model])
    except BadInput as error:
        raise BadInput(f"{path}, key `{where}: key`: {error}") from None


def _keys(
    path: Path, given: Any, models: Sequence[StudyModel], options: Sequence[Mapping[str, Any]]
) -> Mapping[str, str]:
    """The environment variables with the keys of hosts."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadInput(f"{path}, key `keys`: expected HOST: NAME of an environment variable")
    judges = [known.get("judge") for known in [*options, *(model.options for model in models)]]
    try:
        key_names.check(given, [*(model.model for model in models), *judges])
    except BadInput as error:
        raise BadInput(f"{path}, key `keys`: {error}") from None
    return given


def _variants(path: Path, benchmarks: Mapping[Any, Any]) -> tuple[Variant, ...]:
    variants: list[Variant] = []
    for spelling, given in benchmarks.items():
        where = f"benchmarks: {spelling}"
        try:
            benchmark = resolve(str(spelling))
        except BadInput as error:
            raise BadInput(f"{path}, key `{where}`: {error}") from None
        if any(variant.benchmark == benchmark for variant in variants):
            raise BadInput(
                f"{path}, key `{where}`: {benchmark} is there twice; put both under one key, as a list "
                "of variants that have a `name` each"
            )
        if not isinstance(given, list):
            variants.append(Variant(benchmark, options=_options(path, where, given)))
            continue
        if not given:
            raise BadInput(
                f"{path}, key `{where}`: expected options, or a list of variants; found []"
            )
        for entry in given:
            variant = _variant(path, where, benchmark, entry)
            if any(variant.key == other.key for other in variants):
                raise BadInput(
                    f"{path}, key `{where}`: two variants have the name {variant.name!r}"
                )
            variants.append(variant)
    return tuple(variants)


def _variant(path: Path, where: str, benchmark: str, entry: Any) -> Variant:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise BadInput(
            f"{path}, key `{where}`: expected variants like {{name: Q, limit: 20}}, found {quoted(entry)}"
        )
    where = f"{where}: {name}"
    page = entry.get("page", True)
    if not isinstance(page, bool):
        raise BadInput(f"{path}, key `{where}: page`: {quoted(page)} is not true or false")
    own = {key: value for key, value in entry.items() if key not in ("name", "page")}
    return Variant(benchmark, name, _options(path, where, own, more=("name", "page")), page)


def _analysis(path: Path, name: str, given: object, variants: Sequence[Variant]) -> Analysis:
    """Read an analysis: parameters of its notebook, other `runs`, and the `variants` that it is about."""
    where = f"analyses: {name}"
    if not re.fullmatch(r"[a-z_]+", name):
        raise BadInput(
            f"{path}, key `{where}`: is no name of a notebook; expected letters and underscores"
        )
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise BadInput(
            f"{path}, key `{where}`: expected parameters of the notebook, found {quoted(given)}"
        )
    parameters = dict(given)
    runs = parameters.get("runs", [])
    if not isinstance(runs, list):
        raise BadInput(
            f"{path}, key `{where}: runs`: expected a list of folders or patterns, found {quoted(runs)}"
        )
    if runs:
        parameters["runs"] = [_from(path, str(pattern)) for pattern in runs]
    if "variants" not in parameters:
        return Analysis(parameters)
    names = parameters.pop("variants")
    known = [variant.name or variant.benchmark for variant in variants]
    if not isinstance(names, list) or not names:
        raise BadInput(
            f"{path}, key `{where}: variants`: expected a list of names, found {quoted(names)}; "
            f"there are {', '.join(known)}"
        )
    for wanted in names:
        if wanted not in known:
            raise BadInput(
                f"{path}, key `{where}: variants`: " + expected(wanted, known, "variant")
            )
    return Analysis(parameters, tuple(names))


def _model(path: Path, entry: object, key: str = "models") -> str:
    if not isinstance(entry, str):
        raise BadInput(
            f"{path}, key `{key}`: {quoted(entry)} is not a model; put quotes around it if it holds a colon and a blank"
        )
    kind, rest = scorers.split_kind(entry)
    # Paths are meant from where the study file lies.
    if kind in scorers.FILES:
        entry = f"{kind}:{_from(path, rest)}"
    elif not kind and (entry.startswith((".", "~")) or entry.endswith(".gguf")):
        entry = _from(path, entry)
    try:
        scorers.check(entry)
    except BadInput as error:
        raise BadInput(f"{path}, key `{key}`: {error}") from None
    return entry


def _check_run(path: Path, study: Study, model: StudyModel, variant: Variant) -> None:
    """Refuse a run that its benchmark cannot have, with the key that says so."""
    options = study.run_options(model, variant)
    where = f"benchmarks: {variant.benchmark}" + (f": {variant.name}" if variant.name else "")
    try:
        _check_options(variant.benchmark, options)
    except BadInput as error:
        try:
            _check_options(variant.benchmark, merged(study.options, variant.options))
        except BadInput:
            raise BadInput(f"{path}, key `{where}`: {error}") from None
        key = f"models: {model.label}"
        raise BadInput(f"{path}, key `{key}`: {error} (in a run of {variant.title})") from None


def _check_options(benchmark: str, options: Mapping[str, Any]) -> None:
    tasks.chosen(benchmark, options.get("tasks"))
    tasks.settings(benchmark, options.get("settings", {}), options.get("preset", "robust"))
    source = data.find(benchmark, options.get("data"))
    present = module("data", benchmark).files(source.folder)
    for category in options.get("categories", ()):
        if category not in present:
            raise BadInput(expected(category, present, f"category of {benchmark}"))


def _options(path: Path, where: str, given: object, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read options of runs; paths among them become absolute.

    Args:
        more: other keys that may stand in this place, for the error message.
    """
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadInput(f"{path}, key `{where}`: expected options, found {quoted(given)}")
    try:
        parsed = StudyOptions.model_validate(given)
    except ValidationError as error:
        allowed = [*more, *StudyOptions.model_fields]
        raise BadInput(f"{path}, key `{where}`: {explain(error, 'key', allowed)}") from None
    options = {name: getattr(parsed, name) for name in parsed.model_fields_set}
    try:
        _check_values(options)
    except BadInput as error:
        raise BadInput(f"{path}, key `{where}`: {error}") from None
    if "judge" in options:
        options["judge"] = _model(path, options["judge"], where)
    if isinstance(names := options.get("label_names"), Mapping):
        options["label_names"] = {
            _model(path, model, where): order for model, order in names.items()
        }
    if options.get("data", data.OWN_SAMPLES) != data.OWN_SAMPLES:
        options["data"] = _from(path, str(options["data"]))
    if str(options.get("prompts", "")).partition("#")[0].endswith(".toml"):
        options["prompts"] = _from(path, options["prompts"])
    return options


def _check_values(options: dict[str, Any]) -> None:
    """Refuse values of the right type that cannot be; label names are put into their usual spelling."""
    for name, value in options.items():
        if isinstance(value, int) and abs(value) > LARGEST:
            raise BadInput(f"{name}: {quoted(value)} is more than {LARGEST:,}")
    if options.get("preset", PRESETS[0]) not in PRESETS:
        raise BadInput(expected(options["preset"], PRESETS, "preset"))
    Limits.of(options.get("limits"))
    GenerationOptions.of({name: options[name] for name in GENERATION if name in options})
    names = options.get("label_names")
    if isinstance(names, Mapping):
        options["label_names"] = {model: list(label_order(order)) for model, order in names.items()}
    elif names is not None:
        options["label_names"] = list(label_order(names))


def _check_keys(path: Path, where: str, given: Mapping[Any, Any], allowed: tuple[str, ...]) -> None:
    for key in given:
        if key not in allowed:
            raise BadInput(f"{path}: " + expected(key, allowed, f"key in {where}"))


def _from(path: Path, given: str) -> str:
    try:
        expanded = as_path(given)
        return str(expanded if expanded.is_absolute() else (path.parent / expanded).resolve())
    except (
        BadInput,
        OSError,
        RuntimeError,
    ) as error:  # the last two of links that lead in a circle
        raise BadInput(f"{path}: {error}") from None
