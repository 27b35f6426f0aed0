"""`mentee whatsapp setup`: makes the content templates, prints the addresses that belong into Twilio's console, explains the
sandbox and the 24 hours, and says what is missing.

Exit code 0: everything is made, and approval asked for where it is needed. 1: WhatsApp is off, or Twilio refused.
"""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from app.config import Settings
from app.embedded import postgres
from app.embedded.lines import Lines
from app.embedded.parts import Home
from app.errors import ConfigError, DeliveryError
from bots.whatsapp.settings import WhatsAppSettings

if TYPE_CHECKING:
    from app.store import Store

PATH = "/webhooks/whatsapp"
# Twilio's own sender for trials, the same for everybody.
SANDBOX = "whatsapp:+14155238886"
NAMES = ("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "WHATSAPP_FROM", "WHATSAPP_BUSINESS_PURPOSE", "PUBLIC_URL")


def set_up(house: Settings, settings: WhatsAppSettings, lines: Lines) -> int:
    """Do it all, and return the exit code.

    Raises:
        MenteeError: the database is away or was never started; a setting of the house is missing.
    """
    if not settings.on:
        lines.line("whatsapp.off", names=", ".join(NAMES))
        lines.line("whatsapp.sandbox", number=SANDBOX.removeprefix("whatsapp:"))
        return 1
    if lacking := settings.lacking(house):
        raise ConfigError(lacking)
    in_sandbox = settings.whatsapp_from == SANDBOX
    lines.line("whatsapp.message_webhook", address=house.address + PATH)
    lines.line("whatsapp.status_webhook", address=f"{house.address}{PATH}/status")
    given = house.database_url
    url = given.get_secret_value() if given else postgres.url(Home(house.mentee_home), house.postgres_port)
    try:
        asyncio.run(_templates(settings, url, lines))
    except DeliveryError as error:
        lines.line("whatsapp.refused", detail=error)
        return 1
    lines.line("whatsapp.sandbox_now" if in_sandbox else "whatsapp.sandbox", number=SANDBOX.removeprefix("whatsapp:"))
    lines.line("whatsapp.window")
    return 0


async def _templates(settings: WhatsAppSettings, database_url: str, lines: Lines) -> None:
    # Twilio's library takes 40 MB that no other command should pay.
    from app.store import Store
    from bots.whatsapp.client import open_client
    from bots.whatsapp.setup import set_up as make
    from bots.whatsapp.templates import definitions, without_approval

    token = settings.twilio_auth_token.get_secret_value() if settings.twilio_auth_token else ""
    store = Store(database_url, pool_size=1)
    wanted = without_approval() if settings.whatsapp_from == SANDBOX else definitions()
    client = open_client(settings.twilio_account_sid or "", token, settings.twilio_base_url)
    try:
        for outcome in await make(client, store, await _bot(store, settings), wanted):
            made = "whatsapp.made" if outcome.new else "whatsapp.stands"
            template = outcome.template
            lines.line(made, name=template.name, language=template.language, sid=template.content_sid)
            if outcome.needs_approval:
                lines.line(f"whatsapp.approval.{template.approval}")
    finally:
        await client.http_client.close()
        await store.close()


async def _bot(store: "Store", settings: WhatsAppSettings) -> UUID:
    """Return the row of the bot's own sender, the same that a gateway finds."""
    from app.store import people

    async with store.begin() as tx:
        return await people.ensure_bot(tx, "whatsapp", (settings.whatsapp_from or "").partition("+")[2])
