"""What a turn is made from: the message that shall be answered, the weights and words that shall answer it, and how far it is.

Values only: what is done with them is the turn's own affair (`converse.py`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.domain.consent import Consents, Purpose
from app.domain.media import Picture
from app.domain.memory import MemoryLine
from app.domain.person import Chat, Identity, Session
from app.domain.policy import Route
from app.domain.prompt import ChatMessage, PastTurn
from app.domain.turn import BaseIdentity, Origin, Provenance, Turn
from app.ports import Channel, Sampling
from app.services.lanes import Work
from app.services.writing import Asking
from app.store import Tx


@dataclass(frozen=True, slots=True)
class Learning:
    """What a turn asks of the learning side, in its own transactions."""

    route: Callable[[Tx, Session], Awaitable[Route | None]]
    """Finds the released adapter that may answer in a session."""
    after_reply: Callable[[Tx, UUID], Awaitable[None]]
    """Looks whether something of a person has earned a training."""
    announce: Callable[[Tx, UUID], Awaitable[Sequence[str]]]
    """Marks a release as told; returns the lines that its adapter has learnt."""


@dataclass(frozen=True, slots=True)
class Base:
    """The base model as it is served: its name there, its identity, and its context in tokens."""

    name: str
    identity: BaseIdentity
    context: int
    learnable: bool
    sees: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A message that shall be answered."""

    channel: Channel
    chat: Chat
    session: Session
    past: Sequence[PastTurn]
    """What was said in the session before, the oldest first."""
    person_id: UUID | None
    language: str
    consents: Consents
    identity: Identity
    text: str
    message_id: str | None
    origin: Origin
    sibling_of: UUID | None = None
    greeted: bool = False
    """Whether the same message was greeted, with the question of consent."""
    pictures: tuple[Picture, ...] = ()

    @property
    def remembers(self) -> bool:
        """Whether memory may be used here: alone with a person who allows it."""
        return self.chat.private and self.consents.allows(Purpose.MEMORY)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model will be asked, by which weights, and how its tokens are drawn.

    `origin` is where the message came from, with what comes into view beside it.
    """

    route: Route | None
    memory: tuple[MemoryLine, ...]
    messages: Sequence[ChatMessage]
    origin: Origin
    sampling: Sampling
    made_by: Provenance


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn whose row stands once its transaction is committed; the model may have been asked already."""

    request: Request
    turn: Turn
    plan: Plan
    work: Work
    asking: Asking
    unwanted: bool
    """Whether somebody asked to stop it while nobody wrote it."""
