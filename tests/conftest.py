"""Fixtures of several test files: folders of data and of users, refusals, servers."""

import os
import re
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import nbval.kernel
import pytest
from hypothesis import settings

from bench.core.errors import BadInput

# Before torch is loaded: for small models one thread is faster than several, which wait for each
# other. Commands and notebooks that the tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What the user has fetched is no part of the tests, nor of commands and notebooks that they start.
OWN_DATA = tempfile.TemporaryDirectory(prefix="data-")
os.environ["XDG_DATA_HOME"] = OWN_DATA.name
os.environ.pop("BENCH_DATA", None)
os.environ.pop("OPENAI_API_KEY", None)
# Kernels of several workers would write one history and one profile, and read the user's settings.
OWN_IPYTHON = tempfile.TemporaryDirectory(prefix="ipython-")
os.environ["IPYTHONDIR"] = OWN_IPYTHON.name
# The modules beside the notebooks of curation.
sys.path.append(str(Path(__file__).parents[1] / "notebooks/curation"))
# Commands that the tests start inherit it; what a shell starts in the background ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine makes a single example slow now and then.
settings.register_profile("bench", deadline=None, max_examples=25)
settings.load_profile("bench")

# A package of its own, with a notebook that needs it installed.
collect_ignore = ["plugin"]


def pytest_configure():
    """Give nbval's kernels a folder of runs, and start a kernel again that dies before it replies.

    jupyter_client lets go of its free ports until the kernel is up; another worker may take one.
    """
    start = nbval.kernel.start_new_kernel
    folder = str(Path(__file__).parents[1] / "reports/notebooks")

    def start_again(*args, **kwargs):
        kwargs["env"] = {**os.environ, "BENCH_REPORTS": folder}
        with suppress(RuntimeError):
            return start(*args, **kwargs)
        return start(*args, **kwargs)

    nbval.kernel.start_new_kernel = start_again


def pytest_ignore_collect(collection_path, config):
    """Do not import files if all of their tests are left out, for example the slow ones."""
    if collection_path.suffix != ".py":
        return None
    left_out = set(re.findall(r"not (\w+)", config.getoption("markexpr")))
    text = collection_path.read_text("utf-8")
    marks = re.findall(r"^pytestmark = .*?pytest\.mark\.(\w+)", text, re.M)
    return True if left_out.intersection(marks) else None


def pytest_collection_modifyitems(items):
    """Mark all notebooks but the first as slow: their kernels take minutes."""
    for item in items:
        if item.path.suffix == ".ipynb" and item.path.stem != "00_start":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def shared():
    """The folder `shared` beside the project, or where BENCH_SHARED points."""
    folder = Path(os.environ.get("BENCH_SHARED") or Path(__file__).parents[1].parent / "shared")
    if not (folder / "data").is_dir():
        pytest.skip("the shared data are not beside the project (set BENCH_SHARED)")
    return folder


@pytest.fixture
def user(tmp_path, monkeypatch):
    """An empty data folder of the user."""
    folder = tmp_path / "user"
    monkeypatch.setattr("bench.data.user_folder", lambda: folder)
    monkeypatch.delenv("BENCH_DATA", raising=False)
    return folder


@pytest.fixture
def own_folder(user, tmp_path, monkeypatch):
    """A working folder of the test's own, from which no data but the samples are found."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bench(own_folder, monkeypatch, capsys):
    """`bench(call)` in a folder of its own: status, standard output, standard error."""
    from tests.helpers.recorded import command

    return lambda call: command(monkeypatch, capsys, *call.split())


@pytest.fixture
def small_blocks(own_folder, monkeypatch):
    """Blocks of 16 requests in a working folder of the test's own."""
    monkeypatch.setattr("bench.run.ask.BLOCK_REQUESTS", 16)


@pytest.fixture(scope="session")
def refusal():
    """`refusal(function, argument...)`: the line of the BadInput that the call has to raise."""

    def message(call, *args, **kwargs):
        with pytest.raises(BadInput) as caught:
            call(*args, **kwargs)
        assert "\n" not in str(caught.value), "a message is one line"
        return str(caught.value)

    return message


@pytest.fixture
def serve(monkeypatch):
    """`serve(behave)`: a server of OpenAI's protocol that runs until the test ends."""
    from openai import _base_client

    from bench.scorers.endpoint import client
    from tests.helpers.answering import Server

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(_base_client, "INITIAL_RETRY_DELAY", 0.001)
    monkeypatch.setattr(client, "BROKEN_WAIT", 0.001)
    servers = []

    def start(behave, able=None):
        servers.append(Server(behave, able))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def waits(monkeypatch):
    """How many seconds an endpoint's sender would have waited, each time; it goes on at once."""
    from openai import _base_client

    waited = []

    async def at_once(seconds):
        waited.append(seconds)

    monkeypatch.setattr(_base_client.anyio, "sleep", at_once)
    return waited


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A server of the Hub's protocol, which huggingface_hub asks, beside an empty cache."""
    from huggingface_hub import constants

    from tests.helpers.hub_server import HubServer

    server = HubServer()
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    # huggingface_hub reads the environment only once.
    changes = {"ENDPOINT": server.url, "HUGGINGFACE_CO_URL_TEMPLATE": template}
    changes |= {"HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": False}
    for name, value in changes.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield server
    server.stop()
