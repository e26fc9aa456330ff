"""How text that others wrote is shown: what cannot be seen is named, what is long is cut with a word on how much is left out.

What is recorded stays whole. What models and files say reaches a terminal, a page and a table through here.
"""

import html
import json
import re
from collections.abc import Sequence

from bench.core.i18n import _

# What stands in a text and cannot be seen: control characters, escapes of terminals, turned directions, halves of
# characters, tags that spell words without a sign. Line breaks and tabs are left.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# Jupyter and browsers would set $...$ as mathematics.
PLAIN = "tex2jax_ignore mathjax_ignore"
# Letters of which a text in a language has most, and those languages that write in Chinese characters.
HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")
KANA = re.compile("[\u3041-\u30ff\uff66-\uff9d]")
HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
IN_HAN = ("zh", "yue", "ja")


def reveal_invisible(text: object) -> str:
    """A text in which what cannot be seen is named: \\x1b for an escape, \\u202e for a turned direction."""
    return INVISIBLE.sub(_named, str(text))


def shortened(text: object, most: int) -> str:
    """The first `most` characters of a text, visible, and how many there are if there are more."""
    whole = str(text)
    if len(whole) <= most:
        return reveal_invisible(whole)
    more = _("the first {n} of {all} characters", n=f"{most:,}", all=f"{len(whole):,}")
    return f"{reveal_invisible(whole[:most])} … ({more})"


def truncate(text: object, most: int) -> str:
    """The beginning of a text on one line, visible. It is cut before anything else is done: a text may be long."""
    whole = str(text)
    line = " ".join(whole[: 4 * most].split())
    return reveal_invisible(
        line if len(line) <= most and len(whole) <= 4 * most else f"{line[:most]} …"
    )


def as_html(text: object) -> str:
    """A text as HTML shows it, visible and escaped."""
    return html.escape(reveal_invisible(text))


def as_json(document: str) -> str:
    """A JSON document that says the same in characters that can be seen."""
    return INVISIBLE.sub(lambda found: json.dumps(found[0])[1:-1], document)


def language_of(text: str, languages: Sequence[str] = ()) -> str:
    """The code of the language that a text's letters tell, so that it can be read aloud.

    Args:
        languages: those of the data that it is about, for letters that several languages share; zh and en are meant without.
    """
    hangul, kana, han = (len(kind.findall(text)) for kind in (HANGUL, KANA, HAN))
    if hangul > kana + han:
        return "ko"
    if kana or han:
        return "ja" if kana else next((code for code in languages if code in IN_HAN), "zh")
    return next((code for code in languages if code not in (*IN_HAN, "ko")), "en")


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
