"""Telegram as a channel package: what `mentee.channels` finds."""

import re
from collections.abc import Sequence

import aiohttp

from app.config import Settings
from app.domain.consent import EVERY_PURPOSE
from app.domain.messages import text as say
from bots.package import ChannelContext, ChannelPackage, Finding, IdentityRule, Part
from bots.telegram.settings import TelegramSettings

_TIMEOUT = aiohttp.ClientTimeout(total=30)


def build(context: ChannelContext[TelegramSettings]) -> Part:
    """Return the part of a configured bot."""
    from bots.telegram.part import TelegramPart  # noqa: PLC0415 - the library, for whoever uses it

    return TelegramPart(context)


async def doctor(settings: TelegramSettings, house: Settings, language: str) -> Sequence[Finding]:  # noqa: ARG001
    """Ask Telegram who the token belongs to."""
    what = say(language, "telegram_doctor")
    if not settings.on:
        return [Finding(what, "skip", say(language, "telegram_doctor_off"))]
    try:
        name, problem = await _asked(settings)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        # Only the type: the message of a client error holds the URL, and the URL holds the token.
        return [Finding(what, "bad", say(language, "telegram_doctor_away", detail=type(error).__name__))]
    if problem:
        return [Finding(what, "bad", say(language, "telegram_doctor_bad", detail=problem))]
    return [Finding(what, "ok", f"@{name}")]


async def _asked(settings: TelegramSettings) -> tuple[str, str | None]:
    """Return the bot's user name and why it was refused.

    Raises:
        aiohttp.ClientError, TimeoutError, OSError, ValueError: nobody answered, or not as Telegram does.
    """
    async with (
        aiohttp.ClientSession(timeout=_TIMEOUT) as session,
        session.get(f"{settings.telegram_base_url}{settings.token}/getMe") as answer,
    ):
        body = await answer.json()
    if not isinstance(body, dict) or not body.get("ok"):
        return "", _refusal(body, answer.status)
    known = body.get("result")
    return str(known.get("username", "")) if isinstance(known, dict) else "", None


def _refusal(body: object, status: int) -> str:
    told = body.get("description") if isinstance(body, dict) else None
    return str(told or f"HTTP {status}")


PACKAGE = ChannelPackage(
    name="telegram",
    settings=TelegramSettings,
    account=lambda settings: settings.number,
    identity=IdentityRule(re.compile(r"[1-9][0-9]*"), "telegram:12345"),
    build=build,
    doctor=doctor,
    data_use=EVERY_PURPOSE,
)
