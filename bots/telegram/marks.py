"""Formatted text as Telegram sees it: a string and the marks on it, and the rules by which marks may lie on each other.

Offsets of a `Mark` are code points, which is what Python slices; `entities` turns them into the UTF-16 units of the Bot API.
Knows nothing of Markdown and nothing of python-telegram-bot.
Rules: https://core.telegram.org/bots/api#formatting-options
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

MAX_UNITS = 4096
MAX_ENTITIES = 100
_ASTRAL = 0xFFFF

Kind = Literal["bold", "italic", "underline", "strikethrough", "code", "pre", "text_link", "blockquote"]
EMPHASIS: frozenset[Kind] = frozenset({"bold", "italic", "underline", "strikethrough"})
# What is dropped last when there are more marks than Telegram shows: what carries meaning before what carries weight.
_WORTH: dict[Kind, int] = {"text_link": 0, "pre": 1, "blockquote": 2, "code": 3}


@dataclass(frozen=True, slots=True)
class Mark:
    """One format on the code points `start` to `end` (exclusive)."""

    kind: Kind
    start: int
    end: int
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """One format as the Bot API takes it: `offset` and `length` in UTF-16 code units."""

    kind: Kind
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text and its marks, sorted by place, the outer before the inner."""

    text: str
    marks: tuple[Mark, ...] = ()

    @property
    def units(self) -> int:
        """Length in UTF-16 code units."""
        return units(self.text)

    @property
    def fits(self) -> bool:
        """Whether one message can carry it with all its formats."""
        return self.units <= MAX_UNITS and len(self.marks) <= MAX_ENTITIES


def units(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return len(text) if text.isascii() else len(text) + sum(ord(c) > _ASTRAL for c in text)


def unit_offsets(text: str) -> list[int]:
    """Return, for every code point and for the end, how many UTF-16 code units lie before it."""
    return [0, *accumulate(2 if ord(c) > _ASTRAL else 1 for c in text)]


def entities(rendered: Rendered) -> tuple[Entity, ...]:
    """Return the marks in UTF-16 units, the most telling hundred when there are more."""
    at = unit_offsets(rendered.text)
    kept = rendered.marks
    if len(kept) > MAX_ENTITIES:
        worthiest = sorted(kept, key=lambda m: (_WORTH.get(m.kind, len(_WORTH)), m.start))[:MAX_ENTITIES]
        kept = tuple(sorted(worthiest, key=_place))
    return tuple(Entity(m.kind, at[m.start], at[m.end] - at[m.start], m.url, m.language) for m in kept)


def settle(text: str, marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Return the marks as Telegram allows them: trimmed, none empty, no emphasis on code, no half overlaps, sorted."""
    trimmed = [m for m in (_trim(text, m) for m in marks) if m.start < m.end]
    whole = _apart([m for m in trimmed if m.kind in {"pre", "text_link", "code"}])
    quotes = _apart([m for m in trimmed if m.kind == "blockquote"])
    mono = sorted((m.start, m.end) for m in whole if m.kind != "text_link")
    emphasis = [piece for m in _merged(trimmed) for piece in _without(m, mono)]
    retrimmed = [m for m in (_trim(text, m) for m in emphasis) if m.start < m.end]
    return tuple(sorted(_nested([*whole, *quotes, *retrimmed]), key=_place))


def clip(rendered: Rendered, start: int, end: int) -> Rendered:
    """Return the part from code point `start` to `end` without white space around it, marks closed and reopened."""
    body = rendered.text[start:end]
    in_pre = any(m.kind == "pre" and m.start <= start < m.end for m in rendered.marks)
    start += len(body) - len(body.lstrip("\n" if in_pre else None))
    end = max(start, start + len(rendered.text[start:end].rstrip()))
    inside = (m for m in rendered.marks if m.start < end and m.end > start)
    cut = [replace(m, start=max(m.start, start) - start, end=min(m.end, end) - start) for m in inside]
    text = rendered.text[start:end]
    return Rendered(text, settle(text, cut))


def _place(mark: Mark) -> tuple[int, int, str]:
    return mark.start, -mark.end, mark.kind


def _trim(text: str, mark: Mark) -> Mark:
    if mark.kind == "pre":
        return mark
    body = text[mark.start : mark.end]
    left = len(body) - len(body.lstrip())
    return replace(mark, start=mark.start + left, end=mark.start + max(left, len(body.rstrip())))


def _apart(marks: Sequence[Mark]) -> list[Mark]:
    """Return those that do not touch each other, the outermost of each heap."""
    kept: list[Mark] = []
    for mark in sorted(marks, key=_place):
        if not kept or mark.start >= kept[-1].end:
            kept.append(mark)
    return kept


def _merged(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield emphasis with what overlaps of the same kind made one."""
    for kind in sorted(EMPHASIS):
        last: Mark | None = None
        for mark in sorted((m for m in marks if m.kind == kind), key=_place):
            if last and mark.start < last.end:
                last = replace(last, end=max(last.end, mark.end))
                continue
            if last:
                yield last
            last = mark
        if last:
            yield last


def _without(mark: Mark, holes: Sequence[tuple[int, int]]) -> Iterator[Mark]:
    """Yield the pieces of `mark` outside the sorted `holes`."""
    start = mark.start
    for left, right in holes[max(0, bisect_right(holes, (start, start)) - 1) :]:
        if left >= mark.end:
            break
        if right <= start:
            continue
        if left > start:
            yield replace(mark, start=start, end=left)
        start = right
    if start < mark.end:
        yield replace(mark, start=start)


def _nested(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield the marks, one that sticks out of another cut in two at the other's end."""
    heap = [(_place(m), n, m) for n, m in enumerate(marks)]
    heapq.heapify(heap)
    around: list[Mark] = []
    while heap:
        _, n, mark = heapq.heappop(heap)
        while around and around[-1].end <= mark.start:
            around.pop()
        if around and around[-1].end < mark.end:
            edge = around[-1].end
            rest = replace(mark, start=edge)
            heapq.heappush(heap, (_place(rest), n, rest))
            mark = replace(mark, end=edge)
        around.append(mark)
        yield mark
