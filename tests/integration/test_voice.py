"""Voice messages: written down by an OpenAI-compatible server, shown as heard, and then words like any others, but for learning."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.clients.transcribe import TranscribeClient
from app.domain.person import Awaiting
from app.errors import TranscriptionError
from app.store import admission, people
from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.people import User
from tests.fakes.transcriber import Transcriber
from tests.support.lessons import base_folder
from tests.support.media import PICTURE, sound
from tests.support.road import Road, road
from tests.support.telegram_talk import allow_training, known, read
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")
KEY = "a-key-of-the-transcriber"


@pytest.fixture
async def telegram(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, transcriber: Transcriber, tmp_path: Path
) -> AsyncIterator[Road]:
    """A gateway that polls the Bot API, has voice written down, and knows which base it serves, so that replies may train."""
    transcriber.api_key = KEY
    heard = {"transcribe_base_url": transcriber.url, "transcribe_model": "whisper-1", "transcribe_api_key": KEY}
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, model_dir=base_folder(tmp_path / "base"), **heard, **named) as gateway:
        yield gateway


@pytest.fixture
async def ann(telegram: Road, telegram_server: TelegramServer) -> User:
    """Somebody who has talked before."""
    return await known(telegram, telegram_server, "hello")


async def test_it_is_shown_as_heard_and_then_answered(
    telegram: Road, telegram_server: TelegramServer, transcriber: Transcriber, model: ModelServer, ann: User
) -> None:
    await allow_training(telegram, telegram_server, ann)
    transcriber.words = "what is *tea*, exactly?"
    ann.send_voice()
    await read(telegram_server, ann, "You said: what is")
    await settled(telegram)
    texts = [m.text for m in ann.chat.from_bot]
    # The words are shown as they are; what looks like a mark in them is none.
    assert texts[-2] == "🎤 “what is *tea*, exactly?”"
    (turn,) = await telegram.rows("select user_text, flags, learnable from turns order by number desc limit 1")
    assert (turn["user_text"], turn["flags"]["media"], turn["learnable"]) == (transcriber.words, True, False)
    assert model.calls[-1].messages[-1]["content"] == transcriber.words


async def test_a_sound_file_is_listened_to_as_well(
    telegram: Road, telegram_server: TelegramServer, transcriber: Transcriber, ann: User
) -> None:
    ann.send_voice(data=sound())
    await read(telegram_server, ann, "You said: what is the weather")
    assert (transcriber.heard[-1].name, transcriber.heard[-1].content_type) == ("voice.wav", "audio/wav")


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"words": "   \n"}, "I could not make out any words"),
        ({"words": "\u200b"}, "I could not make out any words"),
        ({"status": 500}, "I could not listen to your recording just now"),
        ({"status": 400}, "I could not listen to your recording just now"),
        ({"answer": "no json"}, "I could not listen to your recording just now"),
        ({"answer": '{"text": null}'}, "I could not listen to your recording just now"),
        ({"answer": '{"text": "' + "a" * 2_000_000 + '"}'}, "I could not listen to your recording just now"),
        ({"words": "word " * 2000}, "That message has 9999 characters"),
    ],
    ids=range(8),
)
async def test_what_cannot_be_heard_is_said(
    telegram: Road,
    telegram_server: TelegramServer,
    transcriber: Transcriber,
    ann: User,
    trouble: dict[str, object],
    words: str,
) -> None:
    for name, value in trouble.items():
        setattr(transcriber, name, value)
    before = len(ann.chat.from_bot)
    ann.send_voice()
    await read(telegram_server, ann, words)
    await settled(telegram, beyond=1)
    assert len(ann.chat.from_bot) <= before + 2
    assert len(await telegram.rows("select 1 from turns")) == 1
    assert {row["state"] for row in await telegram.rows("select state from inbox")} == {"done", "refused"}


async def test_a_picture_that_is_sent_as_a_voice_is_not_sent_on(
    telegram: Road, telegram_server: TelegramServer, transcriber: Transcriber, ann: User
) -> None:
    ann.send_voice(data=PICTURE)
    await read(telegram_server, ann, "I could not open what you sent (a voice message)")
    assert transcriber.heard == []


async def test_a_spoken_correction_is_remembered_and_never_trained(
    telegram: Road, telegram_server: TelegramServer, transcriber: Transcriber, ann: User
) -> None:
    ann.say("/learn on")
    await read(telegram_server, ann, "earn")
    await settled(telegram, beyond=1)
    reply = next(m for m in ann.chat.from_bot if "You said: hello" in m.text)
    transcriber.words = "Always end every answer with Bye."
    ann.send_voice(reply_to=reply)
    await read(telegram_server, ann, "I'll keep this in mind")
    await settled(telegram)
    (given,) = await telegram.rows("select text, flags from feedback")
    assert (given["text"], given["flags"]["spoken"]) == (transcriber.words, True)
    (line,) = await telegram.rows("select person_id, text from memory_lines")
    assert line["text"] == transcriber.words
    async with telegram.store.begin() as tx:
        assert await admission.lines(tx, line["person_id"]) == []


async def test_an_example_that_is_learnt_word_for_word_is_asked_for_in_writing(
    telegram: Road, telegram_server: TelegramServer, transcriber: Transcriber, ann: User
) -> None:
    (chat,) = await telegram.rows("select id from chats where kind = 'private'")
    async with telegram.store.begin() as tx:
        await people.set_awaiting(tx, chat["id"], Awaiting("example"))
    ann.send_voice()
    await read(telegram_server, ann, "Could you type it?")
    await settled(telegram)
    assert await telegram.rows("select 1 from examples") == []
    (chat,) = await telegram.rows("select state from chats")
    assert chat["state"]["awaiting"]["kind"] == "example"


async def test_without_a_transcriber_nothing_is_fetched(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with road(database_url, model.url, **named):
        ann = telegram_server.user("Ann")
        ann.send_voice()
        await read(telegram_server, ann, "could not look at what you sent (a voice message)")
    assert telegram_server.downloads == []


async def test_a_transcriber_that_hangs_is_left_alone_in_time(transcriber: Transcriber) -> None:
    transcriber.delay_s = 5.0
    client = TranscribeClient(transcriber.url, "whisper-1", api_key=None, timeout_s=0.2)
    try:
        with pytest.raises(TranscriptionError):
            await client.words(sound(), "audio/wav")
    finally:
        await client.close()


async def test_whoever_asks_is_told_where_recordings_go(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    ann.say("/privacy")
    await read(telegram_server, ann, "Recordings of your voice go to the transcription service")
    async with telegram.visitor() as visitor:  # there are none in the web chat
        await visitor.command("privacy")
        assert "Recordings of your voice" not in (await visitor.told("Your choices now"))["plain"]
