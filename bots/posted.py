"""What a platform posts to us, read up to a limit, and answers that are known to have left. Knows no platform."""

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


async def written(request: web.Request, response: web.Response) -> None:
    """Write a response now, so that whoever goes on knows that it left. Raises `ConnectionError` where nobody listens."""
    await response.prepare(request)
    await response.write_eof()
