"""Change the package in one place at a time, and see whether its tests notice: mutation testing.

    python -m tests.benchmarks.mutate                       # 60 mutants of bench/
    python -m tests.benchmarks.mutate --of bench/metrics --count 10 --seed 1

In each mutant, one operator, constant or returned value is changed. We run the tests of the same
folder until one fails, which kills it. A mutant that survives is a rule without a test, or a change
without an effect.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2]
MOST_SECONDS = 300  # for the tests of a mutant
# The tests of a package of bench/, if they have another name. Those of a benchmark have its name.
TESTS = {
    "benchmarks": ["test_plugin.py"],
    "runs": ["run"],
    "show": ["report/test_show.py"],
    "tasks": ["tasks", "scorers/test_thinking.py"],
    "scorers": ["scorers", "test_plugin.py", "run/test_costs.py"],
}
PAIRS: list[tuple[type, type]] = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn)),
    *((ast.Is, ast.IsNot), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)),
]
OPERATORS = dict(PAIRS) | {second: first for first, second in PAIRS}


def mutate(node: ast.AST) -> str:
    """Change a node in place; return the kind of the change, or "" for a node without one."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        node.ops[0] = OPERATORS[type(node.ops[0])]()
        return "comparison"
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        node.op = OPERATORS[type(node.op)]()
        return "boolean" if isinstance(node, ast.BoolOp) else "arithmetic"
    if isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.UnaryOp):
        node.test = node.test.operand
        return "boolean"
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return "constant"
    if isinstance(node, ast.Return) and node.value:
        node.value = ast.Constant(None)
        return "return"
    return ""


def sample(folder: Path, count: int, seed: int) -> list[tuple[Path, int]]:
    """Choose changes at random, as many of each kind: a file and the number of a node."""
    generator = random.Random(seed)
    by_kind: dict[str, list[tuple[Path, int]]] = {}
    for path in sorted(folder.rglob("*.py")):
        for number, node in enumerate(ast.walk(ast.parse(path.read_text("utf-8")))):
            if kind := mutate(node):
                by_kind.setdefault(kind, []).append((path, number))
    for changes in by_kind.values():
        generator.shuffle(changes)
    in_turn = [by_kind[sorted(by_kind)[k % len(by_kind)]].pop() for k in range(count)]
    return sorted(in_turn)


def outcome(copy: Path, name: Path) -> str:
    """Run the tests of a module in a copy of the checkout, its own file of tests first."""
    package, folder = name.parts[1], copy / "tests"
    tests = [f"tests/{test}" for test in TESTS.get(package, [package])]
    if len(name.parts) == 2:
        tests = ["tests/test_config.py", "tests/test_imports.py", "tests/test_train.py"]
    elif package == "benchmarks" and len(name.parts) > 3:
        patterns = (f"*/{name.parts[2]}", f"*/test_{name.parts[2]}*.py")
        tests = [str(path) for pattern in patterns for path in folder.glob(pattern)]
    first = sorted(map(str, folder.rglob(f"test_{name.stem}.py")))
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *first, *tests]
    command += ["--doctest-modules", str(name)]
    setting = {"env": {**os.environ, "PYTHONPATH": str(copy), "BENCH_SHARED": "none"}, "cwd": copy}
    try:
        done = subprocess.run(command, **setting, capture_output=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:  # an endless loop, or slow tests
        return "timed out"
    return "killed" if done.returncode else "survived"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--of", type=Path, default=Path("bench"), help="a folder of the package")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=20261128)
    options = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        shutil.copytree(HOME, copy, ignore=shutil.ignore_patterns(".git", ".venv", "site"))
        for path, number in sample(HOME / options.of, options.count, options.seed):
            name, source = path.relative_to(HOME), path.read_text("utf-8")
            tree = ast.parse(source)
            node: Any = list(ast.walk(tree))[number]
            before, kind = ast.unparse(node).partition("\n")[0], mutate(node)
            (copy / name).write_text(ast.unparse(tree), "utf-8")
            outcomes.append(outcome(copy, name))
            after = ast.unparse(node).partition("\n")[0]
            change = f"{name}:{node.lineno}, {kind}: {before}  ->  {after}"
            print(f"{outcomes[-1]:10}{change[:200]}", flush=True)
            (copy / name).write_text(source, "utf-8")
    print(f"\n{outcomes.count('killed')} of {len(outcomes)} killed")


if __name__ == "__main__":
    main()
