"""Withdrawal and forgetting: what a consent allowed goes out of use, what a person said or taught goes for good.

    one transaction: rows gone, receipt written, a job queued ─► files of this machine at once ─► the job does the rest

From the commit on nothing of it is routed, trained or shown. The job removes what lies outside the database on the
learner's machines: adapters on model servers (unloading only forgets a name, so their weights are pushed out too),
folders of checkpoints and runs. The receipt says `running` until that is done. It is found by its code alone.
"""

import hashlib
import json
import secrets
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from uuid import UUID

from app.domain.consent import Purpose
from app.domain.places import Places
from app.errors import InvalidInputError, NotFoundError
from app.store import Store, Tx, audit, jobs, lineage, memory, releases
from app.store import forget as rows
from app.store.audit import Act
from app.store.forget import Remains
from app.store.jobs import Work
from app.telemetry import Log

Scope = Literal["chat", "learnt", "all"]
LEARNING_JOBS = ("train", "evaluate", "release")
SETTLE_S = 3.0
"""A worker notices within this time that its job is gone, and stops what it runs."""
ATTEMPTS = 20

HandOver = Callable[[Tx, str], Awaitable[None]]
"""Puts a receipt's code on its way to its person, in the transaction that forgets them."""
_SCOPES: dict[str, Scope] = {"chat": "chat", "learnt": "learnt", "all": "all"}
_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten, as counts. `code` is shown once; only its digest is kept."""

    code: str = field(repr=False)
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class ReceiptState:
    """What a receipt code leads to: `running` while weights are being pushed out, then `done`."""

    state: str
    summary: dict[str, object]


async def preview(tx: Tx, person_id: UUID) -> dict[str, int]:
    """Return how much is held about a person, by kind."""
    return await rows.counts(tx, person_id)


async def forget_person(
    store: Store,
    home: Path,
    person_id: UUID,
    scope: str,
    actor: str,
    reason: str = "",
    hand_over: HandOver | None = None,
) -> Receipt:
    """Forget `chat`, `learnt` or `all` of a person; `hand_over` tells them the receipt's code where there is a way.

    Raises:
        NotFoundError: there is no such person.
        InvalidInputError: the scope is not one of the three.
        StoreUnavailableError: something of theirs was being written just now; nothing was forgotten, try again.
    """
    chosen = scope_of(scope)
    code = secrets.token_hex(12)
    async with store.begin() as tx:
        if not await rows.lock_person(tx, person_id):
            raise NotFoundError
        counts = await rows.counts(tx, person_id)
        remains = await _remains(tx, person_id, chosen)
        await _drop(tx, person_id, chosen)
        receipt_id = await rows.add_receipt(tx, digest_of(code), {"scope": chosen, **counts})
        await jobs.enqueue(tx, _removal(remains, receipt_id))
        detail = {"scope": chosen, **counts}
        await audit.record(tx, Act(actor, "person:data:forgotten", audit.person(person_id), reason, detail=detail))
        if hand_over is not None:
            await hand_over(tx, code)
    remove_files(Places(home), remains, exports_of=person_id)
    _log.info("person:data:forgotten", scope=chosen, adapters=len(remains.adapters))
    return Receipt(code, counts)


async def receipt(store: Store, code: str) -> ReceiptState:
    """Return what a receipt code leads to. Raises `NotFoundError` when there is no such receipt."""
    async with store.begin() as tx:
        found = await rows.receipt(tx, digest_of(code))
    if found is None:
        raise NotFoundError
    return ReceiptState(*found)


async def withdraw(tx: Tx, person_id: UUID, purpose: Purpose) -> None:
    """Take out of use what a consent allowed; the caller records the withdrawal in the same transaction.

    Memory: lines leave the prompt, texts of ended conversations go, and what was trained goes too, since it was made
    of memory. Personal training: trainings stop, the adapter goes for good, its lines return to memory. The other
    purposes are asked anew wherever they are used and leave nothing behind here.
    """
    if purpose is Purpose.MEMORY:
        await _retire(tx, person_id, "memory was withdrawn")
        for line in await memory.lines(tx, person_id, "active", "graduated"):
            await memory.set_state(tx, person_id, line.id, "undone")
        await rows.ended_texts(tx, person_id)
    elif purpose is Purpose.PERSONAL_TRAINING:
        await _retire(tx, person_id, "personal training was withdrawn")
        for line_id in await releases.return_lines(tx, person_id, ()):
            await memory.changed(tx, person_id, line_id, "returned")


def remove_files(places: Places, remains: Remains, exports_of: UUID | None = None) -> bool:
    """Remove adapters, runs and exports from this machine; False when something could not be removed and is left to
    the next try. What is not on this machine is no failure.
    """
    folders = [*(places.runs / run for run in remains.runs), *map(places.gate, remains.gates)]
    for name in remains.adapters:
        for parent in (places.checkpoints, places.serving):
            # What was being written when its writer died lies beside, under a hidden name.
            folders += [parent / name, *parent.glob(f".{name}.*")]
    if exports_of is not None:
        folders.append(places.exports / str(exports_of))
    # Names and ids come from our own rows, but a folder is only ever removed inside the places it belongs to.
    inside = [f for f in folders if f.parent in {places.runs, places.checkpoints, places.serving, places.exports}]
    for folder in inside:
        shutil.rmtree(folder, ignore_errors=True)
    return not any(folder.exists() for folder in inside)


def scope_of(word: str) -> Scope:
    """Return the scope that `word` names. Raises `InvalidInputError`."""
    if word not in _SCOPES:
        raise InvalidInputError("forget chat, learnt or all")
    return _SCOPES[word]


def digest_of(code: str) -> bytes:
    """Return the form of a receipt code that is kept."""
    return hashlib.sha256(code.strip().encode()).digest()


async def _remains(tx: Tx, person_id: UUID, scope: Scope) -> Remains:
    """Return what goes with a scope. What was said is also in the folders of trainings, as tokens; not in adapters, but
    for one of a training that ends with the chat.
    """
    found = await rows.remains(tx, person_id)
    return Remains(await rows.unregistered(tx, person_id), found.runs) if scope == "chat" else found


async def _drop(tx: Tx, person_id: UUID, scope: Scope) -> None:
    if scope == "chat":
        # It holds the words that are being forgotten in its memory; with what is left, another may be earned.
        await jobs.cancel(tx, person_id, ("train",), "the chat was forgotten")
    if scope != "chat":
        await rows.learnt(tx, person_id)
    if scope != "learnt":
        await rows.chat(tx, person_id)
    if scope == "all":
        await rows.person(tx, person_id)


async def _retire(tx: Tx, person_id: UUID, reason: str) -> None:
    """Stop every training, take every release out of routing, and let go of the weights."""
    await jobs.cancel(tx, person_id, LEARNING_JOBS, reason)
    await releases.retire_all(tx, person_id, reason, "person")
    known = await lineage.checkpoints_of(tx, person_id, "candidate", "passed", "refused", "parked", "retired")
    for checkpoint in known:
        await lineage.set_state(tx, checkpoint.id, "deleted", among=(checkpoint.state,))
    remains = await rows.remains(tx, person_id)
    if remains.adapters or remains.runs:
        await jobs.enqueue(tx, _removal(remains, None))


def _removal(remains: Remains, receipt_id: UUID | None) -> Work:
    """Return the job that removes what lies outside the database. It carries names made of digests, and ids."""
    payload: dict[str, str | int | list[str]] = {
        "adapters": list(remains.adapters),
        "runs": list(remains.runs),
        "gates": list(remains.gates),
    }
    if receipt_id is not None:
        payload["receipt_id"] = str(receipt_id)
    key = hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()[:16]
    return Work("forget", "release", f"forget:{key}", payload, delay_s=SETTLE_S, max_attempts=ATTEMPTS)


def remains_of(payload: Mapping[str, object]) -> Remains:
    """Return what a removal job names."""
    return Remains(_names(payload.get("adapters")), _names(payload.get("runs")), _names(payload.get("gates")))


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, list) else ()
