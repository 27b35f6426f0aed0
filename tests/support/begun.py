"""A turn that has begun, in the store and without a dialogue: for tests of what stands behind one."""

from app.domain.event import ChatAddress
from app.domain.turn import Origin, Turn
from app.store import Tx, people, sessions, turns
from tests.support.webchat import MADE

HERE = ChatAddress("71")
LIMITS = sessions.Limits(30, 24)


async def begun(tx: Tx) -> Turn:
    """Return a turn of nobody's in the chat `HERE` of the Telegram bot 9001, its reply not made yet."""
    bot = await people.ensure_bot(tx, "telegram", "9001")
    chat = await people.chat_of(tx, bot, HERE, None)
    session, _ = await sessions.current(tx, chat, None, LIMITS)
    await sessions.add(tx, session)
    return await turns.begin(tx, turns.NewTurn(None, session.id, chat.id, None, "hi", None, Origin()), MADE)
