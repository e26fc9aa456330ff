"""Progress without a terminal is lines."""

from bench.core import progress


def test_where_no_bar_can_be_drawn_lines_say_how_far_it_is(monkeypatch, capsys):
    for name in ("LINE_INTERVAL", "BAR_DELAY"):
        monkeypatch.setattr(progress, name, 0.0)
    with progress.progress(7, "asking", "requests", done=2) as bar:
        bar.update(2)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("asking: 4 of 7 requests, ") for line in lines)
    assert all(line.endswith(" left") for line in lines)
