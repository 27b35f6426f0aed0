"""A gateway with WhatsApp switched on, and the server that stands for Twilio behind it."""

import asyncio

from tests.fakes.twilio import Person, Sent, TwilioServer
from tests.support.road import Road

PUBLIC = "https://bot.example.org"
PATH = "/webhooks/whatsapp"


def settings(server: TwilioServer) -> dict[str, object]:
    """Return what switches WhatsApp on."""
    return {
        "twilio_account_sid": server.account_sid,
        "twilio_auth_token": server.token,
        "twilio_base_url": server.url,
        "whatsapp_from": server.sender,
        "whatsapp_business_purpose": "answers questions about a bakery",
        "public_url": PUBLIC,
    }


def connect(server: TwilioServer, gateway: Road) -> None:
    """Let Twilio post to a gateway."""
    server.hook.public, server.hook.local = PUBLIC, gateway.url


async def until(person: Person, words: str, timeout_s: float = 20) -> Sent:
    """Return the newest message that a person got with `words` in it, once it is there."""
    await person.server.wait_for(lambda: any(words in text for text in person.texts), timeout_s)
    return next(message for message in reversed(person.got) if words in message.body)


async def count(gateway: Road, table: str) -> int:
    """Return how many rows a table (with a condition, perhaps) has."""
    (row,) = await gateway.rows(f"select count(*) as n from {table}")  # noqa: S608 - a test's own words
    return int(row["n"])


_OPEN = (
    "select (select count(*) from inbox where state in ('stored', 'claimed'))"
    " + (select count(*) from outbox where state in ('due', 'sending')) as n"
)


async def settled(gateway: Road, timeout_s: float = 20, *, beyond: int = -1) -> None:
    """Wait until nothing waits to be handled or sent, and more than `beyond` updates have come in all."""
    async with asyncio.timeout(timeout_s):
        while await count(gateway, "inbox") <= beyond or (await gateway.rows(_OPEN))[0]["n"]:
            await asyncio.sleep(0.05)
