"""The pen: a growing text with marks, and how one block's inline tokens are written with it.

Links become marks when Telegram can follow them and "label (target)" when not; the few HTML tags that models use are
formats, every other tag is text. Knows nothing of blocks.
"""

import re
from dataclasses import dataclass

from markdown_it.token import Token

from bots.markdown import tag_partners
from bots.telegram.marks import Kind, Mark, Rendered, clip, settle

TAG = re.compile(r"<(?P<end>/?)(?P<name>b|strong|i|em|u|ins|s|del|strike|code)\s*/?>", re.IGNORECASE)
_TAG_KINDS: dict[str, Kind] = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "del": "strikethrough", "strike": "strikethrough", "code": "code",
}  # fmt: skip
_TOKEN_KINDS: dict[str, Kind] = {"strong_close": "bold", "em_close": "italic", "s_close": "strikethrough"}
_FOLLOWED = re.compile(r"(?:https?|tg)://[^\s/?#][^\s]*$", re.IGNORECASE)


class Ink:
    """A text being written and its marks; `here` is the pen's place in code points."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.here = 0
        self._marks: list[Mark] = []

    def write(self, text: str) -> None:
        """Append plain text."""
        self.pieces.append(text)
        self.here += len(text)

    def mark(self, kind: Kind, start: int, url: str | None = None, language: str | None = None) -> None:
        """Put a format on everything written since `start`."""
        if start < self.here:
            self._marks.append(Mark(kind, start, self.here, url, language))

    def dried(self) -> Rendered:
        """Return the text, trimmed, with settled marks."""
        text = "".join(self.pieces)
        return clip(Rendered(text, settle(text, self._marks)), 0, len(text))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A format that waits for its end: where it began, in code points and in pieces, and a link's target."""

    start: int
    piece: int
    target: str
    title: str


def write_inline(ink: Ink, tokens: list[Token], indent: str = "") -> None:
    """Append a block's inline `tokens`; `indent` leads every line after the first."""
    partners = tag_partners(tokens, TAG)
    opened: list[_Opened] = []
    tags: dict[int, int] = {}
    for place, token in enumerate(tokens):
        if token.type == "html_inline":
            tags[place] = ink.here
            _tag(ink, token.content, partners.get(place), tags)
        elif token.nesting > 0:
            opened.append(_open(ink, token))
        elif token.nesting < 0:
            _close(ink, token, opened.pop())
        else:
            _leaf(ink, token, indent)


def _open(ink: Ink, token: Token) -> _Opened:
    target = token.attrGet("href") or token.attrGet("src") or ""
    return _Opened(ink.here, len(ink.pieces), str(target), str(token.attrGet("title") or ""))


def _close(ink: Ink, token: Token, opened: _Opened) -> None:
    if token.type == "link_close":
        _link(ink, opened)
    else:
        ink.mark(_TOKEN_KINDS[token.type], opened.start)


def _leaf(ink: Ink, token: Token, indent: str) -> None:
    start = ink.here
    match token.type:
        case "softbreak" | "hardbreak":
            ink.write("\n" + indent)
        case "code_inline":
            ink.write(token.content)
            ink.mark("code", start)
        case "image":
            opened = _open(ink, token)
            write_inline(ink, token.children or [], indent)
            _link(ink, opened)
        case _:
            ink.write(token.content)


def _link(ink: Ink, opened: _Opened) -> None:
    """End a link: a mark where the app can follow it, its target in words where it cannot."""
    label = "".join(ink.pieces[opened.piece :])
    if not label.strip():
        ink.write(opened.target)
    elif _FOLLOWED.match(opened.target) and label != opened.target:
        ink.mark("text_link", opened.start, url=opened.target)
    elif opened.target not in {"", label, f"mailto:{label}"}:
        ink.write(f" ({opened.target})")
    if opened.title:
        ink.write(f" ({opened.title})")


def _tag(ink: Ink, content: str, partner: int | None, tags: dict[int, int]) -> None:
    tag = TAG.fullmatch(content)
    if not tag or partner is None:
        ink.write(content)
    elif tag["end"]:
        ink.mark(_TAG_KINDS[tag["name"].lower()], tags[partner])
