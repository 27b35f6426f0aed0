"""What a platform posts to us, read up to a limit, and answers that are known to have left. Knows no platform."""

import hashlib
from dataclasses import dataclass

from aiohttp import web

_CHUNK = 64 * 1024


async def body_of(request: web.Request, most: int) -> bytes | None:
    """Return the body; None when it is longer than `most` bytes, which is found out before all of it is read."""
    if (request.content_length or 0) > most:
        return None
    body = bytearray()
    async for chunk in request.content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


@dataclass(frozen=True, slots=True)
class Posted:
    """A body that was read to its end: its first bytes, its length, and its SHA-256 in hexadecimal digits."""

    head: bytes
    length: int
    digest: str

    @property
    def is_whole(self) -> bool:
        """Whether these are all of its bytes."""
        return len(self.head) == self.length


async def posted(request: web.Request, most: int) -> Posted:
    """Read a body to its end, however long it is, and keep its first `most` bytes; for who proved already who they are."""
    head, length, digest = bytearray(), 0, hashlib.sha256()
    async for chunk in request.content.iter_chunked(_CHUNK):
        head += chunk[: most - len(head)]
        length += len(chunk)
        digest.update(chunk)
    return Posted(bytes(head), length, digest.hexdigest())


async def written(request: web.Request, response: web.Response) -> None:
    """Write a response now, so that whoever goes on knows that it left. Raises `ConnectionError` where nobody listens."""
    await response.prepare(request)
    await response.write_eof()
