"""The calls to the Bot API that show a content, each with the simpler second try that certain refusals allow.

A refusal (400) means that nothing was sent, so the second try cannot double a message. Every other error of the library
passes through to `send`, which says what it means.
"""

from dataclasses import dataclass, replace

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import BadRequest

from app.domain.event import ChatAddress
from app.domain.outgoing import Button, Content
from app.domain.text import is_blank
from app.errors import DeliveryError
from app.telemetry import Log
from bots.telegram.faults import is_markup_fault, is_thread_fault, is_unmodified
from bots.telegram.marks import Entity
from bots.telegram.people import GENERAL_TOPIC
from bots.telegram.render import telegram_text

log = Log(__name__)
_DATA_BYTES = 64
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
_ELLIPSIS = "…"  # for a text of which nothing can be seen, which Telegram would refuse


@dataclass(frozen=True, slots=True)
class Look:
    """A text as it is to be seen: entities in UTF-16 units, the topic (None: the chat itself)."""

    text: str
    entities: tuple[Entity, ...]
    thread: int | None = None

    @classmethod
    def of(cls, markdown: str, thread: int | None = None) -> "Look":
        """Return what `markdown` looks like."""
        text, entities = telegram_text(markdown)
        return cls(_ELLIPSIS, (), thread) if is_blank(text) else cls(text, entities, thread)

    def simpler(self, error: BadRequest) -> "Look":
        """Return what may pass after `error`. Raises it again when nothing simpler would."""
        if is_thread_fault(error) and self.thread is not None:
            log.info("telegram:thread:gone")
            return replace(self, thread=None)
        if is_markup_fault(error) and self.entities:
            log.warning("telegram:entities:refused", entities=len(self.entities))
            return replace(self, entities=())
        raise error

    @property
    def formats(self) -> list[MessageEntity]:
        """The entities as the library takes them."""
        return [MessageEntity(e.kind, e.offset, e.length, url=e.url, language=e.language) for e in self.entities]


async def send_text(bot: Bot, chat: ChatAddress, content: Content, look: Look) -> str:
    """Send a text; return the new message's id."""
    try:
        message = await bot.send_message(
            number(chat.external_id),
            look.text,
            entities=look.formats,
            message_thread_id=look.thread,
            reply_parameters=_reply(content),
            reply_markup=keyboard(content),
            link_preview_options=_NO_PREVIEW,
        )
    except BadRequest as error:
        return await send_text(bot, chat, content, look.simpler(error))
    return str(message.message_id)


async def edit_text(bot: Bot, chat: ChatAddress, message_id: str, content: Content, look: Look) -> None:
    """Make a message show a text; already showing it is success."""
    try:
        await bot.edit_message_text(
            look.text,
            number(chat.external_id),
            number(message_id),
            entities=look.formats,
            reply_markup=keyboard(content),
            link_preview_options=_NO_PREVIEW,
        )
    except BadRequest as error:
        if not is_unmodified(error):
            await edit_text(bot, chat, message_id, content, look.simpler(error))


async def send_file(bot: Bot, chat: ChatAddress, content: Content, thread: int | None) -> str:
    """Send the content's text as a file of its name; return the new message's id."""
    file = InputFile(content.text.encode(), filename=content.file_name)
    try:
        message = await bot.send_document(
            number(chat.external_id),
            file,
            message_thread_id=thread,
            reply_parameters=_reply(content),
            reply_markup=keyboard(content),
        )
    except BadRequest as error:
        if thread is None or not is_thread_fault(error):
            raise
        return await send_file(bot, chat, content, None)
    return str(message.message_id)


async def edit_buttons(bot: Bot, chat: ChatAddress, message_id: str, content: Content) -> None:
    """Make a file's message show the content's buttons."""
    try:
        await bot.edit_message_reply_markup(
            number(chat.external_id), number(message_id), reply_markup=keyboard(content)
        )
    except BadRequest as error:
        if not is_unmodified(error):
            raise


def thread_to_send(chat: ChatAddress) -> int | None:
    """Return the topic as sending wants it: the General topic goes without."""
    return int(chat.thread) if chat.thread.isdecimal() and chat.thread != GENERAL_TOPIC else None


def number(external_id: str) -> int:
    """Return a chat or message id as the Bot API takes it. Raises `DeliveryError` when it is no such id."""
    try:
        return int(external_id)
    except ValueError as error:
        raise DeliveryError("this is not an id of Telegram") from error


def keyboard(content: Content) -> InlineKeyboardMarkup | None:
    """Return the buttons under a message. Raises `DeliveryError` when a button's data is not of 1-64 bytes."""
    rows = [[_button(button) for button in row] for row in content.buttons if row]
    return InlineKeyboardMarkup(rows) if rows else None


def _button(button: Button) -> InlineKeyboardButton:
    if not 1 <= len(button.data.encode()) <= _DATA_BYTES:
        raise DeliveryError(f"a button's data must have 1 to {_DATA_BYTES} bytes")
    return InlineKeyboardButton(button.label, callback_data=button.data)


def _reply(content: Content) -> ReplyParameters | None:
    if content.reply_to is None:
        return None
    return ReplyParameters(number(content.reply_to), allow_sending_without_reply=True)
