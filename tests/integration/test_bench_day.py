"""A simulated day, small: what must hold after it holds. And each check sees what it is there for."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from app.bench import day_check
from app.bench.day import Day, Size
from app.bench.day_check import CHECKS, Evidence, Row
from app.bench.day_people import Acts, OnTelegram, OnWhatsApp
from app.bench.day_trouble import LONGEST_S, plan
from app.bench.day_world import Balanced, RandomFaults, Rates, Reporting, Served, Trouble, World
from app.bench.show import Show
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.people import typed
from tests.fakes.twilio import Sent
from tests.support.scale import SCALE

SMALL = Size(people=16, updates=160, seconds=40, outages=7, long_outages=0, scale=0.04)
LONG = Size(people=60, updates=1200, seconds=240, outages=10, long_outages=2, scale=0.08)


@pytest.mark.nightly
@pytest.mark.timeout(900)
async def test_a_day_loses_doubles_and_misplaces_nothing() -> None:
    out = io.StringIO()
    figures = await Day(Show("en", out), 2, LONG if SCALE > 1 else SMALL).run()
    assert len(figures) == len(CHECKS)
    assert [f.key for f in figures if f.verdict != "pass"] == [], out.getvalue()


def test_the_outages_of_a_day_are_drawn_from_its_seed() -> None:
    first, other = plan(1, 14, 2, 200, 0.1), plan(3, 14, 2, 200, 0.1)
    assert first == plan(1, 14, 2, 200, 0.1) != other
    assert len({outage.kind for outage in first}) == 6
    assert sum(outage.seconds >= 60 for outage in first) == 2
    assert all(outage.seconds <= LONGEST_S for outage in first)


# ------------------------------------------------------------------------------------------- each check can break


@pytest.fixture
def seen(tmp_path: Path) -> Evidence:
    """What two people leave behind who said one thing each and voted on the reply."""
    rates, trouble = Rates(), Trouble()
    telegram, twilio = TelegramServer(faults=RandomFaults(Random(1), rates, trouble)), Reporting()
    twilio.hook = Balanced(twilio.token, "https://bench.invalid")
    gateways = [Served(0, {}, tmp_path)]
    gateways[0].log.write_text('{"level": "info", "event": "turn:reply:stored"}\n', "utf-8")
    world = World(1, rates, trouble, telegram, twilio, ModelServer(), None, gateways)  # type: ignore[arg-type]
    bob = OnWhatsApp(world, Acts(0, Random(0)))
    ann = OnTelegram(world, Acts(1, Random(1)))
    said = ann.user.say(ann.acts.words())
    queue = telegram.world.queue
    queue.done(queue.pending[0])
    reply = telegram.world.add_message(ann.user.chat, telegram.world.bot_user, body=typed(f"You said: {said.text}"))
    ann.acts.vote(str(reply.message_id), -1)
    bob.person.got.append(Sent("SM1", "You said: canary0000x 1"))
    update = queue.sent[0]
    chat = str(ann.user.user_id)
    body = f'{{"update_id": {update.update_id}, "message": {{"text": "{said.text}"}}}}'.encode()
    return Evidence(
        people=[bob, ann],
        world=world,
        inbox=[{"id": 1, "lane": "x", "state": "done", "error": None, "body": body, "channel": "telegram"}],
        turns=[
            {"id": "t0", "number": 0, "state": "done", "inbox_id": None, "chat": bob.person.address, "channel": "whatsapp", "vote": 0, "words": "canary0000x 1"},
            {"id": "t1", "number": 1, "state": "done", "inbox_id": 1, "chat": chat, "channel": "telegram", "vote": -1, "words": said.text},
        ],
        outbox=[
            {"id": 1, "turn_id": "t1", "part": 0, "state": "sent", "error": None, "provider_message_id": str(reply.message_id), "chat": chat, "channel": "telegram"}
        ],
        corrections=frozenset(),
        metrics=["mentee_updates_total 1"],
    )  # fmt: skip


def names(seen: Evidence) -> set[str]:
    """Return the checks that something breaks."""
    return {check.__name__ for check in CHECKS if list(check(seen))}


def telegrams(seen: Evidence) -> OnTelegram:
    (found,) = [somebody for somebody in seen.people if isinstance(somebody, OnTelegram)]
    return found


def changed(rows: Sequence[Row], number: int, **more: object) -> list[Row]:
    return [dict(row) | more if place == number else row for place, row in enumerate(rows)]


def shown_twice(seen: Evidence) -> Evidence:
    user = telegrams(seen).user
    seen.world.telegram.world.add_message(
        user.chat, seen.world.telegram.world.bot_user, body=user.chat.from_bot[0].body
    )
    return seen


def to_the_wrong_chat(seen: Evidence) -> Evidence:
    user = telegrams(seen).user
    seen.world.telegram.world.add_message(user.chat, seen.world.telegram.world.bot_user, body=typed("canary0000x 7"))
    return seen


def logged(line: str) -> Callable[[Evidence], Evidence]:
    def write(seen: Evidence) -> Evidence:
        with seen.world.gateways[0].log.open("a") as log:
            log.write(line + "\n")
        return seen

    return write


def before_an_earlier_one(seen: Evidence) -> Evidence:
    earlier = dict(seen.turns[1]) | {"id": "t2", "number": 0, "inbox_id": 2, "words": "canary0001x 9"}
    user = telegrams(seen).user
    seen.world.telegram.world.add_message(
        user.chat, seen.world.telegram.world.bot_user, body=typed("You said: canary0001x 9")
    )
    return replace(seen, turns=[seen.turns[0], earlier, seen.turns[1]])


BREACHES: dict[str, tuple[Callable[[Evidence], Evidence], str]] = {
    "lost": (lambda s: replace(s, inbox=[]), "every_update_is_there_once"),
    "stored twice": (lambda s: replace(s, inbox=[*s.inbox, dict(s.inbox[0]) | {"id": 2, "state": "refused"}]), "every_update_is_there_once"),
    "waits": (lambda s: replace(s, inbox=changed(s.inbox, 0, state="claimed")), "every_update_ended"),
    "dead": (lambda s: replace(s, inbox=changed(s.inbox, 0, state="dead")), "every_update_ended"),
    "no effect": (lambda s: replace(s, turns=changed(s.turns, 1, inbox_id=9)), "every_message_was_answered_or_was_a_correction"),
    "turned away": (lambda s: replace(s, inbox=changed(s.inbox, 0, state="refused"), turns=s.turns[:1]), "every_message_was_answered_or_was_a_correction"),
    "two effects": (lambda s: replace(s, corrections=frozenset({"inbox:1"})), "every_message_was_answered_or_was_a_correction"),
    "generating": (lambda s: replace(s, turns=changed(s.turns, 1, state="generating")), "every_turn_has_one_final_reply"),
    "not shown": (lambda s: replace(s, turns=changed(s.turns, 1, words="canary0001x 8")), "every_turn_has_one_final_reply"),
    "shown twice": (shown_twice, "every_turn_has_one_final_reply"),
    "order": (before_an_earlier_one, "replies_keep_their_order"),
    "vote lost": (lambda s: replace(s, turns=changed(s.turns, 1, vote=0)), "no_vote_is_lost"),
    "vote on nothing": (lambda s: replace(s, outbox=[]), "no_vote_is_lost"),
    "wrong chat": (to_the_wrong_chat, "nobody_reads_anothers_words"),
    "due": (lambda s: replace(s, outbox=changed(s.outbox, 0, state="due")), "every_part_was_sent_or_has_a_reason"),
    "failed": (lambda s: replace(s, outbox=changed(s.outbox, 0, state="failed")), "every_part_was_sent_or_has_a_reason"),
    "word logged": (logged('{"level": "info", "event": "canary0001x 1"}'), "logs_and_figures_hold_no_words"),
    "word counted": (lambda s: replace(s, metrics=['x{name="Person 1"} 1']), "logs_and_figures_hold_no_words"),
    "error": (logged('{"level": "error", "event": "inbox:work:failed", "at": "2026-01-31T00:00:00+00:00"}'), "every_error_is_accounted_for"),
    "error without a cause": (logged('{"level": "error", "event": "relay:store:away", "at": "2026-01-31T00:00:00+00:00"}'), "every_error_is_accounted_for"),
    "foreign line": (logged("Traceback (most recent call last):"), "every_error_is_accounted_for"),
}  # fmt: skip


def test_a_day_on_which_all_went_well_breaks_nothing(seen: Evidence) -> None:
    assert names(seen) == set()


@pytest.mark.parametrize("breach", BREACHES)
def test_a_check_sees_what_breaks_it(seen: Evidence, breach: str) -> None:
    breaks, check = BREACHES[breach]
    assert check in names(breaks(seen))


def test_a_second_copy_is_excused_where_its_answer_was_lost(seen: Evidence) -> None:
    shown_twice(seen)
    seen.world.trouble.lost.append(telegrams(seen).user.chat.from_bot[0].date)
    assert names(seen) == set()


def test_every_check_has_a_breach() -> None:
    assert {check for _, check in BREACHES.values()} == {check.__name__ for check in CHECKS}
    assert day_check.CHECKS is CHECKS
