"""What may be done to text that people send: made storable, measured, never judged.

PostgreSQL refuses NUL, and UTF-8 refuses lone surrogates; both come from real clients. The raw bytes stay in the inbox,
the canonical text replaces what cannot be stored by U+FFFD.
"""

import re
import unicodedata

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)


def storable(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def is_blank(text: str) -> bool:
    """Whether nothing in `text` would be seen: spaces, controls, direction marks, zero-width characters only."""
    return not any(unicodedata.category(c) not in {"Cc", "Cf", "Zs", "Zl", "Zp", "Cn"} for c in text)


def without_thinking(text: str) -> str:
    """Return the reply without reasoning blocks; an unopened `</think>` ends a block that began at the start."""
    cleaned = _THINK.sub("", text)
    if "</think>" in cleaned:
        cleaned = cleaned.rpartition("</think>")[2]
    return cleaned.partition("<think>")[0].strip()
