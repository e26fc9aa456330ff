"""YAML that nobody vouches for, read within bounds: nothing is run, and what stands for other text cannot grow without end."""

from pathlib import Path
from typing import Any

import yaml

from bench.core.errors import BadInput, plain, quoted
from bench.data.text import read_text

# A study has a few dozen lines.
MAX_BYTES = 2**20
MAX_DEPTH = 16
MAX_VALUES = 100_000
MAX_DIGITS = 100
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read(path: Path) -> Any:
    """What a YAML file says.

    Raises:
        BadInput: it cannot be read, is not YAML, or is larger or nested deeper than any of ours, anchors written out.
    """
    text = read_text(path, MAX_BYTES)
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(path, node)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise BadInput(f"{path}: is nested too deeply; expected keys in keys") from None
    except (ValueError, OverflowError, TypeError, AttributeError, KeyError) as error:
        # The loader lets through what a date that is none, or a tag on another kind of value, provokes.
        raise BadInput(f"{path}: not YAML ({plain(str(error))[:200]})") from None
    finally:
        if loader is not None:
            loader.dispose()


def _check(path: Path, root: yaml.Node) -> None:
    """Refuse a tree that is too large when everything that an anchor stands for is written out where it is used.

    Raises:
        BadInput: too large, nested too deeply, an anchor within itself, a number of too many digits, or half a character.
    """
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, above: tuple[int, ...]) -> int:
        line = node.start_mark.line + 1
        if id(node) in above or len(above) > MAX_DEPTH:
            raise BadInput(
                f"{path}, line {line}: is nested more than {MAX_DEPTH} deep; expected keys in keys"
            )
        if id(node) in sizes:
            return sizes[id(node)]
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.ScalarNode):
            if any("\ud800" <= char <= "\udfff" for char in node.value):
                raise BadInput(
                    f"{path}, line {line}: holds half of a surrogate pair, which is no character"
                )
            if node.tag in NUMBERS and len(node.value) > MAX_DIGITS:
                raise BadInput(
                    f"{path}, line {line}: {quoted(node.value)} is a number of too many digits"
                )
        elif isinstance(node, yaml.MappingNode):
            _check_keys_differ(path, node)
            inner = [one for pair in node.value for one in pair]
        elif isinstance(node, yaml.SequenceNode):
            inner = node.value
        total = 1 + sum(size(one, (*above, id(node))) for one in inner)
        if total > MAX_VALUES:
            raise BadInput(
                f"{path}, line {line}: stands for more than {MAX_VALUES:,} values, anchors written out; write less"
            )
        sizes[id(node)] = total
        return total

    size(root, ())


def _check_keys_differ(path: Path, node: yaml.MappingNode) -> None:
    """Refuse a mapping with a key twice, of which YAML would keep the last in silence."""
    keys: set[str] = set()
    for key, _ in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name and name != "<<" and name in keys:
            line = key.start_mark.line + 1
            raise BadInput(
                f"{path}, line {line}: key {quoted(name)} is there twice; keep one of them"
            )
        keys.add(name)
