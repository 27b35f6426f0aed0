"""The methods that the fake offers, each with the parameters it cannot do without.

Owns the table only. A test holds it against the machine-readable specification.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from tests.fakes.telegram import calls_bot, calls_change, calls_send
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.world import World

Handler = Callable[[World, Params], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Method:
    """`counts`: the method counts against flood limits."""

    name: str
    handler: Handler
    required: tuple[str, ...] = ()
    counts: bool = False


ALL: Final = (
    Method("getMe", calls_bot.get_me),
    Method("getUpdates", calls_bot.get_updates),
    Method("setWebhook", calls_bot.set_webhook),
    Method("deleteWebhook", calls_bot.delete_webhook),
    Method("getWebhookInfo", calls_bot.get_webhook_info),
    Method("sendMessage", calls_send.send_message, ("chat_id", "text"), counts=True),
    Method("sendDocument", calls_send.send_document, ("chat_id", "document"), counts=True),
    Method("sendChatAction", calls_send.send_chat_action, ("chat_id", "action")),
    Method("sendMessageDraft", calls_send.send_message_draft, ("chat_id", "draft_id")),
    Method("editMessageText", calls_change.edit_message_text, (), counts=True),
    Method("editMessageReplyMarkup", calls_change.edit_message_reply_markup, ()),
    Method("deleteMessage", calls_change.delete_message, ("chat_id", "message_id")),
    Method("answerCallbackQuery", calls_change.answer_callback_query, ("callback_query_id",)),
    Method("setMessageReaction", calls_change.set_message_reaction, ("chat_id", "message_id")),
    Method("setMyCommands", calls_bot.set_my_commands, ("commands",)),
    Method("getMyCommands", calls_bot.get_my_commands),
    Method("deleteMyCommands", calls_bot.delete_my_commands),
    Method("getChat", calls_bot.get_chat, ("chat_id",)),
    Method("getChatMember", calls_bot.get_chat_member, ("chat_id", "user_id")),
    Method("getChatMemberCount", calls_bot.get_chat_member_count, ("chat_id",)),
    Method("getFile", calls_bot.get_file, ("file_id",)),
)
BY_NAME: Final = {method.name.lower(): method for method in ALL}
