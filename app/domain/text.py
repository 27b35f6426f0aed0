"""What may be done to text that people send: made storable, kept apart from what a model reads as its own marks, measured,
never judged.

PostgreSQL refuses NUL, and UTF-8 refuses lone surrogates; both come from real clients. The raw bytes stay in the inbox,
the canonical text replaces what cannot be stored by U+FFFD.
"""

import re
import unicodedata

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# What the tokenizers that we serve read as one token of their own, wherever it stands, and what their templates look for.
_MARKER = re.compile(
    r"[<\[](?=(?<=<)[|｜][^|｜<>\s]{1,40}[|｜]>"
    r"|(?<=<)/?(?:s|bos|eos|pad|unk|think|tool_call|tool_response|tools|start_of_turn|end_of_turn)>"
    r"|(?<=<)(?:repo_?name|file_sep|filename|gh_stars|issue_(?:start|comment|closed)|empty_output)>"
    r"|(?<=<)jupyter_(?:start|text|code|output|script)>"
    r"|(?<=<)</?SYS>>|(?<=\[)/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
# What Markdown reads as a mark anywhere, and what only at the beginning of a line (CommonMark 0.31).
_ANYWHERE = re.compile(r"[\\`*_\[\]<>~|&]")
_AT_THE_BEGINNING = re.compile(r"^([ \t]*[0-9]{0,9})([#+=.)-])", re.MULTILINE)
# Fillers of Hangul and the blank of Braille are letters and signs of which nothing is seen.
_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)


def storable(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def without_markers(text: str) -> str:
    """Return `text` so that a chat template finds none of its own marks in it: a zero-width space breaks each.

    It reads the same, but cannot end its message and begin another in somebody else's name. Twice is as once.
    """
    return _MARKER.sub("\\g<0>\u200b", text)


def is_blank(text: str) -> bool:
    """Whether nothing in `text` would be seen: spaces, controls, direction marks, zero-width characters only."""
    seen = (c for c in text if c not in _UNSEEN)
    return all(unicodedata.category(c) in {"Cc", "Cf", "Zs", "Zl", "Zp", "Cn"} for c in seen)


def without_thinking(text: str) -> str:
    """Return the reply without reasoning blocks; an unopened `</think>` ends a block that began at the start."""
    cleaned = _THINK.sub("", text)
    if "</think>" in cleaned:
        cleaned = cleaned.rpartition("</think>")[2]
    return cleaned.partition("<think>")[0].strip()


def literal(text: str) -> str:
    """Return Markdown that shows `text` as it is: somebody's words quoted in a sentence of ours."""
    return _AT_THE_BEGINNING.sub(r"\1\\\2", _ANYWHERE.sub(r"\\\g<0>", text))
