"""The people of a simulated day: what each does is drawn from the day's seed, and what must come of it is kept.

Whatever they say holds a word that nobody else says (`mark`), so that it is found wherever it must not be. Nobody casts two
votes on a reply by different means, so that the last one is the one in force.
"""

import asyncio
import random
from dataclasses import dataclass, field

from app.bench.day_world import World
from tests.fakes.telegram import User
from tests.fakes.telegram.messages import Message
from tests.fakes.twilio import Person, Sent

MARK = "canary"
SAID = "You said: "
BUTTON = "v:"
VALUES = {1: "u", -1: "d", 0: "0"}
THUMBS = {1: "👍", -1: "👎"}


def mark(number: int) -> str:
    """Return the word of person `number`, one that is no part of another's."""
    return f"{MARK}{number:04}x"


@dataclass
class Acts:
    """What one person did: how many updates, and the votes, the last one last: by the turn that a button names (`v:…`), else by
    the platform's id of the message.
    """

    number: int
    chance: random.Random
    updates: int = 0
    votes: dict[str, int] = field(default_factory=dict)

    def vote(self, on: str, value: int) -> None:
        """Keep a vote."""
        self.votes.pop(on, None)
        self.votes[on] = value

    def words(self) -> str:
        """Return words that were never said."""
        self.updates += 1
        return f"{mark(self.number)} {self.updates}"


class OnTelegram:
    """Somebody who votes by buttons or by reactions, edits, asks again and begins anew."""

    def __init__(self, world: World, acts: Acts) -> None:
        self.acts = acts
        self.user: User = world.telegram.user(f"Person {acts.number}", language_code=acts.chance.choice(["en", "ko"]))
        self._server = world.telegram
        self._world = world
        self._by_button = acts.chance.random() < 0.6  # noqa: PLR2004
        self._last: Message | None = None

    @property
    def replies(self) -> list[Message]:
        """What can be voted on: the finished replies, and the questions how one was."""
        return [m for m in self.user.chat.from_bot if m.buttons and (m.buttons[0].data or "").startswith(BUTTON)]

    async def act(self) -> None:
        """Do something."""
        chance = self.acts.chance
        drawn = chance.random()
        if drawn < 0.25 and self.replies:  # noqa: PLR2004
            self._vote(chance.choice(self.replies[-3:]))
        elif drawn < 0.31 and self._last:  # noqa: PLR2004
            self.user.edit(self._last, self.acts.words())
        elif drawn < 0.36:  # noqa: PLR2004
            self.acts.updates += 1
            self.user.say(chance.choice(["/retry", "/new", "/stop", "/help"]))
        else:
            self._last = self.user.say(self.acts.words())
        if chance.random() < self._world.rates.repeated and self._server.world.queue.sent:
            self._world.trouble.count("telegram_repeated")
            self._server.deliver_again(chance.choice(self._server.world.queue.sent[-50:]))

    def _vote(self, reply: Message) -> None:
        value = self.acts.chance.choice([1, -1, 0])
        self.acts.updates += 1
        if self._by_button:
            turn = (reply.buttons[0].data or "").split(":")[1]
            self.acts.vote(f"{BUTTON}{turn}", value)
            self.user.press_data(reply, f"{BUTTON}{turn}:{VALUES[value]}")
        else:
            self.acts.vote(str(reply.message_id), value)
            self.user.react(reply, *([THUMBS[value]] if value else []))


class OnWhatsApp:
    """Somebody who votes by swiping a thumb onto a reply."""

    def __init__(self, world: World, acts: Acts) -> None:
        self.acts = acts
        self.person: Person = world.twilio.person(f"Person {acts.number}")
        self._world = world
        self._said: list[tuple[str, str]] = []

    @property
    def replies(self) -> list[Sent]:
        """The replies to their own words."""
        return [sent for sent in self.person.got if sent.body.startswith(SAID)]

    async def act(self) -> None:
        """Do something; it is over once it was taken."""
        chance = self.acts.chance
        replies = self.replies
        if chance.random() < 0.2 and replies:  # noqa: PLR2004
            reply, value = chance.choice(replies[-3:]), chance.choice([1, -1])
            self.acts.updates += 1
            self.acts.vote(reply.sid, value)
            await self.person.say(THUMBS[value], reply_to=reply)
            return
        words = self.acts.words()
        sid = await self.person.say(words)
        if chance.random() < self._world.rates.repeated:
            self._world.trouble.count("twilio_repeated")
            await asyncio.gather(*(self.person.say(words, sid=sid) for _ in range(chance.randint(1, 3))))


Somebody = OnTelegram | OnWhatsApp


def crowd(world: World, people: int) -> list[Somebody]:
    """Return the people, half of them on each channel."""
    made: list[Somebody] = []
    for number in range(people):
        acts = Acts(number, random.Random(f"person {number} of {world.seed}"))  # noqa: S311  # drawn from the day's seed
        made.append((OnTelegram if number % 2 else OnWhatsApp)(world, acts))
    return made


async def live(somebody: Somebody, updates: int, seconds: float) -> None:
    """Let somebody act so often within the day, at moments of their own."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for moment in sorted(somebody.acts.chance.uniform(0, seconds) for _ in range(updates)):
        await asyncio.sleep(max(0.0, began + moment - loop.time()))
        await somebody.act()
