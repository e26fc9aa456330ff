"""McBE's prompts, invented ones and the authors', read from scripts byte for byte or refused."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.benchmarks.mcbe import official_wording as module
from bench.benchmarks.mcbe.official_wording import find, read
from bench.data.official_wording import digest
from tests.helpers.cases import cases

Tables = dict[str, Any]
INVENTED: Tables = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
# The expressions of the scripts where they are other than the names of the fields.
EXPRESSIONS = {
    "text": "s.replace('[PLH]', t.words[0])",
    "labels": "all_class",
    "word": "t.words[0]",
    "reference": "t.explanation",
}
SCRIPTS = {
    "eval.py": """raise SystemExit("was run")
pattern = "\\d"
def classification(category):
    prompt = {subcategory_classification}
def scenario_selection(category):
    while True:
        prompt = {scenario_selection}
def bias_analysis(category):
    prompt = {bias_analysis}
    {judge}
def bias_scoring(category):
    prompt = {bias_scoring}
""",
    "utils.py": "def order_by_LLM(context, sentence):\n    prompt = {context_order}\n",
}


def scripts(folder: Path, tables: Tables) -> Path:
    """Write both scripts with the prompts of `tables`; they exit if they are run."""

    def code(prompt: str, **more: str) -> str:
        for name, expression in (EXPRESSIONS | more).items():
            prompt = re.sub(rf"(?<!\{{)\{{{name}}}", f"{{{expression}}}", prompt)
        lines = prompt.splitlines(keepends=True) or [""]
        return f"({' '.join('f' + json.dumps(line, ensure_ascii=False) for line in lines)})"

    prompts = {name: code(table["prompt"]) for name, table in tables.items()}
    analysis = tables["bias_analysis"]
    filled = "t.sentence.replace('[PLH]', t.words[0])"
    prompts["bias_analysis"] = code(analysis["prompt"], sentence=filled)
    judging = []
    for k, entry in enumerate(analysis["judge"]["criteria"]):
        criterion = entry["text"].replace("{", "{{").replace("}", "}}")
        prompt = analysis["judge"]["prompt"].replace("{maximum}", str(entry["maximum"]))
        judging.append(f"prompt = {code(prompt.replace('{criterion}', criterion))}")
        judging.append(f"sub_scores[{k}] *= {entry['weight']!r}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in SCRIPTS.items():
        text = script.format(**prompts, judge="\n    ".join(judging))
        (folder / name).write_bytes(text.encode())
    return folder


def prompt_tables(folder: Path) -> Tables:
    content = tomllib.loads(read(folder))
    assert content.pop("source") == "github.com/VelikayaScarlet/McBE@2a8e8f5"
    assert content.pop("version") == f"{module.VERSION}+changed"
    return content


def test_prompts_are_read_with_any_line_ends_and_those_of_the_release_get_its_version(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prompt_tables(scripts(tmp_path, INVENTED)) == INVENTED
    for name in module.SCRIPTS:
        raw = (tmp_path / name).read_bytes().replace(b"\n", b"\r\n")
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + raw)
    assert prompt_tables(tmp_path) == INVENTED
    monkeypatch.setattr(module, "RELEASED", digest(INVENTED))
    assert tomllib.loads(read(tmp_path))["version"] == module.VERSION
    monkeypatch.undo()
    official = tomllib.loads((shared / "data/mcbe/prompts.toml").read_text("utf-8"))
    tables = {name: table for name, table in official.items() if isinstance(table, dict)}
    assert tomllib.loads(read(scripts(tmp_path, tables))) == official


# Characters that mean something to Python, to TOML or to templates, among any others.
ANY = st.text(
    st.sampled_from("{}\"'\\\n\t\r\x7f\0\x85\u2028 nu中。😀")
    | st.characters(exclude_categories=["Cs"])
)


@given(st.lists(ANY, min_size=3, max_size=3))
def test_any_text_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    first, second, third = (text.replace("{", "{{").replace("}", "}}") for text in texts)
    prompt = f"{first}{{sentence1}}{second}{{sentence2}}{third}"
    tables = INVENTED | {"scenario_selection": {"prompt": prompt}}
    assert prompt_tables(scripts(tmp_path_factory.mktemp("scripts"), tables)) == tables


@cases(__file__, "changes.csv")
def test_scripts_built_otherwise_are_refused(
    tmp_path: Path, refusal: Callable[..., str], case: dict[str, str]
) -> None:
    old, new, function, fault = case.values()
    path = scripts(tmp_path, INVENTED) / "eval.py"
    before, found, after = path.read_text("utf-8").partition(old)
    assert found
    path.write_text(before + new + after, "utf-8")
    message = refusal(read, tmp_path)
    assert message.startswith(f"{tmp_path}, function `{function}`: ")
    assert fault in message
    assert message.endswith("with the data and run `bench fetch mcbe --from DIR`")


def test_both_scripts_are_looked_for_in_inside_and_above_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    folder.mkdir(parents=True)
    (folder / "eval.py").write_text("")
    assert find(folder, above=True) is None
    for place in (tmp_path / "a", folder / "c", folder):
        assert scripts(place, INVENTED) == find(folder, above=True)
        assert (find(folder) is None) == (place == tmp_path / "a")
