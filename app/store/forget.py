"""What forgetting and withdrawal take out of the tables. Every table that names a person is emptied or let go.

Scopes: `chat` (what was said), `learnt` (what was remembered and trained), `all` (both, and who they are). What stays
is counts in a receipt, digests in the audit log, and the keyed digests that keep updates from being handled twice.
Knows no files and no model servers; it returns the names of both for the job that removes them.
"""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import TextClause, delete, func, insert, select, text, update

from app.store import pictures, turns
from app.store.admission import OWN_WORDS, REFUSED, REFUSED_BEFORE
from app.store.engine import Tx
from app.store.tables.learning import jobs
from app.store.tables.people import forget_receipts, people


@dataclass(frozen=True, slots=True)
class Remains:
    """What lies outside the database: adapters by name, training runs and gate runs by id."""

    adapters: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()


_COUNTS = {
    "turns": "select count(*) from turns where person_id = :person",
    "sessions": "select count(*) from sessions where person_id = :person",
    "feedback": "select count(*) from feedback where person_id = :person",
    "memories": "select count(*) from memory_lines where person_id = :person and state in ('active', 'graduated')",
    "examples": "select count(*) from examples where person_id = :person",
    "snapshots": "select count(*) from snapshots where person_id = :person",
    "checkpoints": "select count(*) from checkpoints where person_id = :person and state <> 'deleted'",
}


async def counts(tx: Tx, person_id: UUID) -> dict[str, int]:
    """Return how much is held, by kind."""
    return {name: int(await tx.scalar(text(query), {"person": person_id}) or 0) for name, query in _COUNTS.items()}


async def lock_person(tx: Tx, person_id: UUID) -> bool:
    """Hold a person's row until `tx` ends; False when they are forgotten already."""
    # A forgotten person must not hang on a reply that is being written: fail soon, and be tried again.
    await tx.execute(text("set local lock_timeout = '5s'"))
    return await tx.scalar(select(people.c.id).where(people.c.id == person_id).with_for_update()) is not None


async def remains(tx: Tx, person_id: UUID) -> Remains:
    """Return which adapters and runs of a person lie in folders and on servers, registered or about to be."""
    bound = {"person": person_id}
    adapters = await tx.scalars(text("select name from checkpoints where person_id = :person"), bound)
    runs = await tx.scalars(text("select id from training_runs where person_id = :person"), bound)
    gates = await tx.scalars(_GATES, bound)
    names = dict.fromkeys([*adapters, *await unregistered(tx, person_id)])
    return Remains(tuple(names), tuple(str(run) for run in runs), tuple(str(gate) for gate in gates))


async def unregistered(tx: Tx, person_id: UUID) -> tuple[str, ...]:
    """Return the adapters that trainings of a person put in their place, or were about to, and did not register."""
    return tuple(await tx.scalars(_UNREGISTERED, {"person": person_id}))


_GATES = text("select g.id from gate_runs g join checkpoints c on c.id = g.checkpoint_id where c.person_id = :person")
_UNREGISTERED = text("""
    select distinct j.payload ->> 'adapter' from jobs j
    where j.person_id = :person and j.kind = 'train' and j.payload ? 'adapter'
      and not exists (select 1 from checkpoints c where c.name = j.payload ->> 'adapter')
""")


async def chat(tx: Tx, person_id: UUID) -> None:
    """Drop what was said: raw updates, turns with all that hangs on them, notices, sessions, use.

    What was refused goes with its turn; the line that came of it stays refused.
    """
    await tx.execute(_STILL_REFUSED, {"person": person_id, "rule": REFUSED_BEFORE})
    await _all(tx, person_id, _SAID)


async def learnt(tx: Tx, person_id: UUID) -> None:
    """Drop what was remembered and trained, and every job about it; a worker that has one loses it.

    Its words also stand in raw updates, in the prompts of replies it was used for, and in what the bot said of it.
    """
    await tx.execute(delete(jobs).where(jobs.c.person_id == person_id))
    await _all(tx, person_id, _LEARNT)


async def person(tx: Tx, person_id: UUID) -> None:
    """Drop who they are: accounts, chats, consents, and the person; nothing of theirs can be written afterwards."""
    await _all(tx, person_id, _WHO)


async def add_receipt(tx: Tx, code_hash: bytes, summary: dict[str, object]) -> UUID:
    """Store a receipt that is found by its code alone."""
    made = insert(forget_receipts).values(code_hash=code_hash, summary=summary)
    return UUID(str(await tx.scalar(made.returning(forget_receipts.c.id))))


async def finish_receipt(tx: Tx, receipt_id: UUID, **more: object) -> None:
    """Note that files and model servers hold nothing any more."""
    done = update(forget_receipts).where(forget_receipts.c.id == receipt_id)
    summary = forget_receipts.c.summary.concat(more)
    await tx.execute(done.values(state="done", summary=summary, finished_at=func.now()))


async def receipt(tx: Tx, code_hash: bytes) -> tuple[str, dict[str, object]] | None:
    """Return state and summary of a receipt."""
    query = select(forget_receipts.c.state, forget_receipts.c.summary).where(forget_receipts.c.code_hash == code_hash)
    row = (await tx.execute(query)).one_or_none()
    return (row.state, row.summary) if row else None


async def orphan_chats(tx: Tx) -> int:
    """Drop private chats that belong to nobody any more and have nothing left to send; return how many still have."""
    await tx.execute(_ORPHANS)
    return int(await tx.scalar(_ORPHANS_LEFT) or 0)


async def ended_texts(tx: Tx, person_id: UUID) -> None:
    """Drop texts and pictures of a person's ended conversations: without memory they live as long as their session."""
    await tx.execute(_ENDED_TEXTS, {"person": person_id})
    await turns.forget_shown(tx)
    await pictures.forget_textless(tx)


async def _all(tx: Tx, person_id: UUID, statements: tuple[TextClause, ...]) -> None:
    for statement in statements:
        await tx.execute(statement, {"person": person_id})


# A lane is "<bot>:<channel's own>", of which the chat's id is one part. A press without its message is in a lane that
# tells no chat; who pressed stands in it as a JSON number of its own, which no text inside of it can imitate.
THEIR_UPDATES = """
    exists (select 1 from chats c where c.person_id = :person and c.kind = 'private' and c.bot_id = i.bot_id
              and position(':' || c.external_id || ':' in i.lane || ':') > 0)
    or i.lane = i.bot_id || ':votes:' and exists (
        select 1 from accounts a where a.person_id = :person and a.bot_id = i.bot_id and i.body is not null
          and position('"id":' || a.external_id || ',' in replace(encode(i.body, 'escape'), ' ', '')) > 0)
"""
# Updates of others that are done may go where they name the account (a quote, a forwarding); those still waiting may not.
_NAMING_THEM = """
    i.state not in ('stored', 'claimed')
    and exists (select 1 from accounts a where a.person_id = :person and a.bot_id = i.bot_id
                  and length(a.external_id) >= 5 and i.body is not null
                  and position(convert_to(a.external_id, 'UTF8') in i.body) > 0)
"""
# The update that asked to forget is still being handled: its row stays for the lane runner, without body and lane.
_INBOX_NOW = text(f"""
    update inbox i set body = null, error = null, lane = 'forgotten:' || i.id
    where i.state = 'claimed' and ({THEIR_UPDATES})
""")  # noqa: S608 - constants of this module
_INBOX = text(f"""
    delete from inbox i where i.state <> 'claimed' and ({THEIR_UPDATES} or {_NAMING_THEM})
""")  # noqa: S608 - the same

_SAID = (
    _INBOX_NOW,
    _INBOX,
    # Approved examples belong to what was learnt; they only lose the turn they came from. What answers somebody else's
    # words goes with it: without its turn nothing would tell it from the rest.
    text(f"""
        delete from examples x using turns t where t.id = x.turn_id and x.person_id = :person and not ({OWN_WORDS})
    """),  # noqa: S608 - a constant of ours
    text("update examples set turn_id = null where person_id = :person"),
    text("delete from evaluation_items where feedback_id in (select id from feedback where person_id = :person)"),
    text("delete from turns where person_id = :person"),
    text("""
        delete from outbox where chat_id in
            (select id from chats where person_id = :person and kind = 'private')
    """),
    text("delete from sessions where person_id = :person"),
    text("update chats set state = '{}'::jsonb where person_id = :person"),
    text("delete from usage where person_id = :person"),
)

_STILL_REFUSED = text(f"""
    insert into ladder_decisions (person_id, memory_id, rung, rule)
    select m.person_id, m.id, 'nothing', :rule from memory_lines m join feedback f on f.id = m.feedback_id
    where m.person_id = :person and {REFUSED}
""")  # noqa: S608 - the same

# A long text is told in several parts: the first holds its beginning, each other one is a piece of it.
_BEGINNING, _PIECE = 200, 20
_TOLD = text(f"""
    delete from outbox o using (
        select text from memory_lines where person_id = :person
        union select good from examples where person_id = :person
        union select text from rewrites where person_id = :person
        union select text from feedback where person_id = :person
    ) learnt
    where o.turn_id is null and o.chat_id in (select id from chats where person_id = :person and kind = 'private')
      and (o.kind = 'file' or learnt.text <> '' and (
          position(left(learnt.text, {_BEGINNING}) in o.content ->> 'text') > 0
          or length(o.content ->> 'text') >= {_PIECE} and position(o.content ->> 'text' in learnt.text) > 0))
""")  # noqa: S608 - the same

_LEARNT = (
    text(f"update inbox i set body = null where i.state not in ('stored', 'claimed') and ({THEIR_UPDATES})"),  # noqa: S608 - the same
    text("""
        update turns set prompt_token_ids = null, response_token_ids = null, response_logprobs = null, learnable = false
        where person_id = :person and jsonb_array_length(coalesce(memory_used -> 'ids', '[]')) > 0
    """),
    _TOLD,
    text("delete from evaluation_items where feedback_id in (select id from feedback where person_id = :person)"),
    text("delete from feedback where person_id = :person"),
    text("delete from ladder_decisions where person_id = :person"),
    text("delete from memory_events where person_id = :person"),
    text("delete from memory_lines where person_id = :person"),
    text("delete from releases where person_id = :person"),
    text("delete from checkpoints where person_id = :person"),
    text("delete from training_runs where person_id = :person"),
    text("delete from snapshots where person_id = :person"),
    text("update people set memory_version = memory_version + 1 where id = :person"),
)

_WHO = (
    text("delete from chats where person_id = :person and kind = 'private'"),
    text("update chats set person_id = null where person_id = :person"),
    text("delete from people where id = :person"),
)

_ORPHAN = """
    c.kind = 'private' and c.person_id is null
    and not exists (select 1 from sessions s where s.chat_id = c.id)
"""
_DUE = "exists (select 1 from outbox o where o.chat_id = c.id and o.state in ('due', 'sending'))"
_ORPHANS = text(f"""
    delete from chats c where {_ORPHAN} and not {_DUE} and c.created_at < now() - interval '5 seconds'
""")  # noqa: S608 - constants of this module
_ORPHANS_LEFT = text(f"select count(*) from chats c where {_ORPHAN}")  # noqa: S608 - the same

_ENDED_TEXTS = text("""
    update turns t
    set user_text = null, reply_text = null, prompt_token_ids = null, response_token_ids = null,
        response_logprobs = null, learnable = false
    from sessions s where s.id = t.session_id and t.person_id = :person and s.ended_at is not null
      and t.user_text is not null
""")
