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

    def __init__(self, rest: str) -> None:
        self.rest, self.revision = rest, self.content(rest)
        self._function = _import(rest)
        self._takes_seed = "seed" in inspect.signature(self._function).parameters

    @classmethod
    def check(cls, rest: str) -> None:
        _find(rest)

    @classmethod
    def content(cls, rest: str) -> str:
        file = _find(rest)
        # A function that imports nothing of one's own is known by its file alone.
        others = [other for files in _modules(rest, file).values() for other in files]
        names = [(other.name, hash_file(other)) for other in others if other != file]
        return f"{fingerprint(file)}-{digest(names)}" if names else fingerprint(file)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Python function", "id": f"python:{self.rest}", "revision": self.revision}

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
        with explain_others(RunFailed, f"python:{self.rest} raised "):
            reply = self._function(text, **options)
        if not isinstance(reply, str):
            raise RunFailed(f"python:{self.rest} returned {quoted(reply)}, which is not a text")
        return reply


def _find(rest: str) -> Path:
    """Find the file of a function; the working folder comes first, as with `python -m`."""
    if not re.fullmatch(r"[\w.]+:\w+", rest):
        raise BadInput(
            f"model python:{rest}: expected python:MODULE:FUNCTION, like python:my_model:answer "
            "for the function `answer` in my_model.py"
        )
    name, folder = rest.partition(":")[0], Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    if (folder / f"{name}.py").is_file():
        return folder / f"{name}.py"
    with explain_others(BadInput, f"model python:{rest}: {name} is not found (", ")"):
        spec = importlib.util.find_spec(name)  # this imports the package around a module
    if not spec or not spec.has_location:
        raise BadInput(
            f"model python:{rest}: there is no {name}.py in the working folder, and no installed "
            f"module {name}"
        )
    return Path(str(spec.origin))


def _modules(rest: str, file: Path) -> dict[str, list[Path]]:
    """Map the modules of one's own that a function needs to their files, its package among them."""
    package, dot, _ = rest.partition(":")[0].partition(".")
    return imported_modules([file], [package] if dot or file.name == "__init__.py" else [])


def _import(rest: str) -> Callable[..., Any]:
    """Import a function from its file, as the file is now."""
    file, (module_name, _, name) = _find(rest), rest.partition(":")
    # An earlier call can have imported them from earlier files, or from another folder.
    own = _modules(rest, file)
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] in own:
            del sys.modules[loaded]
    spec = importlib.util.spec_from_file_location(module_name, file)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[module_name] = module
    with explain_others(BadInput, f"model python:{rest}: {file} cannot be imported (", ")"):
        # Cached bytecode can be of an earlier file of the same size and second.
        exec(compile(file.read_bytes(), file, "exec"), vars(module))
    function = getattr(module, name, None)
    if not callable(function):
        functions = [known for known, value in vars(module).items() if inspect.isfunction(value)]
        raise BadInput(f"model python:{rest}: " + expected(name, functions, "function"))
    return function
