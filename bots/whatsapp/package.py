"""WhatsApp through Twilio as a channel package: what `mentee.channels` finds. Twilio's library comes with `build` only."""

import re
from collections.abc import Sequence

import aiohttp

from app.config import Settings
from app.domain.consent import NEVER_SHARED
from app.domain.messages import text as say
from bots.package import ChannelContext, ChannelPackage, Finding, IdentityRule, Part
from bots.whatsapp.settings import WhatsAppSettings

_TWILIO = "https://api.twilio.com"
_TIMEOUT = aiohttp.ClientTimeout(total=30)
_OK = 200
# A number with + and country code, as messages bear it, or where Meta shows none, the id in its place.
_NUMBER_OR_ID = r"\+[1-9][0-9]{6,14}|[A-Z]{2}\.[A-Za-z0-9]{1,140}"


def build(context: ChannelContext[WhatsAppSettings]) -> Part:
    """Return the part of a configured sender."""
    from bots.whatsapp.part import WhatsAppPart  # noqa: PLC0415 - 40 MB that nobody else should pay

    return WhatsAppPart(context)


async def doctor(settings: WhatsAppSettings, house: Settings, language: str) -> Sequence[Finding]:
    """Ask Twilio whether it knows the account and its token."""
    what = say(language, "whatsapp_doctor")
    if not settings.on:
        return [Finding(what, "skip", say(language, "whatsapp_doctor_off"))]
    problem = await _asked(settings)
    if problem:
        return [Finding(what, "bad", say(language, "whatsapp_doctor_bad", detail=problem))]
    return [Finding(what, "ok", say(language, "whatsapp_doctor_ok", address=f"{house.address}/webhooks/whatsapp"))]


async def _asked(settings: WhatsAppSettings) -> str | None:
    """Return what is wrong. A token never appears in it."""
    sid = settings.twilio_account_sid or ""
    token = settings.twilio_auth_token.get_secret_value() if settings.twilio_auth_token else ""
    url = f"{(settings.twilio_base_url or _TWILIO).rstrip('/')}/2010-04-01/Accounts/{sid}.json"
    headers = {"Authorization": aiohttp.encode_basic_auth(sid, token)}
    try:
        async with aiohttp.ClientSession(timeout=_TIMEOUT, headers=headers) as session, session.get(url) as answer:
            body = await answer.json() if answer.status == _OK else {}
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        return type(error).__name__
    if answer.status != _OK:
        return f"HTTP {answer.status}"
    state = str(body.get("status"))
    return None if state == "active" else state


PACKAGE = ChannelPackage(
    name="whatsapp",
    settings=WhatsAppSettings,
    account=lambda settings: (settings.whatsapp_from or "").partition("+")[2],
    identity=IdentityRule(re.compile(_NUMBER_OR_ID), "whatsapp:+15550100123"),
    build=build,
    doctor=doctor,
    # Meta lets business data train nothing but a model for that business's own use; what people write on WhatsApp therefore
    # trains their own adapter and nothing else, whatever they allow.
    data_use=NEVER_SHARED,
    tells_arrival=True,
)
