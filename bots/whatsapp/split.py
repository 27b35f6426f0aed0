"""A reply of any length → parts of Markdown that each render to at most 1500 UTF-16 units, numbered when there are several.

Blocks stay whole where they fit. A longer one is cut between its lines, code by fences closed and opened again, a table
with its head repeated; a line that is still too long at a sentence, a space, and only then between grapheme clusters.
Twilio refuses more than 1600 characters, counted in a way that it does not say for emoji: hence the distance.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markdown_it.token import Token
from wcwidth import grapheme_boundary_before

from app.domain.text import storable
from bots.markdown import clean, only_signs, tokens_of, widen
from bots.whatsapp.render import render

MAX_UNITS = 1500
_ROOM = MAX_UNITS - len("(9999/9999)\n\n")
_LONGEST_INFO = 100
_SURELY = 4  # no line renders to four times its own length, nor a text to a quarter of it
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_SPACE = re.compile(r"\s+")
_TICKS = re.compile("`+")
_SIGN = re.compile(r"[^\s]")
# Where a line begins that is more than a paragraph: a heading, an item, a quote, a fence, a rule.
_BEGINS = re.compile(r"^(?=#{1,6}(\s|$)|[-+*](\s|$)|>|`{3,}[^`]*$|~{3,}|=+\s*$|([-*_])([ \t]*\3){2,}\s*$)")
_QUOTE = re.compile(r"\s{0,3}>\s?")


def units(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(markdown: str) -> list[str]:
    """Return the Markdown of each part; a reply that fits is returned as it came."""
    if units(render(markdown)) <= MAX_UNITS:
        return [markdown]
    source = widen(clean(storable(markdown)))
    parts = [*_signs(source.strip())] if only_signs(source) else _packed(_pieces(source))
    return parts if len(parts) == 1 else [f"({n}/{len(parts)})\n\n{part}" for n, part in enumerate(parts, 1)]


def _signs(line: str) -> Iterator[str]:
    """Yield the parts of a line that is nothing but signs: below a number they would be read as Markdown, blanks before too."""
    for start in range(0, len(line), _ROOM):
        if piece := line[start : start + _ROOM].strip():
            yield _SIGN.sub(r"\\\g<0>", piece)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Markdown that fits one part, and what stands between it and the piece before."""

    source: str
    gap: str = "\n"


def _packed(pieces: Iterator[_Piece]) -> list[str]:
    """Return parts filled by the length of their source, which is near what they render to; each is then measured."""
    parts: list[str] = []
    held: list[_Piece] = []
    size = 0
    for piece in pieces:
        length = len(piece.gap) + units(piece.source)
        if held and size + length > _ROOM:
            parts += _joined(held)
            held, size = [], 0
        held.append(piece)
        size += length
    return [*parts, *_joined(held)] if held else parts or [""]


def _joined(pieces: Sequence[_Piece]) -> list[str]:
    """Return the pieces as one part, or as several where they grow beyond it when rendered."""
    text = "".join([pieces[0].source, *(piece.gap + piece.source for piece in pieces[1:])])
    if len(pieces) == 1 or _fits(text):
        return [text]
    middle = len(pieces) // 2
    return [*_joined(pieces[:middle]), *_joined(pieces[middle:])]


def _pieces(source: str) -> Iterator[_Piece]:
    """Yield the pieces of a whole reply in order."""
    lines, tokens = source.split("\n"), tokens_of(source)
    done = 0
    for token in tokens:
        if token.level or not token.map or token.nesting < 0 or token.map[0] < done:
            continue
        if token.map[0] > done:
            yield from _prose(lines[done : token.map[0]], "\n")  # what no block claims
        block = lines[token.map[0] : token.map[1]]
        gap = "\n" if token.map[0] and lines[token.map[0] - 1].strip() else "\n\n"
        for number, piece in enumerate(_block(block, token, tokens)):
            yield piece if number else replace(piece, gap=gap)
        done = token.map[1]
    yield from _prose(lines[done:], "\n")


def _block(block: Sequence[str], token: Token, tokens: Sequence[Token]) -> Iterator[_Piece]:
    whole = "\n".join(block).strip("\n")
    if _fits(whole):
        yield _Piece(whole)
    elif token.type in {"fence", "code_block"}:
        yield from _code(token)
    elif token.type == "table_open":
        yield from _table(block)
    else:
        yield from _mixed(block, token, tokens)


def _mixed(block: Sequence[str], outer: Token, tokens: Sequence[Token]) -> Iterator[_Piece]:
    """Yield a list's or quote's lines, the code inside it as code of its own."""
    first, end = outer.map or [0, 0]
    done = first
    for token in tokens:
        if token.type != "fence" or not token.map or not done <= token.map[0] < end:
            continue
        yield from _prose(block[done - first : token.map[0] - first], "\n")
        yield from _code(token)
        done = token.map[1]
    yield from _prose(block[done - first :], "\n")


def _prose(lines: Sequence[str], gap: str) -> Iterator[_Piece]:
    between = gap
    for line in lines:
        if not line.strip():
            between = "\n\n"
            continue
        quote = _QUOTE.match(line)
        lead = quote[0] if quote else ""
        for number, piece in enumerate(_cut(line, _ROOM, lead)):
            yield _Piece(piece, " " if number else between)
        between = "\n"


def _code(token: Token) -> Iterator[_Piece]:
    info = token.info.strip()
    if (
        units(info) > _LONGEST_INFO or "`" in info
    ):  # what stands beside the fence must leave room, and be no fence itself
        yield from _prose([info], "\n")
        info = ""
    room = _ROOM - units(info) - len("```\n\n```")
    if "```" in token.content:
        room = room * 3 // 4  # each three of them are held apart by a word joiner
    held: list[str] = []
    for line in token.content.removesuffix("\n").split("\n"):
        for piece in _cut_code(line, room):
            if held and not _fits(_fenced([*held, piece], info)):
                yield _Piece(_fenced(held, info))
                held = []
            held.append(piece)
    yield _Piece(_fenced(held, info))


def _fenced(lines: Sequence[str], info: str) -> str:
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{info}", *lines, fence])


def _table(block: Sequence[str]) -> Iterator[_Piece]:
    """Yield each row as a table of its own; lines alone where even that is too long."""
    head, rows = block[:2], block[2:]
    for row in rows:
        alone = "\n".join([*head, row])
        if row.strip() and _fits(alone):
            yield _Piece(alone, "\n\n")
        else:
            yield from _prose([row], "\n\n")
    if not rows:
        yield from _prose(head, "\n\n")


def _fits(source: str) -> bool:
    """Whether `source` fits a part; a short line and a very long text are not rendered to know it."""
    length = units(source)
    if length <= _ROOM // _SURELY and "\n" not in source:
        return True
    return length <= _ROOM * _SURELY and units(render(source)) <= _ROOM


def _cut(text: str, room: int, lead: str = "") -> Iterator[str]:
    """Yield pieces of a line of prose that each fit when rendered, every one after the first led by `lead`.

    What stood within the line and begins a piece is text there as well.
    """
    rest = text.strip() if not lead else text.rstrip()
    while rest and not _fits(rest):
        place = _place(rest, _widest(rest, room))
        while place > 1 and not _fits(rest[:place].rstrip()):
            place = _place(rest, max(1, place * 3 // 4))
        piece = rest[:place].rstrip() or rest[:place]
        yield _BEGINS.sub(r"\\", piece) if only_signs(piece) else piece
        rest = lead + _BEGINS.sub(r"\\", rest[place:].lstrip()) if rest[place:].strip() else ""
    if rest:
        yield rest


def _cut_code(line: str, room: int) -> Iterator[str]:
    """Yield pieces of a line of code, cut behind a space where there is one; nothing is trimmed."""
    rest = line
    while units(rest) > room:
        end = _widest(rest, room)
        spaces = [m.end() for m in _SPACE.finditer(rest, end // 2, end)]
        place = spaces[-1] if spaces else _grapheme(rest, end)
        yield rest[:place]
        rest = rest[place:]
    yield rest


def _widest(text: str, room: int) -> int:
    """Return how many code points of `text` are at most `room` units; at least one."""
    end = min(len(text), room)
    while end > 1 and units(text[:end]) > room:
        end -= max(1, (units(text[:end]) - room) // 2)
    return max(1, end)


def _place(text: str, end: int) -> int:
    """Return the best place to cut at or before `end`, never 0."""
    for pattern in (_SENTENCE, _SPACE):
        places = [m.end() for m in pattern.finditer(text, end // 4, end)]
        best = next((p for p in reversed(places) if _closed(text[:p])), None)
        if best:
            return best
    spaces = [m.end() for m in _SPACE.finditer(text, end // 4, end)]
    return spaces[-1] if spaces else _grapheme(text, end)


def _closed(text: str) -> bool:
    """Whether no emphasis, code or link seems to be open at the end of `text`."""
    return not (text.count("**") % 2 or text.count("`") % 2 or text.rfind("](") > text.rfind(")"))


def _grapheme(text: str, end: int) -> int:
    """Return the last boundary between grapheme clusters up to `end`; `end` where one cluster alone is longer."""
    if end >= len(text):
        return end
    boundary = grapheme_boundary_before(text, end + 1)
    return boundary if boundary > 0 else end
