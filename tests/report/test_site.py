"""Pages of a report, made from executed notebooks."""

from nbformat import v4, write

from bench.report import site


def test_a_section_whose_code_shows_nothing_is_left_out(tmp_path):
    shown = v4.new_output("display_data", {"text/html": "<p>a table</p>"})
    cells = [v4.new_markdown_cell("# A title"), v4.new_code_cell("import bench")]
    cells += [v4.new_markdown_cell("## Asked"), v4.new_code_cell("show()", outputs=[shown])]
    cells += [v4.new_markdown_cell("## Not asked"), v4.new_markdown_cell("What it measures.")]
    cells += [v4.new_code_cell("show()"), v4.new_markdown_cell("## Be careful")]
    write(v4.new_notebook(cells=cells), tmp_path / "mcbe.ipynb")
    page = site.page("mcbe", "McBE", tmp_path / "mcbe.ipynb")
    assert page.title == "A title"
    assert [heading for _mark, heading in page.contents] == ["Asked", "Be careful"]
    assert "a table" in page.body
    assert "What it measures" not in page.body
