"""Why a task may not go on: a switch is paused, or a consent is gone. Asked again at every step."""

from uuid import UUID

from app.errors import MenteeError, PausedError
from app.store import Tx, admission, switches
from app.store.switches import Switch


class NotAllowedError(MenteeError):
    """The person does not allow this any more."""


async def check_switch(tx: Tx, name: Switch) -> None:
    """Raise `PausedError` while an operator paused this step; the job stays queued."""
    if await switches.paused(tx, name):
        raise PausedError


async def check_consent(tx: Tx, person_id: UUID) -> None:
    """Raise `NotAllowedError` unless memory and personal training are both allowed at this moment (I3)."""
    if not await admission.allowed(tx, person_id):
        raise NotAllowedError
