"""The pictures of turns: kept with the turn that first brought them; what answers it again looks at the same.

Where the message was given others since, they are kept with the turn that answered it then, and looked at from there on.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, ScalarSelect, Uuid, bindparam, delete, insert, select

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
    """Return the pictures that a turn and its siblings look at, in their order; it is the first of these, or has its own."""
    rows = await tx.execute(_OF_TURN, {"turn": turn_id})
    return tuple(Picture(row.content_type, bytes(row.body), row.width, row.height) for row in rows)


def holder(first: ColumnElement[UUID]) -> ScalarSelect[UUID]:
    """Return the query of the turn that has the pictures of a message whose first turn is `first`."""
    one, kept = turns.alias(), turn_pictures.alias()
    same = (one.c.id == first) | (one.c.sibling_of == first)
    newest_first = (
        select(kept.c.turn_id).join(one, one.c.id == kept.c.turn_id).where(same).order_by(one.c.number.desc())
    )
    return newest_first.limit(1).correlate(turns).scalar_subquery()


_OF_TURN = (
    select(turn_pictures)
    .where(turn_pictures.c.turn_id == holder(bindparam("turn", type_=Uuid)))
    .order_by(turn_pictures.c.number)
)


async def forget_textless(tx: Tx) -> None:
    """Drop the pictures of every turn whose texts are dropped."""
    textless = select(turns.c.id).where(turns.c.id == turn_pictures.c.turn_id, turns.c.user_text.is_(None))
    await tx.execute(delete(turn_pictures).where(textless.exists()))
