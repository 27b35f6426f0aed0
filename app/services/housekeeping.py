"""What ends by itself: raw bodies, old notices, parts that nobody can send, texts of ended sessions without memory consent,
people who are long gone; what is taken up again; and who is told that something waits for them.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

from app.config import Settings
from app.domain.messages import text as say
from app.domain.outgoing import Content, Template
from app.errors import NotFoundError, StoreUnavailableError
from app.services import learn
from app.services.forget import forget_person
from app.store import Store, Tx, holding, inbox, leaving, outbox, turns
from app.store.owners import release_dead
from app.telemetry import Log

log = Log(__name__)
EVERY_S = 60.0
# Each takes its files along; more wait for the next minute.
MOST_FORGOTTEN = 20
MOST_TOLD = 100
DEAD_S = 5.0


async def keep_house(store: Store, settings: Settings) -> None:
    """Clean up every minute, until cancelled; a database that is away is tried again."""
    while True:
        try:
            await clean(store, settings)
        except StoreUnavailableError:
            log.warning("housekeeping:store:away")
        await asyncio.sleep(EVERY_S)


async def free_the_dead(store: Store, place: str, alive: Callable[[int], bool]) -> None:
    """Give back every few seconds what dead processes of a place hold, until cancelled: nobody waits for their leases."""
    while True:
        try:
            async with store.begin() as tx:
                freed = await release_dead(tx, place, alive)
            if freed:
                log.warning("housekeeping:owners:dead", owners=freed)
        except StoreUnavailableError:
            log.warning("housekeeping:store:away")
        await asyncio.sleep(DEAD_S)


async def clean(store: Store, settings: Settings) -> None:
    """Clean up once."""
    async with store.begin() as tx:
        bodies = await inbox.purge(tx, settings.raw_body_days)
        texts = await turns.forget_texts_of_ended_sessions(tx, settings.session_idle_minutes)
        given_up = await outbox.give_up_waiting(tx, settings.raw_body_days)
        given_up = [*given_up, *await holding.end(tx, settings.held_days)]
        told = await tell_of_held(tx, settings)
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
    if told:
        log.info("housekeeping:held:told", chats=told)


async def tell_of_held(tx: Tx, settings: Settings) -> int:
    """Tell people, by template and once, that something waits for their next word; return how many.

    Only where a template was made and Meta approved it; elsewhere it just waits.
    """
    untold = await holding.untold(tx, settings.language, MOST_TOLD)
    for chat in untold:
        news = Content(say(chat.language, "template.news.body"), template=Template(chat.content_sid))
        await outbox.put(tx, chat.chat_id, news)
    return len(untold)


async def _forget(store: Store, settings: Settings, person_id: UUID) -> None:
    """Forget everything of somebody who is long gone. Whoever is busy with them just now comes first."""
    try:
        await forget_person(store, settings.mentee_home, person_id, "all", "system:retention")
    except (NotFoundError, StoreUnavailableError):
        log.info("housekeeping:person:kept")
