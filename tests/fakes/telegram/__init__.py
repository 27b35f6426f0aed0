"""A server that speaks the Telegram Bot API, with programmable people behind it."""

from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.flood import FloodLimits
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.people import User
from tests.fakes.telegram.places import Channel, Group
from tests.fakes.telegram.server import Call, TelegramServer
from tests.fakes.telegram.world import Press

__all__ = ["Call", "Channel", "Chat", "FloodLimits", "Group", "Message", "Press", "TelegramServer", "User"]
