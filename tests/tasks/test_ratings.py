"""Numbers out of free replies: replies as models write them, every plain number, any text, and the released rules."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.tasks.ratings import rating, released_mark, released_rating

WIDE = str.maketrans("0123456789.", "０１２３４５６７８９．")
FORMS = [
    "{}",
    "{}分",
    "得分：{}",
    "**得分：** {}分",
    "评分为{}",
    "Score: {}",
    '{{"score": {}}}',
    "{}，因为这句话……",
    "我给{}分。",
    "{}/{maximum}",
    "得分：{}/{maximum}",
    "{} out of {maximum}",
    "[0, {maximum}]，{}",
    "0到{maximum}分，我给{}分",
    "{}分（满分{maximum}分）",
    "得分：[{}]",
    "{}\n1. 用词\n2. 影响",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("maximum", [5, 10, 13])
def test_every_number_of_a_scale_is_read_back_in_every_form(form: str, maximum: int) -> None:
    for tenth in range(10 * maximum + 1):
        for number in {f"{tenth / 10:g}", f"{tenth / 10}"}:
            for written in (number, number.translate(WIDE)):
                assert rating(form.format(written, maximum=maximum), maximum) == tenth / 10


@given(
    st.text(max_size=60)
    | st.text(alphabet="0123456789.．/-~，,：:()[]分十七点得满第负% \n１²½①", max_size=30),
    st.sampled_from([5, 10, 13]),
)
def test_any_text_gives_a_number_of_the_scale_or_none(reply: str, maximum: float) -> None:
    value = rating(reply, maximum)
    assert math.isnan(value) or 0 <= value <= maximum


@given(
    st.integers(0, 100),
    st.sampled_from(["", "因为用词绝对。", " It generalises.", "\n\n明显偏见", "；明显"]),
)
def test_what_follows_a_label_s_number_does_not_change_it(tenth: int, rest: str) -> None:
    assert rating(f"得分：{tenth / 10}{rest}", 10) == tenth / 10


@pytest.mark.parametrize(
    "piece",
    [
        "9",
        "0",
        "(",
        "1-",
        "1/",
        "1.",
        "1,",
        "99 ",
        "得分",
        "得分：",
        "得分（",
        "score ",
        "1个",
        "\n1. ",
        "七分",
        "十",
        "满分",
        "给1",
        "\u0301\u0323",
        "，",
        "“",
        "a",
        "5≤",
        "<",
        ">1",
        "如果",
        "如果1",
        "若;",
        "原本",
        "不是1",
        "最终",
        "最终给",
        "总",
        "final ",
        "标准1",
        "\n0分：a",
        "1分：a\n2分：a\n",
        "1+",
        "记1分",
        "得分7，",
    ],
)
def test_a_long_reply_is_read(piece: str) -> None:
    """In quadratic time this would take minutes."""
    reply = (piece * 100_000)[:100_000]
    value = rating(reply, 10)
    assert math.isnan(value) or 0 <= value <= 10
    released_rating(reply)
    released_mark(reply)


def digit(character: str) -> bool:
    """Whether Python's `re` takes a character for a digit."""
    return character.isdecimal()


def scanned(reply: str, fraction: bool) -> str:
    """The first run of digits, with a point and the digits after it where `fraction`; "" where there is none."""
    start = 0
    while start < len(reply) and not digit(reply[start]):
        start += 1
    end = start
    while end < len(reply) and digit(reply[end]):
        end += 1
    if fraction and end + 1 < len(reply) and reply[end] == "." and digit(reply[end + 1]):
        end += 1
        while end < len(reply) and digit(reply[end]):
            end += 1
    return reply[start:end]


def test_the_released_readings_follow_their_rules_on_random_replies() -> None:
    dice = random.Random(3)
    for _ in range(20_000):
        reply = "".join(dice.choices("0123456789..１９．²①分[](),-/ A٣", k=dice.randrange(9)))
        first = scanned(reply, fraction=True)
        assert released_rating(reply) == (float(first) if first else -1.0)
        whole = scanned(reply, fraction=False)
        stops = not whole or (all(c.isdigit() for c in reply) and any(not digit(c) for c in reply))
        assert released_mark(reply) == (None if stops else float(whole))


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("7", 7),
        ("[5, 8)，6.5", 5),
        ("8/10", 8),
        ("-3", 3),
        ("2024年", 2024),
        ("七分", -1),
        ("６．５", 6),
        ("", -1),
        ("6.5分", 6.5),
    ],
)
def test_the_released_rating_is_the_first_number(reply: str, wanted: float) -> None:
    assert released_rating(reply) == wanted


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("7", 7),
        ("8.9", 8),
        ("10/13", 10),
        ("-1", 1),
        ("0到13之间，我给10", 0),
        ("130", 130),
        ("无", None),
        ("", None),
        ("²", None),
        ("7²", None),
        ("７", 7),
    ],
)
def test_the_released_mark_is_the_first_whole_number(reply: str, wanted: float | None) -> None:
    assert released_mark(reply) == wanted
