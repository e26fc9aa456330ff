"""A study: which models answer which benchmarks, and which notebooks tell of it; read from a YAML file.

title: Two models and their bias
question: Does the larger one stereotype less?
language: en          # of headings, warnings and findings: en or zh
models: [Qwen/Qwen2.5-0.5B-Instruct, Qwen/Qwen2.5-1.5B-Instruct]
benchmarks:
  cbbq: {categories: [gender, age], limit: 200, data: ../data/cbbq}
  mcbe: {judge: openai:glm-4-air@https://example.org/v1, repeats: 4}
analyses:
  compare_models: {}
  prompt_robustness: {runs: [../reports/other/runs/*/*]}   # other runs beside the study's own
options: {seed: 0, preset: robust, device: cuda}
keys: {example.org: EXAMPLE_API_KEY}     # environment variables with the keys of endpoints, by host
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import data, scorers, tasks, words
from bench.benchmarks import module, resolve
from bench.data import yaml
from bench.data.text import place
from bench.errors import BadInput, expected, quoted
from bench.run import PRESETS
from bench.scorers import keys as key_names
from bench.scorers.limits import Limits
from bench.tasks.nli_coal import label_order

KEYS = ("title", "question", "models", "benchmarks", "analyses", "options", "keys", "language")
# What may stand under a benchmark, and what under `options`, which holds for all; with the type of each.
OF_BENCHMARK: dict[str, type] = {
    "categories": list, "tasks": list, "limit": int, "repeats": int, "seed": int, "read": str, "judge": str, "max_new_tokens": int,
    "settings": dict, "prompts": str, "data": str, "label_names": dict,
}  # fmt: skip
OF_ALL: dict[str, type] = {
    "seed": int, "repeats": int, "judge": str, "max_new_tokens": int, "preset": str, "device": str, "dtype": str,
    "batch_tokens": int, "scheduler": str, "resources": dict, "limits": dict,
}  # fmt: skip
# Of numbers: seeds are 64 bits, and no run asks or repeats more than this.
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Study:
    """A study file, checked. `options` has for each benchmark all that `evaluate` takes besides the model."""

    name: str
    title: str
    question: str
    models: tuple[str, ...]
    options: Mapping[str, Mapping[str, Any]]
    analyses: Mapping[str, Mapping[str, Any]]
    language: str = "en"
    keys: Mapping[str, str] = field(default_factory=dict)


def load(path: Path) -> Study:
    """The study in a file.

    Raises:
        BadInput: not YAML, a misspelt or missing key, a wrong value, an unknown model, benchmark, task or category.
    """
    if not path.exists():
        raise BadInput(f"{path}: no such study file")
    content = yaml.read(path)
    if not isinstance(content, dict):
        raise BadInput(f"{path}: expected keys {', '.join(KEYS)}, found {type(content).__name__}")
    _check_keys(path, "study", content, KEYS)
    for key, kind in (("title", str), ("models", list), ("benchmarks", dict)):
        if not isinstance(content.get(key), kind) or not content[key]:
            raise BadInput(f"{path}: key `{key}` is missing or not a {kind.__name__}")
    models = tuple(_model(path, entry) for entry in content["models"])
    if len(set(models)) < len(models):
        raise BadInput(f"{path}, key `models`: names a model twice")
    common = _options(path, "options", content.get("options"), OF_ALL)
    if common.get("preset", "robust") not in PRESETS:
        raise BadInput(f"{path}, key `options`: " + expected(common["preset"], PRESETS, "preset"))
    try:
        Limits.of(common.get("limits"))
    except BadInput as error:
        raise BadInput(f"{path}, key `options`: {error}") from None
    if "judge" in common:
        common["judge"] = _model(path, common["judge"], "options")
    options = {}
    for name, given in content["benchmarks"].items():
        own = _options(path, f"benchmarks: {name}", given, OF_BENCHMARK)
        if "label_names" in own:
            own["label_names"] = _label_names(path, name, own["label_names"], models)
        # First, because it turns the paths in `own` into absolute ones.
        benchmark = _benchmark(path, name, own, common.get("preset", "robust"))
        options[benchmark] = {**common, **own}
    keys = content.get("keys") or {}
    if not isinstance(keys, dict):
        raise BadInput(f"{path}, key `keys`: expected HOST: NAME of an environment variable")
    try:
        key_names.check(keys, [*models, *(given.get("judge") for given in options.values())])
    except BadInput as error:
        raise BadInput(f"{path}, key `keys`: {error}") from None
    language = content.get("language", "en")
    if language not in words.LANGUAGES:
        raise BadInput(f"{path}, key `language`: " + expected(language, words.LANGUAGES, "language"))
    analyses = content.get("analyses") or {}
    if not isinstance(analyses, dict):
        raise BadInput(f"{path}, key `analyses`: expected notebook names, each with its parameters")
    return Study(
        name=path.stem, title=content["title"], question=str(content.get("question", "")), models=models, options=options,
        analyses={str(name): _analysis(path, str(name), given or {}) for name, given in analyses.items()}, language=language,
        keys=keys,
    )  # fmt: skip


def _analysis(path: Path, name: str, given: object) -> dict[str, Any]:
    """The parameters of an analysis; `runs` are others beside the study's own, meant from where the study file lies."""
    if not re.fullmatch(r"[a-z_]+", name):
        raise BadInput(
            f"{path}, key `analyses: {name}`: is no name of a notebook; expected letters and underscores"
        )
    if not isinstance(given, dict):
        raise BadInput(
            f"{path}, key `analyses: {name}`: expected parameters of the notebook, found {quoted(given)}"
        )
    runs = given.get("runs", [])
    if not isinstance(runs, list):
        raise BadInput(
            f"{path}, key `analyses: {name}: runs`: expected a list of folders or patterns, found {quoted(runs)}"
        )
    return {**given, "runs": [_from(path, str(one)) for one in runs]} if runs else dict(given)


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


def _benchmark(path: Path, name: str, own: dict[str, Any], preset: str) -> str:
    try:
        benchmark = resolve(str(name))
        tasks.chosen(benchmark, own.get("tasks"))
        tasks.settings(benchmark, own.get("settings", {}), preset)
        if own.get("data", data.OWN_SAMPLES) != data.OWN_SAMPLES:
            own["data"] = _from(path, own["data"])
        if str(own.get("prompts", "")).partition("#")[0].endswith(".toml"):
            own["prompts"] = _from(path, own["prompts"])
        source = data.find(benchmark, own.get("data"))
        present = module("data", benchmark).files(source.folder)
        for category in own.get("categories", ()):
            if category not in present:
                raise BadInput(expected(category, present, f"category of {benchmark}"))
    except BadInput as error:
        raise BadInput(f"{path}, key `benchmarks: {name}`: {error}") from None
    if "judge" in own:
        own["judge"] = _model(path, own["judge"], f"benchmarks: {name}")
    return benchmark


def _label_names(
    path: Path, name: str, given: Mapping[Any, Any], models: tuple[str, ...]
) -> dict[str, list[str]]:
    """What the labels of each model mean, where a checkpoint does not say it."""
    key = f"benchmarks: {name}: label_names"
    found = {}
    for entry, names in given.items():
        model = _model(path, entry, key)
        if model not in models or not isinstance(names, list):
            raise BadInput(
                f"{path}, key `{key}`: expected models of this study, each with a list of its labels in order; found {quoted(entry)}"
            )
        try:
            found[model] = list(label_order(names))
        except BadInput as error:
            raise BadInput(f"{path}, key `{key}`: {error}") from None
    return found


def _options(path: Path, where: str, given: object, allowed: Mapping[str, type]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadInput(f"{path}, key `{where}`: expected options, found {quoted(given)}")
    _check_keys(path, f"`{where}`", given, tuple(allowed))
    for key, value in given.items():
        if not isinstance(value, allowed[key]) or isinstance(value, bool):
            raise BadInput(f"{path}, key `{where}: {key}`: {quoted(value)} is not a {allowed[key].__name__}")
        if isinstance(value, int) and abs(value) > LARGEST:
            raise BadInput(f"{path}, key `{where}: {key}`: {quoted(value)} is more than {LARGEST:,}")
        wrong = [one for one in value if not isinstance(one, str)] if isinstance(value, list) else []
        if wrong:
            raise BadInput(
                f"{path}, key `{where}: {key}`: {quoted(wrong[0])} is not a text; put quotes around it"
            )
    return dict(given)


def _check_keys(path: Path, where: str, given: Mapping[Any, Any], allowed: tuple[str, ...]) -> None:
    for key in given:
        if key not in allowed:
            raise BadInput(f"{path}: " + expected(key, allowed, f"key in {where}"))


def _from(path: Path, given: str) -> str:
    try:
        expanded = place(given)
        return str(expanded if expanded.is_absolute() else (path.parent / expanded).resolve())
    except (BadInput, OSError, RuntimeError) as error:  # the last two of links that lead in a circle
        raise BadInput(f"{path}: {error}") from None
