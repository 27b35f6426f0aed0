"""Which of the pictures in a conversation a model that sees looks at again: those of the latest turn that has some."""

from collections.abc import Sequence
from dataclasses import replace

from app.domain.prompt import PastTurn
from app.store import Tx, pictures


async def looked_at(tx: Tx, past: Sequence[PastTurn]) -> Sequence[PastTurn]:
    """Return a history, oldest first, with those pictures in it."""
    found = [(place, turn.holder) for place, turn in enumerate(past) if turn.pictures and turn.holder]
    if not found:
        return past
    place, holder = found[-1]
    latest = replace(past[place], shown=await pictures.of_turn(tx, holder))
    return [*past[:place], latest, *past[place + 1 :]]
