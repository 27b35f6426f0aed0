"""Inline Markdown tokens → WhatsApp's marks: `*bold*` `_italic_` `~strike~` and code in backticks.

WhatsApp formats only what its marks touch on both sides, within one line; so marks are put inside white space and on each
line anew, and code is left alone. Links, which it does not know, become "label (target)". Knows nothing of blocks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from bots.markdown import link_in_words, tag_partners

_MARKS = {"strong": "*", "em": "_", "s": "~"}
_TAG = re.compile(r"<(?P<end>/?)(?P<name>b|strong|i|em|s|del|strike|u|ins)\s*/?>", re.IGNORECASE)
_TAG_MARKS = {
    "b": "*", "strong": "*", "i": "_", "em": "_", "s": "~", "del": "~", "strike": "~", "u": "", "ins": "",
}  # fmt: skip
_NAME = re.compile(r"\w+")
_EDGES = re.compile(r"(?P<before>\s*)(?P<body>.*?)(?P<after>\s*)", re.DOTALL)


@dataclass(slots=True)
class _Open:
    """A format or link that waits for its end, with what was written since."""

    token: Token | None
    pieces: list[str]


def inline(tokens: Sequence[Token], *, around: str = "") -> str:
    """Return the text of a block's inline `tokens`; `around` is the mark that the whole block gets, not to be set twice."""
    stack = [_Open(None, [])]
    partners = tag_partners(tokens, _TAG)
    for place, token in enumerate(tokens):
        if token.type == "html_inline":
            stack[-1].pieces.append(_tag(token.content, paired=place in partners))
        elif token.nesting > 0:
            stack.append(_Open(token, []))
        elif token.nesting < 0 and len(stack) > 1:
            done = stack.pop()
            used = around + "".join(_mark(o.token) for o in stack if o.token)
            around_it = (_last_sign(stack), _next_sign(tokens, place + 1))
            stack[-1].pieces.append(_closed(done, used, stack[-1].token, around_it))
        else:
            stack[-1].pieces.append(_leaf(token))
    return "".join("".join(o.pieces) for o in stack)


def marked(text: str, mark: str) -> str:
    """Return `text` with `mark` on each of its lines, inside the white space around it."""
    return "\n".join(_marked_line(line, mark) for line in text.split("\n"))


def target_of(token: Token) -> str:
    """Return where a link or picture leads, with its title."""
    target = str(token.attrGet("href") or token.attrGet("src") or "")
    title = token.attrGet("title")
    return f"{target}, {title}" if title else target


def _marked_line(line: str, mark: str) -> str:
    found = _EDGES.fullmatch(line)
    if not found or not found["body"]:
        return line
    return f"{found['before']}{mark}{found['body']}{mark}{found['after']}"


def _mark(token: Token) -> str:
    return _MARKS.get(token.type.removesuffix("_open"), "")


def _last_sign(stack: Sequence[_Open]) -> str:
    """Return the sign that was written last, in whatever is open; `""` where there is none."""
    written = (piece for o in reversed(stack) for piece in reversed(o.pieces) if piece)
    return next(written, "")[-1:]


def _next_sign(tokens: Sequence[Token], place: int) -> str:
    """Return the sign that follows at `place`, `""` for one that belongs to no word."""
    following = next((token for token in tokens[place:] if not token.nesting), None)
    return following.content[:1] if following and following.type == "text" else ""


def _closed(done: _Open, used: str, parent: Token | None, around_it: tuple[str, str]) -> str:
    text = "".join(done.pieces)
    assert done.token is not None  # noqa: S101 - only the bottom of the stack has none
    if done.token.type == "link_open":
        return link_in_words(text, target_of(done.token))
    mark = _mark(done.token)
    if done.token.markup == "__" and _NAME.fullmatch(text) and (parent is None or parent.markup != "_"):
        return f"__{text}__"  # a name of Python's, far more often than a word made bold
    if any(sign.isascii() and sign.isalnum() for sign in around_it):
        return f"*{text}*" if mark == "_" else text  # within a word nothing is formatted, and 2*3*4 is no emphasis
    return text if mark in used else marked(text, mark)


def _leaf(token: Token) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return _code(token.content)
        case "image":
            return link_in_words(inline(token.children or []), target_of(token))
        case _:
            return token.content


def _tag(content: str, *, paired: bool) -> str:
    """Return a tag as WhatsApp's mark; one that stands alone is a word about HTML, and stays."""
    tag = _TAG.fullmatch(content)
    name = tag["name"].lower() if tag else ""
    return _TAG_MARKS[name] if paired else content


def _code(content: str) -> str:
    if not content.strip():
        return content
    fence = "```" if "`" in content else "`"
    return f"{fence}{content}{fence}"
