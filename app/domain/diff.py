"""What changed between a reply and its correction, word by word, never splitting what a reader sees as one character.

Korean glues particles to words, so two different eojeol that share an end are shown as one word with a changed part
(학교에 -> 학교에서 marks only 서). Composed and decomposed spellings of the same text are equal. The work is bounded:
past `MAX_EDITS` the middle is one replacement. Knows nothing of HTML.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Literal

Kind = Literal["same", "gone", "new"]

MAX_EDITS = 400
# Punctuation that belongs to the word around it: don't, 3.5, well-known.
_INNER = frozenset("'’.-")
_ZWJ = "\u200d"
_HANGUL_FAMILY = {"leading": (0x1100, 0x115F), "vowel": (0x1160, 0x11A7), "trailing": (0x11A8, 0x11FF)}
_SYLLABLES = (0xAC00, 0xD7A3)
_TRAILLESS = 28


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that stayed, went or came."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class WordDiff:
    """The pieces in reading order and how much of both texts they share (0-1, by characters)."""

    pieces: tuple[Piece, ...]
    similarity: float


def word_diff(before: str, after: str) -> WordDiff:
    """Return how `before` becomes `after`. The same and gone pieces spell `before`, the same and new ones `after`."""
    steps = _edits(_tokens(before), _tokens(after))
    pieces = tuple(_merged(_tidied(_merged(_without_islands(_refined(_merged(steps)))))))
    shared = sum(len(p.text) for p in pieces if p.kind == "same")
    longest = max(len(before), len(after))
    return WordDiff(pieces, shared / longest if longest else 1.0)


def clusters(text: str) -> list[str]:
    """Return what a reader sees as single characters: combining marks, conjoining jamo, emoji sequences and flags kept whole."""
    found: list[str] = []
    for char in text:
        if found and _joins(found[-1], char):
            found[-1] += char
        else:
            found.append(char)
    return found


def _tokens(text: str) -> list[str]:
    """Return words, runs of space and single marks, each made of whole clusters."""
    row = clusters(text)
    kinds = [_kind(cluster) for cluster in row]
    for place in range(1, len(row) - 1):
        if row[place] in _INNER and kinds[place - 1] == kinds[place + 1] == "word":
            kinds[place] = "word"
    # A mark is a token of its own: its place makes it differ from its neighbours.
    keys = [kind if kind != "mark" else f"mark {place}" for place, kind in enumerate(kinds)]
    return ["".join(c for c, _ in run) for _, run in groupby(zip(row, keys, strict=True), key=lambda pair: pair[1])]


def _kind(cluster: str) -> str:
    first = cluster[0]
    if first.isspace():
        return "space"
    return "word" if first.isalnum() or first == "_" else "mark"


def _joins(cluster: str, char: str) -> bool:
    last = cluster[-1]
    if char == _ZWJ or unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Mc"}:
        return True
    if last == _ZWJ or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    if _is_flag(char):
        return _is_flag(last) and len(cluster) == 1
    return _jamo_joins(last, char)


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _jamo(char: str) -> str | None:
    code = ord(char)
    if _SYLLABLES[0] <= code <= _SYLLABLES[1]:
        return "vowel" if (code - _SYLLABLES[0]) % _TRAILLESS == 0 else "trailing"
    return next((name for name, (low, high) in _HANGUL_FAMILY.items() if low <= code <= high), None)


def _jamo_joins(last: str, char: str) -> bool:
    if not "\u1100" <= char <= "\u11ff":
        return False
    allowed = {"leading": {"leading", "vowel"}, "vowel": {"vowel", "trailing"}, "trailing": {"trailing"}}
    return _jamo(char) in allowed.get(_jamo(last) or "", set())


def _key(token: str) -> str:
    return unicodedata.normalize("NFC", token)


def _edits(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    old, new = [_key(t) for t in before], [_key(t) for t in after]
    head = _common(zip(old, new, strict=False))
    tail = _common(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    yield from (Piece("same", t) for t in after[:head])
    yield from _middle(
        before[head : len(before) - tail],
        after[head : len(after) - tail],
        old[head : len(old) - tail],
        new[head : len(new) - tail],
    )
    yield from (Piece("same", t) for t in after[len(after) - tail :])


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _middle(before: Sequence[str], after: Sequence[str], old: Sequence[str], new: Sequence[str]) -> Iterator[Piece]:
    path = _shortest_path(old, new)
    if path is None:
        yield from (Piece("gone", t) for t in before)
        yield from (Piece("new", t) for t in after)
        return
    for kind, index in path:
        yield Piece(kind, before[index] if kind == "gone" else after[index])


def _shortest_path(old: Sequence[str], new: Sequence[str]) -> list[tuple[Kind, int]] | None:
    """Return the shortest edit script (E. Myers, "An O(ND) Difference Algorithm", 1986), None past `MAX_EDITS`."""
    reach: dict[int, int] = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(min(len(old) + len(new), MAX_EDITS) + 1):
        trace.append(dict(reach))
        for diagonal in range(-edits, edits + 1, 2):
            x = _step(reach, diagonal, edits)
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reach[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return _walk_back(trace, len(old), len(new))
    return None


def _step(reach: dict[int, int], diagonal: int, edits: int) -> int:
    down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
    return reach[diagonal + 1] if down else reach[diagonal - 1] + 1


def _walk_back(trace: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[Kind, int]]:
    steps: list[tuple[Kind, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, diagonal = trace[edits], x - y
        down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        from_x = reach[before]
        from_y = from_x - before
        while x > max(from_x, 0) and y > max(from_y, 0):
            x, y = x - 1, y - 1
            steps.append(("same", y))
        if edits:
            steps.append(("new", from_y) if down else ("gone", from_x))
        x, y = from_x, from_y
    return steps[::-1]


def _merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Put what went before what came, between two pieces that stayed, each as one run."""
    for stays, run in groupby(pieces, key=lambda p: p.kind == "same"):
        part = list(run)
        kinds: tuple[Kind, ...] = ("same",) if stays else ("gone", "new")
        for kind in kinds:
            if joined := "".join(p.text for p in part if p.kind == kind):
                yield Piece(kind, joined)


def _without_islands(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Let what stayed between two longer changes change with them: a replaced phrase reads better than a comb."""
    row = list(pieces)
    for index, piece in enumerate(row):
        before, after = _change(row[max(index - 2, 0) : index][::-1]), _change(row[index + 1 : index + 3])
        replaced = piece.text.isspace() and len(before) == len(after) == len(("gone", "new"))
        longest = min(max(map(len, side), default=0) for side in (before, after))
        if piece.kind == "same" and (replaced or len(piece.text) < longest):
            yield Piece("gone", piece.text)
            yield Piece("new", piece.text)
        else:
            yield piece


def _change(pieces: Sequence[Piece]) -> list[str]:
    """Return the texts that went and came in the change that `pieces` begin with."""
    return [p.text for p in takewhile(lambda p: p.kind != "same", pieces)]


def _tidied(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Leave the space that ends both sides of a replacement outside of it."""
    row = list(pieces)
    for index, piece in enumerate(row):
        partner = row[index + 1 : index + 2] if piece.kind == "gone" else row[max(index - 1, 0) : index]
        other = next((p for p in partner if {p.kind, piece.kind} == {"gone", "new"}), None)
        shared = _shared_space(piece.text, other.text) if other else ""
        yield Piece(piece.kind, piece.text.removesuffix(shared))
        if piece.kind == "new":
            yield Piece("same", shared)


def _shared_space(one: str, other: str) -> str:
    tail = _common(zip(reversed(one), reversed(other), strict=False))
    end = one[len(one) - tail :]
    return end[len(end.rstrip()) :]


def _refined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    row = list(pieces)
    index = 0
    while index < len(row):
        pair = row[index : index + 2]
        if [p.kind for p in pair] == ["gone", "new"] and _is_eojeol(pair[0].text) and _is_eojeol(pair[1].text):
            yield from _inside(pair[0].text, pair[1].text)
            index += 2
        else:
            yield row[index]
            index += 1


def _is_eojeol(text: str) -> bool:
    return not any(c.isspace() for c in text) and any(_jamo(c) for c in text)


def _inside(before: str, after: str) -> Iterator[Piece]:
    old, new = clusters(before), clusters(after)
    head = _common(zip(map(_key, old), map(_key, new), strict=False))
    tail = _common(zip(map(_key, reversed(old[head:])), map(_key, reversed(new[head:])), strict=False))
    yield from _pieces(
        ("same", new[:head]),
        ("gone", old[head : len(old) - tail]),
        ("new", new[head : len(new) - tail]),
        ("same", new[len(new) - tail :]),
    )


def _pieces(*runs: tuple[Kind, Sequence[str]]) -> Iterator[Piece]:
    yield from (Piece(kind, "".join(run)) for kind, run in runs if run)
