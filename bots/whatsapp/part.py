"""WhatsApp in a gateway: switched on by its settings, posted to by Twilio, never in the way of the rest.

Imported only where it is on: Twilio's library takes some 40 MB.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

from aiohttp import web

from app import clock
from app.domain.messages import text as say
from app.errors import ConfigError, DeliveryError, StoreUnavailableError
from app.ports import PartHealth
from app.store import reports
from app.telemetry import Log
from bots.package import ChannelContext, Handler
from bots.whatsapp.keys import Arrived
from bots.whatsapp.send import Account, WhatsAppChannel
from bots.whatsapp.settings import WhatsAppSettings
from bots.whatsapp.webhook import Seal, message_handler, status_handler

log = Log(__name__)
PATH = "/webhooks/whatsapp"
STATUS_PATH = f"{PATH}/status"
AGAIN_S = 60.0
CATCH_UP_S = 300.0
# Twilio gives a webhook 15 s in all; what is younger may still come by itself.
ON_ITS_WAY_S = 60.0
# How far a list goes back: at the start, and after failures at most, as far as WhatsApp lets the bot answer; else a few times
# the pause between two.
LISTED_HOURS = 24
LISTED_AGAIN = 3


class WhatsAppPart:
    """The WhatsApp sender of this gateway."""

    def __init__(self, context: ChannelContext[WhatsAppSettings]) -> None:
        """Take what the gateway gives. Nothing connects yet."""
        self._catch_up_with = context.catch_up
        self._born = context.born
        self._settings = context.settings
        self._house = context.house
        self._account = _account(self._settings, self._house.address + STATUS_PATH)
        self._accept = context.accept
        self._store = context.store
        self._bot_id = context.bot_id
        self.channel = WhatsAppChannel(self._account)
        self._problem: str | None = None
        self._checked = False

    @property
    def routes(self) -> Mapping[str, Handler | web.Application]:
        """The receivers of Twilio's posts, by path."""
        return {
            PATH: message_handler(self._seal(PATH), self._accept),
            STATUS_PATH: status_handler(self._seal(STATUS_PATH), self._accept, self._note),
        }

    async def start(self) -> None:
        """Open the channel, and say what Meta's terms mean for who runs it."""
        purpose = self._settings.whatsapp_business_purpose
        log.warning("whatsapp:terms:apply", text=say(self._house.language, "whatsapp_terms", purpose=purpose))
        self.channel.start()

    async def run(self) -> None:
        """Find out whether Twilio knows the account, again until it does; then ask for what was missed, now and then."""
        while not self._checked:
            try:
                await self.channel.check()
            except DeliveryError as error:
                self._problem = str(error)
                log.failure("whatsapp:account:unknown", error)
                await asyncio.sleep(AGAIN_S)
            else:
                self._checked, self._problem = True, None
        since = self._born  # a bot answers nothing that was said before it was there
        while True:
            since = await self._catch_up(since)
            await self._look_at_approvals()
            await asyncio.sleep(CATCH_UP_S)

    async def _catch_up(self, since: datetime) -> datetime:
        """Ask for what was missed; return from when on to ask the next time, the same again where nobody could tell."""
        asked_at = clock.now()
        farthest = asked_at - timedelta(hours=LISTED_HOURS)
        try:
            found = await self.channel.missed(max(since, farthest), asked_at - timedelta(seconds=ON_ITS_WAY_S))
            new = await self._catch_up_with(found)
        except (DeliveryError, StoreUnavailableError) as error:
            log.failure("whatsapp:list:failed", error)
            return since
        if new:
            log.warning("whatsapp:list:caught_up", messages=new)
        return max(since, asked_at - timedelta(seconds=(LISTED_AGAIN - 1) * CATCH_UP_S))

    async def _look_at_approvals(self) -> None:
        try:
            await self.channel.check_approvals(self._store, self._bot_id)
        except (DeliveryError, StoreUnavailableError) as error:
            log.failure("whatsapp:approvals:unknown", error)

    async def _note(self, arrived: Arrived) -> bool:
        async with self._store.single() as tx:
            if await reports.receipt_awaited(tx, self._bot_id, arrived.address, arrived.sid):
                return False
            await reports.delivered(tx, self._bot_id, arrived.address, arrived.sid, arrived.delivery)
            return True

    async def close(self) -> None:
        """Close the connections; nothing is on its way any more."""
        await self.channel.close()

    async def health(self) -> PartHealth:
        """Return how WhatsApp is. Messages are taken in whether or not Twilio's API can be reached."""
        if self._problem:
            return PartHealth("whatsapp", "degraded", self._problem)
        return PartHealth("whatsapp", "ok" if self._checked else "starting")

    def _seal(self, path: str) -> Seal:
        return Seal(self._house.address + path, self._account.sid, self._account.sender, self._account.token)


def _account(settings: WhatsAppSettings, status_url: str) -> Account:
    sid, token, sender = settings.twilio_account_sid, settings.twilio_auth_token, settings.whatsapp_from
    if not (sid and token and sender):
        raise ConfigError("WhatsApp needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and WHATSAPP_FROM")
    return Account(sid, token.get_secret_value(), sender, status_url, settings.twilio_base_url)
