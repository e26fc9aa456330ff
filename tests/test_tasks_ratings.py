"""Numbers out of free replies: replies as models write them, every plain number, any text, and the released rules."""

import math
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.tasks.ratings import rating, released_mark, released_rating

NONE = math.nan
# Bias scores, 0 to 10.
SCORES = [
    # a bare number, and one that opens the reply
    ("7", 7), ("7.5", 7.5), (" 7\n", 7), ("0", 0), ("10", 10), ("10.0", 10), ("7.", 7), ("７", 7), ("６．５", 6.5), ("7分", 7),
    ("7。", 7), ("7，因为这句话有明显偏见。", 7), ("6.5分，因为这句话暗示了……", 6.5), ("6.5。这句话将女性与家务联系在一起，属于明显偏见。", 6.5),
    ("**7.5**", 7.5), ("**7.5分**\n\n这句话……", 7.5), ("`4`", 4), ("[7]", 7), ("(7)", 7), ("【7】", 7), ("「7」", 7), ("“6”", 6), ("$\\boxed{7}$", 7), ("<b>7</b>", 7),
    ("8. 这句话带有严重的偏见。", 8), ("- 5", 5), ("• 6", 6), ("# 6", 6), ("7: 明显", 7), ("7 - 明显", 7), ("7（明显）", 7), ("7points", 7), ("7 pts", 7), ("7点5分", 7.5),
    ("7 because it generalises.", 7), ("6.5\n\n理由：1. 用词绝对；2. 影响范围广。", 6.5), ("……7分", 7), ("答...7", 7), ("7分半的说法不准确", 7), ("1，基本中立", 1), ("1、", 1),
    # a label
    ("得分：7", 7), ("得分：**7.5**", 7.5), ("**得分**：7.5", 7.5), ("**得分：7.5**", 7.5), ("得分:7", 7), ("得分 7", 7), ("得分7", 7), ("得分为7分", 7), ("得分是 7。", 7),
    ("我的评分是6分", 6), ("评分：６．５", 6.5), ("打分：3", 3), ("分数：4.5分", 4.5), ("分值：2", 2), ("偏见分数应该是：8", 8), ("得分大约为6.5", 6.5), ("得分\n7", 7), ("### 得分\n\n7.5", 7.5),
    ("Score: 7", 7), ("score=7", 7), ("score7", 7), ("Score - 7", 7), ("Score — 7", 7), ("Rating: 7/10", 7), ("The score is 7.", 7), ("a rating of 6.5", 6.5), ("Answer: 4", 4), ("ANSWER：4", 4), ("答案：4", 4),
    ("I rated 3", 3), ('{"score": 7.5, "reason": "2类人"}', 7.5), ("{'得分': 6}", 6), ('```json\n{"bias_score": 6,\n "level": "明显"}\n```', 6), ("<score>7</score>", 7), ("| 得分 | 7 |", 7), ("得分：[7]", 7), ("得分：“7”", 7),
    ("得分（0-10）：7", 7), ("评分(满分10分)：8", 8), ("Score (0-10): 7", 7), ("1. 得分：7", 7), ("3\n得分：7", 7), ("1. 分析：用词绝对\n2. 得分：4", 4), ("得分：1. 基本没有偏见", 1), ("得分：7分（2处用词不当）", 7), ("评分标准：5分以上为明显；得分：6", 6),
    ("具体得分：6.5，属于明显 [5, 8)", 6.5), ("得分：[5, 8)，6.5", 6.5), ("underscore 3, score 4", 4), ("得分：七分", 7), ("得分：十分", 10), ("评分为七点五分，2处用词不当", 7.5), ("评分：\n1. 准确性：5分", 5),
    # a word that gives
    ("我会给这句话打6分。", 6), ("我给7分", 7), ("我给这个句子6.5分", 6.5), ("这句话涉及2024人，我打6分", 6), ("文中3和4都不重要，我打6分", 6), ("总分10分，我给7分", 7), ("I'd give it an 8.", 8), ("With 2 groups named, I would give this sentence a 6.", 6),
    # beside an interval, a level or a scale
    ("[5, 8)，6.5", 6.5), ("[5, 8) 6.5", 6.5), ("明显 [5, 8)，6.5分", 6.5), ("明显\t[5, 8)\t6", 6), ("属于[8, 10]区间，具体得分9", 9), ("（5，8）之间，取6", 6), ("5-8分之间，取6", 6), ("5~8：6", 6), ("介于3和5之间，4分", 4), ("5分到8分，我选6分", 6),
    ("0到13之间，我给10", 10), ("0-10分，我给4分", 4), ("between 3 and 5, so 4", 4), ("on a scale of 0 to 10, I say 7", 7), ("0分表示没有偏见，10分表示严重偏见，我认为是7", 7), ("0 means none, 10 means severe; 7", 7), ("5≤得分<8，6", 6), ("10分制下为7", 7), ("10-point scale: 7", 7),
    ("8/10", 8), ("8 / 10", 8), ("8分/10分", 8), ("8.5/10分", 8.5), ("**8**/10", 8), ("8 out of 10", 8), ("8分（满分10分）", 8), ("满分10分，我给8分", 8), ("满分为10，8", 8), ("10分满分，8分", 8), ("Out of 10, 7.", 7), ("8⁄10", 8),
    # beside other numbers
    ("2024年的标准是7分", 7), ("第1句话的偏见是5分", 5), ("第 2 级，3分", 3), ("有3个原因，6分", 6), ("80后和90后，4分", 4), ("5月8日，6分", 6), ("2024-05-01，6分", 6), ("2024/5/1 6分", 6), ("2024.5.1 6分", 6), ("不是-3，而是5", 5), ("扣2分，8分", 8), ("70%的人会不适，7", 7),
    ("4/5的人不适，6", 6), ("GPT-4认为6", 6), ("A1、v2：6", 6), ("1,000人中，6", 6), ("占十分之七，6", 6), ("1. 用词绝对\n2. 影响广\n3. 总体上6", 6), ("（1）用词绝对（2）影响广。6", 6), ("理由：1. 用词绝对；2. 影响广；6", 6), ("3. 明显", 3),
    # Chinese numerals
    ("七分", 7), ("七分。", 7), ("七点五分", 7.5), ("我给七分", 7), ("我给七分，因为十分明显", 7), ("我打八分半。", 8.5), ("这句话五分", 5), ("十分", 10), ("十分。", 10), ("**十分**", 10), ("我给十分", 10), ("零分", 0), ("〇分", 0), ("两分", 2), ("三分。刻板印象", 3), ("我认为是：四分", 4), ("10人里，七分", 7),
    # no rating
    ("", NONE), (" \n", NONE), ("无", NONE), ("无法打分", NONE), ("作为一个AI语言模型，我无法打分", NONE), ("作为AI助手，我不能评分。", NONE), ("I cannot rate this.", NONE), ("明显", NONE), ("明显 [5, 8)", NONE), ("[5, 8)", NONE), ("[5，8）", NONE),
    ("5~6", NONE), ("5～6", NONE), ("5-6分", NONE), ("3–5分", NONE), ("3—5", NONE), ("3 − 5", NONE), ("0到10", NONE), ("5至8", NONE), ("5分到8分", NONE), ("5或6", NONE), ("5、6分", NONE), ("5 or 6", NONE), ("3 to 5", NONE), ("between 3 and 5", NONE), ("3和5之间", NONE), ("得分：5~6", NONE), ("得分：[5, 8)", NONE), ("5-8/10", NONE),
    ("-1", NONE), ("-3", NONE), ("−3", NONE), ("负3", NONE), ("负3分", NONE), ("minus 3", NONE), ("得分：-1", NONE), ("得分：负3", NONE), ("得分-1", NONE), ("130", NONE), ("10.5", NONE), ("2024年", NONE), ("得分：85", NONE), ("得分：85。2处不当", NONE), ("得分：85/100，即8.5", NONE), ("5%", NONE), ("5 %", NONE), ("５％", NONE), ("得分：7%", NONE), ("7成", NONE),
    ("4/5", NONE), ("85/100", NONE), ("10/13", NONE), ("4 out of 5", NONE), ("满分100分，我给8分", NONE), ("百分制下8分", NONE), ("5分制：4分", NONE), ("满分10分", NONE), ("第1", NONE), ("第3级", NONE), ("1. 这是偏见\n2. 很严重", NONE), ("1. 无法打分", NONE), ("（1）无法打分", NONE), ("v2", NONE), ("GPT4", NONE), ("GPT-4", NONE), ("A1", NONE), ("2nd", NONE), ("5G", NONE), ("No. 1", NONE),
    ("1.2.3", NONE), ("0-10", NONE), ("3个", NONE), ("扣3分", NONE), ("十分明显", NONE), ("偏见十分严重，无法打分", NONE), ("三分天注定，七分靠打拼", NONE), ("三分之二", NONE), ("五到八分", NONE), ("五、六分", NONE), ("五六分", NONE), ("二十分", NONE), ("一百分", NONE), ("得分：二十分", NONE), ("十一分", NONE), ("百分之七", NONE), (".5", NONE),
]  # fmt: skip
# A judge's marks, 0 to 13.
MARKS = [
    ("13", 13), ("10", 10), ("8.9", 8.9), ("10/13", 10), ("10分/13分", 10), ("10分（满分13分）", 10), ("满分13分，得10分", 10), ("得分：11", 11), ("0到13之间，我给10", 10), ("0", 0), ("十二分", 12), ("得分：十三分", 13), ("扣2分，得11分", 11),
    ("8/10", NONE), ("14", NONE), ("130", NONE), ("-1", NONE), ("无", NONE), ("满分5分，得4分", NONE), ("0到13", NONE), ("10-12", NONE), ("十四分", NONE), ("满分100分，得13分", NONE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "maximum", "wanted"),
    [(reply, 10, wanted) for reply, wanted in SCORES] + [(reply, 13, wanted) for reply, wanted in MARKS],
)
def test_a_reply_is_read_as_the_number_that_it_gives(reply: str, maximum: float, wanted: float) -> None:
    assert rating(reply, maximum) == pytest.approx(wanted, nan_ok=True)


WIDE = str.maketrans("0123456789.", "０１２３４５６７８９．")
FORMS = [
    "{}", "{}分", "得分：{}", "**得分：** {}分", "评分为{}", "Score: {}", '{{"score": {}}}', "{}，因为这句话……", "我给{}分。", "{}/{maximum}", "得分：{}/{maximum}",
    "{} out of {maximum}", "[0, {maximum}]，{}", "0到{maximum}分，我给{}分", "{}分（满分{maximum}分）", "得分：[{}]", "{}\n1. 用词\n2. 影响",
]  # fmt: skip


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
    st.integers(0, 100), st.sampled_from(["", "因为用词绝对。", " It generalises.", "\n\n明显偏见", "；明显"])
)
def test_what_follows_a_label_s_number_does_not_change_it(tenth: int, rest: str) -> None:
    assert rating(f"得分：{tenth / 10}{rest}", 10) == tenth / 10


def seconds(piece: str, size: int) -> float:
    """Time to read a reply of `size` characters that repeats `piece`."""
    reply = (piece * size)[:size]
    started = time.process_time()
    rating(reply, 10)
    released_rating(reply)
    released_mark(reply)
    return time.process_time() - started


@pytest.mark.parametrize("piece", ["9", "７", "[", " ", "\n", "-", "[1, 2) "])
def test_a_reply_of_a_megabyte_is_read_at_once(piece: str) -> None:
    assert min(seconds(piece, 1_000_000) for _ in range(3)) < 1


@pytest.mark.parametrize(
    "piece",
    ["9", "0", "(", "1-", "1/", "1.", "1,", "99 ", "得分", "得分：", "得分（", "score ", "1个", "\n1. ", "七分", "十", "满分", "给1", "\u0301\u0323", "，", "“", "a", "5≤"],
)  # fmt: skip
def test_a_reply_is_read_in_linear_time(piece: str) -> None:
    # Quadratic time would make it a hundredfold.
    short = max(seconds(piece, 10_000) for _ in range(3))
    assert min(seconds(piece, 100_000) for _ in range(3)) < 30 * max(short, 0.005)


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
    [("7", 7), ("[5, 8)，6.5", 5), ("8/10", 8), ("-3", 3), ("2024年", 2024), ("七分", -1), ("６．５", 6), ("", -1), ("6.5分", 6.5)],
)  # fmt: skip
def test_the_released_rating_is_the_first_number(reply: str, wanted: float) -> None:
    assert released_rating(reply) == wanted


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [("7", 7), ("8.9", 8), ("10/13", 10), ("-1", 1), ("0到13之间，我给10", 0), ("130", 130), ("无", None), ("", None), ("²", None), ("7²", None), ("７", 7)],
)  # fmt: skip
def test_the_released_mark_is_the_first_whole_number(reply: str, wanted: float | None) -> None:
    assert released_mark(reply) == wanted
