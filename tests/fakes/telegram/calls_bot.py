"""Methods about the bot and its surroundings: identity, commands, chats, members, files, updates, webhooks.

Owns what is left when messages are taken away.
"""

import mimetypes
import re
from typing import Final

from tests.fakes.telegram.errors import JSON, bad_request, conflict
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.people import member
from tests.fakes.telegram.world import World

MAX_WAIT_S: Final = 50
MAX_DOWNLOAD: Final = 20 << 20
MAX_COMMANDS: Final = 100
_COMMAND: Final = re.compile(r"^[a-z0-9_]{1,32}$")
_LANGUAGE: Final = re.compile(r"^([a-z]{2})?$")
_WEBHOOK_ACTIVE: Final = (
    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


async def get_me(world: World, _: Params) -> JSON:
    """The bot itself."""
    return dict(world.bot)


async def get_updates(world: World, params: Params) -> list[JSON]:
    """Long polling."""
    if world.webhook.url:
        raise conflict(_WEBHOOK_ACTIVE)
    world.queue.allow(params.structure("allowed_updates"))
    limit = min(max(params.integer("limit", 100), 1), 100)
    wait = min(max(params.integer("timeout"), 0), MAX_WAIT_S)
    return await world.queue.poll(params.integer("offset"), limit, wait)


async def set_webhook(world: World, params: Params) -> bool:
    """Register a webhook; an empty address removes it."""
    if params.flag("drop_pending_updates"):
        world.queue.pending.clear()
    world.queue.allow(params.structure("allowed_updates"))
    if not params.text("url"):
        await world.webhook.remove()
        return True
    connections = min(max(params.integer("max_connections", 40), 1), 100)
    await world.webhook.set(params.text("url"), params.text("secret_token"), connections)
    return True


async def delete_webhook(world: World, params: Params) -> bool:
    """Back to polling."""
    if params.flag("drop_pending_updates"):
        world.queue.pending.clear()
    await world.webhook.remove()
    return True


async def get_webhook_info(world: World, _: Params) -> JSON:
    """What is registered and what went wrong."""
    return world.webhook.info()


def _scope(params: Params) -> tuple[str, str]:
    scope = params.structure("scope") or {"type": "default"}
    if not isinstance(scope, dict) or "type" not in scope:
        raise bad_request("can't parse BotCommandScope")
    language = params.text("language_code")
    if not _LANGUAGE.match(language):
        raise bad_request("invalid language code specified")
    place = scope["type"] if "chat_id" not in scope else f"{scope['type']} {scope['chat_id']}"
    return place, language


async def set_my_commands(world: World, params: Params) -> bool:
    """Set the menu of a scope and language."""
    commands = params.structure("commands")
    if not isinstance(commands, list) or not all(isinstance(item, dict) for item in commands):
        raise bad_request("can't parse commands: expected an Array of BotCommand")
    if len(commands) > MAX_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for item in commands:
        if not _COMMAND.match(str(item.get("command", ""))):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(item.get("description", ""))) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    world.commands[_scope(params)] = commands
    return True


async def get_my_commands(world: World, params: Params) -> list[JSON]:
    """The menu of a scope and language, empty where none is set."""
    return world.commands.get(_scope(params), [])


async def delete_my_commands(world: World, params: Params) -> bool:
    """Remove the menu of a scope and language."""
    world.commands.pop(_scope(params), None)
    return True


async def get_chat(world: World, params: Params) -> JSON:
    """All about a chat."""
    chat = world.chat(params)
    gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
    about: JSON = {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": dict.fromkeys(gifts, True)}
    if chat.kind == "private":
        about |= {"bio": "", "has_private_forwards": False}
    return {**chat.card, **about}


async def get_chat_member(world: World, params: Params) -> JSON:
    """What a user is in a chat."""
    chat = world.chat(params)
    user_id = params.integer("user_id")
    if user_id == world.bot_id:
        return member(world.bot_user, chat.bot_status)
    if user_id not in chat.members:
        raise bad_request("PARTICIPANT_ID_INVALID")
    return member(chat.members[user_id], "member")


async def get_chat_member_count(world: World, params: Params) -> int:
    """How many are in a chat, the bot included."""
    return len(world.chat(params).members) + 1


async def get_file(world: World, params: Params) -> JSON:
    """Where a file can be fetched."""
    file_id = params.text("file_id")
    upload = world.files.get(file_id)
    if upload is None:
        raise bad_request("invalid file_id")
    if len(upload.data) > MAX_DOWNLOAD:
        raise bad_request("file is too big")
    path = f"documents/{file_id}{mimetypes.guess_extension(upload.mime_type) or '.bin'}"
    return {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": len(upload.data), "file_path": path}
