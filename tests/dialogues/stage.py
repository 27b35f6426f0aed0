"""Plays scenes: a gateway with both platforms for each, a phone for each platform and language."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import asyncpg

from app.domain.messages import LANGUAGES, Language
from app.domain.profiles import DEFAULT_PROFILE, profile
from tests.dialogues.phones import Bubble, Phone, TelegramPhone, WhatsAppPhone
from tests.dialogues.scenes import Scene, baker
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.transcriber import Transcriber
from tests.fakes.twilio import TwilioServer
from tests.support import whatsapp
from tests.support.road import Road, road

SIDE_BY_SIDE = 4
CONTACT = "bakery@example.org"
_CODES = {"en": "whatsapp:+1555010", "ko": "whatsapp:+82105550"}
_NAMES = {"en": "Ann", "ko": "하늘"}


@dataclass(frozen=True, slots=True)
class Played:
    """What one phone showed of a scene."""

    scene: str
    platform: str
    language: Language
    bubbles: Sequence[Bubble]


@dataclass(frozen=True, slots=True)
class Stage:
    """A gateway and what stands for the outside."""

    road: Road
    model: ModelServer
    telegram: TelegramServer
    twilio: TwilioServer
    ears: Transcriber

    def phone(self, platform: str, language: Language, number: int) -> Phone:
        """Return a phone that nobody used before."""
        name = _NAMES[language]
        if platform == "Telegram":
            user = self.telegram.user(name, language_code=language)
            return TelegramPhone(self.road, self.model, language, self.ears, user=user, server=self.telegram)
        person = self.twilio.person(name, f"{_CODES[language]}{1000 + number}")
        return WhatsAppPhone(self.road, self.model, language, self.ears, person=person)


@asynccontextmanager
async def stage(database_url: str, scene: Scene) -> AsyncIterator[Stage]:
    """Open a gateway with both platforms until the block ends."""
    async with AsyncExitStack() as open_:
        name = str(scene.settings.get("model", DEFAULT_PROFILE))
        model = await open_.enter_async_context(ModelServer(name=name, sees=profile(name).sees))
        ears = await open_.enter_async_context(Transcriber())
        telegram = await open_.enter_async_context(TelegramServer())
        twilio = await open_.enter_async_context(TwilioServer())
        model.reply_with(baker)
        switched_on = {"telegram_bot_token": telegram.token, "telegram_base_url": telegram.base_url}
        heard = {"transcribe_base_url": ears.url, "transcribe_model": "whisper-1"} if scene.hears else {}
        together = switched_on | whatsapp.settings(twilio) | heard | dict(scene.settings)
        gateway = await open_.enter_async_context(road(database_url, model.url, **together))
        await gateway.store_execute("update bot_identities set contact = :contact", contact=CONTACT)
        whatsapp.connect(twilio, gateway)
        open_.push_async_callback(twilio.hang_up)
        yield Stage(gateway, model, telegram, twilio, ears)


async def play(database_url: str, scene: Scene) -> list[Played]:
    """Play a scene on every platform where it can happen, in every language."""
    played: list[Played] = []
    async with stage(database_url, scene) as world:
        for platform in scene.on:
            for number, language in enumerate(LANGUAGES):
                phone = world.phone(platform, language, number)
                try:
                    await scene.play(phone)
                except (AssertionError, TimeoutError) as error:
                    error.add_note(f"{scene.name} on {platform} in {language}, after {phone.bubbles[-4:]}")
                    raise
                played.append(Played(scene.name, platform, language, tuple(phone.bubbles)))
    return played


async def play_all(server: str, template: str, scenes: Sequence[Scene]) -> list[Played]:
    """Play scenes side by side, each on a copy of the database `template`; `server` has `{}` where its name goes."""
    few = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int, scene: Scene) -> list[Played]:
        async with few:
            name = f"{template}_{number}"
            await _execute(server, f"create database {name} template {template} strategy file_copy")
            try:
                return await play(server.format(name), scene)
            finally:
                await _execute(server, f"drop database {name} with (force)")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number, scene)) for number, scene in enumerate(scenes)]
    return [played for task in tasks for played in task.result()]


async def _execute(server: str, statement: str) -> None:
    connection = await asyncpg.connect(server.format("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
