"""Methods that put something into a chat: sendMessage, sendDocument, sendChatAction, sendMessageDraft.

Owns what the server checks before a message exists. Each handler takes the world and the parameters.
"""

from typing import Final

from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.errors import JSON, bad_request
from tests.fakes.telegram.markup import keyboard
from tests.fakes.telegram.markup_html import parse_html
from tests.fakes.telegram.markup_markdown import parse_markdown, parse_markdown_v2
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.text import (
    MAX_CAPTION,
    MAX_RAW_BYTES,
    MAX_TEXT,
    Formatted,
    entities_from_json,
    finish,
)  # fmt: skip
from tests.fakes.telegram.world import World

GENERAL_TOPIC: Final = 1
MAX_UPLOAD: Final = 50 << 20
ACTIONS: Final = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)
_MODES: Final = {"html": parse_html, "markdownv2": parse_markdown_v2, "markdown": parse_markdown}


def formatted(params: Params, name: str, entities: str, limit: int) -> Formatted:
    """The text of a call after its parse mode; raises `ApiError` 400."""
    raw = params.text(name)
    if not raw:
        raise bad_request("message text is empty")
    if len(raw.encode("utf-8", "surrogatepass")) > MAX_RAW_BYTES:
        raise bad_request("text is too long")
    if any(0xD800 <= ord(char) <= 0xDFFF for char in raw):
        raise bad_request("strings must be encoded in UTF-8")
    mode = params.text("parse_mode").lower()
    if mode and mode not in _MODES:
        raise bad_request("unsupported parse_mode")
    if mode:
        return finish(_MODES[mode](raw), limit)
    given = params.structure(entities)
    return finish(Formatted(raw, entities_from_json(given) if given else ()), limit)


async def send_message(world: World, params: Params) -> JSON:
    """Send text."""
    chat = world.chat(params)
    body = formatted(params, "text", "entities", MAX_TEXT)
    return _send(world, chat, params, body=body)


async def send_document(world: World, params: Params) -> JSON:
    """Send a file, uploaded or known by its id."""
    chat = world.chat(params)
    extra = {"document": _document(world, params)}
    caption = formatted(params, "caption", "caption_entities", MAX_CAPTION) if params.has("caption") else None
    return _send(world, chat, params, caption=caption, extra=extra)


def _document(world: World, params: Params) -> JSON:
    given = params.text("document")
    name = given.removeprefix("attach://") if given.startswith("attach://") else "document"
    if given in world.files:
        file_id = given
    elif name in params.files:
        file_id = f"document-{world.number('files')}"
        world.files[file_id] = params.files[name]
    else:
        raise bad_request("there is no document in the request")
    upload = world.files[file_id]
    if not upload.data:
        raise bad_request("file must be non-empty")
    if len(upload.data) > MAX_UPLOAD:
        raise bad_request("file is too big")
    about = {"file_name": upload.name, "mime_type": upload.mime_type, "file_size": len(upload.data)}
    return {"file_id": file_id, "file_unique_id": f"u{file_id}", **about}


def _send(world: World, chat: Chat, params: Params, **parts: object) -> JSON:
    buttons = keyboard(params.structure("reply_markup"))
    chat.check_writable()
    thread = params.integer("message_thread_id")
    chat.check_thread(thread)
    reply_to = _reply_to(chat, params)
    fields: JSON = dict(parts.pop("extra", {}))  # type: ignore[call-overload]
    if thread:
        fields |= {"message_thread_id": thread, "is_topic_message": True}
    sender = None if chat.kind == "channel" else world.bot_user
    if chat.kind == "channel":
        fields["sender_chat"] = chat.card
    message = world.add_message(chat, sender, keyboard=buttons, reply_to=reply_to, extra=fields, **parts)
    chat.drafts.clear()
    return message.to_json()


def _reply_to(chat: Chat, params: Params) -> Message | None:
    asked = params.structure("reply_parameters") or {}
    if not asked and params.has("reply_to_message_id"):
        asked = {"message_id": params.integer("reply_to_message_id")}
        asked["allow_sending_without_reply"] = params.flag("allow_sending_without_reply")
    if not isinstance(asked, dict) or not asked:
        return None
    target = chat.find(int(asked.get("message_id", 0)))
    if target is None and not asked.get("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    quote = asked.get("quote")
    if target is not None and quote and quote not in target.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    return target


async def send_chat_action(world: World, params: Params) -> bool:
    """Show an activity for five seconds; the General topic has an id here."""
    chat = world.chat(params)
    if params.text("action") not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    chat.check_writable()
    thread = params.integer("message_thread_id")
    if not (chat.is_forum and thread == GENERAL_TOPIC):
        chat.check_thread(thread)
    chat.actions.append((world.now(), params.text("action")))
    world.changed()
    return True


async def send_message_draft(world: World, params: Params) -> bool:
    """Show a draft in a private chat; an empty one is the thinking mark."""
    chat = world.chat(params)
    chat.check_writable()
    if chat.kind != "private":
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if not params.integer("draft_id"):
        raise bad_request("draft_id must be non-zero")
    text = formatted(params, "text", "entities", MAX_TEXT).text if params.has("text") else ""
    chat.drafts[params.integer("draft_id")] = text
    world.changed()
    return True
