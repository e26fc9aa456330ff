"""What continuous integration installs: named once, pinned, and with hashes."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOME = Path(__file__).parents[1]
LINES = (HOME / ".ci/requirements.txt").read_text("utf-8").replace("\\\n", " ").splitlines()
PINS = [line for line in LINES if line and not line.startswith("#")]
CONSTRAINTS = (HOME / ".ci/constraints.txt").read_text("utf-8").splitlines()[1:]


def test_every_pin_has_one_version_and_hashes_of_its_files() -> None:
    for line in PINS:
        assert re.fullmatch(
            r"[\w.-]+==[\w.!+]+(\s*;[^;]*?)?(\s+--hash=sha256:[0-9a-f]{64})+", line.strip()
        ), line


def test_constraints_and_requirements_name_the_same_versions() -> None:
    """torch has no hash: which build fits depends on the machine."""
    with_hashes, constraints = versions(line.split()[0] for line in PINS), versions(CONSTRAINTS)
    assert constraints.pop("torch")
    assert with_hashes == constraints


def versions(lines: Iterable[str]) -> dict[str, str]:
    """The version of each package in lines like `numpy==2.4.6`."""
    pairs = [line.split("==") for line in lines]
    return {canonicalize_name(name): version for name, version in pairs}


def test_all_that_pyproject_names_is_pinned_as_it_allows() -> None:
    """Renew the pins with .ci/pin where this fails."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [
        Requirement(one)
        for one in (*project["dependencies"], *extras["test"], *extras["cluster"], *extras["words"])
    ]
    pinned = versions(CONSTRAINTS)
    for one in wanted:
        name = canonicalize_name(one.name)
        if name != "bias-workbench":
            assert name in pinned, f"{name} is not in .ci/constraints.txt; run .ci/pin"
            assert one.specifier.contains(pinned[name]), (
                f"{one}, and the pin is {pinned[name]}; run .ci/pin"
            )


def test_continuous_integration_checks_the_hashes() -> None:
    assert "--require-hashes -r .ci/requirements.txt" in (HOME / ".ci/run").read_text("utf-8")


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = {
        canonicalize_name(Requirement(line).name)
        for line in (*project["dependencies"], *extras["cluster"], *extras["words"])
    }
    imported = {
        name.partition(".")[0]
        for path in (HOME / "bench").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in modules(node)
    } - {"bench", "dask", *sys.stdlib_module_names}
    packages = packages_distributions()
    missing = {
        name
        for name in imported
        if name in packages and not declared & set(map(canonicalize_name, packages[name]))
    }
    assert missing <= {"lm_eval", "minicons", "axe_core_python"}


def modules(node: ast.AST) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
