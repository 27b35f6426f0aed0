"""The figures of the first page: queues, work under way, votes, rates per checkpoint, what asking yields, model servers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import text

from app.store.engine import Tx
from app.store.panel.reading import read_all, read_one


@dataclass(frozen=True, slots=True)
class Queue:
    """One of the learner's queues: jobs waiting, running, failed within a day; age of the oldest waiting one in seconds."""

    name: str
    queued: int
    running: int
    failed: int
    oldest_s: float | None


@dataclass(frozen=True, slots=True)
class Job:
    """A job that waits or runs, with its progress figures."""

    id: UUID
    kind: str
    queue: str
    state: str
    attempts: int
    progress: Mapping[str, object]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages waiting to be handled, to be sent, and for a person's next word; updates set aside, and today's conversation."""

    inbox_waiting: int
    inbox_oldest_s: float | None
    outbox_due: int
    held: int
    set_aside: int
    turns_day: int
    people_day: int
    to_review: int
    first_token_ms: float | None


@dataclass(frozen=True, slots=True)
class VoteDay:
    """Votes now in force that were cast on one day (UTC)."""

    day: date
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class Rating:
    """Votes now in force on the turns that one checkpoint served; without a checkpoint: the base model."""

    checkpoint_id: UUID | None
    name: str | None
    scope: str | None
    state: str | None
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions how a reply was, by why they were asked, and how many of them were answered."""

    reason: str
    asked: int
    answered: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Message parts that were sent within a day where the platform tells how far they came, and how many arrived."""

    sent: int
    arrived: int


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model server, whether its isolation probe passed, and which adapters it has."""

    id: UUID
    url: str
    base_id: str | None
    probe_state: str
    probe_detail: Mapping[str, object]
    probed_at: datetime | None
    seen_at: datetime | None
    loaded: int


_QUEUES = text("""
    select names.name,
           count(*) filter (where j.state = 'queued') as queued,
           count(*) filter (where j.state = 'running') as running,
           count(*) filter (where j.state = 'failed' and j.finished_at > now() - interval '1 day') as failed,
           extract(epoch from now() - min(coalesce(j.due_at, j.created_at)) filter (where j.state = 'queued'
               and coalesce(j.due_at, j.created_at) <= now()))::float as oldest_s
    from unnest(array['score', 'train', 'evaluate', 'release']) with ordinality as names(name, place)
    left join jobs j on j.queue = names.name and (j.state in ('queued', 'running') or j.finished_at > now() - interval '1 day')
    group by names.name, names.place order by names.place
""")

_JOBS = text("""
    select id, kind, queue, state, attempts, progress, created_at from jobs
    where state in ('queued', 'running') order by state desc, created_at limit :limit
""")

_TRAFFIC = text("""
    select (select count(*) from inbox where state in ('stored', 'claimed')) as inbox_waiting,
           (select extract(epoch from now() - min(received_at))::float from inbox where state in ('stored', 'claimed'))
               as inbox_oldest_s,
           (select count(*) from outbox where state in ('due', 'sending')) as outbox_due,
           (select count(*) from outbox where state = 'held') as held,
           (select count(*) from inbox where state in ('quarantined', 'dead')) as set_aside,
           (select count(*) from turns where created_at > now() - interval '1 day') as turns_day,
           (select count(distinct person_id) from turns where created_at > now() - interval '1 day') as people_day,
           (select count(*) from feedback where review_state = 'new') as to_review,
           (select percentile_cont(0.5) within group (order by first_token_ms) from turns
               where created_at > now() - interval '1 day') as first_token_ms
""")

_VOTE_DAYS = text("""
    select days.day::date as day,
           count(v.id) filter (where v.value = 1) as up,
           count(v.id) filter (where v.value = -1) as down
    from generate_series((now() at time zone 'utc')::date - (:days - 1), (now() at time zone 'utc')::date, interval '1 day')
        as days(day)
    left join votes v on (v.changed_at at time zone 'utc')::date = days.day::date and v.value <> 0
    group by days.day order by days.day
""")

_RATINGS = text("""
    select t.checkpoint_id, c.name, c.scope, c.state,
           count(*) filter (where v.value = 1) as up, count(*) filter (where v.value = -1) as down
    from votes v join turns t on t.id = v.turn_id left join checkpoints c on c.id = t.checkpoint_id
    where v.value <> 0
    group by t.checkpoint_id, c.name, c.scope, c.state
    order by t.checkpoint_id is not null, count(*) desc limit :limit
""")

_ASKED = text("""
    select reason, count(*) as asked, count(answered_at) as answered from asks
    where asked_at > now() - make_interval(days => :days)
    group by reason order by asked desc, reason
""")

_ARRIVALS = text("""
    select count(*) as sent, count(o.delivery) as arrived
    from bots b join chats c on c.bot_id = b.id join outbox o on o.chat_id = c.id
    where b.channel = any(:channels) and o.state in ('sent', 'failed') and o.sent_at > now() - interval '1 day'
""")

_SERVERS = text("""
    select s.id, s.url, s.base_id, s.probe_state, s.probe_detail, s.probed_at, s.seen_at,
           (select count(*) from loaded_adapters l where l.server_id = s.id and l.state = 'ready') as loaded
    from model_servers s order by s.created_at
""")


async def queues(tx: Tx) -> Sequence[Queue]:
    """Return all four queues, the empty ones too."""
    return await read_all(tx, Queue, _QUEUES)


async def jobs(tx: Tx, limit: int) -> Sequence[Job]:
    """Return jobs that run, then those that wait, oldest first."""
    return await read_all(tx, Job, _JOBS.bindparams(limit=limit))


async def traffic(tx: Tx) -> Traffic:
    """Return the figures of the road."""
    found = await read_one(tx, Traffic, _TRAFFIC)
    return found or Traffic(0, None, 0, 0, 0, 0, 0, 0, None)


async def vote_days(tx: Tx, days: int) -> Sequence[VoteDay]:
    """Return the last `days` days, the empty ones too, oldest first."""
    return await read_all(tx, VoteDay, _VOTE_DAYS.bindparams(days=days))


async def ratings(tx: Tx, limit: int) -> Sequence[Rating]:
    """Return votes per checkpoint: the base first, then the most voted."""
    return await read_all(tx, Rating, _RATINGS.bindparams(limit=limit))


async def asked(tx: Tx, days: int) -> Sequence[Asked]:
    """Return what asking yielded in the last `days`, the commonest reason first; nothing where nobody was asked."""
    return await read_all(tx, Asked, _ASKED.bindparams(days=days))


async def arrivals(tx: Tx, channels: Collection[str]) -> Arrivals | None:
    """Return how much of what was sent on `channels` within a day arrived, by their word; None where nothing was sent."""
    found = await read_one(tx, Arrivals, _ARRIVALS.bindparams(channels=list(channels))) if channels else None
    return found if found and found.sent else None


async def model_servers(tx: Tx) -> Sequence[ModelServer]:
    """Return every model server that was ever seen."""
    return await read_all(tx, ModelServer, _SERVERS)
