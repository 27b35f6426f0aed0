"""Messages, edits and votes in any order, against a reference of a page (`tests/support/reference.py`).

People in two private chats and a group act through the Bot API server; the gateway, its database and the road are the real
ones, the model server is the instant one. After every step the chats show what the reference says, and the rows agree.
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer, User
from tests.fakes.telegram.messages import Message
from tests.fakes.telegram.updates import Update
from tests.support.reference import STOPPED, Talk
from tests.support.scale import SCALE
from tests.support.telegram_world import PATIENCE_S, World, without_pace

EXAMPLES, STEPS = 5, 12
LABEL = {1: "👍 ✓", -1: "👎 ✓", 0: ""}
_TURNS = """
    select c.external_id as chat, t.state, coalesce(v.value, 0) as vote, v.source,
           (select count(*) from vote_events e where e.turn_id = t.id) as changes, t.sibling_of is not null as again
    from turns t join chats c on c.id = t.chat_id left join votes v on v.turn_id = t.id
    where c.external_id = any(:chats) order by t.number
"""
_CORRECTIONS = """
    select c.external_id as chat, count(*) as n from feedback f join turns t on t.id = f.turn_id join chats c on c.id = t.chat_id
    where c.external_id = any(:chats) and f.kind = 'correction' group by 1
"""


PRIVATE, PLACES = ("ann", "bob"), ("ann", "bob", "group")
places, chooser = st.sampled_from(PLACES), st.randoms(use_true_random=True)


@dataclass(frozen=True)
class Ballot:
    """One vote: by a button or a reaction, in a group also by somebody whose vote does not count."""

    by: str
    value: int
    voter: str


ballots = st.builds(
    Ballot, st.sampled_from(["button", "reaction"]), st.sampled_from([1, -1, 0]), st.sampled_from(PRIVATE)
)


class Chatting(RuleBasedStateMachine):
    """Each example has people and a group of its own in the world that all of them share."""

    world: ClassVar[World]

    @initialize(repeating=chooser)
    def arrive(self, repeating: random.Random) -> None:
        self.words, self.repeating = 0, repeating
        self.world.do(self._arrive)
        for name in PRIVATE:
            self.world.do(self.people[name].start)
        self.world.do(lambda: [self._say(where, random.Random(0)) for where in PLACES])

    def _arrive(self) -> None:
        server = self.world.server
        self.people = {name: server.user(name.title()) for name in PRIVATE}
        self.group = server.group("Kitchen", *self.people.values())
        self.group.promote_bot()
        self.chats = {name: person.chat for name, person in self.people.items()} | {"group": self.group.chat}
        self.talks = {name: Talk(private=name != "group") for name in PLACES}
        self.seen_before = len(server.world.queue.sent)

    # ------------------------------------------------------------------------------------------------------ what happens

    @rule(where=places, choose=chooser)
    def say(self, where: str, choose: random.Random) -> None:
        self.world.do(lambda: self._say(where, choose))

    @rule(choose=chooser, order=st.permutations(PLACES))
    def say_everywhere_in_any_order(self, choose: random.Random, order: list[str]) -> None:
        """Updates of several chats arrive together, of each chat in its order."""

        def all_of_them() -> None:
            for where in order:
                self._say(where, choose)
            for where in reversed(order):
                self._say(where, choose)

        self.world.do(all_of_them)

    @rule(where=places, choose=chooser, newest=st.booleans())
    def edit(self, where: str, choose: random.Random, newest: bool) -> None:
        talk = self.talks[where]
        if not talk.last:
            return
        message = talk.last.message if newest else choose.choice(talk.replies).message
        words = choose.choice([f"words {self.words} again", *([talk.last.words] if talk.last.kept else [])])
        self.words += 1
        talk.edit(message, words)
        asker = self.people[talk.last.asker]
        self.world.do(lambda: asker.edit(message, words if talk.private else f"@mentee_test_bot {words}"))

    @rule(where=places, choose=chooser, ballots=st.lists(ballots, min_size=2, max_size=6))
    def vote(self, where: str, choose: random.Random, ballots: list[Ballot]) -> None:
        """Somebody votes on one of the newest replies and changes their mind, without waiting for anything."""
        talk = self.talks[where]
        reply, shown = choose.choice(list(zip(talk.replies, self._shown(where), strict=True))[-2:])
        row = shown.buttons[0].data.split(":")[1]

        def cast() -> None:
            for ballot in ballots:
                voter = ballot.voter if where == "group" else where
                if ballot.by == "button":
                    talk.vote(reply, voter, ballot.value, "button")
                    self.people[voter].press_data(shown, f"v:{row}:{ {1: 'u', -1: 'd', 0: '0'}[ballot.value] }")
                else:
                    talk.react(reply, voter, ballot.value)
                    self.people[voter].react(shown, *{1: "👍", -1: "👎", 0: choose.choice(["", "❤"])}[ballot.value])

        self.world.do(cast)

    @rule(where=st.sampled_from(PRIVATE), thumb=st.sampled_from([("👍", 1), ("👎", -1)]))
    def vote_in_words(self, where: str, thumb: tuple[str, int]) -> None:
        talk = self.talks[where]
        if not talk.last:
            return
        talk.vote(talk.last, where, thumb[1], "words")
        self.world.do(lambda: self.people[where].say(thumb[0]))

    @rule(where=places, asker=st.sampled_from(PRIVATE), command=st.sampled_from(["/retry", "/new", "/stop"]))
    def command(self, where: str, asker: str, command: str) -> None:
        talk, asker = self.talks[where], asker if where == "group" else where
        if command == "/retry" and talk.last and not talk.last.kept:
            return  # of a conversation that is over the words go within a minute: either answer is right
        if command == "/retry":
            talk.retry(asker)
        if command == "/new":
            talk.new()
        self._command(where, asker, command)

    @rule(where=places, asker=st.sampled_from(PRIVATE))
    def stop_a_reply(self, where: str, asker: str) -> None:
        if self.talks[where].corrected:
            return  # what is said now is a correction and gets no reply
        asker = asker if where == "group" else where
        self.world.model.next(faults.Slow(first_token_s=PATIENCE_S))
        self.words += 1
        message = self.world.do(lambda: self._write(where, asker, f"words {self.words}"))
        self.talks[where].say_and_stop(asker, message, f"words {self.words}")
        self.world.run(self.world.until_generating(self.chats[where]))
        self._command(where, asker, "/stop")

    @rule(where=places, choose=chooser)
    def say_while_it_restarts(self, where: str, choose: random.Random) -> None:
        self.world.run(self.world.stop())
        self.world.do(lambda: self._say(where, choose))
        self.world.run(self.world.start())

    # ---------------------------------------------------------------------------------------------------- what must hold

    @invariant()
    def it_is_as_the_reference_says(self) -> None:
        if not hasattr(self, "talks"):
            return
        self.world.do(self._repeat)
        self.world.run(self.world.settle())
        gateway = self.world.gateway
        assert gateway
        chats = [str(chat.chat_id) for chat in self.chats.values()]
        turns = self.world.run(gateway.rows(_TURNS, chats=chats))
        corrections = {r["chat"]: r["n"] for r in self.world.run(gateway.rows(_CORRECTIONS, chats=chats))}
        for where, talk in self.talks.items():
            chat = self.chats[where]
            shown = self._shown(where)
            assert [m.text for m in shown] == [reply.shown for reply in talk.replies], where
            rows = [row for row in turns if row["chat"] == str(chat.chat_id)]
            assert [(r["state"], r["vote"], r["changes"], r["again"]) for r in rows] == [
                (reply.state, reply.vote, reply.changes, reply.first is not None) for reply in talk.replies
            ], where
            assert corrections.get(str(chat.chat_id), 0) == talk.corrections, where
            for message, reply in zip(shown, talk.replies, strict=True):
                marked = [b.text for b in message.buttons if "✓" in b.text]
                assert not reply.kept or marked == [LABEL[reply.vote]] * bool(reply.vote), where
        ends = self.world.run(gateway.rows("select distinct state from inbox"))
        assert {row["state"] for row in ends} <= {"done", "refused"}

    # ----------------------------------------------------------------------------------------------------------- helpers

    def _say(self, where: str, choose: random.Random) -> None:
        asker = choose.choice(PRIVATE) if where == "group" else where
        self.words += 1
        words = f"words {self.words}"
        self.talks[where].say(asker, self._write(where, asker, words), words)

    def _write(self, where: str, asker: str, words: str) -> Message:
        person: User = self.people[asker]
        return person.say(words) if where != "group" else person.say(f"@mentee_test_bot {words}", self.chats[where])

    def _command(self, where: str, asker: str, command: str) -> None:
        person = self.people[asker if where == "group" else where]
        self.world.do(lambda: person.say(command, self.chats[where]))

    def _repeat(self) -> None:
        """Any earlier update comes once more, as it was or wrapped anew around the same message or press."""
        server, update = self.world.server, self.repeating.choice(self._mine())
        wrapped = {name: value for name, value in update.body.items() if name != "update_id"}
        if self.repeating.random() < 0.5 and not wrapped.keys() & {"message_reaction", "my_chat_member"}:
            server.emit(wrapped, update.queue)
        else:
            server.deliver_again(update)

    def _shown(self, where: str) -> list[Message]:
        """The replies that a chat shows; everything else that the bot writes there are its notices."""
        return [m for m in self.chats[where].from_bot if m.text.startswith("You said: ") or m.text == STOPPED]

    def _mine(self) -> list[Update]:
        numbers = {chat.chat_id for chat in self.chats.values()}
        queue = self.world.server.world.queue
        all_of_them = [*queue.sent[self.seen_before :], *queue.pending]
        return [update for update in all_of_them if _chat_of(update.body) in numbers]


def _chat_of(body: dict[str, Any]) -> int:
    happened = next(value for name, value in body.items() if name != "update_id")
    return int((happened.get("message") or happened)["chat"]["id"])


@pytest.mark.timeout(120 * SCALE)
async def test_whatever_people_do_the_chats_show_it_once_and_the_votes_count_once(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(asyncio.get_running_loop(), telegram_server, model, database_url)
    machine = type("Machine", (Chatting,), {"world": world})
    bounds = settings(
        max_examples=EXAMPLES * SCALE,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    with without_pace(monkeypatch):
        await world.start()
        try:
            await asyncio.to_thread(run_state_machine_as_test, machine, settings=bounds)
        finally:
            await world.stop()
    assert model.calls, "nobody ever asked anything"
