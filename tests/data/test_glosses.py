"""What the samples say in English: each item has it, and no line is without an item."""

import pytest

from bench import data
from bench.data.dataset import GLOSSES
from bench.data.readers import read_json_lines


@pytest.mark.parametrize(
    ("benchmark", "categories", "parts"),
    [
        ("mcbe", None, ["item_id"]),
        ("cbbq", None, ["cluster"]),
        ("nli_coal", ["zh"], ["cluster", "term", "frame"]),
    ],
)
def test_every_sample_has_a_gloss_and_every_gloss_a_sample(benchmark, categories, parts):
    source = data.find(benchmark, "samples")
    items = data.load(source, categories)
    lines = [line for _n, line in read_json_lines(source.folder / GLOSSES)]
    assert sorted(line["id"] for line in lines) == sorted(
        {getattr(item, part) for item in items for part in parts}
    )
    assert all(line["english"] and line["english"].isprintable() for line in lines)
    assert GLOSSES not in set(data.check(source).file)
