"""Chat templates that drop the question, do not end, or write the date."""

from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from bench.run import evaluate, repeat
from bench.scorers import load
from bench.scorers.local import chat_template
from tests.helpers.checkpoints import characters, save

PARTS = (
    "{% for m in messages %}{{ m['role'] }}: {% for part in m['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %} {% endfor %}"
)
DATED = (
    "{% for m in messages %}{{ m['role'] }} {{ strftime_now('%d %b %Y, %-d. %A') }}: "
    "{{ m['content'] }} {% endfor %}"
)


def saved(folder, template):
    coder = characters("[CLS] $A")
    coder.chat_template = template
    return str(save(folder, "LlamaForCausalLM", coder))


class Later(date):
    """A calendar that is 40 days ahead."""

    @classmethod
    def today(cls):
        return cls.fromordinal(date.today().toordinal() + 40)


@pytest.mark.parametrize(
    "template", ["hello", "{% for m in messages %}{{ m['role'] }}{% endfor %}"]
)
def test_a_template_that_drops_the_question_is_refused(tmp_path, refusal, template):
    assert "leaves out the question" in refusal(load, saved(tmp_path, template))


def test_a_template_of_parts_gets_parts(tmp_path):
    scorer = load(saved(tmp_path, PARTS))
    assert scorer.chat.render("who is it?") == "user: who is it? "
    assert scorer.chat.render(("a", "b", "c")) == "user: a assistant: b user: c "


def test_a_run_is_continued_and_repeated_with_its_own_date(own_folder, monkeypatch):
    options = {"categories": ["gender"], "limit": 4, "read": "letters"}
    folder = saved(own_folder / "model", DATED)
    first = evaluate("cbbq", folder, out="first", **options)
    records = first.records.drop(columns="seconds")
    Path("first/records/answers.parquet").unlink()
    monkeypatch.setattr(chat_template, "date", Later)
    continued = evaluate("cbbq", folder, out="first", **options)
    repeated = repeat("first", out="again")
    for run in (continued, repeated):
        assert run.metadata["model"]["prompt_date"] == date.today().isoformat()
        pd.testing.assert_frame_equal(run.records.drop(columns="seconds"), records)
