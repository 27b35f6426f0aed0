"""Pushes updates to the bot's webhook: in order within a queue, queues side by side, the head until it is taken.

Owns retries and what getWebhookInfo tells about them. Waits are short versions of the real ones, which double up to
a minute or two; `Retry-After` is honoured on the same scale.
"""

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from tests.fakes.telegram.errors import JSON, bad_request
from tests.fakes.telegram.updates import Update, UpdateQueue

SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
SECRET_SIGNS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
MAX_SECRET: Final = 256
FIRST_RETRY_S: Final = 0.01
LAST_RETRY_S: Final = 0.5
RETRY_AFTER_SCALE: Final = 0.01


@dataclass(slots=True)
class Webhook:
    """The registered webhook, none while `url` is empty. `statuses` lists every answer that came back."""

    queue: UpdateQueue
    url: str = ""
    secret: str = ""
    max_connections: int = 40
    answer_timeout_s: float = 10.0
    last_error: tuple[int, str] | None = None
    statuses: list[int] = field(default_factory=list)
    _session: aiohttp.ClientSession | None = None
    _workers: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    async def set(self, url: str, secret: str, max_connections: int) -> None:
        """Register; raises `ApiError` 400 for an address or secret that the server refuses."""
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        if len(secret) > MAX_SECRET or not set(secret) <= SECRET_SIGNS:
            raise bad_request("secret token contains unallowed characters")
        await self.remove()
        self.url, self.secret, self.max_connections = url, secret, max_connections
        self.queue.release()
        self.kick()

    async def remove(self) -> None:
        """Stop pushing."""
        self.url = ""
        workers = list(self._workers.values())
        self._workers.clear()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def close(self) -> None:
        """Stop pushing and close connections."""
        await self.remove()
        if self._session is not None:
            await self._session.close()
            self._session = None

    def kick(self) -> None:
        """See that every queue with something in it is being pushed."""
        if not self.url:
            return
        for name in self.queue.queues() - self._workers.keys():
            self._workers[name] = asyncio.get_running_loop().create_task(self._push(name))

    def info(self) -> JSON:
        """The WebhookInfo object."""
        info: JSON = {"url": self.url, "has_custom_certificate": False}
        info["pending_update_count"] = len(self.queue.pending)
        if self.url:
            info |= {"max_connections": self.max_connections, "ip_address": "127.0.0.1"}
        if self.last_error is not None:
            info |= {"last_error_date": self.last_error[0], "last_error_message": self.last_error[1]}
        if self.queue.allowed is not None:
            info["allowed_updates"] = sorted(self.queue.allowed)
        return info

    async def _push(self, name: str) -> None:
        delay = FIRST_RETRY_S
        while (update := self.queue.head(name)) is not None:
            status, retry_after = await self._post(update)
            self.statuses.append(status)
            if 200 <= status < 300:
                self.queue.done(update)
                delay = FIRST_RETRY_S
                continue
            await asyncio.sleep(max(delay, retry_after * RETRY_AFTER_SCALE))
            delay = min(delay * 2, LAST_RETRY_S)
        self._workers.pop(name, None)

    async def _post(self, update: Update) -> tuple[int, float]:
        """Status (0: no answer) and seconds of `Retry-After`."""
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=self.max_connections))
        headers = {"Content-Type": "application/json"} | ({SECRET_HEADER: self.secret} if self.secret else {})
        limit = aiohttp.ClientTimeout(total=self.answer_timeout_s)
        try:
            async with self._session.post(
                self.url, data=json.dumps(update.body), headers=headers, timeout=limit
            ) as answer:
                if answer.status >= 300:
                    self._failed(f"Wrong response from the webhook: {answer.status} {answer.reason}")
                return answer.status, _seconds(answer.headers.get("Retry-After", "0"))
        except (aiohttp.ClientError, TimeoutError) as error:
            self._failed("Read timeout expired" if isinstance(error, TimeoutError) else "Connection refused")
            return 0, 0.0

    def _failed(self, text: str) -> None:
        self.last_error = (int(time.time()), text)


def _seconds(header: str) -> float:
    with contextlib.suppress(ValueError):
        return float(header)
    return 0.0
