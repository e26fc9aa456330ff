"""Pages of a report, made from executed notebooks."""

from nbformat import v4, write

from bench.report import site


def test_a_section_whose_code_shows_nothing_is_left_out(tmp_path):
    shown = v4.new_output("display_data", {"text/html": "<p>a table</p>"})
    book = v4.new_notebook(
        cells=[
            v4.new_markdown_cell("# A title"),
            v4.new_code_cell("import bench"),
            v4.new_markdown_cell("## Asked"),
            v4.new_code_cell("show()", outputs=[shown]),
            v4.new_markdown_cell("## Not asked"),
            v4.new_markdown_cell("What this task measures."),
            v4.new_code_cell("show()"),
            v4.new_markdown_cell("## Be careful"),
        ]
    )
    write(book, tmp_path / "mcbe.ipynb")
    page = site.page("mcbe", "McBE", tmp_path / "mcbe.ipynb")
    assert page.title == "A title"
    assert [heading for _mark, heading in page.contents] == ["Asked", "Be careful"]
    assert "a table" in page.body
    assert "What this task measures" not in page.body


def test_the_cell_finding_gives_the_first_sentence_of_a_page(tmp_path):
    printed = v4.new_output("stream", name="stdout", text="A < B.\nC was left out.\n")
    cells = [
        v4.new_markdown_cell("# A title"),
        v4.new_code_cell("scores", outputs=[v4.new_output("execute_result", {"text/plain": "1"})]),
        v4.new_code_cell("print(...)", metadata={"tags": ["finding"]}, outputs=[printed]),
    ]
    write(v4.new_notebook(cells=cells), tmp_path / "trend.ipynb")
    page = site.page("trend", "Trend", tmp_path / "trend.ipynb")
    assert page.findings == ["A < B.", "C was left out."]
    assert "<strong>A &lt; B.</strong>" in page.body
    assert page.body.index("A &lt; B.") < page.body.index("scores")
