"""Methods that change what is there: edits, deletions, reactions, answers to pressed buttons.

Owns the server's conditions for a change, "message is not modified" first of all.
"""

from typing import Final

from tests.fakes.telegram.calls_send import formatted
from tests.fakes.telegram.chats import REACTIONS, Chat
from tests.fakes.telegram.errors import JSON, bad_request
from tests.fakes.telegram.markup import Keyboard, keyboard
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.text import MAX_TEXT, Formatted
from tests.fakes.telegram.world import World

NOT_MODIFIED: Final = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)
TOO_OLD: Final = "query is too old and response timeout expired or query ID is invalid"
MAX_ANSWER: Final = 200


def _own_message(world: World, params: Params) -> tuple[Chat, Message]:
    if not params.has("chat_id") and not params.has("inline_message_id"):
        raise bad_request("message identifier is not specified")
    chat = world.chat(params)
    chat.check_writable()
    if not params.integer("message_id"):
        raise bad_request("message identifier is not specified")
    message = chat.find(params.integer("message_id"))
    if message is None:
        raise bad_request("message to edit not found")
    if message.sender is None or message.sender["id"] != world.bot_id:
        raise bad_request("message can't be edited")
    return chat, message


def _change(world: World, message: Message, body: Formatted | None, buttons: Keyboard | None) -> JSON:
    if (body, buttons) == (message.body, message.keyboard):
        raise bad_request(NOT_MODIFIED)
    message.body, message.keyboard = body, buttons
    message.edit_date = world.now()
    message.snapshot(message.edit_date)
    world.changed()
    return message.to_json()


async def edit_message_text(world: World, params: Params) -> JSON:
    """Replace the text; buttons that are not given again disappear."""
    _, message = _own_message(world, params)
    body = formatted(params, "text", "entities", MAX_TEXT)
    if message.body is None:
        raise bad_request("there is no text in the message to edit")
    return _change(world, message, body, keyboard(params.structure("reply_markup")))


async def edit_message_reply_markup(world: World, params: Params) -> JSON:
    """Replace or remove the buttons."""
    _, message = _own_message(world, params)
    return _change(world, message, message.body, keyboard(params.structure("reply_markup")))


async def delete_message(world: World, params: Params) -> bool:
    """Delete an own message, any in a private chat, or any where the bot administers."""
    chat = world.chat(params)
    chat.check_writable()
    message = chat.find(params.integer("message_id"))
    if message is None:
        raise bad_request("message to delete not found")
    own = message.sender is not None and message.sender["id"] == world.bot_id
    if not own and chat.kind != "private" and chat.bot_status != "administrator":
        raise bad_request("message can't be deleted")
    message.deleted = True
    world.changed()
    return True


async def answer_callback_query(world: World, params: Params) -> bool:
    """Stop the spinner of a pressed button, once and in time."""
    press = world.presses.get(params.text("callback_query_id"))
    if press is None or press.answered or world.now() - press.at > world.query_life_s:
        raise bad_request(TOO_OLD)
    if len(params.text("text")) > MAX_ANSWER:
        raise bad_request("MESSAGE_TOO_LONG")
    press.answered, press.text, press.alert = True, params.text("text"), params.flag("show_alert")
    world.changed()
    return True


async def set_message_reaction(world: World, params: Params) -> bool:
    """Put at most one of the chat's emoji on a message, or none."""
    chat = world.chat(params)
    chat.check_writable()
    message = chat.find(params.integer("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    asked = params.structure("reaction") or []
    if not isinstance(asked, list) or not all(isinstance(item, dict) and "type" in item for item in asked):
        raise bad_request("can't parse reaction types JSON object")
    if len(asked) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    allowed = set(chat.reactions) & set(REACTIONS)
    if any(item["type"] != "emoji" or item.get("emoji") not in allowed for item in asked):
        raise bad_request("REACTION_INVALID")
    message.reactions[world.bot_id] = asked
    world.changed()
    return True
