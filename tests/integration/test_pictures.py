"""Pictures on Telegram, from the phone to a model that sees: what it is shown, what is kept, what is said where it cannot be."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.model import ModelServer
from tests.fakes.telegram import TelegramServer
from tests.fakes.telegram.people import User
from tests.support.lessons import base_folder
from tests.support.media import PICTURE, picture
from tests.support.road import Road, road
from tests.support.telegram_talk import SEES, allow_training, known, read, seeing_model
from tests.support.whatsapp import settled

pytestmark = pytest.mark.usefixtures("brisk")
model = seeing_model


@pytest.fixture
async def telegram(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, tmp_path: Path
) -> AsyncIterator[Road]:
    """A gateway of that model that polls the Bot API, and knows which base it serves, so that replies may train."""
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    known = base_folder(tmp_path / "base")
    async with road(database_url, model.url, model=SEES, model_dir=known, **named) as gateway:
        yield gateway


@pytest.fixture
async def ann(telegram: Road, telegram_server: TelegramServer) -> User:
    """Somebody who has talked before."""
    return await known(telegram, telegram_server, "hello")


def seen(model: ModelServer, call: int = -1) -> list[bytes]:
    """Return what the model was shown."""
    return model.calls[call].pictures


async def kept(telegram: Road) -> list[bytes]:
    """Return the pictures in the database."""
    return [bytes(row["body"]) for row in await telegram.rows("select body from turn_pictures order by number")]


async def test_a_picture_reaches_the_model_with_its_words_and_nothing_beside_its_pixels(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    await allow_training(telegram, telegram_server, ann)
    ann.send_photo("what is this?")
    reply = await read(telegram_server, ann, "You said: what is this?")
    (shown,) = seen(model)
    assert hashlib.sha256(shown).hexdigest()[:8] in reply
    assert b"Secret Camera" in PICTURE
    assert b"hidden words" in PICTURE
    assert not any(word in shown for word in (b"Secret Camera", b"hidden words", b"Exif"))
    await settled(telegram)
    assert await kept(telegram) == [shown]
    (turn,) = await telegram.rows("select user_text, flags, learnable from turns order by number desc limit 1")
    assert (turn["user_text"], turn["flags"]["media"], turn["learnable"]) == ("what is this?", True, False)
    # The larger of the two sizes, and it alone.
    assert len(telegram_server.downloads) == 1


async def test_a_picture_without_words_is_answered(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    ann.send_photo()
    await read(telegram_server, ann, "You said nothing. [picture ")
    assert len(seen(model)) == 1
    (content,) = [m["content"] for m in model.calls[-1].messages[-1:]]
    assert [part["type"] for part in content] == ["image_url"]


async def test_an_album_is_one_turn_with_all_its_pictures(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    colours = [(10, 20, 30), (200, 0, 0), (0, 200, 0)]
    for number, colour in enumerate(colours):
        ann.send_photo("which is red?" if number == 1 else "", album="7", data=picture(colour=colour))
    await read(telegram_server, ann, "You said: which is red?")
    await settled(telegram, beyond=3)
    assert len(set(seen(model))) == 3
    assert await kept(telegram) == seen(model)
    assert len(await telegram.rows("select 1 from turns")) == 2
    assert {row["state"] for row in await telegram.rows("select state from inbox")} == {"done"}


async def test_of_too_many_pictures_the_first_are_looked_at(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    for number in range(6):
        ann.send_photo("look" if not number else "", album="7")
    await read(telegram_server, ann, "You said: look")
    await read(telegram_server, ann, "the first 4 pictures")
    assert len(seen(model)) == 4


async def test_an_image_sent_as_a_file_is_a_picture(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    ann.send_file(picture(form="PNG"), "image/png", "shot.png", "and this?")
    await read(telegram_server, ann, "You said: and this? [picture ")
    assert seen(model)[0].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"MZ" + bytes(2000), "I could not open what you sent (a picture)"),
        (PICTURE[:200], "I could not open what you sent (a picture)"),
        (b"", "I could not get what you sent (a picture) any more"),
        (PICTURE + bytes(5_000_000), "What you sent (a picture) is too big for me"),
        (picture(6000, 5000, "PNG"), "What you sent (a picture) is too big for me"),
    ],
    ids=["not a picture", "damaged", "gone", "too big", "too many pixels"],
)
@pytest.mark.parametrize("caption", ["", "what is this?"])
async def test_what_cannot_be_shown_is_said_and_the_words_are_answered(
    telegram: Road,
    telegram_server: TelegramServer,
    model: ModelServer,
    ann: User,
    data: bytes,
    words: str,
    caption: str,
) -> None:
    before = len(model.calls)
    ann.send_photo(caption, data=data)
    await read(telegram_server, ann, words)
    if caption:
        assert await read(telegram_server, ann, "You said: what") == "You said: what is this?"
    await settled(telegram, beyond=1)
    assert [call.pictures for call in model.calls[before:]] == ([[]] if caption else [])
    assert await kept(telegram) == []
    # Its words stood alone, so they are like any others.
    flags = await telegram.rows("select flags from turns where user_text = 'what is this?'")
    assert [row["flags"]["media"] for row in flags] == ([False] if caption else [])


async def test_a_file_server_that_is_away_is_asked_again(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    telegram_server.fail_next("getFile", 502, times=1)
    ann.send_photo("still there?")
    await read(telegram_server, ann, "You said: still there? [picture ")
    assert len(telegram_server.calls_of("getFile")) == 2


async def test_what_is_stopped_while_it_is_fetched_is_not_answered(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    telegram_server.fail_next("getFile", 502, times=1)
    asked = len(model.calls)
    ann.send_photo("what is this?")
    await telegram_server.wait_for(lambda: telegram_server.calls_of("getFile"), 20)
    ann.say("/stop")
    await read(telegram_server, ann, "I'm not writing anything")
    await settled(telegram, beyond=2)
    assert len(model.calls) == asked
    assert await kept(telegram) == []
    ann.send_photo("and this?")  # what comes after it is a message again
    await read(telegram_server, ann, "You said: and this? [picture ")


async def test_one_that_stays_away_ends_in_an_honest_sentence(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    telegram_server.fail_next("getFile", 502, times=9)
    ann.send_photo("are you there?")
    # The pauses between the tries, as the road has them, are 1, 4, 9 and 16 seconds: they are not waited for here.
    async with asyncio.timeout(20):
        while not await telegram.rows("select 1 from inbox where state = 'stored' and attempts > 0"):
            await asyncio.sleep(0.05)
    await telegram.store_execute("update inbox set attempts = 4, due_at = now() where state = 'stored'")
    await read(telegram_server, ann, "Something went wrong")
    await settled(telegram)
    assert [row["error"] for row in await telegram.rows("select error from inbox where state = 'dead'")] == ["gave_up"]


async def test_one_can_go_on_talking_about_a_picture(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    await allow_training(telegram, telegram_server, ann)
    ann.send_photo("what is this?")
    await read(telegram_server, ann, "You said: what is this?")
    await settled(telegram)
    first = seen(model)
    ann.say("and its colour?")
    await read(telegram_server, ann, "You said: and its colour?")
    assert seen(model) == first
    await settled(telegram)
    (turn,) = await telegram.rows("select flags, learnable from turns order by number desc limit 1")
    assert (turn["flags"]["media"], turn["learnable"]) == (True, False)
    # Of a picture that another took the place of it reads that it was there.
    ann.send_photo("now this", data=picture(colour=(0, 0, 250)))
    await read(telegram_server, ann, "You said: now this")
    assert len(seen(model)) == 1
    assert seen(model) != first
    assert "(1 picture, not shown again)\nwhat is this?" in [m["content"] for m in model.calls[-1].messages]


@pytest.mark.parametrize("caption", ["", "what is this?"])
async def test_retry_and_edits_look_at_it_again(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User, caption: str
) -> None:
    message = ann.send_photo(caption)
    await read(telegram_server, ann, "[picture ")
    await settled(telegram)
    first = seen(model)
    ann.say("/retry")
    await telegram_server.wait_for(lambda: len(model.calls) == 3)
    await settled(telegram, beyond=2)
    ann.edit(message, "and what is that?")
    await read(telegram_server, ann, "You said: and what is that? [picture ")
    assert [seen(model, 2), seen(model, 3)] == [first, first]
    assert len(await kept(telegram)) == 1
    assert telegram_server.downloads == telegram_server.downloads[:1]
    await settled(telegram)
    rows = await telegram.rows("select flags from turns where number > 1")
    assert all(row["flags"]["media"] for row in rows)


async def test_a_reply_with_a_picture_is_no_correction(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    reply = next(m for m in ann.chat.from_bot if "You said: hello" in m.text)
    ann.send_photo("this one is wrong", reply_to=reply)
    await read(telegram_server, ann, "You said: this one is wrong [picture ")
    assert await telegram.rows("select 1 from feedback") == []


async def test_it_lives_as_long_as_the_texts_of_its_turn(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    from app.services.housekeeping import clean

    ann.send_photo("what is this?")
    await read(telegram_server, ann, "You said: what is this?")
    await settled(telegram)
    await clean(telegram.store, telegram.settings)
    assert len(await kept(telegram)) == 1
    ann.say("/new")
    await settled(telegram, beyond=2)
    await clean(telegram.store, telegram.settings)
    assert await kept(telegram) == []


async def test_what_one_takes_along_has_the_picture_and_forgetting_drops_it(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    from app.services.export import export_whole
    from app.store import forget

    ann.send_photo("what is this?")
    await read(telegram_server, ann, "You said: what is this?")
    await settled(telegram)
    ((row),) = await telegram.rows("select distinct person_id from turns")
    async with telegram.store.begin() as tx:
        taken = "".join([piece async for piece in export_whole(tx, row["person_id"])])
    assert base64.b64encode(seen(model)[0]).decode() in taken
    async with telegram.store.begin() as tx:
        await forget.chat(tx, row["person_id"])
    assert await kept(telegram) == []


async def test_a_picture_alone_is_not_answered_again_by_a_model_without_eyes(
    database_url: str, model: ModelServer, telegram_server: TelegramServer
) -> None:
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    ann = telegram_server.user("Ann")
    async with road(database_url, model.url, model=SEES, **named) as gateway:
        ann.send_photo()
        await read(telegram_server, ann, "You said nothing. [picture ")
        await settled(gateway)
    async with ModelServer(name="smollm2-135m") as blind, road(database_url, blind.url, **named) as gateway:
        ann.say("/retry")
        await read(telegram_server, ann, "There is no reply to try again")
        assert len(await gateway.rows("select 1 from turns")) == 1
        assert not blind.calls


async def test_a_model_without_eyes_is_not_given_any(database_url: str, telegram_server: TelegramServer) -> None:
    named = {"telegram_bot_token": telegram_server.token, "telegram_base_url": telegram_server.base_url}
    async with ModelServer(name="smollm2-135m") as blind, road(database_url, blind.url, **named):
        ann = telegram_server.user("Ann")
        ann.send_photo("what is this?")
        assert await read(telegram_server, ann, "You said: what") == "You said: what is this?"
        await read(telegram_server, ann, "without having looked at what came with them (a picture)")
    assert telegram_server.downloads == []
    assert telegram_server.calls_of("getFile") == []


async def test_what_else_is_sent_is_answered_with_a_sentence(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    ann.send_voice()
    await read(telegram_server, ann, "I cannot take in what you sent (a voice message)")
    ann.send_file(b"%PDF-1.7", "application/pdf", "a.pdf", "read this")
    await read(telegram_server, ann, "I could not look at what came with your words (a file)")
    assert telegram_server.downloads == []


async def test_nothing_that_came_along_is_ever_admitted_to_a_training(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    from app.store import admission

    ann.say("/learn on")
    await settled(telegram, beyond=1)
    ann.say("is tea healthy?")
    await read(telegram_server, ann, "You said: is tea healthy?")
    ann.send_photo("what is this?")
    await read(telegram_server, ann, "You said: what is this?")
    ann.say("and its colour?")
    await read(telegram_server, ann, "You said: and its colour?")
    await settled(telegram)
    (row,) = await telegram.rows("select distinct person_id from turns")
    async with telegram.store.begin() as tx:
        assert [prompt.text for prompt in await admission.prompts(tx, row["person_id"])] == ["is tea healthy?"]


async def test_a_rewrite_of_a_reply_about_a_picture_looks_at_it(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    ann.say("/learn on")
    await settled(telegram, beyond=1)
    ann.send_photo("what is this?")
    await read(telegram_server, ann, "You said: what is this?")
    await settled(telegram)
    first, before = seen(model), len(model.calls)
    reply = next(m for m in reversed(ann.chat.from_bot) if "You said: what" in m.text)
    ann.say("always answer in capitals", reply_to=reply)
    await read(telegram_server, ann, "I'll keep this in mind")
    await settled(telegram)
    assert [call.pictures for call in model.calls[before:]] == [first] * 3


async def test_what_is_too_much_for_one_file_comes_in_several_and_whole(
    telegram: Road, telegram_server: TelegramServer, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    from app.services import export

    for number, colour in enumerate([(1, 2, 3), (200, 2, 3), (1, 200, 3)]):
        ann.send_photo(f"picture {number}", data=picture(colour=colour))
        await read(telegram_server, ann, f"You said: picture {number}")
    await settled(telegram)
    most = 6000
    monkeypatch.setattr(export, "FILE_BYTES", most)
    (row,) = await telegram.rows("select distinct person_id from turns")
    async with telegram.store.begin() as tx:
        whole = json.loads("".join([piece async for piece in export.export_whole(tx, row["person_id"])]))
        files = [(name, text) async for name, text in export.export_files(tx, row["person_id"])]
    assert len(files) > 2
    assert [name for name, _ in files[:2]] == ["mentee-export.json", "mentee-export-2.json"]
    together: dict[str, list[object]] = {}
    for _, text in files:
        document = json.loads(text)
        rows = [value for name, value in document.items() if name not in {"exported_at", "person"}]
        assert len(text.encode()) < most * 2 or sum(map(len, rows)) == 1
        for name, value in document.items():
            if isinstance(value, list):
                together.setdefault(name, []).extend(value)
    assert together == {name: value for name, value in whole.items() if isinstance(value, list)}
    assert json.loads(files[0][1])["person"] == whole["person"]
    kept_bodies = {bytes(one["body"]) for one in await telegram.rows("select body from turn_pictures")}
    assert {base64.b64decode(one["body"]) for one in whole["turn_pictures"]} == kept_bodies
    assert len(kept_bodies) == 3
    ann.say("/export")
    await read(telegram_server, ann, "I hold about you is in these")


async def test_in_a_group_only_what_is_said_to_the_bot_is_fetched(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    await allow_training(telegram, telegram_server, ann)
    kitchen = telegram_server.group("Kitchen", ann, telegram_server.user("Ben"))
    kitchen.chat.bot_status = "administrator"  # it is told everything
    ann.send_photo("look everybody", kitchen.chat)
    ann.send_photo(f"@{telegram_server.world.bot['username']} and you?", kitchen.chat)
    await telegram_server.wait_for(lambda: any("and you? [picture" in m.text for m in kitchen.chat.from_bot), 20)
    await settled(telegram, beyond=5)
    assert len(telegram_server.downloads) == 1
    (turn,) = await telegram.rows("select flags, learnable from turns order by number desc limit 1")
    assert (turn["flags"]["group"], turn["flags"]["media"], turn["learnable"]) == (True, True, False)


async def test_a_picture_goes_with_the_consent_that_kept_it(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    from app.services.housekeeping import clean

    ann.say("/learn on")
    await settled(telegram, beyond=1)
    ann.send_photo("what is this?")
    await read(telegram_server, ann, "You said: what is this?")
    ann.say("/new")
    await settled(telegram, beyond=3)
    await clean(telegram.store, telegram.settings)
    assert len(await kept(telegram)) == 1
    ann.say("/privacy")
    await settled(telegram, beyond=4)
    notice = ann.chat.from_bot[-1]
    ann.press(notice, next(b.text for b in notice.buttons if "Memory" in b.text))
    await settled(telegram, beyond=5)
    assert await kept(telegram) == []
