"""Asks how a reply was, where the answer tells something: by what is known as the reply is stored.

The question is a message of its own behind the reply. Where a channel has buttons they are under it; where it has none, a
template with quick replies is sent if one was made, else the words tell what to answer.
"""

from dataclasses import dataclass
from uuid import UUID

from app.domain.asking import Reason
from app.domain.messages import Language, pick
from app.domain.messages import text as say
from app.domain.outgoing import Button, Content, Template
from app.domain.person import Chat
from app.domain.press import Press, short_id
from app.ports import Channel
from app.store import Tx, asks, outbox, templates
from app.telemetry import ANSWERED, ASKS

TEMPLATE = "ask"


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished reply to one person, alone with them."""

    channel: Channel
    chat: Chat
    language: str
    person_id: UUID
    turn_id: UUID


async def ask(tx: Tx, reply: Reply, why: Reason) -> None:
    """Ask about a reply."""
    row = await outbox.put(tx, reply.chat.id, await _question(tx, reply))
    await asks.add(tx, reply.turn_id, reply.person_id, why.value, row)
    ASKS.labels(reply.channel.name, why.value).inc()


async def answered(tx: Tx, channel: Channel, turn_id: UUID, person_id: UUID, answer: str) -> None:
    """Count what a person says about a reply (`up`, `down` or `words`) as the answer, if they were asked."""
    found = await asks.answer(tx, turn_id, person_id, answer)
    if found is None:
        return
    ANSWERED.labels(channel.name, found.reason).inc()
    if found.outbox_id is not None and channel.capabilities.edits:
        await outbox.settle(tx, found.outbox_id)


async def _question(tx: Tx, reply: Reply) -> Content:
    language = pick(reply.language)
    buttons = answers(language, reply.turn_id)
    if reply.channel.capabilities.buttons:
        return Content(say(language, "ask_how"), (buttons,))
    sid = await templates.usable(tx, reply.chat.bot_id, TEMPLATE, language)
    template = Template(sid, {str(n): button.data for n, button in enumerate(buttons, 1)}) if sid else None
    in_words = "ask_how_in_words" if reply.channel.capabilities.reply_to else "ask_how_with_thumbs"
    return Content(say(language, in_words), (buttons,), template=template)


def answers(language: Language, turn_id: UUID) -> tuple[Button, ...]:
    """Return the buttons under the question, in the order of the template's quick replies."""
    turn = short_id(turn_id)
    presses = (("up", Press("v", turn, "u")), ("down", Press("v", turn, "d")), ("correct", Press("c", turn)))
    return tuple(Button(say(language, f"template.ask.{name}"), press.data()) for name, press in presses)
