"""What must hold after a simulated day: asked of the database, of what the platforms saw, and of what the gateways wrote.

Each check returns what breaks it, one line each; none where it holds. A line names rows and people by number, never words.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import aiohttp
import asyncpg

from app.bench.day_people import BUTTON, MARK, SAID, OnTelegram, Somebody, mark
from app.bench.day_world import World
from app.domain.press import long_id
from app.store.inbox import MAX_ATTEMPTS

SLACK_S = 2.5
"""A part is shown this long before its receipt is stored, at most, while everything works."""
_MARKS = re.compile(rf"{MARK}\d{{4}}x")
ACCOUNTED_FOR = frozenset(
    {"telegram:platform:away", "telegram:menu:refused", "whatsapp:account:unknown", "whatsapp:list:failed", "relay:store:away"}
)  # fmt: skip
"""What may be logged as an error while a platform or the database is away."""
AFTERWARDS_S = 30.0
ENDED = frozenset({"done", "refused", "quarantined"})
Row = Mapping[str, Any]

_INBOX = (
    "select i.id, i.lane, i.state, i.error, i.body, b.channel from inbox i join bots b on b.id = i.bot_id order by i.id"
)
_TURNS = """
    select t.id, t.number, t.state, t.inbox_id, c.external_id as chat, b.channel,
           coalesce(v.value, 0) as vote
    from turns t join chats c on c.id = t.chat_id join bots b on b.id = c.bot_id left join votes v on v.turn_id = t.id
    order by t.number
"""
_OUTBOX = """
    select o.id, coalesce(o.turn_id, a.turn_id) as turn_id, o.part, o.state, o.error, o.provider_message_id,
           c.external_id as chat, b.channel
    from outbox o join chats c on c.id = o.chat_id join bots b on b.id = c.bot_id
    left join asks a on a.outbox_id = o.id
"""
_CORRECTIONS = "select evidence from feedback where kind = 'correction'"


@dataclass(frozen=True, slots=True)
class Shown:
    """One message as somebody sees it at the end: its number there, when it first came, its text."""

    id: str
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the checks look at."""

    people: Sequence[Somebody]
    world: World
    inbox: Sequence[Row]
    turns: Sequence[Row]
    outbox: Sequence[Row]
    corrections: frozenset[str]
    metrics: Sequence[str]

    def shown(self, somebody: Somebody) -> list[Shown]:
        """Return what the bot wrote to somebody, oldest first."""
        if isinstance(somebody, OnTelegram):
            return [Shown(str(m.message_id), m.date, m.text) for m in somebody.user.chat.from_bot]
        sent_at = self.world.twilio.sent_at
        return [Shown(sent.sid, sent_at.get(sent.sid, 0.0), sent.body) for sent in somebody.person.got]

    def turns_of(self, somebody: Somebody) -> list[Row]:
        """Return somebody's turns in their order."""
        return [turn for turn in self.turns if turn["chat"] == address(somebody)]


async def gather(world: World, people: Sequence[Somebody]) -> Evidence:
    """Collect the evidence from the database and the gateways."""
    connection = await asyncpg.connect(world.databases.database_url, timeout=10)
    try:
        found = [await connection.fetch(query) for query in (_INBOX, _TURNS, _OUTBOX)]
        corrections = frozenset(str(row["evidence"]) for row in await connection.fetch(_CORRECTIONS))
    finally:
        await connection.close()
    async with aiohttp.ClientSession() as http:
        metrics = []
        for gateway in world.gateways:
            async with http.get(f"{gateway.url}/metrics") as answer:
                metrics.append(await answer.text())
    inbox, turns, outbox = [[dict(row) for row in rows] for rows in found]
    return Evidence(people, world, inbox, _with_words(turns, inbox), outbox, corrections, metrics)


def _with_words(turns: Sequence[dict[str, Any]], inbox: Sequence[Row]) -> Sequence[Row]:
    """Return the turns with the words that each answers: its update's own, else (asked again) those of the turn before.

    The column itself is emptied when a conversation ends that nobody allowed to remember. A thumb that was swiped onto a
    second copy, which nobody knows, is a message on WhatsApp.
    """
    said = {row["id"]: _words(row) or (row["channel"] == "whatsapp" and _text(row)) for row in inbox}
    before: dict[str, str] = {}
    for turn in turns:
        before[turn["chat"]] = turn["words"] = said.get(turn["inbox_id"]) or before.get(turn["chat"], "")
    return turns


def address(somebody: Somebody) -> str:
    """Return the platform's name of somebody's chat."""
    return str(somebody.user.user_id) if isinstance(somebody, OnTelegram) else somebody.person.address


def every_update_is_there_once(seen: Evidence) -> Iterator[str]:
    """Whatever a platform handed over is in the inbox, once, however often it came."""
    kept = Counter(_names(row) for row in seen.inbox)
    yield from (f"stored {times} times: {name}" for name, times in kept.items() if times > 1)
    telegram = {f"telegram {u.update_id}" for u in seen.world.telegram.world.queue.sent}
    twilio = {f"whatsapp {one.fields['MessageSid']} received" for one in seen.world.twilio.inbound}
    yield from (f"lost: {name}" for name in sorted((telegram | twilio) - kept.keys()))


def every_update_ended(seen: Evidence) -> Iterator[str]:
    """Nothing waits. Given up, with a word to its person, is only what so many outages cut off as there are tries."""
    for row in seen.inbox:
        cut_off = row["error"] == "gave_up" and len(seen.world.trouble.cuts) >= MAX_ATTEMPTS
        if row["state"] not in ENDED and not (row["state"] == "dead" and cut_off):
            yield f"update {row['id']}: {row['state']} {row['error'] or ''}"


def every_message_was_answered_or_was_a_correction(seen: Evidence) -> Iterator[str]:
    """A message led to one turn, or to one correction, and never to both; none but what came too late was turned away."""
    turns = Counter(turn["inbox_id"] for turn in seen.turns)
    yield from (f"update {inbox}: {times} turns" for inbox, times in turns.items() if times > 1)
    for row in seen.inbox:
        if row["state"] not in ENDED or row["error"] == "outlived" or not _asks(row):
            continue
        found = turns[row["id"]] + (f"inbox:{row['id']}" in seen.corrections)
        if found != 1:
            yield f"update {row['id']}: {found} effects"


def every_turn_has_one_final_reply(seen: Evidence) -> Iterator[str]:
    """Every turn ended, and its words are shown as often as it was asked: once, or twice where an answer was lost."""
    yield from (f"turn {t['number']}: {t['state']}" for t in seen.turns if t["state"] in {"waiting", "generating"})
    for somebody in seen.people:
        wanted = Counter(f"{SAID}{t['words']}" for t in seen.turns_of(somebody) if t["state"] == "done")
        by_text: dict[str, list[Shown]] = defaultdict(list)
        for shown in seen.shown(somebody):
            by_text[shown.text].append(shown)
        for text, times in wanted.items():
            copies = by_text[text]
            if len(copies) < times:
                yield f"person {somebody.acts.number}: {times - len(copies)} replies missing"
            spare = len(copies) - times
            if spare > sum(_excused(seen, one) for one in copies):
                yield f"person {somebody.acts.number}: {spare} replies too many"


def replies_keep_their_order(seen: Evidence) -> Iterator[str]:
    """In a chat replies are shown in the order of their turns, and turns follow the order in which messages came."""
    for somebody in seen.people:
        turns = seen.turns_of(somebody)
        places: dict[str, list[int]] = defaultdict(list)
        for place, shown in enumerate(seen.shown(somebody)):
            places[shown.text].append(place)
        firsts = [places[f"{SAID}{t['words']}"].pop(0) for t in turns if places.get(f"{SAID}{t['words']}")]
        if any(later < earlier for earlier, later in pairwise(firsts)):
            yield f"person {somebody.acts.number}: a reply before an earlier one"
        if any(b["inbox_id"] < a["inbox_id"] for a, b in pairwise(t for t in turns if t["inbox_id"])):
            yield f"person {somebody.acts.number}: a turn before an earlier message's"


def no_vote_is_lost(seen: Evidence) -> Iterator[str]:
    """The last vote that somebody cast on a reply, or where they were asked how it was, is the one in force."""
    turns = {turn["id"]: turn for turn in seen.turns}
    by_message = {(row["chat"], row["provider_message_id"]): row["turn_id"] for row in seen.outbox}
    for somebody in seen.people:
        wanted: dict[UUID, int] = {}
        for on, value in somebody.acts.votes.items():
            named = long_id(on.removeprefix(BUTTON)) if on.startswith(BUTTON) else None
            turn_id = named or by_message.get((address(somebody), on))
            if turn_id is not None and turn_id in turns:
                wanted[turn_id] = value
            elif not _is_spare_copy(seen, somebody, on):
                yield f"person {somebody.acts.number}: a vote on a message that nobody knows"
        for turn_id, value in wanted.items():
            turn = turns[turn_id]
            if turn["vote"] != value:
                yield f"turn {turn['number']}: the vote is {turn['vote']} and not {value}"


def nobody_reads_anothers_words(seen: Evidence) -> Iterator[str]:
    """What somebody said is shown to nobody else."""
    for somebody in seen.people:
        own = mark(somebody.acts.number)
        others = {word for shown in seen.shown(somebody) for word in _MARKS.findall(shown.text)} - {own}
        if others:
            yield f"person {somebody.acts.number} reads words of {len(others)} others"


def every_part_was_sent_or_has_a_reason(seen: Evidence) -> Iterator[str]:
    """Nothing waits to be sent; what failed says why."""
    for row in seen.outbox:
        if row["state"] not in {"sent", "failed", "withdrawn"} or (row["state"] == "failed" and not row["error"]):
            yield f"part {row['id']}: {row['state']}"


def logs_and_figures_hold_no_words(seen: Evidence) -> Iterator[str]:
    """Neither what people said nor who they are is in a log line or a figure."""
    secret = [MARK, "Person ", "whatsapp:+1555", seen.world.telegram.token, seen.world.twilio.token]
    written = {gateway.log.name: gateway.log.read_text("utf-8", "replace") for gateway in seen.world.gateways}
    written |= {f"figures {number}": text for number, text in enumerate(seen.metrics)}
    for name, text in written.items():
        yield from (
            f"{name} holds kind {number} of what it must not" for number, word in enumerate(secret) if word in text
        )


def every_error_is_accounted_for(seen: Evidence) -> Iterator[str]:
    """No line of level ERROR but those that say that a platform is away, no line that is not one of ours."""
    for gateway in seen.world.gateways:
        for line in gateway.log.read_text("utf-8", "replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                yield f"{gateway.log.name}: a line of somebody else's"
                continue
            if event["level"] in {"error", "critical"} and not _accounted_for(seen, event):
                yield f"{event['event']} {event.get('error', '')} {event.get('where', '').rpartition('/')[2]}"


CHECKS = (
    every_update_is_there_once,
    every_update_ended,
    every_message_was_answered_or_was_a_correction,
    every_turn_has_one_final_reply,
    replies_keep_their_order,
    no_vote_is_lost,
    nobody_reads_anothers_words,
    every_part_was_sent_or_has_a_reason,
    logs_and_figures_hold_no_words,
    every_error_is_accounted_for,
)


def _names(row: Row) -> str:
    """Return what an update is called by its platform."""
    body = bytes(row["body"] or b"")
    if row["channel"] == "telegram":
        return f"telegram {json.loads(body)['update_id']}"
    form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    return f"{row['channel']} {form.get('MessageSid')} {form.get('MessageStatus') or form.get('SmsStatus')}"


def _text(row: Row) -> str:
    """Return the text that an update brings."""
    body = bytes(row["body"] or b"")
    if row["channel"] != "telegram":
        return parse_qs(body.decode()).get("Body", [""])[0]
    update = json.loads(body)
    return str((update.get("message") or update.get("edited_message") or {}).get("text", ""))


def _words(row: Row) -> str:
    """Return the words of somebody's own that an update brings, empty where it brings none."""
    text = _text(row)
    return text if MARK in text else ""


def _asks(row: Row) -> bool:
    """Whether an update is a message with words of somebody's own, which is answered."""
    edited = row["channel"] == "telegram" and "edited_message" in json.loads(bytes(row["body"] or b"{}"))
    return bool(_words(row)) and not edited


def _accounted_for(seen: Evidence, event: Mapping[str, Any]) -> bool:
    at = datetime.fromisoformat(event["at"]).timestamp()
    away = any(since <= at <= until + AFTERWARDS_S for since, until in seen.world.trouble.outages)
    return away and event["event"] in ACCOUNTED_FOR


def _excused(seen: Evidence, shown: Shown) -> bool:
    """Whether the platform's yes to a message may not have become a receipt."""
    trouble = seen.world.trouble
    lost = any(abs(at - shown.at) < SLACK_S for at in trouble.lost)
    return lost or any(since - SLACK_S < shown.at < until + SLACK_S for since, until in trouble.cuts)


def _is_spare_copy(seen: Evidence, somebody: Somebody, message: str) -> bool:
    return any(one.id == message and _excused(seen, one) for one in seen.shown(somebody))
