"""Telegram in a gateway: switched on by its token, polled under a lease or posted to by webhook, never in the way of the rest.

A platform that cannot be reached at start is tried again in the background; web chat and panel are up meanwhile.
"""

import asyncio
from collections.abc import Mapping, Sequence

from aiohttp import web

from app.domain.event import PressEvent
from app.domain.messages import LANGUAGES
from app.domain.messages import text as say
from app.errors import ChannelAwayError, DeliveryError, InvalidInputError, StoreUnavailableError
from app.ports import PartHealth
from app.store.leases import PollingLease
from app.telemetry import Log
from bots.base import RawUpdate
from bots.package import ChannelContext, Handler
from bots.telegram.faults import TokenRefusedError
from bots.telegram.keys import is_waiting_press
from bots.telegram.people import Me
from bots.telegram.receive import TelegramPoller
from bots.telegram.send import TelegramChannel, build_bot
from bots.telegram.settings import TelegramSettings
from bots.telegram.webhook import register_webhook, webhook_handler

log = Log(__name__)
PATH = "/webhooks/telegram"
AGAIN_S = 15.0
MENU_AGAIN_S = 900.0
MENU = ("new", "retry", "memory", "undo", "learn", "privacy", "forget", "export", "language", "whoami", "human", "help")


class TelegramPart:
    """The Telegram bot of this gateway."""

    def __init__(self, context: ChannelContext[TelegramSettings]) -> None:
        """Take what the gateway gives. Nothing connects yet."""
        self._settings = context.settings
        self._public_url = context.house.public_url or ""
        self._door = context.accept
        self._note = context.note
        self._answering: set[asyncio.Task[None]] = set()
        self._lease = PollingLease(context.store, context.bot_id, context.owner)
        self._bot = build_bot(self._settings.token, self._settings.telegram_base_url)
        self.channel = TelegramChannel(self._bot)
        self._connected = False
        self._problem: str | None = None
        self._refused = False

    async def _accept(self, updates: Sequence[RawUpdate]) -> None:
        """Store what came in; then answer the presses whose work waits for its turn: a query grows too old meanwhile."""
        await self._door(updates)
        for update in updates:
            if is_waiting_press(update.body):
                task = asyncio.create_task(self._answer(update.body))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)

    async def _answer(self, body: bytes) -> None:
        try:
            pressed = [event for event in self.channel.parse(body) if isinstance(event, PressEvent)]
        except (ChannelAwayError, InvalidInputError):
            return
        for event in pressed:
            await self.channel.answer_press(event.press_id, await self._note(event))

    def _me(self) -> Me:
        """Return who the bot is; its name is `""` until it is connected, and posts may come before that."""
        return self.channel.me if self._connected else Me(int(self._settings.number), "")

    @property
    def routes(self) -> Mapping[str, Handler | web.Application]:
        """The receiver of Telegram's posts, in webhook mode."""
        secret = self._settings.telegram_webhook_secret
        if self._settings.telegram_mode != "webhook" or secret is None:
            return {}
        return {PATH: webhook_handler(secret.get_secret_value(), self._accept, self._me)}

    async def start(self) -> None:
        """Do nothing: `run` connects, again until it can."""

    async def run(self) -> None:
        """Connect, then receive until cancelled; another gateway may poll at once afterwards."""
        await self._connect()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._offer_menu())
            group.create_task(self._register() if self._settings.telegram_mode == "webhook" else self._poll())

    async def close(self) -> None:
        """Close the connection, one that was only being opened too; `run` has ended and nothing is on its way any more."""
        await self.channel.close()

    async def health(self) -> PartHealth:
        """Return how Telegram is."""
        if self._problem:
            return PartHealth(
                "telegram", "down" if self._refused else "degraded", self._problem, required=self._refused
            )
        return PartHealth("telegram", "ok" if self._connected else "starting")

    async def _poll(self) -> None:
        try:
            await TelegramPoller(self._bot, self._accept, self._lease).run()
        except TokenRefusedError as error:
            self._trouble("telegram:poll:refused", error)
        finally:
            await self._let_others_poll()

    async def _let_others_poll(self) -> None:
        try:
            await self._lease.release()
        except StoreUnavailableError:
            log.warning("telegram:lease:store_away")  # it runs out by itself

    async def _register(self) -> None:
        """Tell Telegram where to post, again until it agrees."""
        secret = self._settings.telegram_webhook_secret
        url = f"{self._public_url.rstrip('/')}{PATH}"
        while True:
            try:
                await register_webhook(self._bot, url, secret.get_secret_value() if secret else "")
            except DeliveryError as error:
                self._trouble("telegram:webhook:refused", error)
                await asyncio.sleep(AGAIN_S)
            else:
                self._problem = None
                return

    async def _connect(self) -> None:
        while not self._connected:
            try:
                await self.channel.start()
            except DeliveryError as error:
                self._trouble("telegram:platform:away", error)
                await asyncio.sleep(AGAIN_S)
            else:
                self._connected, self._refused, self._problem = True, False, None

    async def _offer_menu(self) -> None:
        """Set the command menus, again until Telegram takes them; messages come and go meanwhile."""
        wait = AGAIN_S
        while True:
            try:
                await self.channel.publish_commands(_menus())
            except DeliveryError as error:
                log.failure("telegram:menu:refused", error)
                await asyncio.sleep(wait)
                wait = min(2 * wait, MENU_AGAIN_S)
            else:
                return

    def _trouble(self, event: str, error: DeliveryError) -> None:
        """Log what is wrong, and keep it for whoever asks how Telegram is."""
        self._problem, self._refused = str(error), isinstance(error, TokenRefusedError)
        log.failure("telegram:token:refused" if self._refused else event, error)


def _menus() -> dict[str, list[tuple[str, str]]]:
    """Return the command menus by language; English is also everybody else's."""
    menus: dict[str, list[tuple[str, str]]] = {
        language: [(name, say(language, f"menu_{name}")) for name in MENU] for language in LANGUAGES
    }
    return {"": menus["en"], **menus}
