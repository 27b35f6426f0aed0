"""The feedback queue: one item at a time with its conversation, and the reviewer's decision.

The address is the state: filters, page and item. After a decision the next item of the same queue follows.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web

from app.admin.forms import PREFIX, ChoiceError, Fields, ReasonMissingError
from app.admin.visit import Visit
from app.domain.consent import Purpose
from app.domain.diff import WordDiff, word_diff
from app.domain.feedback import FeedbackClass
from app.domain.messages import LANGUAGES
from app.errors import ForbiddenError
from app.store import audit
from app.store.panel import provenance, review
from app.store.panel.review import ReviewFilter, ReviewItem

PAGE = 40
STATES = ("new", "approved", "rejected", "relabelled", "quarantined")
KINDS = ("vote", "reason", "correction", "rewrite", "implicit")
CLASSES = tuple(FeedbackClass)
# decision -> the state it leads to
DECISIONS = {
    "approve": "approved",
    "reject": "rejected",
    "relabel": "relabelled",
    "quarantine": "quarantined",
    "reopen": "new",
}
NEEDS_REASON = frozenset({"reject", "quarantine"})
NEEDS_READING = frozenset({"approve", "relabel"})
FILTERS = ("state", "class", "kind", "language", "channel", "readable")
QUERY = (*FILTERS, "page", "item", "done")
# Below this a correction shares so little with the reply that a diff would only be noise.
ALIKE = 0.3
_BEFORE, _AFTER = 4, 1
_CHANNEL = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class UnreadableError(ForbiddenError):
    """What may not be read cannot be approved or relabelled; it can be rejected or quarantined."""


async def show(visit: Visit) -> web.StreamResponse:
    """Show the queue and one item of it: the one in the address, else the first."""
    wanted, page = _filter(visit.fields), visit.fields.whole("page", 0, 10_000)
    async with visit.store.begin() as tx:
        rows = await review.queue(tx, wanted, limit=PAGE, offset=page * PAGE)
        total = await review.count(tx, wanted)
        channels = await review.channels(tx)
        picked = _uuid(visit.fields, "item")
        first = rows[0].id if rows else None
        chosen = picked or first
        item = await review.item(tx, chosen) if chosen else None
        done_id = _uuid(visit.fields, "done")
        done = await review.item(tx, done_id) if done_id else None
    around = await _around(visit, item) if item else {}
    return visit.page(
        "feedback.html",
        rows=rows,
        total=total,
        page=page,
        pages=-(-total // PAGE),
        wanted=wanted,
        item=item,
        picked=picked is not None,
        done=done,
        query=_query(wanted, page),
        choices={"states": STATES, "classes": CLASSES, "kinds": KINDS, "channels": channels, "languages": LANGUAGES},
        purposes=[p.value for p in Purpose],
        **around,
    )


async def _around(visit: Visit, item: ReviewItem) -> dict[str, object]:
    async with visit.store.begin() as tx:
        turns = await provenance.context(tx, item, before=_BEFORE, after=_AFTER)
        rewrites = await provenance.rewrites_of(tx, item)
        facts = {
            "rungs": await provenance.rungs(tx, item.id),
            "verdicts": await provenance.verdicts(tx, item.turn_id),
            "uses": await provenance.uses(tx, item.id),
        }
    texts = [r.text for r in rewrites if r.text and r.text != item.text]
    own = [item.text] if item.text and item.kind in {"correction", "rewrite"} else []
    # In a thread: long texts take a moment to compare, and chats are served by the same loop.
    diffs = await asyncio.to_thread(_diffs, item.reply_text or "", [*own, *texts])
    correction = diffs[0] if own else None
    return facts | {
        "earlier": [t for t in turns if t.number < item.turn_number],
        "later": [t for t in turns if t.number > item.turn_number],
        "diff": correction if correction and correction.similarity >= ALIKE else None,
        "rewrites": list(zip([r for r in rewrites if r.text in texts], diffs[len(own) :], strict=True)),
    }


def _diffs(reply: str, texts: Sequence[str]) -> list[WordDiff]:
    return [word_diff(reply, text) for text in texts]


async def decide(visit: Visit) -> web.StreamResponse:
    """Store a decision with its consequences and its audit entry, then go to the next item."""
    wanted, page = _filter(visit.fields), visit.fields.whole("page", 0, 10_000)
    name = visit.fields.choice("decision", DECISIONS)
    if not name:
        raise ChoiceError
    if name in NEEDS_REASON and not visit.fields.text("reason"):
        raise ReasonMissingError
    # The audit log says why of everything; of what goes without saying, what the button means.
    reason = visit.fields.text("reason") or visit.words.t(f"decision_why.{name}")
    decision = review.Decision(
        state=DECISIONS[name],
        seen_state=visit.fields.choice("seen", STATES),
        reason=reason,
        feedback_class=_new_class(visit.fields) if name == "relabel" else None,
    )
    feedback_id = visit.id()
    async with visit.store.begin() as tx:
        following = _after(await review.queue(tx, wanted, limit=PAGE, offset=page * PAGE), feedback_id)
        if name in NEEDS_READING and not (await review.item(tx, feedback_id)).readable:
            raise UnreadableError
        before = await review.decide(tx, feedback_id, decision, visit.actor)
        await visit.panel.actions.feedback_reviewed(tx, feedback_id, decision.state)
        await audit.record(tx, _act(visit.actor, name, feedback_id, decision, before))
    extra = {"done": feedback_id} | ({"item": following} if following and name != "reopen" else {})
    extra |= {"item": feedback_id} if name == "reopen" else {}
    return visit.to(f"{PREFIX}/feedback?{_query(wanted, page)}&{urlencode(extra)}")


def _act(actor: str, name: str, feedback_id: UUID, decision: review.Decision, before: object) -> audit.Act:
    was = dict(before) if isinstance(before, dict) else {}
    now = asdict(decision)
    del now["seen_state"]
    return audit.Act(
        actor,
        f"feedback:review:{name}",
        f"feedback:{feedback_id}",
        decision.reason,
        before=was,
        after=now,
        detail={"from": decision.seen_state, "to": decision.state, "class": decision.feedback_class},
    )


def _after(rows: object, feedback_id: UUID) -> UUID | None:
    ids = [row.id for row in rows] if isinstance(rows, list) else []
    if feedback_id not in ids:
        return None
    place = ids.index(feedback_id)
    return next(iter([*ids[place + 1 :], *ids[:place]]), None)


def _new_class(fields: Fields) -> str:
    chosen = fields.choice("new_class", CLASSES)
    if not chosen:
        raise ChoiceError
    return chosen


def _channel(fields: Fields) -> str:
    name = fields.text("channel")
    if name and not _CHANNEL.fullmatch(name):
        raise ChoiceError
    return name


def _filter(fields: Fields) -> ReviewFilter:
    return ReviewFilter(
        state=fields.choice("state", STATES, "new"),
        feedback_class=fields.choice("class", CLASSES),
        kind=fields.choice("kind", KINDS),
        language=fields.choice("language", LANGUAGES),
        channel=_channel(fields),
        readable=fields.choice("readable", ("yes", "no")),
    )


def _query(wanted: ReviewFilter, page: int) -> str:
    values = asdict(wanted)
    values["class"] = values.pop("feedback_class")
    chosen = {name: values[name] for name in FILTERS if values[name] or name == "state"}
    return urlencode(chosen | ({"page": page} if page else {}))


def _uuid(fields: Fields, name: str) -> UUID | None:
    value = fields.text(name)
    try:
        return UUID(value) if value else None
    except ValueError as error:
        raise ChoiceError from error
