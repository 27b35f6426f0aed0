"""Why a task may not go on: a switch is paused, or a consent is gone. Asked again at every step."""

from uuid import UUID

from app.errors import MenteeError, PausedError
from app.store import Tx, admission, jobs, switches
from app.store.jobs import Job
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


async def check_job(tx: Tx, job: Job) -> None:
    """Raise `NotAllowedError` when somebody asked to cancel, `JobLostError` when the job is not ours any more."""
    if await jobs.heartbeat(tx, job):
        raise NotAllowedError


async def hold_consent(tx: Tx, person_id: UUID) -> None:
    """Like `check_consent`, where something is decided: a withdrawal is seen here, or waits and finds what was decided."""
    await admission.hold(tx, person_id)
    await check_consent(tx, person_id)
