"""Calls of the command."""

from collections.abc import Callable

import pytest

from tests.helpers.recorded import command


@pytest.fixture
def bench(own_folder, monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """`bench(call, word...)` in a folder of its own: status, standard output, standard error."""
    return lambda call, *words: command(monkeypatch, capsys, *call.split(), *words)
