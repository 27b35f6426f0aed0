"""WhatsApp in a gateway: switched on by its settings, posted to by Twilio, never in the way of the rest.

Imported only where it is on: Twilio's library takes some 40 MB.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from app import clock
from app.config import Settings
from app.domain.messages import text as say
from app.errors import ConfigError, DeliveryError, StoreUnavailableError
from app.services.intake import Intake
from app.store import Store, outbox
from app.telemetry import Log
from app.web.health import PartHealth
from bots.whatsapp.keys import Arrived
from bots.whatsapp.send import Account, WhatsAppChannel
from bots.whatsapp.webhook import Handler, Seal, message_handler, status_handler

log = Log(__name__)
PATH = "/webhooks/whatsapp"
STATUS_PATH = f"{PATH}/status"
AGAIN_S = 60.0
CATCH_UP_S = 300.0
# Twilio gives a webhook 15 s in all; what is younger may still come by itself.
ON_ITS_WAY_S = 60.0
# How far a list goes back: at the start as far as WhatsApp lets the bot answer, later a few times the pause between two.
LISTED_HOURS = 24
LISTED_AGAIN = 3


class WhatsAppPart:
    """The WhatsApp sender of this gateway."""

    def __init__(self, settings: Settings, store: Store, intake: Intake, bot_id: UUID, born: datetime) -> None:
        """Take the settings, the database, the door for updates, the bot's row, and since when there is that.

        Nothing connects yet.
        """
        self.bot_id = bot_id
        self._store = store
        self._intake = intake
        self._born = born
        self._settings = settings
        self._account = _account(settings)
        self._accept = intake.door(bot_id, "whatsapp")
        self.channel = WhatsAppChannel(self._account)
        self._problem: str | None = None
        self._checked = False

    @property
    def routes(self) -> Mapping[str, Handler]:
        """The receivers of Twilio's posts, by path."""
        return {
            PATH: message_handler(self._seal(PATH), self._accept),
            STATUS_PATH: status_handler(self._seal(STATUS_PATH), self._accept, self._note),
        }

    def start(self) -> None:
        """Open the channel, and say what Meta's terms mean for who runs it."""
        purpose = self._settings.whatsapp_business_purpose
        log.warning("whatsapp:terms:apply", text=say(self._settings.language, "whatsapp_terms", purpose=purpose))
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
        # A bot answers nothing that was said before it was there.
        reach = [clock.now() - timedelta(hours=LISTED_HOURS), self._born]
        while True:
            await self._catch_up(max(reach))
            await self._look_at_approvals()
            await asyncio.sleep(CATCH_UP_S)
            reach = [clock.now() - timedelta(seconds=LISTED_AGAIN * CATCH_UP_S), self._born]

    async def _catch_up(self, since: datetime) -> None:
        try:
            found = await self.channel.missed(since, clock.now() - timedelta(seconds=ON_ITS_WAY_S))
            new = await self._intake.accept(self.bot_id, found)
        except (DeliveryError, StoreUnavailableError) as error:
            log.failure("whatsapp:list:failed", error)
            return
        if new:
            log.warning("whatsapp:list:caught_up", messages=new)

    async def _look_at_approvals(self) -> None:
        try:
            await self.channel.check_approvals(self._store, self.bot_id)
        except (DeliveryError, StoreUnavailableError) as error:
            log.failure("whatsapp:approvals:unknown", error)

    async def _note(self, arrived: Arrived) -> None:
        async with self._store.single() as tx:
            await outbox.delivered(tx, self.bot_id, arrived.address, arrived.sid, arrived.delivery)

    async def close(self) -> None:
        """Close the connections; nothing is on its way any more."""
        await self.channel.close()

    async def health(self) -> PartHealth:
        """Return how WhatsApp is. Messages are taken in whether or not Twilio's API can be reached."""
        if self._problem:
            return PartHealth("whatsapp", "degraded", self._problem)
        return PartHealth("whatsapp", "ok" if self._checked else "starting")

    def _seal(self, path: str) -> Seal:
        return Seal(self._settings.address + path, self._account.sid, self._account.sender, self._account.token)


def _account(settings: Settings) -> Account:
    sid, token, sender = settings.twilio_account_sid, settings.twilio_auth_token, settings.whatsapp_from
    if not (sid and token and sender):
        raise ConfigError("WhatsApp needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and WHATSAPP_FROM")
    status_url = settings.address + STATUS_PATH
    return Account(sid, token.get_secret_value(), sender, status_url, settings.twilio_base_url)
