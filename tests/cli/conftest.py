"""Calls of the command."""

import pytest

from tests.helpers.recorded import command


@pytest.fixture
def bench(own_folder, monkeypatch, capsys):
    """`bench(call, word...)` in a folder of its own: status, standard output, standard error."""
    return lambda call, *words: command(monkeypatch, capsys, *call.split(), *words)
