"""What platforms tell of messages that went out: how far each came, or that it never arrived. Only ever leads on.

Such a word may come before our own receipt of the message is stored.
"""

from uuid import UUID

from sqlalchemy import ColumnElement, case, select, text, update

from app.domain.delivery import earlier
from app.store.engine import Tx
from app.store.tables.people import chats
from app.store.tables.road import outbox

_NO_WORD = (outbox.c.state == "sent") & outbox.c.delivery.is_(None)


def _known(bot_id: UUID, message_id: str) -> ColumnElement[bool]:
    mine = select(chats.c.id).where(chats.c.bot_id == bot_id)
    return (outbox.c.provider_message_id == message_id) & outbox.c.chat_id.in_(mine)


async def without_word(tx: Tx, bot_id: UUID, message_id: str) -> bool:
    """Whether a message went out and nothing is known of its way: whatever is told of it is told for the first time."""
    return await tx.scalar(select(outbox.c.id).where(_known(bot_id, message_id), _NO_WORD)) is not None


async def undelivered(tx: Tx, bot_id: UUID, message_id: str, reason: str) -> UUID | None:
    """Note that a sent part never arrived, for good; return its chat, None when no such part is known.

    What arrived has arrived: a later word that it did not has no effect.
    """
    state, error = case((_NO_WORD, "failed"), else_=outbox.c.state), case((_NO_WORD, reason), else_=outbox.c.error)
    known = _known(bot_id, message_id)
    noted = update(outbox).where(known).values(state=state, error=error).returning(outbox.c.chat_id)
    found = (await tx.execute(noted)).scalars().first()
    return UUID(str(found)) if found else None


_DELIVERED = text("""
    update outbox o set delivery = :delivery from chats c
    where c.bot_id = :bot and c.external_id = :address and c.thread = '' and o.chat_id = c.id
      and o.provider_message_id = :message and o.state in ('due', 'sending', 'sent')
      and (o.delivery is null or o.delivery = any(:earlier))
""")


async def delivered(tx: Tx, bot_id: UUID, address: str, message_id: str, delivery: str) -> bool:
    """Note how far a part came in the chat at `address`; False where that says nothing beyond what is known of it.

    Repeated and out of order as they come, such words only ever lead on (`app/domain/delivery.py`); what failed has failed.
    """
    values = {"bot": bot_id, "address": address, "message": message_id, "delivery": delivery}
    return (await tx.execute(_DELIVERED, values | {"earlier": list(earlier(delivery))})).rowcount > 0


_RECEIPT_AWAITED = text("""
    select exists (select 1 from chats c join outbox o on o.chat_id = c.id
                   where c.bot_id = :bot and c.external_id = :address and o.state = 'sending')
       and not exists (select 1 from chats c join outbox o on o.chat_id = c.id
                       where c.bot_id = :bot and c.external_id = :address and o.provider_message_id = :message)
""")


async def receipt_awaited(tx: Tx, bot_id: UUID, address: str, message_id: str) -> bool:
    """Whether a message that nobody knows yet may be one on its way to the chat at `address`.

    Ask before what is known of it is looked up: the receipt may be stored between the two.
    """
    values = {"bot": bot_id, "address": address, "message": message_id}
    return bool(await tx.scalar(_RECEIPT_AWAITED, values))
