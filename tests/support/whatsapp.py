"""A gateway with WhatsApp switched on, and the server that stands for Twilio behind it."""

import asyncio

from tests.fakes.twilio import Person, Sent, TwilioServer
from tests.support.road import Road

PUBLIC = "https://bot.example.org"
PATH = "/webhooks/whatsapp"


def settings(server: TwilioServer) -> dict[str, object]:
    return {
        "twilio_account_sid": server.account_sid,
        "twilio_auth_token": server.token,
        "twilio_base_url": server.url,
        "whatsapp_from": server.sender,
        "whatsapp_business_purpose": "answers questions about a bakery",
        "public_url": PUBLIC,
    }


def connect(server: TwilioServer, gateway: Road) -> None:
    server.hook.public, server.hook.local = PUBLIC, gateway.url


async def until(person: Person, words: str) -> Sent:
    await person.server.wait_for(lambda: any(words in text for text in person.texts), 20)
    return next(message for message in reversed(person.got) if words in message.body)


async def count(gateway: Road, table: str) -> int:
    (row,) = await gateway.rows(f"select count(*) as n from {table}")  # noqa: S608 - a test's own words
    return int(row["n"])


async def settled(gateway: Road) -> None:
    for _ in range(200):
        (row,) = await gateway.rows(
            "select (select count(*) from inbox where state in ('stored', 'claimed'))"
            " + (select count(*) from outbox where state in ('due', 'sending')) as n"
        )
        if not row["n"]:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError
