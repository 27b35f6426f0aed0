"""Memory: what one sentence can say about a person, with an example where there is one. Pure data and its prompt form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from app.domain.checker import CheckerSpec, check

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
    checkpoint_id: UUID | None = None

    def broken_by(self, reply: str) -> bool:
        """Whether a machine check says that `reply` does not follow this line; False where there is no check."""
        return self.checker is not None and not check(CheckerSpec.parse(self.checker), reply)


def in_prompt(lines: Sequence[MemoryLine], checkpoint_id: UUID | None) -> tuple[MemoryLine, ...]:
    """Return the lines that the prompt must carry: a graduated line stays out only where its own adapter answers."""
    return tuple(line for line in lines if line.state == "active" or line.checkpoint_id != checkpoint_id)
