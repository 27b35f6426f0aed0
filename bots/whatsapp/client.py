"""The twilio library's client as this channel uses it: a limit in time that holds, and no address but the configured one.

`AsyncTwilioHttpClient` must be made inside a running loop, ignores the time limit it is given, signs in by a way that
aiohttp is about to drop, sends what should be JSON as a form, and knows no other host than Twilio's own (twilio 9.13).
"""

import asyncio
import json
from urllib.parse import urlsplit, urlunsplit

from aiohttp import encode_basic_auth
from twilio.http.async_http_client import AsyncTwilioHttpClient
from twilio.http.response import Response
from twilio.rest import Client

CALL_S = 20.0


class HttpClient:
    """The library's own HTTP client with these mended; what `twilio.rest.Client` asks of one."""

    is_async = True

    def __init__(self, base_url: str | None) -> None:
        self._library = AsyncTwilioHttpClient()
        self._base = urlsplit(base_url) if base_url else None

    async def request(
        self, method: str, uri: str, *, headers: dict[str, str], auth: tuple[str, str] | None, **named: object
    ) -> Response:
        """Make one call. Raises `TimeoutError` and aiohttp's errors."""
        if self._base:
            parts = urlsplit(uri)
            uri = urlunsplit((self._base.scheme, self._base.netloc, parts.path, parts.query, ""))
        if auth:
            headers = headers | {"Authorization": encode_basic_auth(*auth)}
        if headers.get("Content-Type") == "application/json":
            named["data"] = json.dumps(named["data"], ensure_ascii=False).encode()
        async with asyncio.timeout(CALL_S):
            return await self._library.request(method, uri, headers=headers, **named)

    async def close(self) -> None:
        """Close the connections."""
        await self._library.close()


def open_client(account_sid: str, auth_token: str, base_url: str | None = None) -> Client:
    """Return a client of Twilio's API; to be called in a running loop. Its `http_client` must be closed."""
    return Client(account_sid, auth_token, http_client=HttpClient(base_url))
