"""A sign that stands alone where it would begin something is that sign: `- #`, a quote of nothing, a list in a list.

Asked which signs begin a comment, a model lists them; read strictly, each would be a heading or a quote of nothing, and gone.
Knows nothing of any platform.
"""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

_HEADING = ["heading_open", "inline", "heading_close"]
_QUOTE = ["blockquote_open", "blockquote_close"]
_LIST = ["bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"]


def keep_lone_signs(parser: MarkdownIt) -> None:
    """Make `parser` read such a sign as a paragraph of it."""
    parser.core.ruler.after("block", "lone_signs", _kept)


def _kept(state: StateCore) -> None:
    kept: list[Token] = []
    place = quotes = 0
    while place < len(state.tokens):
        token = state.tokens[place]
        found = _lone(state.tokens, place, quotes)
        if found:
            sign, length = found
            kept += _paragraph(token, sign)
            place += length
            continue
        quotes += token.nesting if token.type.startswith("blockquote") else 0
        kept.append(token)
        place += 1
    state.tokens = kept


def _lone(tokens: Sequence[Token], place: int, quotes: int) -> tuple[str, int] | None:
    """Return the sign that stands alone at `place`, inside so many quotes, and over how many tokens; None for none."""
    token = tokens[place]
    kinds = [one.type for one in tokens[place : place + len(_LIST)]]
    if kinds[: len(_HEADING)] == _HEADING and not tokens[place + 1].content:
        return token.markup, len(_HEADING)
    # Inside a quote it is a blank line of one.
    if kinds[: len(_QUOTE)] == _QUOTE and not quotes:
        return token.markup, len(_QUOTE)
    if kinds == _LIST and place and tokens[place - 1].type == "list_item_open":
        return token.markup, len(_LIST)
    return None


def _paragraph(at: Token, sign: str) -> Sequence[Token]:
    opened = Token("paragraph_open", "p", 1, level=at.level, map=at.map, block=True)
    inline = Token("inline", "", 0, level=at.level + 1, map=at.map, block=True, content=sign, children=[])
    closed = Token("paragraph_close", "p", -1, level=at.level, block=True)
    return opened, inline, closed
