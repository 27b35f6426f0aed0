"""The pictures of turns: kept with the turn that first brought them; what answers it again looks at the same."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import bindparam, delete, insert, select

from app.domain.media import Picture
from app.domain.turn import Turn
from app.store.engine import Tx
from app.store.tables.road import turn_pictures, turns


async def add(tx: Tx, turn: Turn, pictures: Sequence[Picture]) -> None:
    """Keep what came with the message of a turn."""
    rows = [
        {
            "turn_id": turn.id,
            "person_id": turn.person_id,
            "number": number,
            "content_type": picture.content_type,
            "body": picture.body,
            "width": picture.width,
            "height": picture.height,
        }
        for number, picture in enumerate(pictures)
    ]
    if rows:
        await tx.execute(insert(turn_pictures), rows)


async def of_turn(tx: Tx, turn_id: UUID) -> tuple[Picture, ...]:
    """Return the pictures that are kept with a turn, in their order."""
    rows = await tx.execute(_OF_TURN, {"turn": turn_id})
    return tuple(Picture(row.content_type, bytes(row.body), row.width, row.height) for row in rows)


_OF_TURN = select(turn_pictures).where(turn_pictures.c.turn_id == bindparam("turn")).order_by(turn_pictures.c.number)


async def forget_textless(tx: Tx) -> None:
    """Drop the pictures of every turn whose texts are dropped."""
    textless = select(turns.c.id).where(turns.c.id == turn_pictures.c.turn_id, turns.c.user_text.is_(None))
    await tx.execute(delete(turn_pictures).where(textless.exists()))
