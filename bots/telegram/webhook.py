"""Telegram's posts to our own webhook: checked, stored as they are, acknowledged.

    wrong secret 401 · store away 503 (Telegram repeats) · everything authentic 200; of what is longer than 512 KiB the beginning
    is kept, to be set aside: refused, it would come again for a day and hold up what is behind it

python-telegram-bot's receiver is not used: it compares the secret in variable time, answers 200 before anything is stored,
and refuses what it cannot parse, which Telegram would then repeat for a day.
"""

import hmac
from collections.abc import Callable

from aiohttp import web
from telegram import Bot
from telegram.error import TelegramError

from app.errors import StoreUnavailableError
from app.telemetry import Log
from bots.base import Accept
from bots.package import Handler
from bots.posted import posted
from bots.telegram.faults import meaning
from bots.telegram.keys import raw_update, too_long
from bots.telegram.people import Me
from bots.telegram.receive import ALLOWED_UPDATES

log = Log(__name__)
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name
MAX_BODY = 512 * 1024
_MAX_CONNECTIONS = 40


def webhook_handler(secret: str, accept: Accept, me: Callable[[], Me]) -> Handler:
    """Return the handler for Telegram's posts to a bot, set up with `secret`; `me` tells who it is, as far as is known."""

    async def handle(request: web.Request) -> web.StreamResponse:
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(errors="replace"), secret.encode()):
            log.warning("telegram:webhook:unauthentic")
            return web.Response(status=401)
        came = await posted(request, MAX_BODY)
        if not came.is_whole:
            log.warning("telegram:webhook:too_long", bytes=came.length)
        update = raw_update(came.head, me()) if came.is_whole else too_long(came.head, came.digest, me())
        try:
            await accept([update])
        except StoreUnavailableError:
            log.warning("telegram:webhook:store_away")
            return web.Response(status=503, headers={"Retry-After": "5"})
        return web.Response()

    return handle


async def register_webhook(bot: Bot, url: str, secret: str) -> None:
    """Tell Telegram to post updates to `url`. Raises the `DeliveryError` family."""
    try:
        await bot.set_webhook(
            url, secret_token=secret, allowed_updates=ALLOWED_UPDATES, max_connections=_MAX_CONNECTIONS
        )
    except TelegramError as error:
        raise meaning(error, "edit") from error
