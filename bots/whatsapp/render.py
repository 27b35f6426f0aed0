"""Markdown of a model reply → the text that WhatsApp formats. Never raises, never loses a visible character.

What the parser would drop (a table's surplus cells, what lies too deep) is noticed by counting, and the reply is then
shown more plainly. Knows nothing of message limits (`split`) and of sending.
"""

import html
import re
from collections.abc import Callable

from markdown_it.token import Token

from app.domain.text import is_blank, storable
from bots.markdown import MAX_NESTING, clean, only_signs, solid, tokens_of, tokens_without_tables, widen
from bots.whatsapp.page import Page

_TAG = re.compile(r"</?(?:b|strong|i|em|s|del|strike|u|ins|br)\s*/?>", re.IGNORECASE)
_LANGUAGE = re.compile(r"^[> \t\d.*+)-]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]{1,32}", re.MULTILINE)


def render(markdown: str) -> str:
    """Return what to send so that a chat shows what `markdown` means."""
    source = clean(storable(markdown))
    if only_signs(source):
        return source.strip()
    # The language of a code block is the one thing that is left out.
    whole = solid(html.unescape(_TAG.sub("", _LANGUAGE.sub("", source))))
    for read in (tokens_of, tokens_without_tables):
        rendered = _rendered(source, read)
        if rendered is not None and solid(rendered) >= whole and not is_blank(rendered):
            return rendered
    return source.strip()


def _rendered(source: str, read: Callable[[str], list[Token]]) -> str | None:
    wide = widen(source)
    tokens = read(wide)
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        return None  # the parser stopped descending and dropped what lay below
    return Page(wide.split("\n"), tokens).text()
