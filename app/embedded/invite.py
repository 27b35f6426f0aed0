"""`mentee invite`: a one-time code that lets a newcomer in: to a web chat beyond this machine, or to private bots."""

import asyncio
import secrets

from app.config import Settings
from app.embedded import postgres
from app.embedded.parts import Home

DAYS = 7


def make(settings: Settings, days: int = DAYS) -> str:
    """Return a new code that works once, within `days`.

    Raises:
        MenteeError: the database is away or was never started.
    """
    given = settings.database_url
    url = given.get_secret_value() if given else postgres.url(Home(settings.mentee_home), settings.postgres_port)
    return asyncio.run(_make(url, days))


async def _make(database_url: str, days: int) -> str:
    from app.store import Store, webchat
    from bots.web.cookie import invitation_hash

    code = secrets.token_urlsafe(12)
    store = Store(database_url, pool_size=1)
    try:
        async with store.begin() as tx:
            await webchat.add_invitation(tx, invitation_hash(code), days, "command line")
    finally:
        await store.close()
    return code
