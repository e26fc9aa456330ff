"""Find a model's files: a folder, a GGUF file, or the cache's folder of a Hub model."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.errors import BadInput
from bench.scorers.local import hub
from bench.scorers.local.file_hash import fingerprint
from bench.scorers.local.hub import ADAPTER_CONFIG, ADAPTER_WEIGHTS, PICKLES, WEIGHTS_INDEX, pickled

# More layers than any model has; they would all be built before missing weights are noticed.
MAX_LAYERS = 2000


class Location(NamedTuple):
    """Where a model's files are.

    Attributes:
        name: the model as it was given, without a revision.
        path: the folder.
        options: of transformers, to name a GGUF file in it.
        commit: of a Hub model.
    """

    name: str
    path: str
    options: dict[str, Any]
    commit: str | None = None

    @property
    def identity(self) -> dict[str, str]:
        """The model's name and its commit, or a hash of its files."""
        file = Path(self.path, self.options.get("gguf_file", ""))
        return {"id": self.name, "revision": self.commit or fingerprint(file)}


def locate(model: str) -> Location:
    """Find the files of `model`; those of a Hub id are downloaded.

    Raises:
        BadInput: a folder without a checkpoint or with a pickled one, a file of another kind, or a
            Hub id that cannot be downloaded.
    """
    path = Path(model).expanduser()
    if reference := hub.parse(model):
        folder = hub.snapshot(reference)
        return Location(reference.name, str(folder), {}, folder.name)
    if model.endswith(".gguf"):
        return Location(model, str(path.parent), {"gguf_file": path.name})
    if path.is_dir():
        if not any((path / name).is_file() for name in ("config.json", ADAPTER_CONFIG)):
            ggufs = sorted(path.glob("*.gguf"))
            hint = f"; give the file itself: {ggufs[0]}" if ggufs else ""
            raise BadInput(
                f"{model}: the folder has no config.json, so it holds no transformers "
                f"checkpoint{hint}"
            )
        pickles = sorted(file.name for file in path.iterdir() if file.suffix in PICKLES)
        if pickles and not any(path.glob("*.safetensors*")):
            raise BadInput(pickled(model, pickles[0]))
        return Location(model, str(path), {})
    if path.is_file() and path.suffix in PICKLES:
        raise BadInput(pickled(model, path.name))
    problem = "is a file, but not a .gguf file" if path.is_file() else "is no model"
    raise BadInput(f"{model}: {problem}; give a folder, a .gguf file, or a Hub id")


def base_of(model: str, files: Location) -> Location | None:
    """Find the base model of an adapter; None for a complete model.

    Raises:
        BadInput: peft, the adapter's weights in safetensors, or a complete base model is missing.
    """
    folder = Path(files.path)
    if files.options or not (folder / ADAPTER_CONFIG).is_file():
        return None
    adapter = f"{model}: is an adapter ({ADAPTER_CONFIG})"
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise BadInput(f"{adapter} without {ADAPTER_WEIGHTS}; pickled weights are not read")
    if not find_spec("peft"):
        raise BadInput(
            f"{adapter}, for which peft is missing; `pip install 'bias-workbench[adapters]'`, or "
            "merge it into its base model and give the folder of the result"
        )
    try:
        config = json.loads((folder / ADAPTER_CONFIG).read_text("utf-8"))
        name, revision = str(config["base_model_name_or_path"]), config.get("revision")
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BadInput(f"{adapter} that names no base model") from None
    base = locate(hub.at_revision(name, revision) if hub.parse(name) else name)
    check_whole(name, base.path)
    return base


def check_whole(model: str, path: str) -> None:
    """Refuse an adapter where a complete model is needed.

    Raises:
        BadInput: the folder holds one.
    """
    if (Path(path) / ADAPTER_CONFIG).is_file():
        raise BadInput(
            f"{model}: is an adapter ({ADAPTER_CONFIG}) where a complete model is needed; merge it "
            "into its base (peft's `merge_and_unload`, `save_pretrained`) and give that folder"
        )


def check_files(model: str, path: str, config: Any, options: dict[str, Any]) -> None:
    """Refuse a checkpoint that would have transformers read anything but safetensors in it.

    Raises:
        BadInput: weights in pickled files or outside the folder; more layers than there can be.
    """
    layers = getattr(config.get_text_config(), "num_hidden_layers", None)
    if isinstance(layers, int) and layers > MAX_LAYERS:
        raise BadInput(f"{model}: has {layers:,} layers; expected at most {MAX_LAYERS:,}")
    if "gguf_file" in options:
        return
    index = Path(path) / WEIGHTS_INDEX
    shards = json.loads(index.read_text("utf-8"))["weight_map"].values() if index.is_file() else ()
    for name in shards:
        if Path(name).suffix != ".safetensors":
            raise BadInput(pickled(model, f"{name} in {WEIGHTS_INDEX}"))
        if Path(name).name != name:
            raise BadInput(f"{model}: {WEIGHTS_INDEX} names {name}, which is outside its folder")
