"""How a project of one's own begins: `bench curate` writes the example's files, and never over anything."""

import pytest
from typer.testing import CliRunner

from bench import cli
from bench.core import places
from bench.core.errors import BadInput
from bench.curate import begin, cbbq, mcbe
from bench.data.nli_coal.language_pack_audit import check


@pytest.mark.parametrize(
    ("name", "known"), [("mcbe", "mcbe"), ("cbbq", "cbbq"), ("nli-coal", "nli_coal")]
)
def test_a_command_writes_what_a_project_begins_with(tmp_path, name, known):
    place = tmp_path / "mine"
    done = CliRunner().invoke(cli.app, ["curate", name, str(place)])
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [str(place / file) for file in begin.FILES[known]]
    notebook = places.NOTEBOOKS / f"{begin.NOTEBOOKS[known]}.ipynb"
    assert str(notebook) in done.stderr
    assert notebook.is_file()
    assert sorted(path.name for path in place.iterdir()) == sorted(begin.FILES[known])


def test_what_was_written_is_a_project(tmp_path):
    for name in begin.FILES:
        begin.copy(name, tmp_path / name)
    assert mcbe.check(mcbe.opened(tmp_path / "mcbe")).empty
    assert cbbq.faults(cbbq.opened(tmp_path / "cbbq")).empty
    assert "refused" not in set(check(tmp_path / "nli_coal", frames=False).kind)


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "drafts.csv").write_text("weeks of work", "utf-8")
    for place in (tmp_path, tmp_path / "drafts.csv"):
        with pytest.raises(BadInput, match="is not empty"):
            begin.copy("mcbe", place)
    assert (tmp_path / "drafts.csv").read_text("utf-8") == "weeks of work"


@pytest.mark.parametrize(("room", "name"), [(mcbe, "mcbe"), (cbbq, "cbbq")])
def test_a_folder_without_a_project_says_how_one_begins(tmp_path, room, name):
    with pytest.raises(
        BadInput, match=rf"is missing; a project begins with .*`bench curate {name} "
    ):
        room.opened(tmp_path)
