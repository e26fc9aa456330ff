"""Measure the structure of the code: `python -m tests.benchmarks.measures [CHECKOUT]`.

Lines are counted after `ruff format` at 100 columns of a copy without `# fmt` comments, so that
packed code counts as what it is.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

VAGUE = ("found", "one", "some", "what", "told", "said", "whole", "here", "why")
FORMAT = ["ruff", "format", "-q", "--isolated", "--line-length", "100"]
LONG = ["ruff", "check", "--isolated", "--line-length", "100", "--select", "E501", "-q"]


def main() -> None:
    """Print the measures of a checkout, one per line."""
    home = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bench = sorted((home / "bench").rglob("*.py"))
    skips = sum(len(re.findall(r"# fmt: ?(?:skip|off)", path.read_text("utf-8"))) for path in bench)
    with tempfile.TemporaryDirectory() as folder:
        lines, long = {}, {}
        for room in ("bench", "tests"):
            copy = Path(folder) / room
            shutil.copytree(home / room, copy, ignore=shutil.ignore_patterns("__pycache__"))
            lines[room], long[room] = formatted(copy)
    print(f"Python files in bench/                   {len(bench):>7,}")
    print(f"lines in bench/ at 100 columns           {lines['bench']:>7,}")
    print(f"lines in tests/ at 100 columns           {lines['tests']:>7,}")
    print(f"lines over 100 columns, bench/; tests/   {long['bench']:>7,}; {long['tests']:,}")
    print(f"comments that switch formatting off      {skips:>7,}")
    top = [path for path in (home / "bench").iterdir() if not path.name.startswith("__")]
    print(f"modules at the top of bench/             {sum(p.suffix == '.py' for p in top):>7,}")
    print(f"folders at the top of bench/             {sum(p.is_dir() for p in top):>7,}")
    print("an import circle at module level        ", circle(imports(home / "bench")) or "      0")
    print(f"places that name a benchmark elsewhere   {benchmark_names(home / 'bench'):>7,}")
    names = identifiers(bench)
    vague = ", ".join(f"{name} {names[name]:,}" for name in VAGUE if names[name])
    print(f"vague identifiers                        {sum(names[n] for n in VAGUE):>7,}  ({vague})")


def formatted(folder: Path) -> tuple[int, int]:
    """Format a copy; return its lines and how many of them are longer than 100 columns."""
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(r" *# fmt: ?(?:skip|off|on)\b", "", text), "utf-8")
    subprocess.run([*FORMAT, folder], check=True)
    done = subprocess.run(
        [*LONG, folder, "--output-format", "concise"], capture_output=True, text=True
    )
    texts = [path.read_text("utf-8") for path in folder.rglob("*.py")]
    return sum(text.count("\n") for text in texts), done.stdout.count("E501")


def imports(package: Path) -> dict[str, set[str]]:
    """Return the modules that each module imports at its top level."""
    paths = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {
        module: {
            target
            for node in ast.parse(path.read_text("utf-8")).body
            for target in targets(node)
            if target in paths and target != module and not module.startswith(f"{target}.")
        }
        for module, path in paths.items()
    }


def targets(node: ast.stmt) -> Iterator[str]:
    """Yield the names of the modules that a statement may import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def benchmark_names(package: Path) -> int:
    """Count string literals that are a benchmark's name outside its own files and the registry."""
    benchmarks = ("mcbe", "cbbq", "nli_coal")
    count = 0
    for path in package.rglob("*.py"):
        own = path.relative_to(package).as_posix()
        if path.name == "benchmarks.py" or any(b.split("_")[0] in own for b in benchmarks):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        count += sum(isinstance(n, ast.Constant) and n.value in benchmarks for n in ast.walk(tree))
    return count


def identifiers(paths: list[Path]) -> Counter[str]:
    """Count the identifiers of all files: variables and arguments."""
    trees = (ast.parse(path.read_text("utf-8")) for path in paths)
    nodes = [node for tree in trees for node in ast.walk(tree)]
    variables = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    return variables + Counter(node.arg for node in nodes if isinstance(node, ast.arg))


if __name__ == "__main__":
    main()
