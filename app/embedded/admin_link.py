"""The one-time link that creates an admin: made from the command line, printed at the end of a first start.

Knows nothing of how a link is kept or redeemed; that is the access service's.
"""

import asyncio
import os
import sys
from collections.abc import Mapping

TIMEOUT_S = 60


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
