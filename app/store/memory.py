"""Memory lines with their examples, use and failures; every change is a new version of the person's memory."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import Row, Select, bindparam, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.types import Uuid

from app.domain.memory import Example, MemoryKind, MemoryLine
from app.errors import NotFoundError
from app.store.engine import Tx
from app.store.tables.feedback import examples, memory_events, memory_lines
from app.store.tables.people import people


async def add(
    tx: Tx,
    person_id: UUID,
    *,
    kind: MemoryKind,
    text: str,
    checker: Mapping[str, object] | None,
    feedback_id: UUID | None,
) -> UUID:
    """Add a line; the same words already active are returned instead of doubled."""
    same = select(memory_lines.c.id).where(
        memory_lines.c.person_id == person_id,
        memory_lines.c.state.in_(("active", "graduated")),
        func.lower(memory_lines.c.text) == text.lower(),
    )
    if known := await tx.scalar(same.limit(1)):
        return UUID(str(known))
    made = insert(memory_lines).values(
        person_id=person_id, kind=kind, text=text, checker=dict(checker) if checker else None, feedback_id=feedback_id
    )
    line_id = UUID(str(await tx.scalar(made.returning(memory_lines.c.id))))
    await changed(tx, person_id, line_id, "added")
    return line_id


async def changed(tx: Tx, person_id: UUID, line_id: UUID, event: str) -> int:
    """Begin the next version of a person's memory; return its number."""
    bumped = update(people).where(people.c.id == person_id).values(memory_version=people.c.memory_version + 1)
    version = int(await tx.scalar(bumped.returning(people.c.memory_version)) or 0)
    await tx.execute(insert(memory_events).values(person_id=person_id, memory_id=line_id, version=version, event=event))
    return version


async def set_state(tx: Tx, person_id: UUID, line_id: UUID, state: str, *, checkpoint_id: UUID | None = None) -> bool:
    """Move a line of this person to another state; False when it is there already or not theirs."""
    mine = (memory_lines.c.id == line_id) & (memory_lines.c.person_id == person_id) & (memory_lines.c.state != state)
    moved = update(memory_lines).where(mine).values(state=state, checkpoint_id=checkpoint_id, changed_at=func.now())
    if (await tx.execute(moved)).rowcount == 0:
        return False
    await changed(tx, person_id, line_id, state)
    return True


async def set_checker(tx: Tx, line_id: UUID, checker: Mapping[str, object]) -> None:
    """Keep the machine check that was derived from a line and its example."""
    await tx.execute(update(memory_lines).where(memory_lines.c.id == line_id).values(checker=dict(checker)))


async def lines(tx: Tx, person_id: UUID, *states: str) -> Sequence[MemoryLine]:
    """Return a person's lines in these states, oldest first, with their examples."""
    return await _lines(tx, _LINES, {"person": person_id, "states": states})


_LINES = (
    select(memory_lines)
    .where(
        memory_lines.c.person_id == bindparam("person"),
        memory_lines.c.state.in_(bindparam("states", expanding=True)),
    )
    .order_by(memory_lines.c.created_at)
)


async def access_line(tx: Tx, person_id: UUID, line_id: UUID) -> MemoryLine:
    """Return a line of this person.

    Raises:
        NotFoundError: there is none, or it is somebody else's.
    """
    found = await _lines(
        tx, select(memory_lines).where(memory_lines.c.id == line_id, memory_lines.c.person_id == person_id)
    )
    if not found:
        raise NotFoundError
    return found[0]


async def by_feedback(tx: Tx, feedback_id: UUID) -> MemoryLine | None:
    """Return the newest line that came from a piece of feedback."""
    query = select(memory_lines).where(memory_lines.c.feedback_id == feedback_id)
    found = await _lines(tx, query.order_by(memory_lines.c.created_at.desc()).limit(1))
    return found[0] if found else None


async def saying(tx: Tx, person_id: UUID, words: str) -> MemoryLine | None:
    """Return a person's line that says `words` already."""
    theirs = (memory_lines.c.person_id == person_id) & memory_lines.c.state.in_(("active", "graduated"))
    query = select(memory_lines).where(theirs, func.lower(memory_lines.c.text) == words.lower())
    found = await _lines(tx, query.limit(1))
    return found[0] if found else None


async def newest(tx: Tx, person_id: UUID) -> MemoryLine | None:
    """Return the newest active line, which is what /undo takes back."""
    query = select(memory_lines).where(memory_lines.c.person_id == person_id, memory_lines.c.state == "active")
    found = await _lines(tx, query.order_by(memory_lines.c.created_at.desc()).limit(1))
    return found[0] if found else None


async def used(tx: Tx, line_ids: Sequence[UUID], session_id: UUID) -> None:
    """Count one use of each line, and the conversation it was used in."""
    if not line_ids:
        return
    here = literal(session_id, Uuid)
    await tx.execute(
        update(memory_lines)
        .where(memory_lines.c.id.in_(line_ids))
        .values(
            uses=memory_lines.c.uses + 1,
            session_ids=func.array_append(func.array_remove(memory_lines.c.session_ids, here), here),
        )
    )


async def failed(tx: Tx, line_ids: Sequence[UUID]) -> None:
    """Count one reply that broke each line although it was in the prompt."""
    if line_ids:
        await tx.execute(
            update(memory_lines).where(memory_lines.c.id.in_(line_ids)).values(failures=memory_lines.c.failures + 1)
        )


async def add_example(tx: Tx, line: MemoryLine, example: Example, turn_id: UUID | None) -> UUID:
    """Give a line an example that its person approved or wrote."""
    made = insert(examples).values(
        memory_id=line.id,
        person_id=line.person_id,
        turn_id=turn_id,
        prompt=example.prompt,
        bad=example.bad,
        good=example.good,
        source=example.source,
    )
    example_id = UUID(str(await tx.scalar(made.returning(examples.c.id))))
    await changed(tx, line.person_id, line.id, "example")
    return example_id


async def _lines(
    tx: Tx, query: Select[tuple[object, ...]], values: Mapping[str, object] | None = None
) -> list[MemoryLine]:
    rows = (await tx.execute(query, values)).all()
    if not rows:
        return []
    wanted = select(examples).where(examples.c.memory_id.in_([r.id for r in rows])).order_by(examples.c.created_at)
    by_line: dict[UUID, list[Example]] = {}
    for e in await tx.execute(wanted):
        by_line.setdefault(e.memory_id, []).append(Example(e.prompt, e.good, e.bad, e.source))
    return [_line(row, tuple(by_line.get(row.id, ()))) for row in rows]


def _line(row: Row[tuple[object, ...]], found: tuple[Example, ...]) -> MemoryLine:
    return MemoryLine(
        id=row.id,
        person_id=row.person_id,
        kind=row.kind,
        text=row.text,
        state=row.state,
        uses=row.uses,
        failures=row.failures,
        sessions=len(row.session_ids),
        examples=found,
        checker=row.checker,
        feedback_id=row.feedback_id,
        checkpoint_id=row.checkpoint_id,
    )
