"""The fake model server as a process: prints its address on one line, then serves until it is stopped."""

import argparse
import asyncio
import contextlib
import signal
import sys

from tests.fakes.model.faults import Slow
from tests.fakes.model.replies import Reply
from tests.fakes.model.server import ModelServer


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.model", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--name", default="fake-model", help="served model name")
    parser.add_argument("--window", type=int, default=2048, help="context length in tokens")
    parser.add_argument("--api-key", default=None)
    parser.add_argument("--first-token-s", type=float, default=0.0, help="seconds before the first token")
    parser.add_argument("--per-token-s", type=float, default=0.0, help="seconds between tokens")
    parser.add_argument("--reply", default=None, help="say this instead of an echo")
    return parser.parse_args()


async def _serve(options: argparse.Namespace) -> None:
    pace = Slow(options.first_token_s, options.per_token_s)
    server = ModelServer(options.name, options.window, options.api_key, options.host, options.port, pace)
    if options.reply is not None:
        server.reply_with(Reply(options.reply))
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server:
        sys.stdout.write(f"listening on {server.url}\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(_options()))
