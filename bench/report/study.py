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
    - {name: long, models: [Qwen 1.5B], max_new_tokens: 512, page: false}   # only these models
analyses:
  compare_models: {}                              # the first variant of each benchmark
  self_correction: {variants: [Q, Q+IF]}          # or variants by name
  prompt_robustness: {runs: [../reports/other/runs/*/*]}   # other runs next to the study's own
  friedman_test:      # several pages of one notebook
    - {benchmark: cbbq}
    - {name: topics, scores: ./topics.csv}        # ./ and ../ are relative to the study file
  ./my_words.ipynb: {}                            # a notebook of your own, beside the study
options: {seed: 0, preset: robust, device: cuda}  # of all models and benchmarks, as of `bench run`;
                      # `system` is the message itself here, not a file
keys: {example.org: EXAMPLE_API_KEY}     # environment variables with the keys of endpoints, by host
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bench import data, scorers, tasks
from bench.benchmarks import get, resolve
from bench.config import Generation, Limits, Options, RunConfig, explain
from bench.core.errors import BadInput, closest, expected, quoted
from bench.core.places import DEMO, NOTEBOOKS
from bench.data import readers
from bench.data.readers import as_path
from bench.scorers.endpoint import keys as key_names
from bench.scorers.names import path_slug, short_name
from bench.tasks import prompts
from bench.tasks.nli_labels import label_order

# Options of a run that a study sets by itself, or leaves to the command.
NOT_IN_A_STUDY = ("benchmark", "model", "name", "out", "trust_remote_code", "keys")
IN_A_STUDY = [name for name in RunConfig.model_fields if name not in NOT_IN_A_STUDY]
# Analyses that compare the variants of one benchmark, or show all of them.
OVER_VARIANTS = ("prompt_robustness", "self_correction", "explore")
# We merge these options name by name if several places give them.
MERGED = ("settings", "template_arguments", "request_fields", "limits")


class StudyOptions(RunConfig):
    """Options of all runs of a study, or, in a subclass, of the runs of a model or a variant."""

    # Keys that the file can have here besides the options.
    own: ClassVar[tuple[str, ...]] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The options that the file gives."""
        return self.model_dump(exclude_unset=True, include=set(IN_A_STUDY))

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        allowed = [*cls.own, *IN_A_STUDY]
        if given is not None and not isinstance(given, dict):
            raise ValueError(f"expected options, found {quoted(given)}")
        for name in given or {}:
            if name not in allowed:
                raise ValueError(expected(name, allowed, "key"))
        return given or {}

    @field_validator("model", "judge", "data", "prompts", "label_names")
    @classmethod
    def _located(cls, value: Any, info: ValidationInfo) -> Any:
        """Check models and labels; paths are relative to the study file."""
        folder = _folder(info)
        try:
            if value is None or value in (data.OWN_SAMPLES, data.RELEASED):
                return value
            if info.field_name == "data":
                return _absolute(folder, value)
            if info.field_name == "prompts":
                is_file = value.partition("#")[0].endswith(".toml")
                return _absolute(folder, value) if is_file else value
            if info.field_name == "model":  # `_checked` does the rest
                return _placed(folder, value)
            if info.field_name != "label_names":
                return _model(folder, value)
            if isinstance(value, Mapping):
                return {_model(folder, name): [*label_order(own)] for name, own in value.items()}
            return [*label_order(value)]
        except BadInput as error:
            raise ValueError(str(error)) from None


def _folder(info: ValidationInfo) -> Path:
    folder: Path = (info.context or {}).get("folder", Path())
    return folder


def _absolute(folder: Path, path: str | Path) -> str:
    return str((folder / as_path(path)).resolve())


def _model(folder: Path, spec: str) -> str:
    """Check a model, with an absolute path."""
    spec = _placed(folder, spec)
    scorers.check(spec)
    return spec


def _placed(folder: Path, spec: str) -> str:
    key_names.check_no_secret(spec)
    kind, rest = scorers.split_kind(spec)
    if scorers.backend_of(spec).from_file:
        spec = f"{kind}:{_absolute(folder, rest)}"
    elif not kind and (spec.startswith((".", "~")) or spec.endswith(".gguf")):
        spec = _absolute(folder, spec)
    return spec


class StudyModel(StudyOptions):
    """A model of a study.

    Attributes:
        name: its name in tables; None for a short form of `model`.
        key: environment variable with the key of its host; empty for the study's.
        first: the command that makes the model's folder, for example `bench train nli ...`.
        folder: name of the folder of its runs, different for each model.
    """

    own = ("model", "name", "key", "first")
    key: str = ""
    first: str = ""
    folder: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether `first` has to be run to make it."""
        return bool(self.first) and not Path(self.model).exists()

    @property
    def label(self) -> str:
        return self.name or short_name(self.as_model or self.model)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        given = given if isinstance(given, dict) and "model" in given else {"model": given}
        if not isinstance(given["model"], str):
            spec = quoted(given["model"])
            raise ValueError(f"{spec} is not a model; put quotes around it if it holds a colon")
        return given

    @model_validator(mode="after")
    def _checked(self) -> "StudyModel":
        if not self.is_missing:
            try:
                scorers.check(self.model)
            except BadInput as error:
                raise ValueError(str(error)) from None
        return self


class Variant(StudyOptions):
    """A benchmark with the options of a study; without a name if this is its only variant.

    Attributes:
        page: whether it has a page of its own; otherwise only analyses show it.
        models: names of its models; empty for all.
    """

    own = ("name", "page", "models")
    page: bool = True
    models: Sequence[str] = ()

    @property
    def key(self) -> str:
        """The name of its folders and of its page."""
        return f"{self.benchmark}-{path_slug(self.name)}" if self.name else self.benchmark

    @property
    def title(self) -> str:
        """The benchmark's title, with the variant's name if it has one."""
        title = get(self.benchmark).metadata.title
        return f"{title} ({self.name})" if self.name else title


class Analysis(Options):
    """The runs and variants of an analysis; other keys are parameters of its notebook.

    A parameter that begins with ./ or ../ is a path relative to the study file.

    Attributes:
        name: of its page, if the notebook has several pages.
        source: the notebook: one of ours, or a file beside the study.
    """

    model_config = ConfigDict(extra="allow")
    name: str = ""
    source: Path = Path()
    runs: Sequence[str] | None = None
    variants: Sequence[str] | None = None

    @property
    def notebook(self) -> str:
        return self.source.stem

    @property
    def parameters(self) -> dict[str, Any]:
        return self.model_dump(exclude={"name", "source", "variants"}, exclude_unset=True)

    @property
    def key(self) -> str:
        """The name of its page."""
        return f"{self.notebook}-{path_slug(self.name)}" if self.name else self.notebook

    @property
    def title(self) -> str:
        """The title of its page for the navigation."""
        title = self.notebook.replace("_", " ").capitalize()
        return f"{title} ({self.name})" if self.name else title

    @model_validator(mode="before")
    @classmethod
    def _from_study_file(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, dict):
            return given
        return {
            name: _absolute(_folder(info), value)
            if isinstance(value, str) and value.startswith(("./", "../"))
            else value
            for name, value in given.items()
        }

    @field_validator("runs")
    @classmethod
    def _located(cls, runs: Sequence[str] | None, info: ValidationInfo) -> list[str]:
        return [_absolute(_folder(info), pattern) for pattern in runs or ()]


def _models(models: Sequence[StudyModel]) -> list[StudyModel]:
    """Refuse equal models, and give each a folder of its own."""
    known: list[StudyModel] = []
    for model in models:
        slug = path_slug(model.model)
        for other in known:
            if (other.model, other.name) == (model.model, model.name) or other.label == model.name:
                raise ValueError(f"two models have the name {model.label!r}; give each a `name`")
        # Different models, for example a/b and a_b, can have equal names of folders.
        if any(other.folder == slug for other in known):
            slug = f"{slug}-{path_slug(model.name or '')}"
        known.append(model.model_copy(update={"folder": slug}))
    return known


def _listed(given: Any) -> Any:
    return given if isinstance(given, list) else [given]


def _notebook(name: str) -> str:
    """Check the name of an analysis, or its file."""
    if not re.fullmatch(r"[a-z_]+", name.removesuffix(".ipynb").rpartition("/")[2]):
        raise ValueError("is no name of an analysis; expected letters and underscores")
    return name


Models = Annotated[list[StudyModel], AfterValidator(_models), Field(min_length=1)]
Variants = Annotated[list[Variant], BeforeValidator(_listed), Field(min_length=1)]
Analyses = dict[
    Annotated[str, AfterValidator(_notebook)],
    Annotated[
        list[Annotated[Analysis, BeforeValidator(lambda given: {} if given is None else given)]],
        BeforeValidator(_listed),
        Field(min_length=1),
    ],
]


class Study(Options):
    title: str = Field(min_length=1)
    question: str = ""
    models: Models
    by_benchmark: dict[str, Variants] = Field(alias="benchmarks", min_length=1)
    by_notebook: Analyses = Field({}, alias="analyses")
    shared: StudyOptions = Field(StudyOptions(), alias="options")
    keys: dict[str, str] = Field({})
    _path: Path = PrivateAttr(DEMO)

    @property
    def path(self) -> Path:
        return self._path

    @property
    def name(self) -> str:
        return self._path.stem

    @property
    def options(self) -> dict[str, Any]:
        """The options of all its runs."""
        return self.shared.options

    @property
    def variants(self) -> list[Variant]:
        return [
            variant.model_copy(update={"benchmark": resolve(name)})
            for name, variants in self.by_benchmark.items()
            for variant in variants
        ]

    @property
    def analyses(self) -> dict[str, Analysis]:
        """The analyses by the names of their pages."""
        every = {}
        for name, analyses in self.by_notebook.items():
            source = NOTEBOOKS / f"{name}.ipynb"
            if name.endswith(".ipynb"):
                source = Path(_absolute(self.path.parent, name))
            for analysis in analyses:
                analysis = analysis.model_copy(update={"source": source})
                every[analysis.key] = analysis
        return every

    @property
    def steps(self) -> list[str]:
        """The commands to run before the study, because a model that they make is missing."""
        return [model.first for model in self.models if model.is_missing]

    @property
    def benchmarks(self) -> list[str]:
        return list(dict.fromkeys(variant.benchmark for variant in self.variants))

    @property
    def first_variants(self) -> list[str]:
        first = {variant.benchmark: variant.key for variant in reversed(self.variants)}
        return [first[benchmark] for benchmark in self.benchmarks]

    def variants_of(self, model: StudyModel) -> list[Variant]:
        return [
            variant
            for variant in self.variants
            if not variant.models or model.label in variant.models
        ]

    def analysed(self, name: str) -> list[str]:
        """Return the keys of the variants of an analysis.

        We take the variants that the study names; otherwise all, if this analysis compares variants
        of one benchmark; otherwise the first of each benchmark, so that no model appears twice.
        """
        analysis = self.analyses[name]
        if analysis.variants is None and analysis.notebook not in OVER_VARIANTS:
            return self.first_variants
        named = analysis.variants
        return [
            variant.key
            for variant in self.variants
            if named is None or (variant.name or variant.benchmark) in named
        ]

    def run_options(self, model: StudyModel, variant: Variant) -> dict[str, Any]:
        """Return the options of one run; a model's take precedence, then the variant's."""
        options = merged(self.options, variant.options, model.options)
        if model.name:
            options["name"] = model.name
        if not scorers.writes_replies(model.model):
            # Sampling options apply only to the language models among the study's models.
            shared = set(Generation.model_fields) - set(model.options)
            options = {name: value for name, value in options.items() if name not in shared}
        own = {key_names.host_of(model.model): model.key} if model.key else {}
        specs = [other.model for other in self.models]
        if keys := key_names.of_run(specs, model.model, options.get("judge"), {**self.keys, **own}):
            options["keys"] = keys
        return options


def merged(*options: Mapping[str, Any]) -> dict[str, Any]:
    """Merge options; later ones take precedence, for options in `MERGED` name by name."""
    result: dict[str, Any] = {}
    for given in options:
        for name, value in given.items():
            result[name] = {**result.get(name, {}), **(value or {})} if name in MERGED else value
    return result


def load(path: Path = DEMO) -> Study:
    """Read a study file; by default the demonstration's.

    Raises:
        BadInput: a key of this file has a wrong value.
    """
    if not path.exists():
        near = closest(path.name, [file.name for file in path.parent.glob("*.y*ml")])
        meant = f"; did you mean {path.with_name(near)}?" if near else ""
        raise BadInput(f"{path}: no such study file{meant}")
    content = readers.read_yaml(path)
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if value is not None}
    try:
        study = Study.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        first = error.errors()[0]
        keys = list(_keys(content, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = [field.alias or name for name, field in Study.model_fields.items()]
            allowed = known if len(keys) == 1 else list(Limits.described())
            with _at(path, *keys[:-1]):
                raise BadInput(expected(keys[-1], allowed, "key in study")) from None
        with _at(path, *keys):
            raise BadInput(explain(first)) from None
    study._path = path
    models = [model.model for model in study.models]
    # Analyses have judges too.
    judged = [study.options, *(part.options for part in (*study.variants, *study.models))]
    judged += [analysis.parameters for analysis in study.analyses.values()]
    of_models = {key_names.host_of(model.model): model.key for model in study.models if model.key}
    with _at(path, "keys"):
        key_names.check(
            {**study.keys, **of_models}, [*models, *(given.get("judge") for given in judged)]
        )
    for variant in study.variants:
        with _at(path, "benchmarks", variant.benchmark):
            if [other.key for other in study.variants].count(variant.key) > 1:
                raise BadInput(f"two variants have the name {variant.name!r}; give each a `name`")
            labels = variant.label_names
            for spec in labels if isinstance(labels, Mapping) else ():
                if spec not in models:
                    raise BadInput("label_names: " + expected(spec, models, "model"))
            known = [model.label for model in study.models]
            for wanted in variant.models:
                if wanted not in known:
                    raise BadInput("models: " + expected(wanted, known, "name of a model"))
    for model in study.models:
        for variant in study.variants_of(model):
            _check_run(path, study, model, variant)
    names = [variant.name or variant.benchmark for variant in study.variants]
    for notebook, analyses in study.by_notebook.items():
        with _at(path, "analyses", notebook):
            if len({analysis.name for analysis in analyses}) < len(analyses):
                raise BadInput("two analyses have one name; give each a `name`")
    for name, analysis in study.analyses.items():
        for wanted in analysis.variants or ():
            if wanted not in names:
                with _at(path, "analyses", name, "variants"):
                    raise BadInput(expected(wanted, names, "variant"))
    return study


@contextmanager
def _at(path: Path, *keys: str) -> Iterator[None]:
    """Put file and key before the errors of a block."""
    try:
        yield
    except BadInput as error:
        place = f"{path}, key `{': '.join(keys)}`" if keys else str(path)
        raise BadInput(f"{place}: {error}") from None


def _keys(content: Any, place: Sequence[str | int]) -> Iterator[str]:
    """Yield the keys that lead to a place; an entry of a list has its name as key."""
    for part in place:
        if isinstance(part, str) and part != "[key]":
            content = content.get(part) if isinstance(content, dict) else None
            yield part
        elif isinstance(part, int) and isinstance(content, list):
            content = content[part]
            name = content.get("model") or content.get("name") if isinstance(content, dict) else ""
            yield str(name or content)


def _check_run(path: Path, study: Study, model: StudyModel, variant: Variant) -> None:
    """Refuse a run that its benchmark does not allow; name the key that causes it."""

    def check(options: Mapping[str, Any]) -> None:
        name = variant.benchmark
        tasks.chosen(name, options.get("tasks"))
        tasks.settings(name, options.get("settings") or {}, options.get("preset", "robust"))
        source = data.find(name, options.get("data"))
        prompts.load(name, options.get("prompts"), source.folder)
        present = get(name).files(source.folder)
        for category in options.get("categories") or ():
            if category not in present:
                raise BadInput(expected(category, present, f"category of {name}"))

    try:
        check(study.run_options(model, variant))
    except BadInput as error:
        with _at(path, "benchmarks", variant.benchmark, *filter(None, [variant.name])):
            check(merged(study.options, variant.options))
        with _at(path, "models", model.label):
            raise BadInput(f"{error} (in a run of {variant.title})") from None
