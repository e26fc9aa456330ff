"""What continuous integration installs: named once, pinned, and with hashes."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOME = Path(__file__).parents[1]
LINES = (HOME / ".ci/requirements.txt").read_text("utf-8").replace("\\\n", " ").splitlines()
PINS = [line for line in LINES if line and not line.startswith("#")]


def test_every_pin_has_one_version_and_hashes_of_its_files() -> None:
    for line in PINS:
        assert re.fullmatch(
            r"[\w.-]+==[\w.!+]+(\s*;[^;]*?)?(\s+--hash=sha256:[0-9a-f]{64})+", line.strip()
        ), line


def test_all_that_pyproject_names_is_pinned_as_it_allows() -> None:
    """Renew the pins with .ci/pin where this fails. torch is left out: which build fits depends on the machine."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        Requirement(one) for one in (*project["dependencies"], *project["optional-dependencies"]["test"])
    ]
    pinned = dict(line.split()[0].split("==") for line in PINS)
    pinned = {canonicalize_name(name): version for name, version in pinned.items()}
    for one in wanted:
        name = canonicalize_name(one.name)
        if name not in ("torch", "bias-workbench"):
            assert name in pinned, f"{name} is not in .ci/requirements.txt; run .ci/pin"
            assert one.specifier.contains(pinned[name]), f"{one}, and the pin is {pinned[name]}; run .ci/pin"


def test_continuous_integration_checks_the_hashes() -> None:
    assert "--require-hashes -r .ci/requirements.txt" in (HOME / ".ci/run").read_text("utf-8")
