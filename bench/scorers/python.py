"""A Python function as a model: `python:MODULE:FUNCTION`.

The function gets the text of a prompt, with empty lines between the turns of a conversation, and
the seed if it has a parameter `seed`; it returns the reply. MODULE is a file of the working folder,
or an installed module.
"""

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.core.errors import BadInput, RunFailed, expected, explain_others, quoted
from bench.core.inputs import hash_file, imported_modules
from bench.scorers.base import Answer, Decoding, Model, digest
from bench.scorers.local.hub import fingerprint
from bench.tasks.request import Request, Turns


class Function(Model):
    """A Python function; we call it for one request at a time."""

    request_types = ("generate",)
    answer_modes = ("text",)
    stays_here = True

    def __init__(self, name: str) -> None:
        self.name, self.revision = name, self.content(name)
        self._function = _import(name)
        self._takes_seed = "seed" in inspect.signature(self._function).parameters

    @classmethod
    def check(cls, name: str) -> None:
        _find(name)

    @classmethod
    def content(cls, name: str) -> str:
        file = _find(name)
        # A function that imports nothing of one's own is known by its file alone.
        imported = [path for files in _modules(name, file).values() for path in files]
        hashes = [(path.name, hash_file(path)) for path in imported if path != file]
        return f"{fingerprint(file)}-{digest(hashes)}" if hashes else fingerprint(file)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Python function", "id": f"python:{self.name}", "revision": self.revision}

    def again(self, generation: Any) -> Model:
        return self

    def stream(self, blocks: Sequence[Sequence[Request]]) -> Iterator[list[tuple[Request, Answer]]]:
        """Yield each answer by itself, so that an error loses no reply."""
        return super().stream([[request] for block in blocks for request in block])

    def replies(self, prompts: Sequence[Turns], decoding: Decoding) -> list[Answer]:
        pairs = zip(prompts, decoding.seeds, strict=True)
        return [Answer(self._reply(prompt, seed)) for prompt, seed in pairs]

    def _reply(self, prompt: Turns, seed: int) -> str:
        text = prompt if isinstance(prompt, str) else "\n\n".join(prompt)
        options = {"seed": seed} if self._takes_seed else {}
        with explain_others(RunFailed, f"python:{self.name} raised "):
            reply = self._function(text, **options)
        if not isinstance(reply, str):
            raise RunFailed(f"python:{self.name} returned {quoted(reply)}, which is not a text")
        return reply


def _find(name: str) -> Path:
    """Find the file of a function; the working folder comes first, as with `python -m`."""
    if not re.fullmatch(r"[\w.]+:\w+", name):
        raise BadInput(
            f"model python:{name}: expected python:MODULE:FUNCTION, like python:my_model:answer "
            "for the function `answer` in my_model.py"
        )
    module, folder = name.partition(":")[0], Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    if (folder / f"{module}.py").is_file():
        return folder / f"{module}.py"
    with explain_others(BadInput, f"model python:{name}: {module} is not found (", ")"):
        spec = importlib.util.find_spec(module)  # this imports the package around a module
    if not spec or not spec.has_location:
        raise BadInput(
            f"model python:{name}: there is no {module}.py in the working folder, and no installed "
            f"module {module}"
        )
    return Path(str(spec.origin))


def _modules(name: str, file: Path) -> dict[str, list[Path]]:
    """Map the modules of one's own that a function needs to their files, its package among them."""
    package, dot, _ = name.partition(":")[0].partition(".")
    return imported_modules([file], [package] if dot or file.name == "__init__.py" else [])


def _import(name: str) -> Callable[..., Any]:
    """Import a function from its file, as the file is now."""
    file, (module_name, _, function_name) = _find(name), name.partition(":")
    # An earlier call can have imported them from earlier files, or from another folder.
    imported = _modules(name, file)
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] in imported:
            del sys.modules[loaded]
    spec = importlib.util.spec_from_file_location(module_name, file)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[module_name] = module
    with explain_others(BadInput, f"model python:{name}: {file} cannot be imported (", ")"):
        # Cached bytecode can be of an earlier file of the same size and second.
        exec(compile(file.read_bytes(), file, "exec"), vars(module))
    function = getattr(module, function_name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise BadInput(f"model python:{name}: " + expected(function_name, functions, "function"))
    return function
