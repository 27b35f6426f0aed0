"""What ends by itself: raw bodies, old notices, parts that nobody can send, texts of ended sessions without memory consent,
people who are long gone; and what is taken up again.
"""

import asyncio
from uuid import UUID

from app.config import Settings
from app.errors import NotFoundError, StoreUnavailableError
from app.services import learn
from app.services.forget import forget_person
from app.store import Store, inbox, leaving, outbox, turns
from app.telemetry import Log

log = Log(__name__)
EVERY_S = 60.0
# Each takes its files along; more wait for the next minute.
MOST_FORGOTTEN = 20


async def keep_house(store: Store, settings: Settings) -> None:
    """Clean up every minute, until cancelled; a database that is away is tried again."""
    while True:
        try:
            await clean(store, settings)
        except StoreUnavailableError:
            log.warning("housekeeping:store:away")
        await asyncio.sleep(EVERY_S)


async def clean(store: Store, settings: Settings) -> None:
    """Clean up once."""
    async with store.begin() as tx:
        bodies = await inbox.purge(tx, settings.raw_body_days)
        texts = await turns.forget_texts_of_ended_sessions(tx, settings.session_idle_minutes)
        given_up = await outbox.give_up_waiting(tx, settings.raw_body_days)
        await outbox.purge_notices(tx, settings.raw_body_days)
        taken_up = await learn.take_up(tx)
        gone = await leaving.long_gone(
            tx, left_days=settings.retention_left_days, silent_days=settings.retention_silent_days, most=MOST_FORGOTTEN
        )
    for person_id in gone:
        await _forget(store, settings, person_id)
    if bodies or texts:
        log.info("housekeeping:texts:dropped", bodies=bodies, turns=texts)
    if given_up:
        log.warning("housekeeping:parts:given_up", parts=len(given_up))
    if taken_up:
        log.info("housekeeping:jobs:taken_up", jobs=taken_up)


async def _forget(store: Store, settings: Settings, person_id: UUID) -> None:
    """Forget everything of somebody who is long gone. Whoever is busy with them just now comes first."""
    try:
        await forget_person(store, settings.mentee_home, person_id, "all", "system:retention")
    except (NotFoundError, StoreUnavailableError):
        log.info("housekeeping:person:kept")
