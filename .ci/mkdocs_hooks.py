"""Hooks of MkDocs: what the manual shows besides docs/, and a check of the pages that were built.

README.md is the first page, CHANGELOG.md and the notebooks with their outputs are pages, and tables
of options and scores, and the gallery, take the place of comments like `<!-- scores cbbq -->`.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.main import get_command

from bench import cli
from bench.benchmarks import get
from bench.config import RunConfig

HOME = Path(__file__).resolve().parents[1]
# Files of the top level that are pages.
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
BOOKS = [
    *sorted(HOME.glob("notebooks/*.ipynb")),
    *sorted(HOME.glob("notebooks/curation/*.ipynb")),
]
# Code cells with more lines are folded.
LINES = 12
# A link or picture to a file: its text, the file, its anchor.
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)#\s:]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"^<!-- (commands|gallery|options|scores) ?(\w*) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures that are not in docs/."""
    added: dict[str, str | bytes] = {
        place: (HOME / name).read_text("utf-8") for name, place in TOP.items()
    }
    added["site.css"] = (HOME / ".ci/site.css").read_text("utf-8")
    for path in sorted((HOME / ".github/pictures").iterdir()):
        added[f"pictures/{path.name}"] = path.read_bytes()
    for path in BOOKS:
        added |= notebook(path)
    for place, content in added.items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in tables, and lead links to files of the checkout to their pages."""
    uri = page.file.src_uri
    of_top = {place: name for name, place in TOP.items()}
    is_notebook = uri.startswith("notebooks/")
    if is_notebook or uri in ("changelog.md", "api.md"):
        page.meta["search"] = {"boost": 0.3}  # after the pages that explain
    source = HOME / of_top.get(uri, uri if is_notebook else f"docs/{uri}")

    def linked(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        path = Path(os.path.normpath(source.parent / target)).relative_to(HOME)
        if place := page_of(path):
            start = Path(uri).parent
            return f"{text}({Path(os.path.relpath(place, start)).as_posix()}{anchor})"
        if config.repo_url:
            return f"{text}({config.repo_url.rstrip('/')}/blob/HEAD/{path.as_posix()})"
        return text[1:-1]

    def filled(found: re.Match[str]) -> str:
        return "\n".join(TABLES[found[1]](found[2]) if found[2] else TABLES[found[1]]())

    # Every second part is code.
    parts = FENCED.split(markdown)
    parts[::2] = [TABLE.sub(filled, LINK.sub(linked, part)) for part in parts[::2]]
    return "".join(parts)


def page_of(path: Path) -> str:
    """Return where the site has a file of the checkout; "" if it has not."""
    name = path.as_posix()
    if path.parts[0] == "docs" or (path.parts[0] == "notebooks" and path.suffix == ".png"):
        return name.removeprefix("docs/")
    if path.parts[0] == "notebooks" and path.suffix == ".ipynb":
        return name.removesuffix(".ipynb") + ".md"
    return TOP.get(name) or (f"pictures/{path.name}" if path.match(".github/pictures/*") else "")


def notebook(path: Path) -> dict[str, str | bytes]:
    """Write an executed notebook as Markdown, and its pictures."""
    folder = path.parent.relative_to(HOME).as_posix()
    parts: list[str] = []
    pictures: dict[str, str | bytes] = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        tags = cell["metadata"].get("tags", [])
        parts.append(f"```python\n{text}\n```")
        if text.count("\n") >= LINES and "parameters" not in tags:
            parts[-1] = f"<details markdown><summary>Code</summary>\n\n{parts[-1]}\n\n</details>"
        for output in cell["outputs"]:
            data = output.get("data", {})
            html, plain = "".join(data.get("text/html", "")), "".join(output.get("text", ""))
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[f"{folder}/{name}"] = base64.b64decode(data["image/png"])
                parts.append(f"![{alternative(output)}]({name})")
            elif html:
                # Numbers would fill the index of the search.
                parts.append(html.replace("<table", "<table data-search-exclude"))
            elif plain.strip() and output["name"] == "stdout" and not plain.startswith("asking "):
                parts.append(f"```text\n{plain.strip()}\n```")
    return {f"{folder}/{path.stem}.md": "\n\n".join(parts) + "\n", **pictures}


def options() -> Iterator[str]:
    """Yield a table of the options of a run for each group of its help."""
    groups: dict[str, list[Any]] = {}
    for option in commands()["run"].params:
        groups.setdefault(option.rich_help_panel or "Most used", []).append(option)
    for title, group in groups.items():
        yield from [f"### {title}", "", *head("option", "in Python and in studies", "what it is")]
        for option in group:
            if option.name in RunConfig.model_fields:
                key = code(option.name)
            else:
                key = code(f"limits: {{{option.name}: N}}") if title == "Endpoints" else ""
            yield row(spelling(option), key, option.help)
        yield ""


def all_commands() -> Iterator[str]:
    """Yield a table of the commands, each with an example."""
    yield from head("command", "what it does", "for example")
    for name, command in commands().items():
        example = command.epilog.partition(":")[2].strip().splitlines()[0]
        yield row(code(f"bench {name}"), command.help, code(example))


def scores(benchmark: str) -> Iterator[str]:
    """Yield a table of the scores of a benchmark."""
    yield from head("score", "what it is", "best value", "source")
    for card in get(benchmark).metrics.cards:
        names = "<br>".join(map(code, card.metric.split(", ")))
        best = f"{card.ideal}<br>({card.range})"
        yield row(names, f"{card.definition}<br>{code(card.formula)}", best, card.source)


def gallery() -> Iterator[str]:
    """Yield the pictures of each notebook with the cells that draw them."""
    for path in BOOKS:
        place = path.relative_to(HOME).with_suffix("").as_posix()
        cells = json.loads(path.read_text("utf-8"))["cells"]
        title = next("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")
        yield from [f"## [{title.splitlines()[0].lstrip('# ')}]({place}.md)", ""]
        number = 0
        for cell in cells:
            outputs = cell.get("outputs", [])
            pictures = [one for one in outputs if "image/png" in one.get("data", {})]
            for output in pictures:
                number += 1
                yield from [f"![{alternative(output)}]({place}-{number}.png){{loading=lazy}}", ""]
            if pictures:
                yield from ["<details markdown><summary>The cell that draws it</summary>", ""]
                yield from ["```python", "".join(cell["source"]), "```", "", "</details>", ""]


def alternative(output: dict[str, Any]) -> str:
    """Return the alternative text of a picture, without brackets."""
    text = output["metadata"].get("image/png", {}).get("alt", "")
    return " ".join(re.sub(r"[][]", "", text).split())


TABLES = {"commands": all_commands, "gallery": gallery, "options": options, "scores": scores}


def commands() -> dict[str, Any]:
    """Return the commands of `bench` by name."""
    found: dict[str, Any] = get_command(cli.app).commands  # type: ignore[attr-defined]
    for command in found.values():
        command.complete()
    return found


def spelling(parameter: Any) -> str:
    """Return how an option is written, or the name of an argument."""
    if parameter.param_type_name == "argument":
        return code(parameter.metavar)
    return code(f"{parameter.opts[0]} {parameter.metavar or ''}".rstrip())


def code(text: str) -> str:
    """Write code that can stand in a table."""
    return f"<code>{escape(text)}</code>".replace("|", "&#124;")


def head(*names: str) -> list[str]:
    """Return the first two lines of a table."""
    return [row(*names), "|---" * len(names) + "|"]


def row(*cells: str) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "&#124;") for cell in cells) + " |"


class Links(HTMLParser):
    """What a page links to or loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a":
            self.links |= {given[name] for name in ("href",) if name in given}
        elif tag == "link" and given.get("rel") in ("canonical", "prev", "next", "edit"):
            pass
        else:
            self.loaded |= {given[name] for name in ("src", "href") if name in given}


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse pages with a link to nowhere, or that load something from another host."""
    site = Path(config.site_dir)
    pages = {path: Links(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    faults = []
    for path, page in pages.items():
        shown = path.relative_to(site)
        faults += [
            f"{shown} loads {one}"
            for one in sorted(page.loaded)
            if urlsplit(one).scheme in ("http", "https") or one.startswith("//")
        ]
        for link in sorted(page.links | page.loaded):
            scheme, host, target, _query, anchor = urlsplit(link)
            if scheme or host or path.name == "404.html":
                continue
            aim = Path(os.path.normpath(path.parent / unquote(target))) if target else path
            if aim.is_dir():
                aim /= "index.html"
            if not aim.is_file():
                faults.append(f"{shown} links to {link}, which is not there")
            # An anchor like `model=small` chooses among a report's answers.
            elif not anchor or "=" in anchor or aim not in pages:
                continue
            elif unquote(anchor) not in pages[aim].anchors:
                faults.append(f"{shown} links to {link}, an anchor that is not there")
    if faults:
        raise PluginError("\n".join(faults))
