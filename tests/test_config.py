"""Options of a run: an error is a sentence that names the option as it was written."""

import pytest

from bench.config import RunConfig


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": 0}, "limit: 0 is not allowed; it has to be at least 1"),
        ({"limit": True}, "limit: True is not a whole number"),
        ({"temperature": float("inf")}, "inf is not allowed; it has to be a finite number"),
        ({"limits": {"jobs": 1}}, "option 'jobs' is unknown; allowed: concurrency, timeout, bud"),
        ({"answer_mode": "minds"}, "answer_mode 'minds' is unknown; allowed: text, letters, opt"),
        ({"presets": "paper"}, "did you mean preset?"),
        ({"settings": {"bos": 1}}, "settings: 1 is not a text; put quotes around it"),
    ],
)
def test_a_wrong_option_is_named_by_its_key_with_what_is_allowed(refusal, given, message):
    assert message in refusal(RunConfig.of, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_new_tokens": 0}, "--max-new-tokens: 0 is not allowed; it has to be at least 1"),
        ({"limits": {"budget_requests": 0}}, "--budget-requests: 0 is not allowed; it has to be"),
        ({"settings": {"bos": 1}}, "--set: 1 is not a text"),
    ],
)
def test_the_command_names_a_wrong_option_by_its_flag(refusal, given, message):
    assert refusal(RunConfig.of, given, command=True).startswith(message)


def test_an_option_that_is_none_keeps_its_default_and_off_is_no_thought():
    config = RunConfig.of({"limit": None, "thinking_tokens": False, "limits": {"timeout": 3}})
    assert config.changed() == {"thinking_tokens": 0, "limits": {"timeout": 3.0}}
