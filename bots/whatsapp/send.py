"""WhatsApp through Twilio as a `Channel`. Knows nothing of turns and outbox: it neither queues nor repeats what may have
been sent. WhatsApp has no edits and, outside templates, no buttons: the dialogue says choices in words.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import aiohttp
from twilio.base.exceptions import TwilioException
from twilio.rest import Client

from app.domain.event import AnyEvent, ChatAddress, MessageEvent, PressEvent
from app.domain.media import Attachment
from app.domain.outgoing import Content, Template
from app.domain.text import is_blank
from app.errors import AttachmentAwayError, DeliveryError, DeliveryRetryError
from app.ports import Capabilities
from app.store import Store
from app.telemetry import Log
from bots.base import RawUpdate
from bots.whatsapp.client import open_client
from bots.whatsapp.faults import meaning
from bots.whatsapp.form import ME
from bots.whatsapp.media import MediaClient
from bots.whatsapp.missed import missed
from bots.whatsapp.parse import parse
from bots.whatsapp.render import render
from bots.whatsapp.setup import check_approvals
from bots.whatsapp.split import MAX_UNITS, split

log = Log(__name__)
WINDOW_HOURS = 24.0
_CAPABILITIES = Capabilities(
    buttons=False,
    edits=False,
    typing=True,
    attachments=True,
    words=True,
    reply_to=True,
    max_units=MAX_UNITS,
    window_hours=WINDOW_HOURS,
)
_ELLIPSIS = "…"  # for a text of which nothing can be seen, which Twilio would refuse
_AWAY_S = 2.0
_TYPING_S = 20.0  # Meta shows it for 25 s or until the reply
_REMEMBERED = 2048


@dataclass(frozen=True, slots=True)
class Account:
    """The Twilio account, the bot's own sender, and where Twilio reports what became of a message."""

    sid: str
    token: str = field(repr=False)
    sender: str
    status_url: str
    base_url: str | None = None


@dataclass(slots=True)
class _Heard:
    """A person's newest message, and when typing was last shown for it."""

    message_id: str
    typed_at: float = float("-inf")


class WhatsAppChannel:
    """One WhatsApp sender (`app.ports.Channel`). `start` before use, `close` after."""

    name = "whatsapp"
    capabilities = _CAPABILITIES

    def __init__(self, account: Account) -> None:
        self._account = account
        self._client: Client | None = None
        self._media: MediaClient | None = None
        self._heard: OrderedDict[str, _Heard] = OrderedDict()

    def start(self) -> None:
        """Make the client, inside the loop that will use it. Asks nobody anything."""
        named = (self._account.sid, self._account.token, self._account.base_url)
        self._client, self._media = open_client(*named), MediaClient(*named)

    async def close(self) -> None:
        """Close the connections."""
        if self._client:
            await self._client.http_client.close()
            self._client = None
        if self._media:
            await self._media.close()
            self._media = None

    async def check(self) -> None:
        """Ask Twilio whether it knows the account. Raises the `DeliveryError` family."""
        client = self._connected()
        try:
            await client.api.v2010.accounts(self._account.sid).fetch_async()
        except (TwilioException, aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise meaning(error) from error

    async def missed(self, since: datetime, until: datetime) -> Sequence[RawUpdate]:
        """Return what people sent in that time, whether or not it came in. Raises the `DeliveryError` family."""
        client, media = self._connected(), self._media
        if media is None:
            raise DeliveryRetryError("WhatsApp is not connected yet", _AWAY_S)
        return await missed(client, self._account.sid, self._account.sender, since, until, media.address)

    async def check_approvals(self, store: Store, bot_id: UUID) -> None:
        """Learn what Meta decided about templates. Raises the `DeliveryError` family and `StoreUnavailableError`."""
        await check_approvals(self._connected(), store, bot_id)

    def parse(self, body: bytes) -> Sequence[AnyEvent]:
        events = parse(body)
        for event in events:
            if isinstance(event, MessageEvent | PressEvent):
                self._hear(event.chat, event.message_id if isinstance(event, MessageEvent) else event.press_id)
        return events

    def split(self, text: str) -> Sequence[str]:
        return split(text)

    async def send(self, chat: ChatAddress, content: Content) -> str:
        if content.file_name is not None:
            raise DeliveryError("WhatsApp takes no files from here")
        if content.template:
            try:
                return await self._create(chat, _filled(content.template))
            except DeliveryError as error:
                if type(error) is not DeliveryError:
                    raise
                # Deleted at Twilio, or not fit to be sent: the words say the same.
                log.warning("whatsapp:template:refused", code=error.code)
        text = render(content.text)
        return await self._create(chat, {"body": _ELLIPSIS if is_blank(text) else text})

    async def _create(self, chat: ChatAddress, what: Mapping[str, str]) -> str:
        client, account = self._connected(), self._account
        try:
            message = await client.messages.create_async(
                to=chat.external_id, from_=account.sender, status_callback=account.status_url, **what
            )
        except (TwilioException, aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise meaning(error) from error
        return str(message.sid)

    async def edit(self, chat: ChatAddress, message_id: str, content: Content) -> None:
        """Change nothing: WhatsApp has no edits, and all that ever changes under a sent message is its choices."""

    def private_link(self) -> str:
        return f": https://wa.me/{self._account.sender.removeprefix(ME).lstrip('+')}"

    def own_notice(self, language: str) -> str | None:  # noqa: ARG002 - the dialogue's words are sent
        return None

    async def typing(self, chat: ChatAddress) -> None:
        heard, now = self._heard.get(chat.external_id), time.monotonic()
        if self._client is None or heard is None or now - heard.typed_at < _TYPING_S:
            return
        heard.typed_at = now
        try:
            await self._client.messaging.v2.typing_indicator.create_async("whatsapp", heard.message_id)
        except (TwilioException, aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.info("whatsapp:typing:refused", kind=type(error).__name__)

    async def fetch(self, attachment: Attachment) -> bytes:
        if self._media is None:
            raise AttachmentAwayError("WhatsApp is not connected yet")
        return await self._media.fetch(attachment)

    async def answer_press(self, press_id: str, note: str) -> None:
        """Do nothing: nobody waits for an answer to a press here."""

    def _connected(self) -> Client:
        if self._client is None:
            raise DeliveryRetryError("WhatsApp is not connected yet", _AWAY_S)
        return self._client

    def _hear(self, chat: ChatAddress, message_id: str) -> None:
        self._heard.pop(chat.external_id, None)
        self._heard[chat.external_id] = _Heard(message_id)
        if len(self._heard) > _REMEMBERED:
            self._heard.popitem(last=False)


def _filled(template: Template) -> Mapping[str, str]:
    """Return what sends a template."""
    filled = {"content_sid": template.sid}
    if template.variables:
        filled["content_variables"] = json.dumps(dict(template.variables), ensure_ascii=False)
    return filled
