"""Line breaks in long names: after a slash, colon, comma or underscore, so that no word is cut."""

import html
import re

from markupsafe import Markup

# Tags, and elements whose text stays as it is.
TAG = re.compile(r"(<(pre|code|style|math|svg)\b.*?</\2>|<[^>]*>)", re.DOTALL)
# Shorter words fit everywhere; a space after the sign is a break already.
LONG = re.compile(r"[^\s<>]{12,}")
SIGN = re.compile(r"(?<=[/:,_])(?=[^\s/:,_])")
# A long name without any sign is cut, so that the page does not become wider.
ENDLESS = re.compile(r"([A-Za-z0-9]{24})(?=[A-Za-z0-9])")


def in_html(text: str) -> str:
    """Add places to break at to HTML, outside code, prompts and replies."""
    parts = TAG.split(text)
    # Each text is followed by a tag and the name of an element.
    return "".join(part if k % 3 == 1 else _long(part) for k, part in enumerate(parts) if k % 3 < 2)


def in_text(text: str) -> Markup:
    """Return a text as HTML with places to break at."""
    return Markup(_long(html.escape(text)))


def _long(text: str) -> str:
    return LONG.sub(lambda word: ENDLESS.sub(r"\1<wbr>", SIGN.sub("<wbr>", word[0])), text)
