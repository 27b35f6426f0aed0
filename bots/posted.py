"""Bodies that a platform posts to us, read up to a limit. Knows no platform."""

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
