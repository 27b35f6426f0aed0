"""From a reply's text to the tokens that are sent: length limits, stop strings, the end token.

Owns where an answer stops and why. Knows no HTTP.
"""

from dataclasses import dataclass

from tests.fakes.model.replies import Reply
from tests.fakes.model.tokens import END, Tokenizer


@dataclass(frozen=True, slots=True)
class Generation:
    """`pieces[i]` is the text that token `tokens[i]` adds; the end token adds none."""

    tokens: list[int]
    pieces: list[str]
    finish_reason: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(self.pieces)


def generate(reply: Reply, tokenizer: Tokenizer, limit: int, stops: list[str]) -> Generation:
    """Tokens of `reply`, at most `limit`, cut before the first of `stops`."""
    tokens = tokenizer.encode(reply.text)
    pieces = [tokenizer.word(token) for token in tokens]
    stopped = _stop(pieces, stops)
    if stopped is not None and stopped[0] < limit:
        last, stop, kept = stopped
        return Generation(tokens[: last + 1], _fit(pieces[: last + 1], kept), "stop", stop)
    if len(tokens) >= limit or reply.finish_reason == "length":
        return Generation(tokens[:limit], pieces[:limit], "length")
    return Generation([*tokens, END], [*pieces, ""], reply.finish_reason)


def _stop(pieces: list[str], stops: list[str]) -> tuple[int, str, int] | None:
    """Index of the token that completes the earliest stop string, the string, characters kept before it."""
    text = "".join(pieces)
    found = [(text.find(stop), stop) for stop in stops if stop and stop in text]
    if not found:
        return None
    start, stop = min(found)
    position = 0
    for index, piece in enumerate(pieces):
        position += len(piece)
        if position >= start + len(stop):
            return index, stop, start
    return None


def _fit(pieces: list[str], length: int) -> list[str]:
    fitted = []
    for piece in pieces:
        fitted.append(piece[:length])
        length -= len(fitted[-1])
    return fitted
