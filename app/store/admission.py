"""What may train: the consent join. Every query here asks the consent log itself, at this moment, never a cached flag.

A person's prompt is admitted when it was typed in a private chat, is their own words, and memory and personal training
were allowed both when it was typed and now. A line is admitted unless its feedback was excluded or somebody else's
words passed on, or heard and not written, though it be forgotten since, or the person went back on what was learnt from
it; its examples, unless they answer what is not the person's own words. Texts are scrubbed afterwards, in `learner/dataset`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Row, select, text

from app.domain.consent import Purpose
from app.domain.memory import Example, MemoryLine
from app.domain.prompt import PROMPT_VERSION, identity_text
from app.domain.turn import BaseIdentity
from app.store.consents import allows_in_sql
from app.store.engine import Tx
from app.store.tables.people import people

WENT_BACK = "person_went_back"
REFUSED_BEFORE = "refused_before"
"""The rule under which a line stays out when the feedback that was refused goes with the chat."""
KEPT_OUT = (WENT_BACK, REFUSED_BEFORE)
MAX_PROMPTS = 200

_BOTH = " and ".join(allows_in_sql(":person", purpose) for purpose in (Purpose.MEMORY, Purpose.PERSONAL_TRAINING))

OWN_WORDS = """not (coalesce((t.flags ->> 'forwarded')::boolean, false)
           or coalesce((t.flags ->> 'group')::boolean, false)
           or coalesce((t.flags ->> 'automated')::boolean, false)
           or coalesce((t.flags ->> 'quoted')::boolean, false)
           or coalesce((t.flags ->> 'media')::boolean, false))"""
"""Whether what turn `t` answers is its person's own words, written in private, and nothing else; what is no turn's is."""


@dataclass(frozen=True, slots=True)
class AdmittedPrompt:
    """A turn whose user text may be learnt from; `split` says on which side of the gate."""

    turn_id: UUID
    text: str = field(repr=False)
    system: str = field(repr=False)
    split: str


@dataclass(frozen=True, slots=True)
class AdmittedExample:
    """An approved reply of a line."""

    id: UUID
    memory_id: UUID
    example: Example = field(repr=False)


@dataclass(frozen=True, slots=True)
class AdmittedLine:
    """A preference that may be learnt, with its examples, oldest first."""

    line: MemoryLine = field(repr=False)
    examples: tuple[AdmittedExample, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Served:
    """What a server stored of a reply by the bare base; of a first message without memory also what it was asked."""

    prompt_token_ids: tuple[int, ...]
    response_token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    temperature: float
    system: str = field(default="", repr=False)
    asked: str | None = field(default=None, repr=False)


# These statements are put together from constants of this module; values are bound.
_PROMPTS = text(f"""
    select t.id, t.user_text, coalesce(i.system_prompt, '') as system, i.facts, s.split
    from turns t
    join chats c on c.id = t.chat_id and c.kind = 'private' and c.person_id = t.person_id
    join sessions s on s.id = t.session_id
    left join bot_identities i on i.id = t.identity_id
    where t.person_id = :person and t.state in ('done', 'stopped') and t.user_text is not null
      and t.sibling_of is null
      and {OWN_WORDS}
      and coalesce((t.flags -> 'consents' ->> 'memory')::boolean, false)
      and coalesce((t.flags -> 'consents' ->> 'personal_training')::boolean, false)
      and {_BOTH}
    order by t.number desc
    limit :limit
""")  # noqa: S608

_ALLOWED = text(f"select {_BOTH}")

REFUSED = """(f.excluded or f.quarantined or f.review_state in ('rejected', 'quarantined')
           or coalesce((f.flags ->> 'forwarded')::boolean, false)
           or coalesce((f.flags ->> 'spoken')::boolean, false))"""

_LINES_WHERE = f"""
    m.person_id = :person and m.kind = 'preference' and m.state in ('active', 'graduated')
      and not coalesce({REFUSED}, false)
      and not exists (select 1 from ladder_decisions d where d.memory_id = m.id and d.rule = any(:kept_out))
"""  # noqa: S608 - the same

_LINES = text(f"""
    select m.id, m.person_id, m.kind, m.text, m.state, m.uses, m.failures, m.checker, m.feedback_id,
           cardinality(m.session_ids) as sessions
    from memory_lines m left join feedback f on f.id = m.feedback_id
    where {_LINES_WHERE}
    order by m.created_at, m.id
""")  # noqa: S608

_EXAMPLES = text(f"""
    select x.id, x.memory_id, x.prompt, x.good, x.bad, x.source
    from examples x
    join memory_lines m on m.id = x.memory_id
    left join feedback f on f.id = m.feedback_id
    left join turns t on t.id = x.turn_id
    left join releases r on r.id = t.release_id
    where {_LINES_WHERE} and {OWN_WORDS}
      and (r.id is null or r.state <> 'rolled_back' or x.source = 'written')
    order by x.created_at, x.id
""")  # noqa: S608

_SERVED = text(f"""
    select t.prompt_token_ids, t.response_token_ids, t.response_logprobs, t.sampling, t.user_text as asked,
           coalesce(i.system_prompt, '') as system, i.facts,
           t.user_text is not null and i.id is not null and coalesce(jsonb_array_length(t.memory_used -> 'ids'), 0) = 0
           and not exists (select 1 from turns e where e.session_id = t.session_id and e.number < t.number)
           and t.prompt_version = :prompt_version as plain
    from turns t left join bot_identities i on i.id = t.identity_id
    where t.person_id = :person and t.learnable and t.checkpoint_id is null and t.finish_reason = 'stop'
      and {OWN_WORDS}
      and coalesce((t.flags -> 'consents' ->> 'memory')::boolean, false)
      and coalesce((t.flags -> 'consents' ->> 'personal_training')::boolean, false)
      and t.base_id = :base_id and t.base_revision = :revision
      and t.tokenizer_digest = :tokenizer_digest and t.template_digest = :template_digest
      and cardinality(t.response_token_ids) between 2 and 200 and cardinality(t.prompt_token_ids) <= 700
    order by plain desc, t.number desc
    limit :limit
""")  # noqa: S608


async def prompts(tx: Tx, person_id: UUID, limit: int = MAX_PROMPTS) -> Sequence[AdmittedPrompt]:
    """Return a person's admitted prompts, newest first."""
    rows = await tx.execute(_PROMPTS, {"person": person_id, "limit": limit})
    return [AdmittedPrompt(r.id, r.user_text, identity_text(r.system, r.facts or {}), r.split) for r in rows]


async def allowed(tx: Tx, person_id: UUID) -> bool:
    """Whether memory and personal training are both allowed now."""
    return bool(await tx.scalar(_ALLOWED, {"person": person_id}))


async def hold(tx: Tx, person_id: UUID) -> None:
    """Hold a person's row until `tx` ends; every answer to a consent refers to it and so comes before or after."""
    await tx.execute(select(people.c.id).where(people.c.id == person_id).with_for_update())


async def lines(tx: Tx, person_id: UUID) -> Sequence[AdmittedLine]:
    """Return a person's admitted preference lines, active and graduated, oldest first."""
    bound = {"person": person_id, "kept_out": list(KEPT_OUT)}
    shown: dict[UUID, list[AdmittedExample]] = {}
    for row in await tx.execute(_EXAMPLES, bound):
        example = Example(row.prompt, row.good, row.bad, row.source)
        shown.setdefault(row.memory_id, []).append(AdmittedExample(row.id, row.memory_id, example))
    return [_line(row, tuple(shown.get(row.id, ()))) for row in await tx.execute(_LINES, bound)]


async def served(tx: Tx, person_id: UUID, base: BaseIdentity, limit: int) -> Sequence[Served]:
    """Return replies by the bare base with their stored logprobs, only of turns that might train: first messages without
    memory in today's form, whose whole prompt is known, before all others, and newest first.
    """
    bound = {
        "person": person_id,
        "limit": limit,
        "base_id": base.base_id,
        "revision": base.revision,
        "tokenizer_digest": base.tokenizer_digest,
        "template_digest": base.template_digest,
        "prompt_version": PROMPT_VERSION,
    }
    return [
        Served(
            tuple(row.prompt_token_ids),
            tuple(row.response_token_ids),
            tuple(row.response_logprobs),
            float(row.sampling.get("temperature", 1.0)),
            identity_text(row.system, row.facts or {}),
            row.asked if row.plain else None,
        )
        for row in await tx.execute(_SERVED, bound)
    ]


def _line(row: Row[tuple[object, ...]], examples: tuple[AdmittedExample, ...]) -> AdmittedLine:
    line = MemoryLine(
        id=row.id,
        person_id=row.person_id,
        kind=row.kind,
        text=row.text,
        state=row.state,
        uses=row.uses,
        failures=row.failures,
        sessions=row.sessions,
        examples=tuple(e.example for e in examples),
        checker=row.checker,
        feedback_id=row.feedback_id,
    )
    return AdmittedLine(line, examples)
