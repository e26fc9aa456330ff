"""Preset official as each released script of CBBQ counts: its lines, and the length of replies."""

import pytest

from bench import run
from bench.benchmarks.cbbq import scores as cbbq
from bench.config import RunConfig
from bench.run.plan import Plan

LIMITS = {"gpt-3.5": 1000, "belle": 200, "moss": 256, "bloomz": 128, "chatglm": 2048}
HEAD = 'version = "cbbq-scripts-95eaf2e"\nsource = "a test"\n'
PROMPT = "{context}{question}A.{ans0}B.{ans1}C.{ans2}"


@pytest.fixture
def prompts(tmp_path):
    """A file in the form of the fetched one, with text of our own, to be followed by a name."""
    tables = [*(LIMITS.keys() - {"belle"}), "belle-ambiguous", "belle-disambiguous"]
    lines = [f'["{name}"]\nunbiased_instruction = false\nprompt = "{PROMPT}"\n' for name in tables]
    (tmp_path / "prompts.toml").write_text(HEAD + "".join(lines), "utf-8")
    return f"{tmp_path / 'prompts.toml'}#"


@pytest.mark.parametrize("name", [*LIMITS, None])
def test_replies_may_be_as_long_as_the_script_lets_them_be(prompts, name):
    def limit(preset, **options):
        chosen = prompts + name if name else None
        given = {"model": "tiny:s", "preset": preset, "prompts": chosen, "limit": 1, **options}
        plan = Plan.make(RunConfig.of({"benchmark": "cbbq", "categories": ["gender"], **given}))
        asked = plan.requests(
            {"verbs": ("generate",), "reads": (), "judge_verbs": ()}, partial=False
        )
        (limit,) = {request.max_new_tokens for stage in asked.stages for request in stage}
        return limit

    assert limit("official") == (LIMITS[name] if name else 32)
    assert limit("robust") == 32
    assert limit("official", max_new_tokens=8) == 8


# Share of the letters below that count for the stereotype, and against it, by hand.
@pytest.mark.parametrize(
    ("name", "share"), [("moss", 0.25), ("bloomz", 0.25), ("gpt-3.5", 0.75), ("belle", 0.75)]
)
def test_moss_and_bloomz_read_the_first_line_alone(prompts, tmp_path, name, share):
    options = {"limit": 4, "categories": ["gender"], "tasks": ["ambiguous"], "out": tmp_path / "r"}
    asked = run.evaluate("cbbq", "simulated:", prompts=prompts + name, **options)
    replies = ["ab", "不知道\nA 或 B", "\nAB", "C\n"]
    table = cbbq.scoring(
        asked.records.assign(response=replies, error=""), asked.items, "official"
    ).table()
    scores = table[table.category == "all"].set_index("metric").score
    assert (scores["s_amb"], scores["reverse_amb"]) == pytest.approx((share, share))
