"""Markdown as plain text, for channels that show no formats: the marks go, the words, lists and tables stay as they are.

The source is kept line by line; only what stands inside its blocks is rewritten. Knows nothing of any platform.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from app.domain.text import is_blank, storable
from bots.markdown import LINE_BREAK, clean, link_in_words, only_signs, solid, tokens_of, widen

_NAME = re.compile(r"\w+")
_FENCE = frozenset({"fence"})
_CELLS = frozenset({"th_open", "td_open"})
# Stands for a line break within a line of the source, which has none of these.
_WITHIN = "\u2028"


@dataclass(slots=True)
class _Open:
    """A format or link that waits for its end, with what was written since."""

    token: Token | None
    text: str = ""


def plain(markdown: str) -> str:
    """Return what a reader of plain text should see. Never raises, never loses a visible character."""
    source = widen(clean(storable(markdown)))
    if only_signs(source):
        return source.strip()
    lines, dropped = source.split("\n"), set[int]()
    tokens = tokens_of(source)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.map is None:
            continue
        first, after = token.map
        if token.type in _FENCE and not token.info.strip():
            dropped |= {first, after - 1} if lines[after - 1].strip(" >`~") == "" and after - first > 1 else {first}
        elif token.type == "inline":
            around = before.type if before else ""
            _rewrite(lines, first, token, around)
    text = "\n".join(line for number, line in enumerate(lines) if number not in dropped).strip("\n")
    text = text.replace(_WITHIN, "\n")
    whole = solid(text) >= solid(LINE_BREAK.sub("", source)) and not is_blank(text)
    return text if whole else source.strip()


def _rewrite(lines: list[str], first: int, token: Token, around: str) -> None:
    """Put a block's words without their marks in the place of its lines; of a heading, what stands before them goes as well."""
    words = inline(token.children or [])
    if around in _CELLS:
        words = words.replace(_WITHIN, " ")  # a row is one line
    old, new = token.content.split("\n"), words.split("\n")
    if len(old) != len(new):
        return
    for number, (was, becomes) in enumerate(zip(old, new, strict=True), first):
        if number < len(lines) and was:
            lines[number] = becomes if around == "heading_open" else lines[number].replace(was, becomes, 1)


def inline(tokens: Sequence[Token]) -> str:
    """Return the words of a block's inline tokens; links as "label (target)"."""
    stack = [_Open(None)]
    for place, token in enumerate(tokens):
        if token.nesting > 0:
            stack.append(_Open(token))
        elif token.nesting < 0 and len(stack) > 1:
            done = stack.pop()
            stack[-1].text += _closed(done, stack[-1].text[-1:], _next_sign(tokens[place + 1 :]))
        else:
            stack[-1].text += _leaf(token)
    return "".join(one.text for one in stack)


def _closed(done: _Open, before: str, after: str) -> str:
    token = done.token
    if token is None:
        return done.text
    if token.type == "link_open":
        return link_in_words(done.text, str(token.attrGet("href") or ""))
    in_word = any(sign.isascii() and sign.isalnum() for sign in (before, after))
    is_name = token.markup == "__" and _NAME.fullmatch(done.text) is not None
    # Within a word nothing is meant to be formatted: 2*3*4 is no emphasis, and __init__ is a name.
    return f"{token.markup}{done.text}{token.markup}" if in_word or is_name else done.text


def _next_sign(following: Sequence[Token]) -> str:
    token = next((token for token in following if not token.nesting), None)
    return token.content[:1] if token and token.type == "text" else ""


def _leaf(token: Token) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return _WITHIN if token.content and "\n" not in token.content else "\n"
        case "image":
            return link_in_words(token.content, str(token.attrGet("src") or ""))
        case _:
            return token.content
