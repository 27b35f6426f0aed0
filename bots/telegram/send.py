"""Telegram as a `Channel`: paces the calls to the Bot API and says what its answers mean.

Formats travel as entities, never as parse_mode; if they are refused, and only then, the plain text is sent. Knows nothing
of turns and outbox: it neither queues nor repeats what may have been sent.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from telegram import Bot
from telegram.error import RetryAfter, TelegramError

from app.domain.event import AnyEvent, ChatAddress
from app.domain.media import Attachment
from app.domain.outgoing import Content
from app.errors import AttachmentAwayError, ChannelAwayError, DeliveryRetryError
from app.ports import Capabilities
from app.telemetry import Log
from bots.telegram.calls import Look, edit_buttons, edit_text, keyboard, number, send_file, send_text, thread_to_send
from bots.telegram.faults import Action, meaning, wait_of
from bots.telegram.files import CappedRequest, fetch, file_address
from bots.telegram.pace import Pacer
from bots.telegram.parse import parse
from bots.telegram.people import Me
from bots.telegram.split import split

T = TypeVar("T")
log = Log(__name__)
_CAPABILITIES = Capabilities(
    reactions=True, typing=True, files=True, attachments=True, reply_to=True, max_units=4096, live_edit_s=1.0
)
_NOTE_CHARS = 200
_AWAY_S = 2.0
_REMEMBERED = 2048
_CONNECTIONS = 64


def build_bot(token: str, base_url: str = "https://api.telegram.org/bot") -> Bot:
    """Return a client of the Bot API; `TelegramChannel.start` opens it."""
    request = CappedRequest(_CONNECTIONS)
    return Bot(token, base_url=base_url, base_file_url=file_address(base_url), request=request)


class TelegramChannel:
    """One Telegram bot (`app.ports.Channel`). `start` before use, `close` after."""

    name = "telegram"
    capabilities = _CAPABILITIES

    def __init__(self, bot: Bot, pacer: Pacer | None = None) -> None:
        self._bot = bot
        self._pacer = pacer or Pacer()
        self._shown: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._open = False

    @property
    def me(self) -> Me:
        """The bot's own id and name, known after `start`. Raises `ChannelAwayError` before it."""
        if not self._open:
            raise ChannelAwayError
        return Me(self._bot.id, self._bot.username)

    async def start(self) -> None:
        """Open the connection and learn the bot's name; may be tried again after a failure.

        Raises the `DeliveryError` family when Telegram cannot be used.
        """
        try:
            await self._bot.initialize()
        except TelegramError as error:
            await self._bot.shutdown()
            raise meaning(error, "edit") from error
        self._open = True

    async def close(self) -> None:
        """Close the connection."""
        self._open = False
        await self._bot.shutdown()

    def parse(self, body: bytes) -> Sequence[AnyEvent]:
        return parse(body, self.me)

    def split(self, text: str) -> Sequence[str]:
        return split(text)

    async def send(self, chat: ChatAddress, content: Content) -> str:
        keyboard(content)  # a button that cannot be sent is refused before the chat's slot is taken
        self._connected()
        await self._pacer.turn(chat, "send")
        if content.file_name is not None:
            return await self._asked(chat, "send", send_file(self._bot, chat, content, thread_to_send(chat)))
        look = Look.of(content.text, thread_to_send(chat))
        message_id = await self._asked(chat, "send", send_text(self._bot, chat, content, look))
        self._remember(chat, message_id, content, look)
        return message_id

    async def edit(self, chat: ChatAddress, message_id: str, content: Content) -> None:
        keyboard(content)
        self._connected()
        if content.file_name is not None:
            await self._pacer.turn(chat, "edit")
            await self._asked(chat, "edit", edit_buttons(self._bot, chat, message_id, content))
            return
        look = Look.of(content.text)
        if self._shows(chat, message_id, content, look):
            return
        await self._pacer.turn(chat, "edit")
        await self._asked(chat, "edit", edit_text(self._bot, chat, message_id, content, look))
        self._remember(chat, message_id, content, look)

    def private_link(self) -> str:
        return f": https://t.me/{self.me.username}"

    def own_notice(self, language: str) -> str | None:  # noqa: ARG002 - the dialogue's words are sent
        return None

    async def typing(self, chat: ChatAddress) -> None:
        thread = int(chat.thread) if chat.thread.isdecimal() else None
        if not self._open:
            return
        try:
            await self._bot.send_chat_action(number(chat.external_id), "typing", message_thread_id=thread)
        except TelegramError as error:
            self._note_flood(chat, error)
            log.info("telegram:typing:refused", kind=type(error).__name__)

    async def fetch(self, attachment: Attachment) -> bytes:
        request = self._bot.request
        if not self._open or not isinstance(request, CappedRequest):
            raise AttachmentAwayError("Telegram is not connected yet")
        return await fetch(self._bot, request, attachment)

    async def answer_press(self, press_id: str, note: str) -> None:
        if not self._open:
            return
        try:
            await self._bot.answer_callback_query(press_id, text=note[:_NOTE_CHARS] or None)
        except TelegramError as error:
            log.info("telegram:press:unanswered", kind=type(error).__name__)

    async def publish_commands(self, menus: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        """Set the command menus: by two-letter language (`""`: for all others) a list of command and description.

        Raises the `DeliveryError` family.
        """
        for language, menu in menus.items():
            try:
                await self._bot.set_my_commands(menu, language_code=language or None)
            except TelegramError as error:
                raise meaning(error, "edit") from error

    def _connected(self) -> None:
        if not self._open:
            raise DeliveryRetryError("Telegram is not connected yet", _AWAY_S)

    async def _asked(self, chat: ChatAddress, action: Action, call: Awaitable[T]) -> T:
        """Await `call`, its refusal translated, a flood wait remembered for this chat alone."""
        try:
            return await call
        except TelegramError as error:
            self._note_flood(chat, error)
            raise meaning(error, action) from error

    def _note_flood(self, chat: ChatAddress, error: TelegramError) -> None:
        if isinstance(error, RetryAfter):
            self._pacer.flooded(chat, wait_of(error))

    def _shows(self, chat: ChatAddress, message_id: str, content: Content, look: Look) -> bool:
        """Whether this process made the message show just this. One with buttons is always asked for: another process
        may have changed it since.
        """
        return not content.buttons and self._shown.get((chat.external_id, message_id)) == hash(
            (look.text, look.entities)
        )

    def _remember(self, chat: ChatAddress, message_id: str, content: Content, look: Look) -> None:
        key = (chat.external_id, message_id)
        self._shown.pop(key, None)
        if not content.buttons:
            self._shown[key] = hash((look.text, look.entities))
        if len(self._shown) > _REMEMBERED:
            self._shown.popitem(last=False)
