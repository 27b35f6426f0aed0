"""Tokens of the fake model: words become ids that are the same in every process, chats become ChatML.

Owns encoding, decoding and the made-up log probabilities; knows nothing of requests. Ids mean nothing to a real
tokenizer; decoding knows the words that this process has seen.
"""

import math
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

JSON = dict[str, Any]
END_OF_TEXT: Final = 0
START: Final = 1
END: Final = 2
SPECIALS: Final = {"<|endoftext|>": END_OF_TEXT, "<|im_start|>": START, "<|im_end|>": END}
VOCABULARY: Final = 1 << 20
_FIRST_WORD: Final = 16
_PIECE: Final = re.compile(r" ?\w{1,8}| ?[^\w\s]|\s")
_SPLIT: Final = re.compile(r"(<\|endoftext\|>|<\|im_start\|>|<\|im_end\|>)")
DEFAULT_SYSTEM: Final = "You are a helpful assistant"


@dataclass(slots=True)
class Tokenizer:
    """Reversible words ↔ ids; an id is a checksum of its word, moved on where two words collide."""

    words: dict[int, str] = field(default_factory=lambda: {value: key for key, value in SPECIALS.items()})

    def encode(self, text: str) -> list[int]:
        """Ids of `text`; the special markers of ChatML become one id each."""
        ids: list[int] = []
        for part in _SPLIT.split(text):
            ids.extend([SPECIALS[part]] if part in SPECIALS else map(self._id, _PIECE.findall(part)))
        return ids

    def _id(self, piece: str) -> int:
        spread = VOCABULARY - _FIRST_WORD
        place = zlib.crc32(piece.encode("utf-8", "surrogatepass")) % spread
        while self.words.setdefault(_FIRST_WORD + place, piece) != piece:
            place = (place + 1) % spread
        return _FIRST_WORD + place

    def word(self, token: int) -> str:
        """The text of one id; a replacement character for one that was never seen here."""
        return self.words.get(token, "\ufffd")

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`, special markers left out."""
        return "".join(self.word(token) for token in ids if token not in SPECIALS.values())


def content_text(message: JSON) -> str:
    """The text of one chat message; those of its parts that are text are joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return "" if content is None else str(content)


def render_chat(messages: Sequence[JSON], tail: str) -> str:
    """ChatML of `messages`; `tail` opens the reply."""
    body = "".join(f"<|im_start|>{item.get('role')}\n{content_text(item)}<|im_end|>\n" for item in messages)
    has_system = bool(messages) and messages[0].get("role") == "system"
    head = "" if has_system else f"<|im_start|>system\n{DEFAULT_SYSTEM}<|im_end|>\n"
    return head + body + tail


def logprob(model: str, before: int, token: int) -> float:
    """A log probability in (-2, 0) that depends on the model's name, the token and the one before it."""
    mixed = zlib.crc32(f"{model}|{before}|{token}".encode())
    return -math.fmod(mixed / 1_000_003, 2.0) - 1e-6


def alternatives(model: str, before: int, token: int, count: int) -> list[tuple[int, float]]:
    """The `count` likeliest tokens, the chosen one first (the fake is always greedy)."""
    best = logprob(model, before, token)
    others = [(_FIRST_WORD + (token + step) % (VOCABULARY - _FIRST_WORD), best - step) for step in range(1, count)]
    return [(token, best), *others][:count]
