"""The one-time link that creates an admin: made from the command line, printed at the end of a first start.

Knows nothing of how a link is kept or redeemed; that is the access service's.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Literal

from app.config import Settings
from app.embedded import postgres
from app.embedded.parts import Home

TIMEOUT_S = 60
Action = Literal["first", "reset"]


def make(settings: Settings, action: Action, base_address: str) -> str | None:
    """Return a new one-time link; None where `first` was asked for and there is an admin already.

    Raises:
        MenteeError: the database is away or was never started.
    """
    given = settings.database_url
    url = given.get_secret_value() if given else postgres.url(Home(settings.mentee_home), settings.postgres_port)
    return asyncio.run(_make(url, action, base_address.rstrip("/")))


async def _make(database_url: str, action: Action, base_address: str) -> str | None:
    from app.admin.auth import create_admin_link
    from app.store import Store, admins

    store = Store(database_url, pool_size=1)
    try:
        async with store.begin() as tx:
            known = await admins.any_admin(tx)
        if known and action == "first":
            return None
        token = await create_admin_link(store, "reset" if known else "first_admin")
    finally:
        await store.close()
    return f"{base_address}/admin/link/{token}"


async def first_admin_link(env: Mapping[str, str], address: str) -> str | None:
    """Return a link under `address`, or None where there is an admin already.

    Asks `mentee admin first` in a process of its own, so that the supervisor stays small.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", "admin", "first", "--address", address),
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        answer, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    return answer.decode().strip() or None if process.returncode == 0 else None
