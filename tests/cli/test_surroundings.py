"""Folders that cannot be written: each command works without them, or ends with one sentence."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import __main__
from bench.core.errors import BadInput, RunFailed


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place where no folder can be made, for root either: it is a file."""
    place = tmp_path / "file"
    place.touch()
    monkeypatch.setenv("HOME", str(place / "home"))
    for name in ("MPLCONFIGDIR", "IPYTHONDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: place / "cache")
    yield place
    for name in ("MPLCONFIGDIR", "IPYTHONDIR"):
        os.environ.pop(name, None)


def test_without_a_home_matplotlib_and_ipython_get_a_temporary_folder(sealed: Path) -> None:
    __main__._use_writable_folders()
    assert Path(os.environ["MPLCONFIGDIR"]).is_dir()
    assert Path(os.environ["IPYTHONDIR"]).is_dir()


def test_a_home_that_can_be_written_is_used(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(sealed.parent))
    __main__._use_writable_folders()
    assert "MPLCONFIGDIR" not in os.environ


def test_a_report_that_cannot_be_written_asks_for_another_folder(sealed: Path) -> None:
    from bench.report.build import make

    with pytest.raises(BadInput, match="--out"):
        make(None, str(sealed / "report"))


def test_a_model_that_cannot_be_kept_says_where_the_cache_may_lie(sealed: Path) -> None:
    from bench.scorers.local.device import placement
    from bench.scorers.stand_ins.tiny import Tiny

    with pytest.raises(RunFailed, match="XDG_CACHE_HOME"):
        Tiny("s,seed=1", placement("cpu", None, None)).nll(["x"])


def test_words_are_cut_without_a_cache(sealed: Path, caplog: pytest.LogCaptureFixture) -> None:
    from bench.analyses import data_quality

    data_quality._segmenter.cache_clear()
    assert "护士" in data_quality._segmenter("zh")("护士照顾病人。")
    assert not caplog.records
