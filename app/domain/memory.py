"""Memory: what one sentence can say about a person, with an example where there is one. Pure data and its prompt form."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

MemoryKind = Literal["preference", "fact"]


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt with a reply the person wanted, and the one they did not."""

    prompt: str
    good: str
    bad: str | None = None
    source: Literal["approved", "written"] = "approved"


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """One line of a person's memory with what it earned so far."""

    id: UUID
    person_id: UUID
    kind: MemoryKind
    text: str
    state: str
    uses: int
    failures: int
    sessions: int
    examples: tuple[Example, ...] = ()
    checker: dict[str, object] | None = None
    feedback_id: UUID | None = None
