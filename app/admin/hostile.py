"""Text that people sent, made safe to look at: escaped, isolated from our own direction, nothing in it invisible.

A control, direction or zero-width character becomes a small label with its code point, so that a reviewer sees what a
model saw. Joiners inside emoji stay: there they draw one picture.
"""

import unicodedata
from itertools import pairwise

from markupsafe import Markup, escape

from app.domain.diff import WordDiff

_KEPT = {"\n", "\t"}
_ZWJ = "\u200d"
_HIDDEN = {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"}
# Blank, yet of categories that letters and marks have: fillers, the invisible Braille cell, the grapheme joiner.
_BLANK_LETTERS = {"\u115f", "\u1160", "\u3164", "\uffa0", "\u2800", "\u034f", "\u17b4", "\u17b5", "\u180e"}
_TAGS = {"same": Markup("{}"), "gone": Markup("<del>{}</del>"), "new": Markup("<ins>{}</ins>")}


def said(text: str) -> Markup:
    """Return `text` as an isolated run whose direction follows its own first letter."""
    return Markup('<bdi class="said" dir="auto">{}</bdi>').format(shown(text))


def said_diff(diff: WordDiff) -> Markup:
    """Return the pieces of a diff as one isolated run with `<del>` and `<ins>`."""
    inner = Markup("").join(_TAGS[piece.kind].format(shown(piece.text)) for piece in diff.pieces)
    return Markup('<bdi class="said" dir="auto">{}</bdi>').format(inner)


def shown(text: str) -> Markup:
    """Return `text` escaped, with every character visible."""
    if not any(_is_hidden(char) and char not in _KEPT for char in text):
        return escape(text)
    padded = ["", *text, ""]
    out = [_one(char, before, padded[i + 2]) for i, (before, char) in enumerate(pairwise(padded[:-1]))]
    return Markup("").join(out)


def _one(char: str, before: str, after: str) -> Markup:
    if char in _KEPT or not _is_hidden(char) or (char == _ZWJ and _draws(before) and _draws(after)):
        return escape(char)
    name = unicodedata.name(char, "")
    return Markup('<span class="ctl" title="{}">U+{:04X}</span>').format(name, ord(char))


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN or char in _BLANK_LETTERS


def _draws(char: str) -> bool:
    return bool(char) and (unicodedata.category(char) in {"So", "Sk"} or char == "\ufe0f")
