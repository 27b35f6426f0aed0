"""Which adapter answers whom, and the ways back: keep, go back (the person), roll back (an operator).

Going back is one transaction: the release leaves routing at once, the one before it answers again where it still may,
and lines that only the gone adapter knew return to the prompt. They stay in memory, where one tap undoes them, but the
corrections behind them never train again: the person who goes back does not want the same lesson in weights a second
time, and an operator who rolls back does not want the same training. What was written while the release answered is
listed; examples that it wrote itself teach nothing any more (`app/store/admission.py`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.domain.consent import Purpose
from app.domain.ladder import Decision, Rung
from app.domain.messages import text as say
from app.domain.outgoing import Content
from app.domain.person import Session
from app.domain.policy import Route
from app.domain.turn import BaseIdentity
from app.errors import ConflictError
from app.store import Store, Tx, audit, feedback, jobs, lineage, memory, outbox, people, releases
from app.store.admission import WENT_BACK
from app.store.audit import Act
from app.store.jobs import Work
from app.store.releases import Release, WrittenUnder
from app.telemetry import Log

RECONCILE = Work("reconcile", "release", "reconcile")

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did: who answers now (None: the base), which lines came back, what was written meanwhile."""

    live_again: UUID | None
    returned: tuple[UUID, ...]
    written: WrittenUnder


async def routable(tx: Tx, person_id: UUID, session: Session) -> Route | None:
    """Return the adapter for a turn of `session`: what it is pinned to, if it is theirs, passed its gates, was not
    taken back, and is ready on a server whose isolation probe passed. None: the base answers, with the whole memory.
    """
    found = await releases.route(tx, person_id, session.id) if session.release_id else None
    if found is None:
        return None
    return Route(found.adapter, found.checkpoint_id, found.release_id, announced=found.announced)


async def announce(tx: Tx, release_id: UUID) -> Sequence[str]:
    """Mark a release as told; return the lines that its adapter has learnt, none when they were told before."""
    if not await releases.announce(tx, release_id):
        return ()
    return await releases.learnt_lines(tx, release_id)


async def keep(tx: Tx, person_id: UUID, release_id: UUID) -> None:
    """Note that a person keeps what was learnt.

    Raises:
        NotFoundError: there is no such release of theirs.
    """
    release = await releases.access(tx, release_id, person_id)
    if await releases.keep(tx, release.id):
        await audit.record(tx, Act("person", "release:person:kept", f"release:{release.id}"))


async def go_back(tx: Tx, person_id: UUID, release_id: UUID) -> RolledBack:
    """Take a person's own release back by their wish, in the transaction that tells them.

    Raises:
        NotFoundError: there is no such release of theirs.
        ConflictError: it was out of routing already.
    """
    release = await releases.access(tx, release_id, person_id)
    return await _roll_back(tx, release, Ending("the person went back", "person"))


async def roll_back(store: Store, release_id: UUID, reason: str, actor: str) -> RolledBack:
    """Take a release out of routing.

    Raises:
        NotFoundError: there is no such release.
        ConflictError: it was out of routing already.
    """
    async with store.begin() as tx:
        return await _roll_back(tx, await releases.access(tx, release_id), Ending(reason, actor))


async def line_undone(tx: Tx, person_id: UUID, line_id: UUID) -> RolledBack | None:
    """Take every adapter out of routing that was taught a line which its person has just undone.

    The other lines it knew return to the prompt and may be learnt again, without this one. None: no adapter knew it.
    """
    done = None
    ending = Ending("a lesson was taken back", "person", frozenset({line_id}))
    # The live one last, so that none of the others is revived by its end.
    for release in await releases.teaching(tx, person_id, line_id):
        done = await _roll_back(tx, release, ending)
    return done


async def base_served(tx: Tx, base: BaseIdentity) -> int:
    """Hold the checkpoints against the base that is served; return how many were parked or taken up again.

    Who is left without their adapter has their whole memory in the prompt again, is told so, and gets a training on the
    base of now; its gates decide as on any other.
    """
    parked, taken_up = await lineage.park_other_bases(tx, base)
    for left in await releases.left_alone(tx, parked) if parked else ():
        consents = await people.consents(tx, left.person_id)
        if consents.allows(Purpose.MEMORY) and consents.allows(Purpose.PERSONAL_TRAINING):
            await jobs.enqueue(tx, Work("train", "train", f"train:{left.person_id}", person_id=left.person_id))
        if left.chat_id:
            await outbox.put(tx, left.chat_id, Content(say(left.language, "base_changed")))
    return len(parked) + taken_up


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a release goes, who takes it back, and which lines must not train again: by default all that it alone knew."""

    reason: str
    actor: str
    spoiled: frozenset[UUID] | None = None


async def _roll_back(tx: Tx, release: Release, ending: Ending) -> RolledBack:
    person_id = release.person_id
    if person_id is None:
        raise ConflictError("only a person's own adapter can be taken back here")
    gone = await lineage.checkpoint(tx, release.checkpoint_id)
    await releases.end(tx, release.id, "rolled_back", ending.reason, ending.actor)
    await lineage.set_state(tx, gone.id, "retired", among=("passed", "parked"))
    before = await _before(tx, release)
    known = (await lineage.checkpoint(tx, before.checkpoint_id)).memory_ids if before else ()
    if before:
        await releases.graduate(tx, person_id, known, before.checkpoint_id)
    returned = await _return(tx, person_id, known)
    spoiled = ending.spoiled if ending.spoiled is not None else set(gone.memory_ids) - set(known)
    await _never_again(tx, person_id, spoiled)
    written = await releases.written_under(tx, release.id)
    await jobs.enqueue(tx, RECONCILE)
    detail = {
        "checkpoint": gone.name,
        "live_again": before.id if before else None,
        "returned": len(returned),
        "turns": len(written.turns),
        "memory": len(written.memory),
        "feedback": len(written.feedback),
    }
    await audit.record(
        tx,
        Act(
            ending.actor,
            "release:live:rolled_back",
            f"release:{release.id}",
            ending.reason,
            before={"state": release.state},
            after={"state": "rolled_back"},
            detail=detail,
        ),
    )
    _log.info("release:live:rolled_back", release=release.id, live_again=before.id if before else None)
    return RolledBack(before.id if before else None, tuple(returned), written)


async def _before(tx: Tx, release: Release) -> Release | None:
    """Return who answers now: still the live one when an older release was taken back, else the one before."""
    if release.state == "live":
        return await releases.revive_before(tx, release)
    return await releases.live(tx, release.person_id) if release.person_id else None


async def _return(tx: Tx, person_id: UUID, known: Sequence[UUID]) -> Sequence[UUID]:
    """Bring the lines that no adapter stands for any more back into the prompt."""
    returned = await releases.return_lines(tx, person_id, known)
    for line_id in returned:
        await memory.changed(tx, person_id, line_id, "returned")
    return returned


async def _never_again(tx: Tx, person_id: UUID, line_ids: Collection[UUID]) -> None:
    """Keep lines out of every later training, and the feedback they came from."""
    for line_id in line_ids:
        await releases.exclude_source(tx, person_id, line_id)
        await feedback.decide(tx, person_id, Decision(Rung.MEMORY, WENT_BACK), memory_id=line_id)
