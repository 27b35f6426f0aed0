"""Ways in which the fake model misbehaves on purpose; each is handled where the server answers.

`ModelServer.next(fault)` hits one generation request, `ModelServer.always(fault)` all until `heal()`.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error answer in the server's own shape."""

    status: int = 500
    message: str = "EngineCore encountered an issue."


@dataclass(frozen=True, slots=True)
class Garbage:
    """200 with a body that is no JSON; inside a stream, an event that is none."""

    body: str = '{"choices": [{"mess'


@dataclass(frozen=True, slots=True)
class Misshapen:
    """A field of the answer, or of each event, has a value of a type that it never has; `of` is where the field is."""

    field: str
    value: object
    of: Literal["answer", "choice"] = "choice"


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks after so many tokens; a plain answer breaks before its body."""

    after_tokens: int = 2


@dataclass(frozen=True, slots=True)
class Slow:
    """Seconds before the first token and between any two."""

    first_token_s: float = 0.0
    per_token_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NoLogprobs:
    """Log probabilities are left out although they were asked for."""


@dataclass(frozen=True, slots=True)
class NoTokenIds:
    """Token ids are left out although they were asked for."""


@dataclass(frozen=True, slots=True)
class BrokenStream:
    """An error event inside a stream that had begun, as vLLM sends it when its engine dies."""

    after_tokens: int = 1
    message: str = "EngineCore encountered an issue."


Fault = Refuse | Garbage | Misshapen | Cut | Slow | NoLogprobs | NoTokenIds | BrokenStream
