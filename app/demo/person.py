"""The scripted person: consents, asks, dislikes, says how they want it, judges rewrites, writes an example, goes on talking.

They do what a person could do on their channel and nothing else, and judge what they are shown by their own wish.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from app.demo.generate import Plot, Taught, Wish
from app.demo.installation import DemoError
from app.demo.talk import NOTICE_TIMEOUT_S, POLL_S, Heard, Talker, after, ask, newest, wait_for
from app.domain.consent import Purpose
from app.domain.messages import text as say
from app.domain.press import Press

PURPOSES = (Purpose.MEMORY, Purpose.PERSONAL_TRAINING)
ASKS_FOR_EXAMPLE = (say("en", "ask_example"), say("en", "ask_example_after_no"))
MOST_TURNS = 30
MOST_REWRITES = 12
MOST_WORDS = 80


@dataclass(slots=True)
class Story:
    """What happened: replies so far, rewrites seen, how each example came about."""

    replies: int = 0
    held: int = 0
    conversations: int = 1
    offered: int = 0
    declined: int = 0
    examples: list[str] = field(default_factory=list)


class Person:
    """Somebody with a wish."""

    def __init__(self, talker: Talker, wish: Wish, plot: Plot) -> None:
        self.talker = talker
        self.wish = wish
        self.story = Story()
        self._plot = plot
        self._questions = iter(plot.talk)

    async def consent(self) -> None:
        """Arrive and allow memory and personal training by their switches."""
        await self.talker.arrive()
        for purpose in PURPOSES:
            await allow(self.talker, purpose)

    async def ask(self, question: str | None = None) -> Heard:
        """Ask the next question of their own, or a given one."""
        asked = question or next(self._questions, None)
        if asked is None:
            raise DemoError("the person has nothing left to ask")
        reply = await ask(self.talker, asked)
        self.story.replies += 1
        self.story.held += self.wish.holds(reply.text)
        return reply

    async def new_conversation(self) -> None:
        """Begin afresh."""
        before = await newest(self.talker)
        await self.talker.command("new")
        told = say("en", "new_session")
        await wait_for(self.talker, after(before, lambda m: m.text.startswith(told[:20])), "a new conversation")
        self.story.conversations += 1

    async def teach_by_writing(self) -> None:
        """Dislike one reply, say why, want none of the rewrites, and write the reply themself."""
        reply = await self.ask(self._plot.taught.question)
        before = await newest(self.talker)
        await self.talker.answer_to(reply, self.wish.words)
        await self._settle(before, self._plot.taught, lambda _text: False)

    async def first_words(self) -> Heard:
        """Talk a little, dislike a reply, say why in plain words, and settle on an example, a rewrite if one will do."""
        await self.ask()
        reply = await self.ask(self._plot.taught.question)
        before = await newest(self.talker)
        await self.talker.press(Press("v", str(reply.turn), "d").data(), reply)
        why = await wait_for(self.talker, after(before, lambda m: m.button("r") is not None), "the question why")
        await self.talker.say(self.wish.words)
        await self._settle(why.number, self._plot.taught, self._approves)
        await self.ask()
        return reply

    async def second_words(self) -> None:
        """In another conversation quote a reply, say the same again, and write the reply themself."""
        await self.new_conversation()
        reply = await self.ask(self._plot.planted_taught.question)
        before = await newest(self.talker)
        await self.talker.answer_to(reply, self.wish.words)
        await self._settle(before, self._plot.planted_taught, lambda _text: False)

    async def talk_until(self, done: Callable[[], Awaitable[bool]], per_conversation: int = 4) -> None:
        """Go on talking, conversation after conversation, until `done`.

        Raises:
            DemoError: it never was.
        """
        asked = per_conversation - 1
        for _ in range(MOST_TURNS):
            if await done():
                return
            if asked == per_conversation:
                await self.new_conversation()
                asked = 0
            await self.ask()
            asked += 1
        raise DemoError(f"after {self.story.replies} replies the lesson had not graduated")

    def _approves(self, rewrite: str) -> bool:
        """Whether a rewrite is what they meant; nobody takes a page for an example of how to answer."""
        return self.wish.holds(rewrite) and len(rewrite.split()) <= MOST_WORDS

    async def _settle(self, before: int, taught: Taught, approves: Callable[[str], bool]) -> None:
        """Answer whatever the bot asks until it says that it has its example."""
        wanted = say("en", "example_kept", line="").split("“")[0][:20]
        for _ in range(MOST_REWRITES):
            said = await wait_for(self.talker, after(before, lambda m: _asks(m, wanted)), "what became of the words")
            before = said.number
            if said.text.startswith(wanted):
                return
            if reason := said.button("r", "style"):
                await self.talker.press(reason, said)
            elif offered := said.button("w", "y"):
                await self._judge(said, offered, approves)
            else:
                await self.talker.say(self.wish.write(taught.facts))
                self.story.examples.append("written")
        raise DemoError("the bot went on asking and kept no example")

    async def _judge(self, said: Heard, offered: str, approves: Callable[[str], bool]) -> None:
        self.story.offered += 1
        if approves(rewrite_in(said)):
            self.story.examples.append("approved")
            await self.talker.press(offered, said)
            return
        self.story.declined += 1
        await self.talker.press(str(said.button("w", "n")), said)


async def allow(talker: Talker, purpose: Purpose) -> None:
    """Press a switch of the consent notice, and see that it is on.

    Raises:
        DemoError: it did not go on.
    """
    data = Press("s", purpose.value, "1").data()
    notices = [m for m in await talker.heard() if data in m.buttons]
    await talker.press(data, notices[-1] if notices else None)
    deadline = time.monotonic() + NOTICE_TIMEOUT_S
    while not await talker.allows(purpose.value):
        if time.monotonic() > deadline:
            raise DemoError(f"{talker.channel}: the switch of {purpose.value} did not go on")
        await asyncio.sleep(POLL_S)


def rewrite_in(said: Heard) -> str:
    """Return the rewrite that an offer shows."""
    head = say("en", "offer_rewrite", rewrite="")
    return said.text.removeprefix(head.strip()).strip()


def _asks(message: Heard, kept: str) -> bool:
    asked = message.button("w", "y") or message.button("r", "style")
    return bool(asked) or message.text in ASKS_FOR_EXAMPLE or message.text.startswith(kept)
