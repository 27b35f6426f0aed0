"""Which weights answer: a route is the base, or one released adapter by its content name."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Route:
    """A released adapter that may answer this turn: passed its gates, loaded, on a server whose probe passed."""

    adapter: str
    checkpoint_id: UUID
    release_id: UUID
    announced: bool = True
