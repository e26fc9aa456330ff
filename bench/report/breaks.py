"""Where long names may go on in the next line: behind a slash, colon, comma or underscore, so that a phone breaks no word."""

import html
import re

from markupsafe import Markup

# What is not text, or is shown as it was written, with all that is in it.
TAG = re.compile(r"(<(pre|code|style|math|svg)\b.*?</\2>|<[^>]*>)", re.DOTALL)
# Shorter words fit everywhere; a blank after the sign is a break already.
LONG = re.compile(r"[^\s<>]{12,}")
SIGN = re.compile(r"(?<=[/:,_])(?=[^\s/:,_])")
# A name without any sign is cut, rather than pushing the page.
ENDLESS = re.compile(r"([A-Za-z0-9]{24})(?=[A-Za-z0-9])")


def in_html(text: str) -> str:
    """HTML in which long names have places to break at; code and what was asked and answered stay as they are."""
    parts = TAG.split(text)
    # Behind each text stand the tag, and the name of the element that is left alone.
    return "".join(part if k % 3 == 1 else _long(part) for k, part in enumerate(parts) if k % 3 < 2)


def in_text(text: str) -> Markup:
    """Text as HTML with places to break at."""
    return Markup(_long(html.escape(text)))


def _long(text: str) -> str:
    return LONG.sub(lambda found: ENDLESS.sub(r"\1<wbr>", SIGN.sub("<wbr>", found[0])), text)
