"""Markdown of a model reply → text and marks for Telegram. Never raises, never loses a visible character.

What the parser would drop (a table's surplus cells, what lies too deep) is noticed by counting, and the reply is then
shown more plainly. Knows nothing of message limits (`split`) and of sending.
"""

import html
from collections.abc import Callable

from markdown_it.token import Token

from app.domain.text import is_blank, storable
from bots.markdown import LINE_BREAK, MAX_NESTING, clean, only_signs, solid, tokens_of, tokens_without_tables, widen
from bots.telegram.ink import TAG
from bots.telegram.marks import Entity, Rendered, entities
from bots.telegram.page import Page


def render(markdown: str) -> Rendered:
    """Return what `markdown` looks like in a chat; offsets in code points."""
    source = clean(storable(markdown))
    if only_signs(source):
        return Rendered(source.strip())
    whole = solid(html.unescape(TAG.sub("", LINE_BREAK.sub("", source))))
    for read in (tokens_of, tokens_without_tables):
        rendered = _rendered(source, read)
        if rendered and solid(rendered.text) + _hidden(rendered) >= whole and not is_blank(rendered.text):
            return rendered
    return Rendered(source.strip())


def telegram_text(markdown: str) -> tuple[str, tuple[Entity, ...]]:
    """Return text and entities as the Bot API takes them: offsets in UTF-16 code units, at most 100 entities."""
    rendered = render(markdown)
    return rendered.text, entities(rendered)


def _rendered(source: str, read: Callable[[str], list[Token]]) -> Rendered | None:
    wide = widen(source)
    tokens = read(wide)
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        return None  # the parser stopped descending and dropped what lay below
    return Page(wide.split("\n"), tokens).rendered()


def _hidden(rendered: Rendered) -> int:
    return sum(solid((m.url or "") + (m.language or "")) for m in rendered.marks)
