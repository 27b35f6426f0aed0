"""A reply of any length → parts of at most 4096 UTF-16 units and 100 formats, rendered.

The rendered text is cut, not its Markdown, so a part is measured as Telegram will see it and code is closed and reopened
with its language by itself. Cuts prefer a paragraph, a line, a sentence, a space; only what has none of these is cut hard,
and then between grapheme clusters. Links and emphasis are cut only when one alone is longer than a message.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wcwidth import grapheme_boundary_before

from bots.telegram.marks import MAX_ENTITIES, MAX_UNITS, Mark, Rendered, clip, unit_offsets
from bots.telegram.render import render
from bots.telegram.source import to_markdown

_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]]))(?=\s)|(?<=[。！？])(?![。！？」』”’)）])|(?<=[。！？][」』”’)）])"
)
_SPACE = re.compile(r"\s")
_LEAST_FILL = 4  # a cut in the first quarter of a part is taken only when there is no other


def split(markdown: str) -> list[str]:
    """Return the Markdown of each part; a reply that fits is returned as it came."""
    rendered = render(markdown)
    if rendered.fits:
        return [markdown]
    return [to_markdown(part) for part in cut(rendered)]


def cut(rendered: Rendered) -> Iterator[Rendered]:
    """Yield the parts of a rendered reply, each trimmed and within the limits."""
    room = _Room(rendered)
    start = 0
    while start < len(rendered.text):
        end = room.cut_after(start)
        part = clip(rendered, start, end)
        if part.text:
            yield part
        start = end


@dataclass(frozen=True, slots=True)
class _Spans:
    """Disjoint stretches of the text in which a cut would hurt."""

    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(cls, marks: Sequence[Mark]) -> "_Spans":
        """Return the union of the marks."""
        starts: list[int] = []
        ends: list[int] = []
        for mark in sorted(marks, key=lambda m: m.start):
            if ends and mark.start < ends[-1]:
                ends[-1] = max(ends[-1], mark.end)
            else:
                starts.append(mark.start)
                ends.append(mark.end)
        return cls(starts, ends)

    def hold(self, place: int) -> bool:
        """Whether a cut at `place` would go through one."""
        n = bisect_right(self.starts, place - 1) - 1
        return n >= 0 and self.starts[n] < place < self.ends[n]


class _Room:
    """Where a part that begins somewhere may end."""

    def __init__(self, rendered: Rendered) -> None:
        self._text = rendered.text
        self._units = unit_offsets(rendered.text)
        self._marks = rendered.marks
        self._starts = [m.start for m in rendered.marks]
        self._code = _Spans.of([m for m in rendered.marks if m.kind == "pre"])
        self._inline = _Spans.of([m for m in rendered.marks if m.kind not in {"pre", "blockquote"}])

    def cut_after(self, start: int) -> int:
        """Return the end of the part that begins at code point `start`; always greater than `start`."""
        end = self._widest(start)
        if end == len(self._text):
            return end
        for low in (start + (end - start) // _LEAST_FILL, start + 1):
            for pattern, allowed in (
                (_PARAGRAPH, self._in_prose),
                (_LINE, self._in_prose),
                (_LINE, self._in_code),
                (_SENTENCE, self._in_prose),
                (_SPACE, self._in_prose),
            ):
                place = self._last(pattern, low, end, allowed)
                if place:
                    return place
        return self._hard(start, end)

    def _widest(self, start: int) -> int:
        """Return the farthest end within the units and formats of one message."""
        end = bisect_right(self._units, self._units[start] + MAX_UNITS) - 1
        open_marks = [m for m in self._marks[: bisect_right(self._starts, start)] if m.end > start]
        surplus = bisect_right(self._starts, start) + MAX_ENTITIES - len(open_marks)
        return max(start + 1, min(end, self._starts[surplus])) if surplus < len(self._starts) else end

    def _last(self, pattern: re.Pattern[str], low: int, end: int, allowed: Callable[[int], bool]) -> int | None:
        """Return the last allowed place of `pattern` from `low` to `end`."""
        places = [m.start() for m in pattern.finditer(self._text, low, min(len(self._text), end + 2))]
        return next((p for p in reversed(places) if low <= p <= end and allowed(p)), None)

    def _in_prose(self, place: int) -> bool:
        return not self._code.hold(place) and not self._inline.hold(place) and self._whole(place)

    def _in_code(self, place: int) -> bool:
        return self._code.hold(place) and not self._inline.hold(place) and self._whole(place)

    def _whole(self, place: int) -> bool:
        """Whether no grapheme cluster spans `place`."""
        return grapheme_boundary_before(self._text, place + 1) == place

    def _hard(self, start: int, end: int) -> int:
        spaces = [m.start() for m in _SPACE.finditer(self._text, start + (end - start) // 2, end + 1)]
        inside = next((p for p in reversed(spaces) if self._whole(p)), None)
        if inside:
            return inside
        boundary = grapheme_boundary_before(self._text, end + 1)
        return boundary if boundary > start else end
