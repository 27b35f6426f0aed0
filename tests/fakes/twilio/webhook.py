"""The posts that Twilio makes to a webhook: signed over the address it was given, whatever address they travel to.

Signs by the published rule and not with the library that the product verifies with.
https://www.twilio.com/docs/usage/security#validating-requests
"""

import base64
import hashlib
import hmac
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp

Fields = Sequence[tuple[str, str]]
LIMIT_S = 15.0


def signature(token: str, url: str, fields: Fields) -> str:
    """The value of `X-Twilio-Signature`."""
    signed = url + "".join(name + value for name, value in sorted(set(fields)))
    return base64.b64encode(hmac.new(token.encode(), signed.encode(), hashlib.sha1).digest()).decode()


@dataclass(slots=True)
class Hook:
    """Where posts go. `public` is what Twilio believes to call, `local` the address on loopback that stands behind it."""

    token: str
    public: str = ""
    local: str = ""
    answers: list[tuple[int, str]] = field(default_factory=list)

    async def post(self, path: str, fields: Fields, headers: Mapping[str, str] | None = None) -> int:
        """Sign and post a form; return the status of the answer."""
        sealed = {"X-Twilio-Signature": signature(self.token, self.public + path, fields)}
        return await self.post_as(path, urlencode(fields).encode(), sealed | dict(headers or {}))

    async def post_as(self, path: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post any bytes under any headers; return the status of the answer."""
        form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
        timeout = aiohttp.ClientTimeout(total=LIMIT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(self.local + path, data=io.BytesIO(body), headers=form | dict(headers)) as answer,
        ):
            self.answers.append((answer.status, await answer.text()))
            return answer.status
