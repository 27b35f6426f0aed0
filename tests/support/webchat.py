"""The web chat with real intake, lanes, outbox and server, and a short scripted dialogue where the real one would be.

The script answers a message by streaming it back (or what `answers` says), keeps votes, consents and corrections in
their real tables, and knows /new, /stop, /help and /export: enough for the page to show everything it can show.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from aiohttp import web
from aiohttp.test_utils import TestServer

from app.config import Settings
from app.domain.consent import Purpose
from app.domain.event import MessageEvent, PressEvent
from app.domain.feedback import Classification, FeedbackClass
from app.domain.outgoing import Button, Content
from app.domain.person import Account, Chat
from app.domain.press import Press, parse, short_id
from app.domain.turn import BaseIdentity, Origin, Outcome, Provenance, Turn
from app.services.deliver import Deliverer
from app.services.intake import Intake
from app.services.lanes import LaneRunner, Work
from app.services.stream import Item, Streams
from app.store import StatementPool, Store, Tx, feedback, memory, outbox, people, sessions, turns, votes
from app.web import middleware
from bots.web import WebChannel, create_web_chat

SECRET = b"a key for the digests of a test run"
MADE = Provenance(BaseIdentity("smollm2-135m", "r1", "t1", "c1"), "1", (), {})
ANSWER = "I can help with **that**. What would you like to know?"


@dataclass
class WebChat:
    """A running web chat. `answers` maps a message to its reply; a `gate` that is not set holds replies back halfway."""

    store: Store
    streams: Streams
    settings: Settings
    bot_id: UUID
    channel: WebChannel
    root: web.Application
    url: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    due: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, work: Work) -> None:
        """Do what one stored update says."""
        for event in self.channel.parse(work.claimed.body):
            assert isinstance(event, MessageEvent | PressEvent)
            async with self.store.begin() as tx:
                account = await people.account_of(tx, self.bot_id, event.sender)
                chat = await people.chat_of(tx, self.bot_id, event.chat, account.person_id)
            if isinstance(event, PressEvent):
                await self.pressed(event, chat, account)
            elif event.command:
                await self.command(event, chat)
            elif event.reply_to:
                await self.corrected(event, chat, account)
            else:
                await self.reply(event.text, chat, account, work.claimed.id, event.message_id)
        self.due.set()

    async def command(self, event: MessageEvent, chat: Chat) -> None:
        if event.command == "stop":
            self.stopped.set()
            return
        async with self.store.begin() as tx:
            if event.command == "new":
                await sessions.end(tx, chat.id)
                await outbox.put(tx, chat.id, Content("A fresh conversation. What I remember about you stays."))
            elif event.command == "export":
                await outbox.put(tx, chat.id, Content('{"everything": []}', file_name="mentee.json"), kind="file")
            else:
                await outbox.put(tx, chat.id, Content(f"You said **/{event.command}**."))

    async def reply(
        self,
        text: str,
        chat: Chat,
        account: Account,
        inbox_id: int | None,
        message_id: str | None,
        sibling: Turn | None = None,
    ) -> None:
        async with self.store.begin() as tx:
            session, _ = await sessions.current(tx, chat, account.person_id, sessions.Limits(30, 24))
            if session.fresh:
                await sessions.add(tx, session)
            new = turns.NewTurn(
                inbox_id, session.id, chat.id, account.person_id, text, message_id, Origin(), sibling and sibling.id
            )
            turn = await turns.begin(tx, new, MADE)
        self.streams.publish(chat.id, Item(turn.id))
        answer = self.answers.get(text, ANSWER)
        state = await self._stream(chat.id, turn.id, answer)
        shown = answer[: len(answer) // 2] if state == "stopped" else answer
        async with self.store.begin() as tx:
            await turns.finish(tx, turn.id, Outcome(state, shown, "stop", first_token_ms=320.0, duration_ms=1800.0))
            await outbox.put_part(tx, chat.id, turn.id, 0, Content(shown, buttons_of(turn.id)))
        self.streams.publish(chat.id, Item())
        self.due.set()

    async def _stream(self, chat_id: UUID, turn_id: UUID, answer: str) -> str:
        self.stopped.clear()
        for end in range(0, len(answer), 8):
            self.streams.publish(chat_id, Item(turn_id, answer[:end]))
            await asyncio.sleep(0.01)
            if end > len(answer) // 2 and not self.gate.is_set():
                waits = [asyncio.create_task(self.gate.wait()), asyncio.create_task(self.stopped.wait())]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
            if self.stopped.is_set():
                return "stopped"
        return "done"

    async def corrected(self, event: MessageEvent, chat: Chat, account: Account) -> None:
        async with self.store.begin() as tx:
            turn = await turns.by_message(tx, chat.id, event.reply_to or "")
            assert turn is not None
            sure = Classification(FeedbackClass.STYLE, 0.9, "rule", "how_to_answer")
            new = feedback.NewFeedback(
                turn.id, account.person_id, "correction", event.text, event.message_id, {}, "en", {}, sure
            )
            kept = await feedback.add(tx, new)
            line = await memory.add(
                tx, account.person_id, kind="preference", text=event.text, checker=None, feedback_id=kept
            )
            undo = Button("Undo", Press("m", short_id(line), "undo").data())
            await outbox.put(tx, chat.id, Content(f"I'll keep this in mind: “{event.text}”", ((undo,),)))

    async def pressed(self, event: PressEvent, chat: Chat, account: Account) -> None:
        press = parse(event.data)
        async with self.store.begin() as tx:
            if press.verb == "s":
                await self._consent(tx, press, account)
            elif press.verb == "v":
                turn = await turns.access_turn(tx, account.person_id, press.row)
                value = {"u": 1, "d": -1, "0": 0}[press.choice]
                await votes.cast_vote(tx, turn.id, account.person_id, value, "button")
                await outbox.put_part(
                    tx, chat.id, turn.id, 0, Content(turn.reply_text or "", buttons_of(turn.id, value))
                )
            elif press.verb == "m":
                await memory.set_state(tx, account.person_id, press.row, "undone")
        if press.verb == "t":
            async with self.store.begin() as tx:
                old = await turns.access_turn(tx, account.person_id, press.row)
            await self.reply(old.user_text or "", chat, account, None, None, old)
        self.streams.publish(chat.id, Item())
        await self.channel.answer_press(event.press_id, "Noted" if press.verb == "v" else "")

    async def _consent(self, tx: Tx, press: Press, account: Account) -> None:
        event = "given" if press.choice == "1" else "withdrawn"
        await people.record_consent(
            tx,
            account.person_id,
            Purpose(press.subject),
            event,
            notice="the notice",
            language="en",
            channel="web",
            evidence="button",
        )


def buttons_of(turn_id: UUID, vote: int = 0) -> tuple[tuple[Button, ...], ...]:
    """The rows under a reply: votes as every channel gets them, and after a 👎 the question why."""
    turn = short_id(turn_id)
    first = (Button("👍", Press("v", turn, "u").data()), Button("👎", Press("v", turn, "d").data()))
    if vote >= 0:
        return (first,)
    why = {"fact": "Wrong fact", "style": "Style or format", "once": "Just this time", "topic": "I changed the subject"}
    return (first, tuple(Button(label, Press("r", turn, key).data()) for key, label in why.items()))


@asynccontextmanager
async def running_web_chat(
    store: Store, environment: Mapping[str, object] | None = None, *, identity: str = "Mentee"
) -> AsyncIterator[WebChat]:
    """Serve the web chat on a free port of this machine until the block ends."""
    settings = Settings(_env_file=None, **(environment or {}))
    streams = Streams()
    async with store.begin() as tx:
        bot_id = await people.ensure_bot(tx, "web", "web")
        await people.add_identity(
            tx, bot_id, name=identity, system_prompt="Help.", privacy_notice="Nothing leaves.", created_by="test"
        )
    owner = uuid4().hex

    async def handle(work: Work) -> None:
        await chat.handle(work)

    lanes = LaneRunner(store, handle, owner)
    pool = StatementPool(store.engine.url.render_as_string(hide_password=False), size=4)
    routes, channel = create_web_chat(store, pool, streams, Intake(pool, SECRET, lanes).door(bot_id, "web"), settings)
    root = web.Application()
    middleware.install(root)
    root.add_subapp("/chat", routes)
    chat = WebChat(store, streams, settings, bot_id, channel, root)
    chat.gate.set()
    deliverer = Deliverer(store, {bot_id: channel}, owner, chat.due)
    server = TestServer(root, host="127.0.0.1")
    await server.start_server()
    chat.url = str(server.make_url("")).rstrip("/")
    working = [asyncio.create_task(lanes.run()), asyncio.create_task(deliverer.run())]
    try:
        yield chat
    finally:
        await server.close()
        await lanes.stop(2)
        await deliverer.stop(2)
        await pool.close()
        # They end by themselves once stopped; a cancelled commit would spoil the connection for the next test.
        await asyncio.wait_for(asyncio.gather(*working), 5)
