"""`python -m app.bench.platform PEOPLE`: the Bot API server of this checkout as a process, with so many people behind it.

Prints its address and token as one JSON line, then serves until it is stopped. Apart, so that its work does not disturb
the clock of whoever measures.
"""

import asyncio
import json
import signal
import sys


async def _serve(people: int) -> None:
    from tests.fakes.telegram import TelegramServer

    async with TelegramServer() as server:
        numbers = [server.user(f"Person {number}").user_id for number in range(people)]
        print(json.dumps({"base_url": server.base_url, "token": server.token, "people": numbers}), flush=True)
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
