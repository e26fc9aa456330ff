"""A study: the models, benchmarks and notebooks of a report, read from a YAML file.

title: Two models and their bias
question: Does the larger one stereotype less?
language: en          # of headings, warnings and findings: en or zh
models:
  - Qwen/Qwen2.5-0.5B-Instruct
  - {model: Qwen/Qwen2.5-1.5B-Instruct, name: Qwen 1.5B, dtype: float32}   # with its own options
benchmarks:
  mcbe: {judge: openai:glm-4-air@https://example.org/v1, repeats: 4}
  cbbq:               # several named variants of one benchmark
    - {name: Q, categories: [gender, age], limit: 200}
    - {name: Q+IF, categories: [gender, age], limit: 200, settings: {prompting: Q+IF}}
analyses:
  compare_models: {}                              # the first variant of each benchmark
  self_correction: {variants: [Q, Q+IF]}          # or those that are named
  prompt_robustness: {runs: [../reports/other/runs/*/*]}   # other runs next to the study's own
options: {seed: 0, preset: robust, device: cuda}  # of all models and benchmarks, as of `bench run`;
                      # `system` is the message itself here, not a file
keys: {example.org: EXAMPLE_API_KEY}     # environment variables with the keys of endpoints, by host
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
# Options of a run that a study sets by itself, or leaves to the command.
NOT_IN_A_STUDY = RunConfig.fields_with("outside_studies")
# Options that are merged name by name if they are given in several places.
MERGED = ("settings", "template_arguments", "request_fields", "limits")
# The greatest number that an option may have.
LARGEST = 2**31 - 1

# Options of runs in a study: of all runs, of a variant, or of a model.
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
        model: as in the command's --model.
        name: its name in tables; empty for a short form of `model`.
        folder: name of the folder of its runs, different for each model.
        options: options of its runs alone.
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
        name: empty if the benchmark is asked in one way only.
        options: options of its runs.
        page: whether it has its own page; if not, only analyses show it.
    """

    benchmark: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    page: bool = True

    @property
    def key(self) -> str:
        """The name of its folders and of its page."""
        return f"{self.benchmark}-{path_slug(self.name)}" if self.name else self.benchmark

    @property
    def title(self) -> str:
        """The benchmark's title, with the variant's name if it has one."""
        title = module("data", self.benchmark).TITLE
        return f"{title} ({self.name})" if self.name else title

    @property
    def place(self) -> str:
        """The key of the study file where it is."""
        return f"benchmarks: {self.benchmark}" + (f": {self.name}" if self.name else "")


@dataclass(frozen=True)
class Analysis:
    """An analysis of a study.

    Attributes:
        parameters: of its notebook.
        variants: names of the variants that it is about; None for its default.
    """

    parameters: Mapping[str, Any]
    variants: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Study:
    """A checked study file."""

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
        """The key of each benchmark's first variant."""
        first = {variant.benchmark: variant.key for variant in reversed(self.variants)}
        return [first[benchmark] for benchmark in self.benchmarks]

    def run_options(self, model: StudyModel, variant: Variant) -> dict[str, Any]:
        """Return the options of one run; a model's take precedence, then the variant's."""
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
    """Merge options; later ones take precedence, those of `MERGED` name by name."""
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
        keys = ", ".join(KEYS)
        raise BadInput(f"{path}: expected keys {keys}, found {type(content).__name__}")
    for key in content:
        if key not in KEYS:
            raise BadInput(f"{path}: " + expected(key, KEYS, "key in study"))
    for key, kind in (("title", str), ("models", list), ("benchmarks", dict)):
        if not isinstance(content.get(key), kind) or not content[key]:
            raise BadInput(f"{path}: key `{key}` is missing or not a {kind.__name__}")
    return _Reader(path).read(content)


class _Reader:
    """Reads the parts of a study file; errors name the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Put file and key before the errors of a block."""
        try:
            yield
        except BadInput as error:
            text = str(error).removeprefix(f"{self.path}: ")
            raise BadInput(f"{self.path}, key `{key}`: {text}") from None

    def read(self, content: dict[str, Any]) -> Study:
        """Read a complete study."""
        with self.at("language"):
            if (language := content.get("language", LANGUAGES[0])) not in LANGUAGES:
                raise BadInput(expected(language, LANGUAGES, "language"))
        options = self.options("options", content.get("options"))
        models = self.models(content["models"])
        variants = self.variants(content["benchmarks"])
        analyses = content.get("analyses") or {}
        with self.at("analyses"):
            if not isinstance(analyses, dict):
                raise BadInput("expected notebook names, each with its parameters")
        # Analyses have judges too.
        judged = [options, *(variant.options for variant in variants), *analyses.values()]
        study = Study(
            self.path.stem,
            content["title"],
            str(content.get("question", "")),
            models,
            variants,
            {
                str(name): self.analysis(str(name), given, variants)
                for name, given in analyses.items()
            },
            options,
            language,
            self.keys(content.get("keys"), models, judged),
        )
        for variant in variants:
            for model in models:
                self.check_run(study, model, variant)
            names = variant.options.get("label_names")
            for spec in names if isinstance(names, Mapping) else ():
                if spec not in [model.model for model in models]:
                    with self.at(f"benchmarks: {variant.benchmark}"):
                        raise BadInput(
                            "label_names: expected models of this study, each with a list of its "
                            f"labels in order; found {quoted(spec)}"
                        )
        return study

    def models(self, entries: Sequence[Any]) -> tuple[StudyModel, ...]:
        """Read the models, each a name or a mapping with `model` and options."""
        models: list[StudyModel] = []
        for entry in entries:
            given = (
                dict(entry) if isinstance(entry, dict) and "model" in entry else {"model": entry}
            )
            with self.at("models"):
                spec = self.model(given.pop("model"))
            name, key = given.pop("name", None), given.pop("key", "")
            place = f"models: {spec}"
            with self.at(f"{place}: name"):
                if name is not None and (not isinstance(name, str) or not name.strip()):
                    raise BadInput(f"{quoted(name)} is not a text")
            name = name or ""
            with self.at(f"{place}: key"):
                if key and not key_names.host_of(spec):
                    raise BadInput("is no endpoint, so it has no key; leave it out")
                if key:
                    key_names.check({key_names.host_of(spec): key}, [spec])
            options = self.options(place, given, more=("model", "name", "key"))
            with self.at("models"):
                if any((other.model, other.name) == (spec, name) for other in models):
                    raise BadInput(f"names a model twice ({spec}); give each its own `name`")
                if any(name and other.label == name for other in models):
                    raise BadInput(f"two models have the name {name!r}")
            again = any(other.model == spec for other in models)
            folder = f"{path_slug(spec)}-{path_slug(name)}" if again else path_slug(spec)
            models.append(StudyModel(spec, name, folder, options, key))
        return tuple(models)

    def model(self, spec: object) -> str:
        """Check a model; a path in it is relative to the study file."""
        if not isinstance(spec, str):
            raise BadInput(
                f"{quoted(spec)} is not a model; put quotes around it if it holds a colon"
            )
        kind, rest = scorers.split_kind(spec)
        if kind in scorers.FILES:
            spec = f"{kind}:{self.relative(rest)}"
        elif not kind and (spec.startswith((".", "~")) or spec.endswith(".gguf")):
            spec = self.relative(spec)
        scorers.check(spec)
        return spec

    def variants(self, benchmarks: Mapping[Any, Any]) -> tuple[Variant, ...]:
        """Read the benchmarks: options, or a list of variants, each with its name."""
        variants: list[Variant] = []
        for spelling, given in benchmarks.items():
            place = f"benchmarks: {spelling}"
            with self.at(place):
                benchmark = resolve(str(spelling))
                if any(variant.benchmark == benchmark for variant in variants):
                    raise BadInput(
                        f"{benchmark} is there twice; put both under one key, as a list of "
                        "variants that have a `name` each"
                    )
                if given == []:
                    raise BadInput("expected options, or a list of variants; found []")
            if not isinstance(given, list):
                variants.append(Variant(benchmark, options=self.options(place, given)))
                continue
            for entry in given:
                variant = self.variant(place, benchmark, entry)
                with self.at(place):
                    if any(variant.key == other.key for other in variants):
                        raise BadInput(f"two variants have the name {variant.name!r}")
                variants.append(variant)
        return tuple(variants)

    def variant(self, place: str, benchmark: str, entry: Any) -> Variant:
        """Read one of several variants of a benchmark."""
        own = dict(entry) if isinstance(entry, dict) else {}
        name, page = own.pop("name", None), own.pop("page", True)
        with self.at(place):
            if not isinstance(name, str) or not name.strip() or not name.isprintable():
                raise BadInput(
                    f"expected variants like {{name: Q, limit: 20}}, found {quoted(entry)}"
                )
        with self.at(f"{place}: {name}: page"):
            if not isinstance(page, bool):
                raise BadInput(f"{quoted(page)} is not true or false")
        options = self.options(f"{place}: {name}", own, more=("name", "page"))
        return Variant(benchmark, name, options, page)

    def analysis(self, name: str, given: object, variants: Sequence[Variant]) -> Analysis:
        """Read an analysis: parameters of its notebook, other `runs`, and its `variants`."""
        parameters = {} if given is None else given
        with self.at(f"analyses: {name}"):
            if not re.fullmatch(r"[a-z_]+", name):
                raise BadInput("is no name of a notebook; expected letters and underscores")
            if not isinstance(parameters, dict):
                raise BadInput(f"expected parameters of the notebook, found {quoted(given)}")
        parameters = dict(parameters)
        runs = parameters.get("runs") or []
        with self.at(f"analyses: {name}: runs"):
            if not isinstance(runs, list):
                raise BadInput(f"expected a list of folders or patterns, found {quoted(runs)}")
        if runs:
            parameters["runs"] = [self.relative(str(pattern)) for pattern in runs]
        if "variants" not in parameters:
            return Analysis(parameters)
        wanted = parameters.pop("variants")
        known = [variant.name or variant.benchmark for variant in variants]
        with self.at(f"analyses: {name}: variants"):
            if not isinstance(wanted, list) or not wanted:
                raise BadInput(
                    f"expected a list of names, found {quoted(wanted)}; there are "
                    + ", ".join(known)
                )
            for variant in wanted:
                if variant not in known:
                    raise BadInput(expected(variant, known, "variant"))
        return Analysis(parameters, tuple(wanted))

    def options(self, place: str, given: object, more: tuple[str, ...] = ()) -> dict[str, Any]:
        """Read options of runs; paths in them become absolute.

        Args:
            more: other keys that are allowed in this place, for the error message.
        """
        with self.at(place):
            if given is None:
                return {}
            if not isinstance(given, dict):
                raise BadInput(f"expected options, found {quoted(given)}")
            try:
                parsed = StudyOptions.model_validate(given)
            except ValidationError as error:
                allowed = [*more, *StudyOptions.model_fields]
                raise BadInput(explain(error, "key", allowed)) from None
            options = {name: getattr(parsed, name) for name in parsed.model_fields_set}
            _check_values(options)
            if "judge" in options:
                options["judge"] = self.model(options["judge"])
            names = options.get("label_names")
            if isinstance(names, Mapping):
                options["label_names"] = {
                    self.model(model): list(label_order(order)) for model, order in names.items()
                }
            elif names is not None:
                options["label_names"] = list(label_order(names))
            if options.get("data", data.OWN_SAMPLES) != data.OWN_SAMPLES:
                options["data"] = self.relative(str(options["data"]))
            if str(options.get("prompts", "")).partition("#")[0].endswith(".toml"):
                options["prompts"] = self.relative(options["prompts"])
            return options

    def keys(
        self, given: Any, models: Sequence[StudyModel], options: Sequence[Any]
    ) -> Mapping[str, str]:
        """Read the environment variables with the keys of hosts."""
        with self.at("keys"):
            if given is None:
                return {}
            if not isinstance(given, dict):
                raise BadInput("expected HOST: NAME of an environment variable")
            every = [*options, *(model.options for model in models)]
            judges = [known.get("judge") for known in every if known]
            key_names.check(given, [*(model.model for model in models), *judges])
            return given

    def check_run(self, study: Study, model: StudyModel, variant: Variant) -> None:
        """Refuse a run that its benchmark cannot have, with the key that causes it."""
        try:
            _check_options(variant.benchmark, study.run_options(model, variant))
        except BadInput as error:
            with self.at(variant.place):
                _check_options(variant.benchmark, merged(study.options, variant.options))
            with self.at(f"models: {model.label}"):
                raise BadInput(f"{error} (in a run of {variant.title})") from None

    def relative(self, given: str) -> str:
        """Return a path that is relative to the study file as an absolute one."""
        try:
            expanded = as_path(given)
            absolute = (
                expanded if expanded.is_absolute() else (self.path.parent / expanded).resolve()
            )
        except (OSError, RuntimeError) as error:  # links in a circle
            raise BadInput(str(error)) from None
        return str(absolute)


def _check_options(benchmark: str, options: Mapping[str, Any]) -> None:
    tasks.chosen(benchmark, options.get("tasks"))
    tasks.settings(benchmark, options.get("settings", {}), options.get("preset", "robust"))
    present = module("data", benchmark).files(data.find(benchmark, options.get("data")).folder)
    for category in options.get("categories", ()):
        if category not in present:
            raise BadInput(expected(category, present, f"category of {benchmark}"))


def _check_values(options: Mapping[str, Any]) -> None:
    """Refuse values of the right type that are out of range."""
    for name, value in options.items():
        if isinstance(value, int) and abs(value) > LARGEST:
            raise BadInput(f"{name}: {quoted(value)} is more than {LARGEST:,}")
    if options.get("preset", PRESETS[0]) not in PRESETS:
        raise BadInput(expected(options["preset"], PRESETS, "preset"))
    Limits.of(options.get("limits"))
    GenerationOptions.of({name: options[name] for name in GENERATION if name in options})
