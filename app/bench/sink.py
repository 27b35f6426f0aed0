"""`python -m app.bench.sink TOKEN`: a Bot API that says yes at once and notes which replies it was given, and when.

For measuring who calls it: one small answer to everything, nothing checked. Prints its address, then serves until it is
stopped. `GET /seen` tells the replies noted since the last `POST /begin`.

A reply says "Hello N" somewhere and nothing behind it: the number makes it one message's, so that a second copy and a
reply before an earlier one of its chat show. What is shown of a reply while it is written ends otherwise, and is no reply.
"""

import asyncio
import json
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import uvloop
from aiohttp import web

from app.embedded.parts import LOOPBACK

_REPLY = re.compile(r"Hello (\d+)$")
_SAYING = frozenset({"sendmessage", "editmessagetext"})


@dataclass(slots=True)
class Sink:
    """What was given. Times are seconds of the machine's monotonic clock."""

    token: str
    calls: int = 0
    messages: int = 0
    replies: dict[int, int] = field(default_factory=dict)
    """How often each reply came as a message of its own or took the place of one."""
    newest: dict[int, int] = field(default_factory=dict)
    overtaken: int = 0
    last_at: float = 0.0

    def begin(self) -> None:
        """Forget what was noted."""
        self.replies, self.newest, self.overtaken, self.last_at = {}, {}, 0, 0.0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer any method."""
        method = request.path.rpartition("/")[2].lower()
        if method == "seen":
            return web.json_response(self.seen())
        if method == "begin":
            self.begin()
            return web.Response()
        self.calls += 1
        given = {name: values[-1] for name, values in parse_qs((await request.read()).decode()).items()}
        return web.json_response({"ok": True, "result": self._result(method, given)})

    def seen(self) -> dict[str, float]:
        """Return how many replies there are, how many came twice, how many came before an earlier one, when the last came."""
        twice = sum(times > 1 for times in self.replies.values())
        return {
            "replies": len(self.replies),
            "twice": twice,
            "overtaken": self.overtaken,
            "last_at": self.last_at,
            "calls": self.calls,
        }

    def _result(self, method: str, given: dict[str, str]) -> object:
        if method == "getme":
            number = int(self.token.partition(":")[0])
            return {"id": number, "is_bot": True, "first_name": "Bench", "username": "bench_bot"}
        if method not in _SAYING:
            return True
        chat, text = int(given["chat_id"]), given.get("text", "")
        self._note(chat, text)
        self.messages += 1
        number = int(given.get("message_id", 0)) or self.messages
        return {"message_id": number, "date": int(time.time()), "chat": {"id": chat, "type": "private"}, "text": text}

    def _note(self, chat: int, text: str) -> None:
        found = _REPLY.search(text)
        if not found:
            return
        number = int(found[1])
        self.replies[number] = self.replies.get(number, 0) + 1
        self.overtaken += number < self.newest.get(chat, 0)
        self.newest[chat] = max(number, self.newest.get(chat, 0))
        self.last_at = time.monotonic()


async def _serve(token: str) -> None:
    runner = web.ServerRunner(web.Server(Sink(token).answer))
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    print(json.dumps({"url": f"http://{LOOPBACK}:{runner.addresses[0][1]}"}), flush=True)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
