"""A study: the models, benchmarks and notebooks of a report, read from a YAML file.

title: Two models and their bias
question: Does the larger one stereotype less?
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

from pydantic import ValidationError, create_model

from bench import data, scorers, tasks
from bench.benchmarks import module, resolve
from bench.config import Generation, Options, RunConfig, explain
from bench.core.errors import BadInput, closest, expected, quoted
from bench.data import readers
from bench.data.readers import as_path
from bench.run import path_slug
from bench.run.results import short_name
from bench.scorers.endpoint import keys as key_names
from bench.tasks.nli_labels import label_order

KEYS = ("title", "question", "models", "benchmarks", "analyses", "options", "keys")
# Options of a run that a study sets by itself, or leaves to the command.
NOT_IN_A_STUDY = ("benchmark", "model", "name", "out", "trust_remote_code", "keys")
# Options that are merged name by name if they are given in several places.
MERGED = ("settings", "template_arguments", "request_fields", "limits")
# Notebooks to learn from, which show no runs of a study.
TUTORIALS = ("00_start",)
# The greatest number that an option may have.
LARGEST = 2**31 - 1

# Options of runs in a study: of all runs, of a variant, or of a model.
StudyOptions: type[Options] = create_model(  # type: ignore[call-overload]
    "StudyOptions",
    __base__=Options,
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
        name: its name in tables; empty for a short form of `model`.
        folder: name of the folder of its runs, different for each model.
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
        return self.name or short_name(self.options.get("as_model") or self.model)


@dataclass(frozen=True)
class Variant:
    """A benchmark as a study asks it; without a name if there is one way only.

    If it has no `page`, only analyses show it.
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


@dataclass(frozen=True)
class Analysis:
    """The parameters of an analysis, and the names of its variants; None for its default."""

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
            shared = set(Generation.model_fields) - set(model.options)
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
            result[name] = {**result.get(name, {}), **(value or {})} if name in MERGED else value
    return result


def load(path: Path) -> Study:
    """Read a study file."""
    if not path.exists():
        near = closest(path.name, [file.name for file in path.parent.glob("*.y*ml")])
        meant = f"; did you mean {path.with_name(near)}?" if near else ""
        raise BadInput(f"{path}: no such study file{meant}")
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
    def at(self, *keys: str) -> Iterator[None]:
        """Put file and key before the errors of a block."""
        try:
            yield
        except BadInput as error:
            text = str(error).removeprefix(f"{self.path}: ")
            raise BadInput(f"{self.path}, key `{': '.join(keys)}`: {text}") from None

    def read(self, content: dict[str, Any]) -> Study:
        """Read a complete study."""
        options = self.options(("options",), content.get("options"))
        models = self.models(content["models"])
        variants = self.variants(content["benchmarks"])
        given = content.get("analyses") or {}
        with self.at("analyses"):
            if not isinstance(given, dict):
                raise BadInput("expected notebook names, each with its parameters")
        analyses = {
            str(name): self.analysis(str(name), parameters, variants)
            for name, parameters in given.items()
        }
        keys = content.get("keys") or {}
        with self.at("keys"):
            if not isinstance(keys, dict):
                raise BadInput("expected HOST: NAME of an environment variable")
            # Analyses have judges too.
            judged: list[Any] = [options, *given.values()]
            judged += [part.options for part in variants] + [part.options for part in models]
            judges = [known.get("judge") for known in judged if known]
            key_names.check(keys, [*(model.model for model in models), *judges])
        study = Study(
            self.path.stem,
            content["title"],
            str(content.get("question", "")),
            models,
            variants,
            analyses,
            options,
            keys,
        )
        for variant in variants:
            for model in models:
                self.check_run(study, model, variant)
            names = variant.options.get("label_names")
            for spec in names if isinstance(names, Mapping) else ():
                if spec not in [model.model for model in models]:
                    with self.at("benchmarks", variant.benchmark):
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
            place = ("models", spec)
            name, key = given.pop("name", None) or "", given.pop("key", "")
            with self.at(*place, "name"):
                if not isinstance(name, str) or (name and not name.strip()):
                    raise BadInput(f"{quoted(name)} is not a text")
            with self.at(*place, "key"):
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
            # Different names, such as a/b and a_b, can be spelt alike as a folder.
            again = any(other.folder == path_slug(spec) for other in models)
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
            place = ("benchmarks", str(spelling))
            with self.at(*place):
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
                own = dict(entry) if isinstance(entry, dict) else {}
                name, page = own.pop("name", None), own.pop("page", True)
                with self.at(*place):
                    if not isinstance(name, str) or not name.strip() or not name.isprintable():
                        raise BadInput(
                            f"expected variants like {{name: Q, limit: 20}}, found {quoted(entry)}"
                        )
                with self.at(*place, name, "page"):
                    if not isinstance(page, bool):
                        raise BadInput(f"{quoted(page)} is not true or false")
                options = self.options((*place, name), own, more=("name", "page"))
                variant = Variant(benchmark, name, options, page)
                with self.at(*place):
                    if any(variant.key == other.key for other in variants):
                        raise BadInput(f"two variants have the name {variant.name!r}")
                variants.append(variant)
        return tuple(variants)

    def analysis(self, name: str, given: object, variants: Sequence[Variant]) -> Analysis:
        """Read an analysis: parameters of its notebook, other `runs`, and its `variants`."""
        known = [variant.name or variant.benchmark for variant in variants]
        with self.at("analyses", name):
            if name in TUTORIALS:
                raise BadInput(
                    "is a notebook to learn from, not an analysis of a study; leave it out, and "
                    f"open it with: jupyter lab notebooks/{name}.ipynb"
                )
            if not re.fullmatch(r"[a-z_]+", name):
                raise BadInput("is no name of a notebook; expected letters and underscores")
            if given is not None and not isinstance(given, dict):
                raise BadInput(f"expected parameters of the notebook, found {quoted(given)}")
        parameters = dict(given or {})
        with self.at("analyses", name, "runs"):
            runs = parameters.get("runs") or []
            if not isinstance(runs, list):
                raise BadInput(f"expected a list of folders or patterns, found {quoted(runs)}")
            if runs:
                parameters["runs"] = [self.relative(str(pattern)) for pattern in runs]
        if "variants" not in parameters:
            return Analysis(parameters)
        with self.at("analyses", name, "variants"):
            wanted = parameters.pop("variants")
            if not isinstance(wanted, list) or not wanted:
                raise BadInput(
                    f"expected a list of names, found {quoted(wanted)}; there are "
                    + ", ".join(known)
                )
            for variant in wanted:
                if variant not in known:
                    raise BadInput(expected(variant, known, "variant"))
        return Analysis(parameters, tuple(wanted))

    def options(
        self, place: tuple[str, ...], given: object, more: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Read options of runs, `more` keys being allowed too; paths in them become absolute."""
        with self.at(*place):
            if given is not None and not isinstance(given, dict):
                raise BadInput(f"expected options, found {quoted(given)}")
            try:
                parsed = StudyOptions.model_validate(given or {})
            except ValidationError as error:
                allowed = [*more, *StudyOptions.model_fields]
                raise BadInput(explain(error, allowed, "key")) from None
            options = {name: getattr(parsed, name) for name in given or {}}
            if "limits" in options:
                options["limits"] = options["limits"].model_dump(exclude_unset=True)
            for name, value in options.items():
                if isinstance(value, int) and abs(value) > LARGEST:
                    raise BadInput(f"{name}: {quoted(value)} is more than {LARGEST:,}")
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

    def check_run(self, study: Study, model: StudyModel, variant: Variant) -> None:
        """Refuse a run that its benchmark cannot have, with the key that causes it."""

        def check(options: Mapping[str, Any]) -> None:
            name = variant.benchmark
            tasks.chosen(name, options.get("tasks"))
            tasks.settings(name, options.get("settings", {}), options.get("preset", "robust"))
            present = module("data", name).files(data.find(name, options.get("data")).folder)
            for category in options.get("categories") or ():
                if category not in present:
                    raise BadInput(expected(category, present, f"category of {name}"))

        try:
            check(study.run_options(model, variant))
        except BadInput as error:
            with self.at("benchmarks", variant.benchmark, *filter(None, [variant.name])):
                check(merged(study.options, variant.options))
            with self.at("models", model.label):
                raise BadInput(f"{error} (in a run of {variant.title})") from None

    def relative(self, given: str) -> str:
        """Return a path that is relative to the study file as an absolute one."""
        try:
            path = as_path(given)
            return str(path if path.is_absolute() else (self.path.parent / path).resolve())
        except (OSError, RuntimeError) as error:  # links in a circle
            raise BadInput(str(error)) from None
