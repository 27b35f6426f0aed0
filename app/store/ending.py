"""The end of a turn, in one statement: the update that it answers, the reply, its parts, what its person used of the model.

Each step is done only where the one before was: an update that somebody else holds by now ends no turn, and a turn that had
ended before shows nothing. Where its chat is quiet the first part is claimed as it is stored, by whoever will send it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, INTEGER, REAL

from app.domain.asking import RECENT, Signals
from app.domain.outgoing import Content
from app.domain.turn import Outcome
from app.store import asks, outbox, turns
from app.store.clock import TODAY
from app.store.engine import Tx
from app.store.inbox import Claimed


@dataclass(frozen=True, slots=True)
class LookBack:
    """Of how many last replies, and after how many idle minutes, it is told whether their person may be asked about this one."""

    lately: int
    idle_minutes: int


@dataclass(frozen=True, slots=True)
class Ending:
    """A turn that ends, with all that it shows. `held_by`: who holds the update that it ends, None where that has ended.

    `sender`: who sends its first part at once where nothing else is on its way in the chat; `look_back`: None where nobody may
    be asked about it.
    """

    turn_id: UUID
    chat_id: UUID
    person_id: UUID | None
    outcome: Outcome
    parts: Sequence[Content]
    update: Claimed
    held_by: str | None
    sender: str | None = None
    look_back: LookBack | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of it.

    `lost`: the update is held by somebody else, nothing was changed; `first`: the turn had not ended before; `due`: the part
    that the sender has claimed; `more`: something waits in the update's lane.
    """

    lost: bool
    first: bool
    due: outbox.Due | None
    more: bool
    signals: Signals | None


async def end(tx: Tx, ending: Ending) -> Ended:
    """End a turn and the update that it answers."""
    row = (await tx.execute(_END if ending.held_by else _END_ALONE, _values(ending))).one()
    return Ended(
        lost=not row.ended,
        first=row.finished,
        due=outbox.due_in(row) if row.id is not None else None,
        more=row.more,
        signals=asks.signals_in(row) if row.finished else None,
    )


def _values(ending: Ending) -> dict[str, object]:
    outcome, update, back = ending.outcome, ending.update, ending.look_back
    return turns.ended_by(outcome) | {
        "inbox": update.id,
        "lane": update.lane,
        "attempts": update.attempts,
        "owner": ending.held_by,
        "turn": ending.turn_id,
        "chat": ending.chat_id,
        "person": ending.person_id,
        # A server that tells no token ids leaves nothing to count but the reply.
        "tokens": len(outcome.prompt_token_ids) + len(outcome.response_token_ids),
        "contents": json.dumps([content.document() for content in ending.parts]),
        "sender": ending.sender,
        "lease": outbox.LEASE_S,
        "ask": back is not None,
        "lately": back.lately if back else 0,
        "idle": back.idle_minutes if back else 0,
        "recent": RECENT,
    }


# Joined and not asked for with `exists`: where somebody changes the turn in this very moment, as who asks that it stops,
# PostgreSQL looks at the condition once more, and there a step before must not be run again.
_HELD = """
        update inbox set state = 'done', error = null, finished_at = now(), lease_until = null
        where id = :inbox and owner = cast(:owner as text) and attempts = :attempts and state = 'claimed'
        returning id
"""
_ENDED_BEFORE = "select cast(:inbox as bigint) as id"


def _end(ended: str) -> TextClause:
    # What is claimed here is told from a claim that stands already by its lease, which begins with this very moment.
    return text(f"""
        with ended as ({ended}),
        finished as (
            update turns set
                state = :state, reply_text = :reply_text, finish_reason = :finish_reason, failure = :failure,
                prompt_token_ids = :prompt_token_ids, response_token_ids = :response_token_ids,
                response_logprobs = :response_logprobs, first_token_ms = :first_token_ms, duration_ms = :duration_ms,
                learnable = :learnable, finished_at = now()
            from ended
            where turns.id = :turn and turns.state in ('waiting', 'generating')
            returning turns.id, turns.chat_id
        ),
        claiming as (
            select cast(:sender as text) as sender from finished f
            where not exists (
                select 1 from outbox o
                where o.chat_id = f.chat_id and o.state in ('due', 'sending') and o.turn_id is distinct from f.id
            )
        ),
        wanted as (
            select f.chat_id, f.id as turn_id, p.number - 1 as part, p.content, c.sender
            from finished f
            cross join jsonb_array_elements(cast(:contents as jsonb)) with ordinality as p (content, number)
            left join claiming c on p.number = 1
            order by p.number
        ),
        shown as (
            insert into outbox (kind, chat_id, turn_id, part, content, state, owner, attempts, lease_until)
            select 'reply', chat_id, turn_id, part, content, case when sender is null then 'due' else 'sending' end,
                   sender, case when sender is null then 0 else 1 end,
                   case when sender is not null then now() + make_interval(secs => :lease) end
            from wanted
            on conflict (turn_id, part) do update set {outbox.CHANGED}
            returning *
        ),
        used as (
            insert into usage (person_id, day, messages, tokens)
            select cast(:person as uuid), {TODAY}, 1, :tokens from finished where cast(:person as uuid) is not null
            on conflict (person_id, day)
            do update set messages = usage.messages + 1, tokens = usage.tokens + excluded.tokens
        ),
        {asks.SIGNALS}
        select exists (select 1 from ended) as ended, exists (select 1 from finished) as finished,
               exists (select 1 from inbox i where i.lane = :lane and i.state = 'stored') as more, due.*, signals.*
        from (values (1)) as one
        left join (
            select {outbox.DUE} from shown taken join chats c on c.id = taken.chat_id
            where taken.part = 0 and taken.owner = cast(:sender as text)
              and taken.lease_until = now() + make_interval(secs => :lease)
        ) as due on true
        left join signals on true
    """).bindparams(  # noqa: S608 - texts of our own; values are bound
        bindparam("prompt_token_ids", type_=ARRAY(INTEGER)),
        bindparam("response_token_ids", type_=ARRAY(INTEGER)),
        bindparam("response_logprobs", type_=ARRAY(REAL)),
    )


_END, _END_ALONE = _end(_HELD), _end(_ENDED_BEFORE)
