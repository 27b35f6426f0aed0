"""The learning side as the gateway's other parts ask for it: routes, graduation, rollback, withdrawal, forgetting."""

from collections.abc import AsyncIterator
from uuid import UUID

from app.config import Settings
from app.domain.consent import Purpose
from app.domain.person import Session
from app.domain.policy import Route
from app.errors import ConflictError, NotFoundError
from app.services import forget, learn, release
from app.services.export import export_files
from app.services.forget import HandOver
from app.services.request import Learning
from app.store import Store, Tx, feedback, releases


def learning_of(settings: Settings) -> Learning:
    """Return what a turn asks of the learning side."""

    async def after_reply(tx: Tx, person_id: UUID) -> None:
        await learn.consider(tx, person_id, settings)

    return Learning(route=_route, after_reply=after_reply, announce=release.announce)


async def _route(tx: Tx, session: Session) -> Route | None:
    if session.person_id is None:
        return None
    return await release.routable(tx, session.person_id, session)


async def live_release(tx: Tx, person_id: UUID) -> UUID | None:
    """Return a person's live release."""
    found = await releases.live(tx, person_id)
    return found.id if found else None


class Acts:
    """What the dialogue (`Leaving`) and the panel (`PanelActions`) ask for, over the same services."""

    def __init__(self, store: Store, settings: Settings) -> None:
        """Take the store, and the settings for the home folder."""
        self._store = store
        self._home = settings.mentee_home.resolve()

    async def withdraw(self, tx: Tx, person_id: UUID, purpose: Purpose) -> None:
        """Take out of use what a consent allowed."""
        await forget.withdraw(tx, person_id, purpose)

    async def go_back(self, tx: Tx, person_id: UUID, release_id: UUID) -> bool:
        """Take a person's release back by their own wish; False when it is not live any more."""
        try:
            await release.go_back(tx, person_id, release_id)
        except (ConflictError, NotFoundError):
            return False
        return True

    async def keep(self, tx: Tx, person_id: UUID, release_id: UUID) -> None:
        """Note that a person keeps a release."""
        await release.keep(tx, person_id, release_id)

    async def preview(self, tx: Tx, person_id: UUID) -> dict[str, int]:
        """Return how much is held about a person."""
        return await forget.preview(tx, person_id)

    async def forget(self, person_id: UUID, scope: str, hand_over: HandOver) -> None:
        """Forget `chat`, `learnt` or `all`; the receipt is handed over in the same transaction."""
        await forget.forget_person(self._store, self._home, person_id, scope, "person", hand_over=hand_over)

    def export(self, tx: Tx, person_id: UUID) -> AsyncIterator[tuple[str, str]]:
        """Yield the files that hold everything about a person, each with its name."""
        return export_files(tx, person_id)

    async def roll_back(self, release_id: UUID, *, reason: str, actor: str) -> None:
        """Take a live release out of routing at once."""
        await release.roll_back(self._store, release_id, reason, actor)

    async def forget_person(self, person_id: UUID, *, actor: str, reason: str) -> str:
        """Forget everything of a person by an admin's act; return the receipt code."""
        return (await forget.forget_person(self._store, self._home, person_id, "all", actor, reason)).code

    async def feedback_reviewed(self, tx: Tx, feedback_id: UUID, state: str) -> None:
        """Keep what was refused out of everything that learns; let back in what was approved or taken back."""
        if state in {"rejected", "quarantined"}:
            await feedback.exclude_by_review(tx, feedback_id)
        else:
            await feedback.readmit(tx, feedback_id)
