"""Models. `load` takes any MODEL of the command line.

`tiny:s`, `simulated:bias=0.7`, `replay:FILE.jsonl`, `predictions:FILE.jsonl`, `openai:NAME@URL`,
`python:MODULE:FUNCTION`, a folder, a `.gguf` file, or a Hub id, `NAME` or `NAME@REVISION`.

A kind of model is a class (`bench.scorers.base.Model`) and a line in `BACKENDS`. Another package
adds a kind by an entry point of the group `bench.models`; see docs/models.md.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any, TypedDict, Unpack

from bench.config import Generation, Limits
from bench.core.errors import BadInput, expected, explain_others
from bench.scorers.base import Answer, Model
from bench.scorers.cluster import Remote
from bench.scorers.endpoint import keys as key_names
from bench.tasks.nli_labels import label_order

__all__ = [
    "Answer",
    "Loaded",
    "Model",
    "backend_of",
    "check",
    "content",
    "load",
    "split_kind",
    "writes_replies",
]

GROUP = "bench.models"
# The class of each kind, imported for the first model of this kind. "" is the kind of checkpoints:
# folders, .gguf files and Hub ids.
BACKENDS = {
    "": "bench.scorers.local:Checkpoint",
    "simulated": "bench.scorers.simulated:Simulated",
    "tiny": "bench.scorers.tiny:Tiny",
    "replay": "bench.scorers.replay:Replay",
    "predictions": "bench.scorers.replay:Predictions",
    "openai": "bench.scorers.endpoint.scorer:Endpoint",
    "python": "bench.scorers.python:Function",
}
# Options that change answers: kinds without them refuse them.
OF_ANSWERS = ("base", "label_names", "as_model")
# Options that workers of a cluster do not get: endpoints are asked from here.
OF_CLUSTER = ("scheduler", "resources", "limits", "keys")
# The beginning of an absolute path on Windows, for example `C:\models\x` or `D:/models/x`.
DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class LoadOptions(TypedDict, total=False):
    """The options of `load`; see `bench.config.RunConfig`. None means the default."""

    device: str | None
    dtype: str | None
    batch_tokens: int | None
    trust_remote_code: bool
    label_names: Sequence[str] | None
    base: str | None
    as_model: str | None
    generation: Generation | Mapping[str, Any] | None
    limits: Limits | Mapping[str, Any] | None
    keys: Mapping[str, str] | None
    scheduler: str | None
    resources: Mapping[str, float] | None


def load(model: str, **options: Unpack[LoadOptions]) -> Model:
    """Load a model.

    Args:
        model: see the module's docstring.
        options: see `LoadOptions`; for example `device="cuda"`, `generation={"temperature": 0}`.

    Examples:
        >>> import bench
        >>> model = bench.load("simulated:bias=0.7")
        >>> model.describe()["kind"]
        'simulated respondent'
    """
    backend, (_, name) = backend_of(model), split_kind(model)
    if (scheduler := options.get("scheduler")) and not backend.stays_here:
        model_options = {name: value for name, value in options.items() if name not in OF_CLUSTER}
        remote = Remote(scheduler, options.get("resources") or {}, (load, model, model_options))
        remote.loaded_as = (model, model_options)
        return remote
    check(model)
    chosen = _chosen(options)
    if not backend.writes_replies(name):
        chosen["generation"].refuse(
            chosen["generation"].changed(), f"model {model} cannot follow it"
        )
    for option in OF_ANSWERS:
        if chosen.get(option) and option not in backend.takes:
            raise BadInput(f"model {model}: takes no --{option.replace('_', '-')}; leave it out")
    taken = {option: chosen[option] for option in backend.takes if option in chosen}
    loaded = backend.load(name, **taken)
    loaded.loaded_as, loaded.weights = (model, chosen), _weights(model, chosen)
    return loaded


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None, checked; `label_names` and `generation` always."""
    for name in options.keys() - LoadOptions.__annotations__:
        raise BadInput(expected(name, LoadOptions.__annotations__, "option"))
    chosen = {name: value for name, value in options.items() if value is not None}
    chosen["label_names"] = label_order(chosen.get("label_names"))
    chosen["generation"] = Generation.of(chosen.get("generation"))
    return chosen


class Loaded:
    """Keeps a model and a judge for several runs, to load their weights only once."""

    def __init__(self, model: Model | None = None) -> None:
        self._models = {"model": model} if model else {}

    def load(self, role: str, model: str, **options: Any) -> Model:
        """Return a model for one more run, with the known weights if these are the same."""
        chosen = _chosen(options)
        weights = _weights(model, chosen)
        for earlier_role, loaded in self._models.items():
            if loaded.weights == weights and (again := loaded.again(chosen["generation"])):
                again.loaded_as, again.weights = (model, chosen), weights
                self._models[earlier_role] = again
                return again
        self._models.pop(role, None)  # memory may not suffice for both
        self._models[role] = load(model, **options)
        return self._models[role]


def _weights(model: str, chosen: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the name, the files and the options that decide the weights and their device."""
    names = [name for name in backend_of(model).takes if name != "generation"]
    return model, content(model), {name: chosen[name] for name in names if chosen.get(name)}


def check(model: str, elsewhere: bool = False) -> None:
    """Refuse an unknown MODEL before loading it; `elsewhere`: only workers have its files.

    Examples:
        >>> check("simulated:bias=0.7")
    """
    key_names.check_no_secret(model)
    kind, name = split_kind(model)
    if kind or not elsewhere:
        backend_of(model).check(name)


def content(model: str) -> str | None:
    """Hash the files of `model`; None if they are not on this machine.

    Examples:
        >>> content("openai:gpt@https://example.org/v1") is None
        True
    """
    return backend_of(model).content(split_kind(model)[1])


def writes_replies(model: str) -> bool:
    """Return whether a model follows options of generation; files and formulas do not.

    Examples:
        >>> writes_replies("tiny:s"), writes_replies("simulated:bias=0.7")
        (True, False)
    """
    return backend_of(model).writes_replies(split_kind(model)[1])


def backend_of(model: str) -> type[Model]:
    """Return the class of a model's kind.

    Examples:
        >>> backend_of("simulated:bias=0.7").__name__
        'Simulated'
    """
    kind, _ = split_kind(model)
    if kind in BACKENDS:  # reading entry points would take time
        return resolve_name(BACKENDS[kind])
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if kind not in entries:
        kinds = [*filter(None, BACKENDS), *entries, "a Hub id", "a folder", "a .gguf file"]
        raise BadInput(f"model {model}: " + expected(kind, kinds, "kind"))
    title = f"kind {kind} of models ({entries[kind].value})"
    with explain_others(BadInput, f"{title} cannot be loaded: ", "; mend its package"):
        backend = entries[kind].load()
        if not issubclass(backend, Model):
            raise TypeError("it is no subclass of bench.scorers.Model")
    return backend


def split_kind(model: str) -> tuple[str, str]:
    """Split `KIND:NAME`; the kind of a Hub id or a path is "", also for `C:\\x`.

    Examples:
        >>> split_kind("simulated:bias=0.7"), split_kind("Qwen/Qwen2.5-7B")
        (('simulated', 'bias=0.7'), ('', 'Qwen/Qwen2.5-7B'))
    """
    kind, colon, name = model.partition(":")
    return (kind, name) if colon and not DRIVE.match(model) else ("", model)
