"""Turns: begun once per update, finished once, found by their person or by a message the bot sent.

Statements that every message runs are put together once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Row,
    Select,
    Uuid,
    any_,
    bindparam,
    case,
    func,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from app.domain.consent import Purpose
from app.domain.outgoing import Content
from app.domain.prompt import PastTurn
from app.domain.turn import Origin, Outcome, Provenance, Turn
from app.errors import NotFoundError
from app.store import pictures
from app.store.consents import allows_in_sql
from app.store.engine import Tx
from app.store.outbox import SETTLED
from app.store.tables.feedback import asks
from app.store.tables.people import accounts, chats, people
from app.store.tables.road import outbox, turn_pictures, turns

HISTORY_TURNS = 40
OPEN = ("waiting", "generating")


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn about to begin; `inbox_id` makes it unique per update."""

    inbox_id: int | None
    session_id: UUID
    chat_id: UUID
    person_id: UUID | None
    user_text: str
    message_id: str | None
    origin: Origin
    sibling_of: UUID | None = None
    id: UUID = field(default_factory=uuid4)


async def begin(tx: Tx, new: NewTurn, made_by: Provenance) -> Turn:
    """Return the turn of an update, made with what makes its reply, before anything of the reply is read."""
    values = {
        "id": new.id,
        "inbox_id": new.inbox_id,
        "session_id": new.session_id,
        "chat_id": new.chat_id,
        "of_person": new.person_id,
        "user_text": new.user_text,
        "user_message_id": new.message_id,
        "flags": new.origin.document(),
        "sibling_of": new.sibling_of,
    }
    return _turn((await tx.execute(_BEGIN, values | _made(made_by))).one())


async def begin_again(tx: Tx, turn: Turn, made_by: Provenance) -> None:
    """Note that something else makes the reply of an open turn than what began it."""
    await tx.execute(_BEGIN_AGAIN, {"turn": turn.id, "of_person": turn.person_id} | _made(made_by))


def _made(by: Provenance) -> dict[str, object]:
    return {
        "base_id": by.base.base_id,
        "base_revision": by.base.revision,
        "tokenizer_digest": by.base.tokenizer_digest,
        "template_digest": by.base.template_digest,
        "checkpoint_id": by.checkpoint_id,
        "release_id": by.release_id,
        "identity_id": by.identity_id,
        "memory_used": {"ids": [str(i) for i in by.memory_used]},
        "prompt_version": by.prompt_version,
        "sampling": dict(by.sampling),
    }


# The columns that are not named here are those of the values that it is run with.
_OF_PERSON = bindparam("of_person", type_=Uuid)
_MEMORY_VERSION = func.coalesce(
    select(people.c.memory_version).where(people.c.id == _OF_PERSON).scalar_subquery(), literal(0)
)
_GENERATING = {"state": "generating", "memory_version": _MEMORY_VERSION}
_BEGIN = insert(turns).values({"person_id": _OF_PERSON} | _GENERATING).returning(turns)
_BEGIN_AGAIN = update(turns).where(turns.c.id == bindparam("turn")).values(_GENERATING)


async def finish(tx: Tx, turn_id: UUID, outcome: Outcome) -> bool:
    """Store how a turn ended; False when it had ended before (a second copy of the work lost the race)."""
    return (await tx.execute(_FINISH, {"turn": turn_id} | ended_by(outcome))).rowcount == 1


def ended_by(outcome: Outcome) -> dict[str, object]:
    """Return the columns of a turn that its outcome fills, by their names."""
    return {
        "state": outcome.state,
        "reply_text": outcome.reply_text,
        "finish_reason": outcome.finish_reason,
        "failure": outcome.failure,
        "prompt_token_ids": list(outcome.prompt_token_ids) or None,
        "response_token_ids": list(outcome.response_token_ids) or None,
        "response_logprobs": list(outcome.response_logprobs) or None,
        "first_token_ms": outcome.first_token_ms,
        "duration_ms": outcome.duration_ms,
        "learnable": outcome.learnable,
    }


_FINISH = update(turns).where(turns.c.id == bindparam("turn"), turns.c.state.in_(OPEN)).values(finished_at=func.now())


async def request_stop(tx: Tx, chat_id: UUID) -> UUID | None:
    """Ask that the reply being written in a chat stops; return its turn."""
    asked = update(turns).where(turns.c.chat_id == chat_id, turns.c.state.in_(OPEN)).values(stop_requested=True)
    found = list(await tx.scalars(asked.returning(turns.c.id)))
    return found[0] if found else None


async def stop_requested(tx: Tx, turn_ids: Iterable[UUID]) -> Sequence[UUID]:
    """Return those of the turns whose reply somebody asked to stop."""
    return list(await tx.scalars(_STOP_REQUESTED, {"turns": list(turn_ids)}))


_STOP_REQUESTED = select(turns.c.id).where(
    turns.c.id == any_(bindparam("turns", type_=ARRAY(Uuid))), turns.c.stop_requested
)


async def history(tx: Tx, session_id: UUID, before: UUID | None = None) -> Sequence[PastTurn]:
    """Return the finished turns of a session before the turn `before`, oldest first, siblings replaced by the newest.

    What is answered again is answered as it was the first time, `before` being the first of its turns: without its
    earlier replies and what came after them. None stands for a turn that is about to begin.
    """
    return past((await tx.execute(_HISTORY, {"session": session_id, "before": before})).all())


def past(rows: Iterable[Row[Any]]) -> Sequence[PastTurn]:
    """Return what rows of a history tell, the newest first, as turns, the oldest first."""
    return [PastTurn(r.user_text, r.reply_text, r.pictures, r.holder) for r in rows][::-1]


def history_of(session_id: ColumnElement[UUID]) -> Select[Any]:
    """Return the query behind `history`, for a session named by another; binds `before`. Its rows come the newest first."""
    first, original, newer = turns.alias(), turns.alias(), turns.alias()
    before = bindparam("before", type_=Uuid)
    of_first = select(first.c.number).where(first.c.id == before).scalar_subquery()
    of_original = select(original.c.number).where(original.c.id == turns.c.sibling_of).scalar_subquery()
    place = func.coalesce(of_original, turns.c.number)
    same = (newer.c.sibling_of == turns.c.id) | (newer.c.sibling_of == turns.c.sibling_of)
    replaced = select(newer.c.id).where(same, newer.c.number > turns.c.number, newer.c.state == "done").exists()
    holder = func.coalesce(turns.c.sibling_of, turns.c.id)
    kept = select(func.count()).where(turn_pictures.c.turn_id == pictures.holder(holder)).scalar_subquery()
    # Looked for only where something came along: hardly any turn has pictures.
    count = case((turns.c.flags["media"].as_boolean(), kept), else_=0)
    columns = (turns.c.user_text, turns.c.reply_text, count.label("pictures"), holder.label("holder"))
    query = select(*columns, place.label("place")).where(
        turns.c.session_id == session_id,
        before.is_(None) | (place < of_first),
        turns.c.state.in_(("done", "stopped")),
        turns.c.user_text.is_not(None),
        turns.c.reply_text.is_not(None),
        ~replaced,
    )
    return query.order_by(place.desc()).limit(HISTORY_TURNS)


_HISTORY = history_of(bindparam("session", type_=Uuid))


async def access_turn(tx: Tx, person_id: UUID, turn_id: UUID) -> Turn:
    """Return a turn of this person.

    Raises:
        NotFoundError: there is none, or it is somebody else's.
    """
    found = await _one(tx, select(turns).where(turns.c.id == turn_id, turns.c.person_id == person_id))
    if found is None:
        raise NotFoundError
    return found


async def by_message(tx: Tx, chat_id: UUID, message_id: str) -> Turn | None:
    """Return the turn whose reply has a part with this platform id, or is asked about in the message with it."""
    about = func.coalesce(outbox.c.turn_id, asks.c.turn_id)
    part = select(about).select_from(outbox.outerjoin(asks, asks.c.outbox_id == outbox.c.id))
    part = part.where(outbox.c.chat_id == chat_id, outbox.c.provider_message_id == message_id)
    return await _one(tx, select(turns).where(turns.c.id.in_(part)))


async def topic_of_reply(tx: Tx, bot_id: UUID, chat: str, message_id: str, account: str) -> str | None:
    """Return the topic in which a message of `chat` answers `account`, or asks them about a reply; None for every other.

    Chat, message and account are the platform's ids; within a chat a message's id is the same in every topic.
    """
    query = (
        select(chats.c.thread)
        .select_from(outbox.outerjoin(asks, asks.c.outbox_id == outbox.c.id))
        .join(turns, turns.c.id == func.coalesce(outbox.c.turn_id, asks.c.turn_id))
        .join(chats, chats.c.id == outbox.c.chat_id)
        .join(accounts, (accounts.c.person_id == turns.c.person_id) & (accounts.c.bot_id == chats.c.bot_id))
        .where(chats.c.bot_id == bot_id, chats.c.external_id == chat, outbox.c.provider_message_id == message_id)
        .where(accounts.c.external_id == account)
    )
    found = await tx.scalar(query.limit(1))
    return None if found is None else str(found)


async def by_user_message(tx: Tx, chat_id: UUID, message_id: str) -> Turn | None:
    """Return the newest turn that answers the person's message with this platform id."""
    query = select(turns).where(turns.c.chat_id == chat_id, turns.c.user_message_id == message_id)
    return await _one(tx, query.order_by(turns.c.number.desc()).limit(1))


async def of_update(tx: Tx, inbox_id: int) -> Turn | None:
    """Return the turn that an update began; a try that was cut off left it."""
    return await _one(tx, select(turns).where(turns.c.inbox_id == inbox_id))


async def last(tx: Tx, chat_id: UUID) -> Turn | None:
    """Return the newest turn of a chat."""
    return await _one(tx, select(turns).where(turns.c.chat_id == chat_id).order_by(turns.c.number.desc()).limit(1))


async def last_seen(tx: Tx, chat_id: UUID) -> Turn | None:
    """Return the newest turn of a chat but for those whose reply nobody can have seen: it waits still, or never went out.

    A reply that is just being sent, or may have been, counts as seen.
    """
    waits = outbox.c.state.in_(("held", "failed", "withdrawn")) | ((outbox.c.state == "due") & (outbox.c.attempts == 0))
    shown = select(outbox.c.id).where(
        outbox.c.turn_id == turns.c.id, outbox.c.part == 0, ~((outbox.c.sent_version == 0) & waits)
    )
    seen = select(turns).where(turns.c.chat_id == chat_id, shown.exists())
    return await _one(tx, seen.order_by(turns.c.number.desc()).limit(1))


async def forget_texts_of_ended_sessions(tx: Tx, idle_minutes: int) -> int:
    """Drop texts and pictures of sessions that ended while their person did not allow memory; return how many turns lost
    theirs.

    What ended while they did stays until they forget it: the switch speaks of later conversations.

    In a group nobody's consent counts: what was said there goes with its session.
    """
    dropped = list(await tx.scalars(_FORGET_ENDED, {"idle": idle_minutes}))
    await forget_shown(tx)
    await pictures.forget_textless(tx)
    return len(dropped)


async def forget_shown(tx: Tx) -> None:
    """Drop what was shown of every turn whose texts are dropped; a part on its way goes once it is settled.

    The platform's ids stay, so that a vote finds its turn.
    """
    textless = select(turns.c.id).where(turns.c.user_text.is_(None))
    left = outbox.c.turn_id.in_(textless) & (outbox.c.content["text"].astext != "")
    await tx.execute(update(outbox).where(left, outbox.c.state.in_(SETTLED)).values(content=Content("").document()))


# Texts without memory consent live as long as their session; the token ids would give them back, so they go too.
_FORGET_ENDED = text(f"""
    update turns t
    set user_text = null, reply_text = null, prompt_token_ids = null, response_token_ids = null,
        response_logprobs = null, learnable = false
    from sessions s join chats h on h.id = s.chat_id
    where t.session_id = s.id and t.user_text is not null
      and (s.ended_at is not null or s.last_at < now() - make_interval(mins => :idle))
      and (h.kind <> 'private' or not {allows_in_sql("t.person_id", Purpose.MEMORY, "coalesce(s.ended_at, now())")})
    returning t.id
""")  # noqa: S608 - a constant of ours; values are bound


async def _one(tx: Tx, query: Select[tuple[object, ...]]) -> Turn | None:
    row = (await tx.execute(query)).one_or_none()
    return _turn(row) if row else None


def _turn(row: Row[tuple[object, ...]]) -> Turn:
    return Turn(
        id=row.id,
        session_id=row.session_id,
        chat_id=row.chat_id,
        person_id=row.person_id,
        number=row.number,
        state=row.state,
        user_text=row.user_text,
        reply_text=row.reply_text,
        checkpoint_id=row.checkpoint_id,
        memory_version=row.memory_version,
        user_message_id=row.user_message_id,
        sibling_of=row.sibling_of,
        learnable=row.learnable,
        origin=Origin.of(row.flags),
    )
