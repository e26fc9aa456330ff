"""Writing TOML: whatever is written is read back, and people can read it."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from bench.data.readers import to_toml

# Characters that mean something to TOML, among any others.
TEXT = st.text(
    st.sampled_from("\"'\\\n\r\t\x7f\0 #=[].中") | st.characters(exclude_categories=["Cs"])
)
VALUE = (
    TEXT
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
TABLE = st.recursive(
    st.dictionaries(TEXT, VALUE),
    lambda inner: st.dictionaries(
        TEXT, VALUE | inner | st.lists(inner, max_size=3) | st.lists(VALUE, max_size=3)
    ),
    max_leaves=8,
)


@given(TABLE)
def test_whatever_is_written_is_read_back(table: dict[str, object]) -> None:
    text = to_toml(table)
    assert tomllib.loads(text) == table


def test_people_can_read_it() -> None:
    table = {
        "gpt-3.5": {"prompt": "一\n二"},
        "version": "1",
        "judge": {"criteria": [{"weight": 0.5}, {}]},
    }
    assert to_toml(table).splitlines() == [
        'version = "1"',
        "",
        '["gpt-3.5"]',
        'prompt = """',
        "一",
        '二"""',
        "",
        "[judge]",
        "",
        "[[judge.criteria]]",
        "weight = 0.5",
        "",
        "[[judge.criteria]]",
    ]
