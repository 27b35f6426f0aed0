"""The web chat as a channel. There is no platform to call: what is sent is the outbox row that the page reads.

So sending means giving the part an id and letting open pages hear of it; nothing can be lost or doubled on the way.
"""

from collections.abc import Sequence
from uuid import UUID, uuid4

from app.config import Settings
from app.domain.event import AnyEvent, ChatAddress
from app.domain.media import Attachment
from app.domain.outgoing import Content
from app.errors import AttachmentGoneError, RecipientGoneError
from app.ports import Capabilities
from app.services.stream import Item, Streams
from bots.web.identity import notice
from bots.web.parse import chat_of_press, parse

MAX_CHARS = 100_000


class WebChannel:
    """The web chat's side of `app.ports.Channel`."""

    name = "web"
    capabilities = Capabilities(
        buttons=True,
        edits=True,
        reactions=False,
        typing=False,
        files=True,
        reply_to=True,
        newcomers=False,
        max_units=MAX_CHARS,
        live_edit_s=0.0,
    )

    def __init__(self, streams: Streams, settings: Settings) -> None:
        self._streams = streams
        self._settings = settings

    def parse(self, body: bytes) -> Sequence[AnyEvent]:
        return [parse(body)]

    def split(self, text: str) -> Sequence[str]:
        return [text[start : start + MAX_CHARS] for start in range(0, max(len(text), 1), MAX_CHARS)]

    async def send(self, chat: ChatAddress, content: Content) -> str:  # noqa: ARG002 - the page reads the row itself
        self._changed(chat)
        return f"w{uuid4().hex}"

    async def edit(self, chat: ChatAddress, message_id: str, content: Content) -> None:  # noqa: ARG002 - as in `send`
        self._changed(chat)

    def private_link(self) -> str:
        return ""

    def own_notice(self, language: str) -> str | None:
        return notice(self._settings, language)

    async def typing(self, chat: ChatAddress) -> None:
        self._changed(chat)

    async def fetch(self, attachment: Attachment) -> bytes:  # noqa: ARG002 - the page sends words alone
        raise AttachmentGoneError

    async def answer_press(self, press_id: str, note: str) -> None:
        chat_id = chat_of_press(press_id)
        if chat_id is not None:
            self._streams.publish(chat_id, Item(text=note))

    def _changed(self, chat: ChatAddress) -> None:
        self._streams.publish(chat_row(chat), Item())


def chat_row(chat: ChatAddress) -> UUID:
    """Return the row id of a web chat, which is its external id.

    Raises:
        RecipientGoneError: this is no chat of the web channel.
    """
    try:
        return UUID(chat.external_id)
    except ValueError as error:
        raise RecipientGoneError from error
