"""Folders that cannot be written: each command works without them, or ends with one sentence."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import __main__
from bench.analyses import data_quality
from bench.core.errors import BadInput, RunFailed
from bench.report.build import make
from bench.scorers.local.device import placement
from bench.scorers.stand_ins.tiny import Tiny

VARIABLES = ("MPLCONFIGDIR", "IPYTHONDIR")


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place where no folder can be made, for root either: it is a file."""
    place = tmp_path / "file"
    place.touch()
    monkeypatch.setenv("HOME", str(place / "home"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: place / "cache")
    yield place
    for name in VARIABLES:
        os.environ.pop(name, None)


def test_without_a_home_matplotlib_and_ipython_get_a_temporary_folder(sealed, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(sealed.parent))
        __main__._use_writable_folders()
    assert "MPLCONFIGDIR" not in os.environ
    __main__._use_writable_folders()
    assert all(Path(os.environ[name]).is_dir() for name in VARIABLES)


def test_what_cannot_be_kept_says_where_it_may_lie(sealed, caplog) -> None:
    with pytest.raises(BadInput, match="--out"):
        make(None, str(sealed / "report"))
    with pytest.raises(RunFailed, match="XDG_CACHE_HOME"):
        Tiny("s,seed=1", placement("cpu", None, None)).nll(["x"])
    # Words are cut without a cache.
    data_quality._segmenter.cache_clear()
    assert "护士" in data_quality._segmenter("zh")("护士照顾病人。")
    assert not caplog.records
