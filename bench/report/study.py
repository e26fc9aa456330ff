"""A study: the models, benchmarks and notebooks of a report, read from a YAML file.

docs/studies.md describes the file. We check all of it before anything runs; an error names its key.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
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
from bench.config import Generation, Limits, Names, Options, RunConfig, explain
from bench.core.errors import BadInput, expected
from bench.core.shipped import DEMO, NOTEBOOKS
from bench.data import readers
from bench.data.readers import as_path
from bench.scorers.base import digest
from bench.scorers.endpoint import keys as key_names
from bench.scorers.names import path_slug, short_name
from bench.tasks import prompts
from bench.tasks.nli_labels import label_order

# Options of a run that a study sets by itself, or leaves to the command.
NOT_IN_A_STUDY = ("benchmark", "model", "name", "out", "trust_remote_code", "keys")
IN_A_STUDY = [name for name in RunConfig.model_fields if name not in NOT_IN_A_STUDY]
# Analyses that compare the variants of one benchmark, or show all of them.
OVER_VARIANTS = ("prompt_robustness", "self_correction", "explore")
# The page of the index, and the prefix of the names of pages with answers.
INDEX, ANSWERS = "index", "answers-"
# We merge these options name by name if several places give them.
MERGED = ("settings", "template_arguments", "request_fields", "limits")


class StudyOptions(RunConfig):
    """Options of all runs of a study, or, in a subclass, of the runs of a model or a variant."""

    # Keys that the file can have here besides the options.
    more_keys: ClassVar[tuple[str, ...]] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The options that the file gives."""
        return self.model_dump(exclude_unset=True, include=set(IN_A_STUDY))

    # 0 means all, as in notebooks.
    limit: Annotated[int | None, Field(ge=0), AfterValidator(lambda n: n or None)] = None

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, content: Any) -> Any:
        allowed = [*cls.more_keys, *IN_A_STUDY]
        for name in content if isinstance(content, dict) else ():
            if name not in allowed:
                raise ValueError(expected(name, allowed, "key"))
        return {} if content is None else content

    @field_validator("model", "judge", "data", "prompts", "label_names")
    @classmethod
    def _located(cls, value: Any, info: ValidationInfo) -> Any:
        """Read the names of labels, and make paths absolute: they begin at the study file."""
        folder, name = (info.context or {})["folder"], info.field_name
        try:
            if value is None or value in (data.OWN_SAMPLES, data.RELEASED):
                return value
            if name == "data" or (name == "prompts" and value.partition("#")[0].endswith(".toml")):
                return _absolute(folder, value)
            if name in ("model", "judge"):
                return _placed(folder, value)
            if name == "label_names" and isinstance(value, Mapping):
                return {
                    _placed(folder, spec): [*label_order(names)] for spec, names in value.items()
                }
            return [*label_order(value)] if name == "label_names" else value
        except BadInput as error:
            raise ValueError(str(error)) from None


def _absolute(folder: Path, path: str | Path) -> str:
    return str((folder / as_path(path)).resolve())


def _placed(folder: Path, spec: str) -> str:
    """Return a model with an absolute path."""
    key_names.check_no_secret(spec)
    kind, path = scorers.split_kind(spec)
    if scorers.backend_of(spec).from_file:
        return f"{kind}:{_absolute(folder, path)}"
    is_path = not kind and (spec.startswith((".", "~")) or spec.endswith(".gguf"))
    return _absolute(folder, spec) if is_path else spec


class StudyModel(StudyOptions):
    """A model of a study.

    Attributes:
        name: its name in tables; None for a short form of `model`.
        key: environment variable with the key of its host; empty for the study's.
        paper: its name in the paper, to put printed numbers beside its own.
        first: the command that makes the model's folder, for example `bench train ...`.
        folder: name of the folder of its runs, different for each model.
    """

    more_keys = ("model", "name", "paper", "key", "first")
    key: str = ""
    paper: str = ""
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
    def _from_its_name(cls, content: Any) -> Any:
        return content if isinstance(content, dict) and "model" in content else {"model": content}


class Variant(StudyOptions):
    """A benchmark with the options of a study; without a name if this is its only variant.

    Attributes:
        page: whether it has a page of its own; otherwise only analyses show it.
        models: names of its models; empty for all.
        key: the name of its folders and of its page, different for each variant.
    """

    more_keys = ("name", "page", "models")
    page: bool = True
    models: Names = ()
    key: str = ""

    @property
    def title(self) -> str:
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
    runs: Names = ()
    variants: Names | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        return self.model_dump(exclude={"name", "source", "variants"}, exclude_unset=True)

    def title(self, page: str) -> str:
        """Return the title of its page for the navigation."""
        title = self.source.stem.replace("_", " ").capitalize()
        # Notebooks of one name are told apart by their folders.
        folder = self.source.parent.name if is_own(self.source) else ""
        name = self.name or ("" if page == self.source.stem else folder)
        return f"{title} ({name})" if name else title

    @model_validator(mode="before")
    @classmethod
    def _from_study_file(cls, content: Any, info: ValidationInfo) -> Any:
        folder = (info.context or {})["folder"]
        content = _with_absolute_paths(folder, {} if content is None else content)
        if isinstance(content, dict) and isinstance(content.get("runs"), list):
            content["runs"] = [_absolute(folder, str(pattern)) for pattern in content["runs"]]
        return content


def _with_absolute_paths(folder: Path, value: Any) -> Any:
    """Make the paths in a parameter absolute, at any depth: the texts that begin with ./ or ../."""
    if isinstance(value, dict):
        return {name: _with_absolute_paths(folder, part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_absolute_paths(folder, part) for part in value]
    is_path = isinstance(value, str) and value.startswith(("./", "../"))
    return _absolute(folder, value) if is_path else value


def _with_folders(models: Sequence[StudyModel]) -> list[StudyModel]:
    """Give each model a folder of its own, and refuse models with equal names."""
    result: list[StudyModel] = []
    taken: set[str] = set()
    for model in models:
        for other in result:
            if (other.model, other.name) == (model.model, model.name) or other.label == model.name:
                raise ValueError(f"two models have the name {model.label!r}; give each a `name`")
        folder = path_slug(model.model)
        if _as_file(folder) in taken and model.name:
            folder = f"{folder}-{path_slug(model.name)}"
        folder = _apart(folder, taken, [model.model, model.name])
        result.append(model.model_copy(update={"folder": folder}))
    return result


def _apart(name: str, taken: set[str], owner: object) -> str:
    """Take the name of a folder or page; if another owner has it, add a hash of the owner.

    Different names, for example a/b and a_b, can be spelt alike as a file.
    """
    if _as_file(name) in taken:
        name = f"{name}-{digest(owner)}"
    taken.add(_as_file(name))
    return name


def is_own(notebook: Path) -> bool:
    """Return whether a notebook is the user's, or another package's, rather than ours."""
    return notebook.parent != NOTEBOOKS


def _as_file(name: str) -> str:
    """Return the form of a name by which systems that ignore case tell files apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _check_names_differ(parts: list[Any]) -> list[Any]:
    """Refuse two variants of a benchmark, or two analyses of a notebook, with equal names."""
    names = [part.name or "" for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two entries have the name {name!r}; give each a `name`")
    return parts


# One, or a list.
Listed = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
Named = AfterValidator(_check_names_differ)
NotEmpty = Field(min_length=1)


class Study(Options):
    title: str = NotEmpty
    question: str = ""
    models: Annotated[list[StudyModel], AfterValidator(_with_folders), NotEmpty]
    by_benchmark: dict[str, Annotated[list[Variant], Listed, NotEmpty, Named]] = Field(
        alias="benchmarks", min_length=1
    )
    by_notebook: dict[str, Annotated[list[Analysis], Listed, NotEmpty, Named]] = Field(
        {}, alias="analyses"
    )
    shared: StudyOptions = Field(StudyOptions(), alias="options")
    keys: dict[str, str] = Field({})
    own_index: str = Field("", alias="index")
    _path: Path = PrivateAttr(DEMO)

    @property
    def path(self) -> Path:
        return self._path

    @property
    def name(self) -> str:
        return self._path.stem

    @property
    def index(self) -> Path:
        """The notebook of the index."""
        if not self.own_index:
            return NOTEBOOKS / f"{INDEX}.ipynb"
        return Path(_absolute(self.path.parent, self.own_index))

    @cached_property
    def variants(self) -> list[Variant]:
        result, taken = [], {INDEX}
        for name, variants in self.by_benchmark.items():
            benchmark = resolve(name)
            for variant in variants:
                key = f"{benchmark}-{path_slug(variant.name)}" if variant.name else benchmark
                key = _apart(key, taken, [name, variant.name])
                result.append(variant.model_copy(update={"benchmark": benchmark, "key": key}))
        return result

    @cached_property
    def analyses(self) -> dict[str, Analysis]:
        """The analyses by the names of their pages."""
        keys = [variant.key for variant in self.variants if variant.page]
        taken = {_as_file(name) for key in keys for name in (key, f"{ANSWERS}{key}")} | {INDEX}
        by_page = {}
        for name, analyses in self.by_notebook.items():
            is_file = name.endswith(".ipynb")
            source = _absolute(self.path.parent, name) if is_file else NOTEBOOKS / f"{name}.ipynb"
            for analysis in analyses:
                stem = Path(source).stem
                page = f"{stem}-{path_slug(analysis.name)}" if analysis.name else stem
                page = _apart(page, taken, [name, analysis.name])
                by_page[page] = analysis.model_copy(update={"source": Path(source)})
        return by_page

    @property
    def steps(self) -> list[str]:
        """The commands to run before the study, because a model that they make is missing."""
        return [model.first for model in self.models if model.is_missing]

    @property
    def benchmarks(self) -> list[str]:
        return list(dict.fromkeys(variant.benchmark for variant in self.variants))

    @property
    def paper(self) -> dict[str, str]:
        """The names in the paper of the models that have one."""
        return {model.label: model.paper for model in self.models if model.paper}

    @property
    def runs(self) -> list[tuple[StudyModel, Variant]]:
        return [
            (model, variant)
            for model in self.models
            for variant in self.variants
            if not variant.models or model.label in variant.models
        ]

    def analysed(self, name: str) -> list[str]:
        """Return the keys of the variants of an analysis.

        We take the variants that the study names; otherwise all, if this analysis compares variants
        of one benchmark; otherwise the first of each benchmark, so that no model appears twice.
        """
        analysis = self.analyses[name]
        named = analysis.variants
        if named is None and analysis.source.stem not in OVER_VARIANTS:
            first = {variant.benchmark: variant.key for variant in reversed(self.variants)}
            return [variant.key for variant in self.variants if variant.key in first.values()]
        names = {variant.key: variant.name or variant.benchmark for variant in self.variants}
        return [key for key, name in names.items() if named is None or name in named]

    def run_options(self, model: StudyModel, variant: Variant) -> dict[str, Any]:
        """Return the options of one run; a model's take precedence, then the variant's."""
        options = merged(self.shared.options, variant.options, model.options)
        if model.name:
            options["name"] = model.name
        if not scorers.writes_replies(model.model):
            # Sampling options apply only to the language models among the study's models.
            shared = set(Generation.model_fields) - set(model.options)
            options = {name: value for name, value in options.items() if name not in shared}
        variables = dict(self.keys)
        if model.key:
            variables[key_names.host_of(model.model)] = model.key
        specs = [other.model for other in self.models]
        if keys := key_names.of_run(specs, model.model, options.get("judge"), variables):
            options["keys"] = keys
        return options


def merged(*options: Mapping[str, Any]) -> dict[str, Any]:
    """Merge options; later ones take precedence, for options in `MERGED` name by name."""
    result: dict[str, Any] = {}
    for part in options:
        for name, value in part.items():
            result[name] = {**result.get(name, {}), **(value or {})} if name in MERGED else value
    return result


def load(path: Path = DEMO) -> Study:
    """Read a study file; by default the demonstration's.

    Raises:
        BadInput: a key of this file has a wrong value.
    """
    if not path.exists():
        raise BadInput(f"{path}: no such study file")
    content = readers.read_yaml(path)
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if value is not None}
    try:
        study = Study.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        first = error.errors()[0]
        # We count the entries of a list from 1.
        keys = [str(part + 1 if isinstance(part, int) else part) for part in first["loc"]]
        message = explain(first)
        if first["type"] == "extra_forbidden":
            *keys, unknown = keys
            allowed = [field.alias or name for name, field in Study.model_fields.items()]
            message = expected(unknown, Limits.described() if keys else allowed, "key in study")
        with at(path, *keys):
            raise BadInput(message) from None
    study._path = path
    _check_names(study)
    for model in study.models:
        if not model.is_missing:
            with at(path, "models", model.label):
                scorers.check(model.model)
    for model, variant in study.runs:
        key = [variant.benchmark, *filter(None, [variant.name])]
        with at(path, "benchmarks", *key, of=f" (for {model.label})"):
            _check_run(variant.benchmark, study.run_options(model, variant))
    return study


@contextmanager
def at(path: Path, *keys: str, of: str = "") -> Iterator[None]:
    """Put file and key before the errors of a block."""
    try:
        yield
    except BadInput as error:
        location = f"{path}, key `{': '.join(keys)}`" if keys else str(path)
        raise BadInput(f"{location}{of}: {error}") from None


def _check_names(study: Study) -> None:
    """Refuse a name in the file that nothing has."""
    path = study.path
    with at(path, "benchmarks"):
        names = [variant.name or variant.benchmark for variant in study.variants]
    specs = [model.model for model in study.models]
    labels = [model.label for model in study.models]
    # Analyses have judges too.
    judges = [part.judge for part in (study.shared, *study.variants, *study.models)]
    judges += [analysis.parameters.get("judge") for analysis in study.analyses.values()]
    of_models = {key_names.host_of(model.model): model.key for model in study.models if model.key}
    with at(path, "keys"):
        key_names.check({**study.keys, **of_models}, [*specs, *judges])
    for variant in study.variants:
        with at(path, "benchmarks", variant.benchmark):
            if isinstance(variant.label_names, Mapping):
                _check_known(variant.label_names, specs, "model")
            _check_known(variant.models, labels, "models: name of a model")
    for key, analysis in study.analyses.items():
        with at(path, "analyses", key):
            _check_known(analysis.variants or (), names, "variant")


def _check_run(benchmark: str, options: Mapping[str, Any]) -> None:
    """Refuse options of a run that its benchmark does not allow."""
    definition = get(benchmark)
    tasks.chosen(definition, options.get("tasks"))
    tasks.settings(definition, options.get("settings") or {}, options.get("preset", "robust"))
    if judge := options.get("judge"):
        scorers.check(judge)
    source = data.find(definition, options.get("data"))
    prompts.load(definition, options.get("prompts"), source.folder)
    present = list(definition.files(source.folder))
    _check_known(options.get("categories") or (), present, f"category of {benchmark}")


def _check_known(names: Iterable[str], allowed: Sequence[str], kind: str) -> None:
    for name in names:
        if name not in allowed:
            raise BadInput(expected(name, allowed, kind))
