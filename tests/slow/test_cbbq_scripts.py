"""Preset official as each released script of CBBQ counts: its lines, and the length of replies."""

from pathlib import Path

import pytest

from bench import run
from bench.config import RunConfig
from bench.metrics import cbbq
from bench.run.plan import Plan

VERSION = "cbbq-scripts-95eaf2e"
LIMITS = {"gpt-3.5": 1000, "belle": 200, "moss": 256, "bloomz": 128, "chatglm": 2048}
PROMPT = "{context}{question}A.{ans0}B.{ans1}C.{ans2}"


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    """A file in the form of the fetched one, with text of our own, to be followed by a name."""
    tables = [*(LIMITS.keys() - {"belle"}), "belle-ambiguous", "belle-disambiguous"]
    lines = [f'version = "{VERSION}"', 'source = "a test"']
    for name in tables:
        lines += [f'["{name}"]', "unbiased_instruction = false", f'prompt = "{PROMPT}"']
    (tmp_path / "prompts.toml").write_text("\n".join(lines), "utf-8")
    return f"{tmp_path / 'prompts.toml'}#"


def limits(prompts: str | None, preset: str, **options: object) -> set[int]:
    given = {"benchmark": "cbbq", "model": "tiny:s", "preset": preset, "prompts": prompts}
    plan = Plan.make(RunConfig.of(**given, categories=["gender"], limit=1, **options))
    asked = plan.requests(("generate",), (), (), partial=False)
    return {request.max_new_tokens for stage in asked.stages for request in stage}


def test_replies_may_be_as_long_as_the_script_lets_them_be(prompts: str) -> None:
    for name, limit in LIMITS.items():
        assert limits(prompts + name, "official") == {limit}
        assert limits(prompts + name, "robust") == {32}
        assert limits(prompts + name, "official", max_new_tokens=8) == {8}
    assert limits(None, "official") == {32}


def test_a_run_keeps_its_limit(prompts: str, tmp_path: Path) -> None:
    options = {"limit": 2, "categories": ["gender"], "prompts": f"{prompts}moss"}

    def evaluated(preset: str, out: str) -> run.Run:
        place = tmp_path / out
        return run.evaluate("cbbq", "simulated:bias=1", preset=preset, out=place, **options)

    first, again = evaluated("official", "a"), evaluated("robust", "a")
    assert first.about["asked"]["max_new_tokens"] == 256
    assert again.about["identity"] == first.about["identity"]
    repeated = run.repeat(first.folder, out=tmp_path / "b")
    assert repeated.about["asked"]["max_new_tokens"] == 256
    # A run that was asked with 32 tokens goes on so.
    older = evaluated("robust", "c")
    assert older.about["asked"]["max_new_tokens"] is None
    evaluated("official", "c")
    assert run.repeat(older.folder, out=tmp_path / "d").about["asked"]["max_new_tokens"] is None


@pytest.mark.parametrize(
    ("name", "share"),
    # Share of the letters below that count for the stereotype, and against it, by hand.
    [("moss", 0.25), ("bloomz", 0.25), ("gpt-3.5", 0.75), ("belle", 0.75)],
)
def test_moss_and_bloomz_read_the_first_line_alone(
    prompts: str, tmp_path: Path, name: str, share: float
) -> None:
    options = {"limit": 4, "categories": ["gender"], "tasks": ["ambiguous"]}
    asked = run.evaluate(
        "cbbq", "simulated:", prompts=prompts + name, out=tmp_path / "run", **options
    )
    replies = ["ab", "不知道\nA 或 B", "\nAB", "C\n"]
    records = asked.records.assign(response=replies, error="")
    table = cbbq.score_records(records, asked.items, "official")
    scores = table[table.category == "all"].set_index("metric").score
    assert (scores["s_amb"], scores["reverse_amb"]) == pytest.approx((share, share))
