"""Files that people sent, from the Bot API: asked for by id, read piece by piece up to a limit.

getFile tells a path, which counts only as an address under the file server of this token. Both the library's own download
and its answers would be held whole, however large; what is declared is not believed.
"""

import asyncio

import aiohttp
from telegram import Bot
from telegram.error import BadRequest, Forbidden, InvalidToken, TelegramError

from app.domain.media import Attachment
from app.errors import (
    AttachmentAwayError,
    AttachmentError,
    AttachmentGoneError,
    AttachmentRefusedError,
    AttachmentTooBigError,
)
from bots.telegram.http import AiohttpRequest

FETCH_S = 20.0
PIECE = 64 * 1024
_OK = 200
_GONE = frozenset({400, 404, 410})
_REFUSED = frozenset({401, 403})


class CappedRequest(AiohttpRequest):
    """The connections to the Bot API, and a way to read an answer up to a limit through them."""

    async def read(self, url: str, most: int) -> bytes:
        """Return the body at `url`. Raises the `AttachmentError` family, `NetworkError` and aiohttp's errors."""
        body = bytearray()
        async with self.session.get(url, allow_redirects=False) as answer:
            _check(answer.status)
            async for piece in answer.content.iter_chunked(PIECE):
                body += piece
                if len(body) > most:
                    raise AttachmentTooBigError
        return bytes(body)


def _check(status: int) -> None:
    if status in _GONE:
        raise AttachmentGoneError
    if status in _REFUSED:
        raise AttachmentRefusedError
    if status != _OK:
        raise AttachmentAwayError(f"the file server answered {status}")


async def fetch(bot: Bot, request: CappedRequest, attachment: Attachment) -> bytes:
    """Return a file that a person sent. Raises the `AttachmentError` family."""
    if attachment.too_big:
        raise AttachmentTooBigError
    try:
        async with asyncio.timeout(FETCH_S):
            path = (await bot.get_file(attachment.ref)).file_path
            if path is None or not path.startswith(f"{bot.base_file_url}/"):
                raise AttachmentRefusedError  # a path on the disk of a server of one's own
            return await request.read(path, attachment.most)
    except TelegramError as error:
        raise _meaning(error) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        # Without its words: they can hold the address, and that holds the token.
        raise AttachmentAwayError from error


def _meaning(error: TelegramError) -> AttachmentError:
    match error:
        case BadRequest():
            return AttachmentTooBigError() if "too big" in error.message.lower() else AttachmentGoneError()
        case Forbidden() | InvalidToken():
            return AttachmentRefusedError()
        case _:
            return AttachmentAwayError()


def file_address(base_url: str) -> str:
    """Return where files lie for a Bot API at `base_url`; both end before the token."""
    return base_url.removesuffix("/bot") + "/file/bot"
