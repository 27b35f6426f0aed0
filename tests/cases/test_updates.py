"""Updates: edited, repeated, overtaken, in topics and groups, from nobody, about nothing; each handled once or left alone."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest

from app.domain.event import EditEvent, IgnoredEvent, MessageEvent
from app.errors import StoreUnavailableError
from app.store import inbox
from bots.telegram.parse import parse
from bots.telegram.people import Me
from bots.telegram.webhook import SECRET_HEADER
from tests.cases.conftest import telegram_settings
from tests.cases.talk import asked, count, replied, settled, texts, told
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import Chat, Message, TelegramServer, User
from tests.support.road import Item, Road, road

ME = Me(7310001, "mentee_test_bot")
DATE = 1_790_000_000
SECRET = "a-secret-for-the-webhook"
CHANNEL: Item = {"id": -1001, "type": "channel", "title": "News"}
GROUP: Item = {"id": -1002, "type": "supergroup", "title": "Tea"}
PRIVATE: Item = {"id": 5, "type": "private", "first_name": "Ann"}
ANN: Item = {"id": 5, "is_bot": False, "first_name": "Ann"}
PHOTO: Item = {"photo": [{"file_id": "p", "file_unique_id": "u", "width": 9, "height": 9}]}


async def handled(gateway: Road) -> list[str]:
    """Return how each update ended, in order."""
    return [row["state"] for row in await gateway.rows("select state from inbox order by id")]


class Posts:
    """Telegram's posts to a gateway in webhook mode."""

    def __init__(self, gateway: Road) -> None:
        self._url = f"{gateway.url}/webhooks/telegram"

    async def post(self, body: Item) -> int:
        """Post an update; return the status of the answer."""
        headers = {SECRET_HEADER: SECRET, "Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self._url, data=json.dumps(body), headers=headers) as answer,
        ):
            return answer.status


def webhook_settings(server: TelegramServer) -> Item:
    """Return what makes Telegram post; nobody posts by itself, the tests do."""
    return telegram_settings(server) | {
        "telegram_mode": "webhook",
        "telegram_webhook_secret": SECRET,
        "public_url": "https://bot.example.org",
    }


@pytest.fixture
async def posted(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, brisk: None
) -> AsyncIterator[Road]:
    """A gateway that is posted to, by the test alone."""
    telegram_server.fail_next("setWebhook", 500, times=1000)
    async with road(database_url, model.url, **webhook_settings(telegram_server)) as gateway:
        yield gateway


def written(message: Message, update_id: int, kind: str = "message") -> Item:
    """Return the update of a message under a number."""
    return {"update_id": update_id, kind: message.to_json()}


# --------------------------------------------------------------------------------------------------------------- edits

EDITS = {
    "words": ({"text": "new"}, EditEvent),
    "a caption": (PHOTO | {"caption": "new"}, EditEvent),
    "Korean": ({"text": "새 글"}, EditEvent),
    "emoji": ({"text": "👨‍👩‍👧‍👦"}, EditEvent),
    "a live location": ({"location": {"latitude": 1.0, "longitude": 2.0}}, IgnoredEvent),
    "a picture without words": (PHOTO, EditEvent),
    "nothing at all": ({}, IgnoredEvent),
}


@pytest.mark.parametrize(("fields", "event"), EDITS.values(), ids=list(EDITS))
def test_g34_an_edit_is_read_as_an_edit(fields: Item, event: type) -> None:
    """G34 · https://github.com/father-bot/chatgpt_telegram_bot/issues/30
    https://github.com/python-telegram-bot/python-telegram-bot/issues/469
    https://github.com/python-telegram-bot/python-telegram-bot/issues/1244: an update without a `message` but with an edited
    one is no error and no new message.
    """
    message = {"message_id": 3, "date": DATE, "edit_date": DATE + 9, "chat": PRIVATE, "from": ANN, **fields}
    (read,) = parse(json.dumps({"update_id": 1, "edited_message": message}).encode(), ME)
    assert isinstance(read, event)


async def test_g34_only_the_last_message_is_answered_again(telegram: Road, telegram_server: TelegramServer) -> None:
    """G34 · https://github.com/father-bot/chatgpt_telegram_bot/issues/30
    https://github.com/python-telegram-bot/python-telegram-bot/issues/469
    https://github.com/python-telegram-bot/python-telegram-bot/issues/1244: the newest message is answered in its new words,
    an older one, a command and the same words again are left; nobody reads of an error.
    """
    ann = telegram_server.user("Ann")
    command = ann.say("/help")
    await told(telegram_server, ann, "Just write to me")
    older = ann.say("older")
    await replied(telegram_server, ann, "You said: older")
    newest = ann.say("newest")
    await replied(telegram_server, ann, "You said: newest")
    for message, words in (
        (older, "older, changed"),
        (command, "/whoami"),
        (newest, "newest"),
        (newest, "가장 새 글 😀"),
    ):
        ann.edit(message, words)
    await replied(telegram_server, ann, "You said: 가장 새 글 😀")
    await settled(telegram)
    assert await asked(telegram) == ["older", "newest", "가장 새 글 😀"]
    assert set(await handled(telegram)) == {"done"}


# -------------------------------------------------------------------------------------------------------------- nobody

NOBODYS = {
    "a post": {"channel_post": {"message_id": 1, "date": DATE, "chat": CHANNEL, "text": "news"}},
    "a post with a picture": {"channel_post": {"message_id": 1, "date": DATE, "chat": CHANNEL, **PHOTO}},
    "an edited post": {
        "edited_channel_post": {"message_id": 1, "date": DATE, "edit_date": DATE, "chat": CHANNEL, "text": "old news"}
    },
    "a post named a message": {"message": {"message_id": 1, "date": DATE, "chat": CHANNEL, "text": "news"}},
    "nobody in a group": {"message": {"message_id": 1, "date": DATE, "chat": GROUP, "text": "/help"}},
    "an admin as the group": {
        "message": {
            "message_id": 1, "date": DATE, "chat": GROUP, "text": "/help@mentee_test_bot", "sender_chat": GROUP,
            "from": {"id": 1087968824, "is_bot": True, "first_name": "Group"},
        }
    },
    "a linked channel": {
        "message": {
            "message_id": 1, "date": DATE, "chat": GROUP, "text": "/help", "sender_chat": CHANNEL, "is_automatic_forward": True,
            "from": {"id": 777000, "is_bot": False, "first_name": "Telegram"},
        }
    },
    "an anonymous reaction": {
        "message_reaction": {
            "chat": GROUP, "message_id": 1, "date": DATE, "actor_chat": GROUP, "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": "👍"}],
        }
    },
}  # fmt: skip


@pytest.mark.parametrize("body", NOBODYS.values(), ids=list(NOBODYS))
def test_g35_what_nobody_wrote_is_left(body: Item) -> None:
    """G35 · https://github.com/python-telegram-bot/python-telegram-bot/issues/695
    https://github.com/eternnoir/pyTelegramBotAPI/issues/2001: a post without a person behind it is read without a crash and
    concerns nobody.
    """
    (read,) = parse(json.dumps({"update_id": 1, **body}).encode(), ME)
    assert isinstance(read, IgnoredEvent)
    assert read.sender.external_id is None


async def test_g35_a_channel_makes_nobody_known(telegram: Road, telegram_server: TelegramServer) -> None:
    """G35 · https://github.com/python-telegram-bot/python-telegram-bot/issues/695
    https://github.com/eternnoir/pyTelegramBotAPI/issues/2001: none of it is answered or makes anybody known; who writes after
    it is answered.
    """
    channel = telegram_server.channel("News")
    for body in NOBODYS.values():
        telegram_server.emit(dict(body))
    channel.post("more news")
    ann = telegram_server.user("Ann")
    ann.say("hello")
    await replied(telegram_server, ann, "You said: hello")
    await settled(telegram)
    assert texts(channel.chat) == []
    assert [row["display_name"] for row in await telegram.rows("select display_name from people")] == ["Ann"]
    assert await asked(telegram) == ["hello"]


# ------------------------------------------------------------------------------------------------------------- repeats


@pytest.mark.parametrize("words", ["only once", "한 번만", "👍🏽 once", "/help"])
@pytest.mark.parametrize("numbers", [(9, 9), (9, 9, 9, 9), (9, 10), (9, 8, 11, 9)], ids=str)
async def test_g37_a_repeat_is_answered_once(
    posted: Road, telegram_server: TelegramServer, words: str, numbers: Sequence[int]
) -> None:
    """G37 · https://github.com/openclaw/openclaw/issues/46674 https://github.com/openclaw/openclaw/issues/59951
    https://github.com/NousResearch/hermes-agent/issues/68502 https://github.com/felinics/Memoh/issues/337: the same message
    two to four times, under its number or another, at once or later: one answer, each post taken.
    """
    posts, ann = Posts(posted), telegram_server.user("Ann")
    message = ann.say(words)
    together = [posts.post(written(message, number)) for number in numbers[:-1]]
    assert set(await asyncio.gather(*together)) == {200}
    await settled(posted)
    shown = list(texts(ann))
    assert await posts.post(written(message, numbers[-1])) == 200
    await settled(posted)
    assert texts(ann) == shown
    answer = "Just write to me. In words" if words == "/help" else f"You said: {words}"
    if words.startswith("👍"):
        answer = "You said: 👍🏽 once"
    assert len([text for text in shown if answer in text]) == 1
    assert await count(posted, "inbox") == 1


async def test_g37_a_repeat_after_a_restart_is_one_too(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, brisk: None
) -> None:
    """G37 · https://github.com/openclaw/openclaw/issues/46674 https://github.com/openclaw/openclaw/issues/59951
    https://github.com/NousResearch/hermes-agent/issues/68502 https://github.com/felinics/Memoh/issues/337: what was handled
    before a restart is not handled again after it.
    """
    ann = telegram_server.user("Ann")
    settings = telegram_settings(telegram_server)
    async with road(database_url, model.url, **settings) as gateway:
        message = ann.say("before the restart")
        await replied(telegram_server, ann, "You said: before the restart")
        await settled(gateway)
    first = telegram_server.world.queue.sent[0]
    async with road(database_url, model.url, **settings) as gateway:
        telegram_server.deliver_again(first)
        telegram_server.emit({"message": message.to_json()})
        ann.say("after it")
        await replied(telegram_server, ann, "You said: after it")
        await settled(gateway)
        assert await asked(gateway) == ["before the restart", "after it"]
    assert texts(ann).count("You said: before the restart") == 1


@pytest.mark.parametrize("failures", [1, 3])
async def test_g38_while_nothing_can_be_stored_nothing_is_begun(
    posted: Road,
    telegram_server: TelegramServer,
    model: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
) -> None:
    """G38 · https://github.com/vercel/chat/issues/799: a post while the database is away is asked for again and begins
    nothing; the repeats that come later are all taken and answered once.
    """
    stored, away = inbox.accept, []

    async def accept(*arguments: object, **named: object) -> object:
        if len(away) < failures:
            away.append(1)
            raise StoreUnavailableError
        return await stored(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(inbox, "accept", accept)
    posts, ann = Posts(posted), telegram_server.user("Ann")
    update = written(ann.say("keep this"), 40)
    assert [await posts.post(update) for _ in range(failures)] == [503] * failures
    assert (model.calls, texts(ann), await count(posted, "inbox")) == ([], [], 0)
    assert [await posts.post(update) for _ in range(3)] == [200] * 3
    await replied(telegram_server, ann, "You said: keep this")
    await settled(posted)
    assert await asked(posted) == ["keep this"]


# ----------------------------------------------------------------------------------------------------------- reactions


@pytest.mark.parametrize(("symbol", "value"), [("👍", 1), ("👎", -1), ("👍🏿", 1)])
async def test_g39_a_reaction_with_a_lower_number_counts(
    posted: Road, telegram_server: TelegramServer, symbol: str, value: int
) -> None:
    """G39 · https://github.com/openclaw/openclaw/issues/45289: reactions come by another queue: one whose number is lower than
    that of a message handled already is a vote all the same.
    """
    posts, ann = Posts(posted), telegram_server.user("Ann")
    await posts.post(written(ann.say("one"), 4000))
    reply = await replied(telegram_server, ann, "You said: one")
    await posts.post(written(ann.say("two"), 5000))
    await replied(telegram_server, ann, "You said: two")
    await settled(posted)
    new = [{"type": "emoji", "emoji": symbol}]
    body = {"chat": reply.chat, "message_id": reply.message_id, "date": DATE, "user": ann.card}
    reaction = {"update_id": 4999, "message_reaction": body | {"old_reaction": [], "new_reaction": new}}
    assert await posts.post(reaction) == 200
    await settled(posted, beyond=2)
    assert [row["value"] for row in await posted.rows("select value from votes")] == [value]


async def test_g39_a_reaction_after_a_restart_finds_its_reply(
    database_url: str, model: ModelServer, telegram_server: TelegramServer, brisk: None
) -> None:
    """G39 · https://github.com/openclaw/openclaw/issues/45289: which reply a message is stays known across restarts."""
    ann = telegram_server.user("Ann")
    settings = telegram_settings(telegram_server)
    async with road(database_url, model.url, **settings) as gateway:
        ann.say("rate me later")
        reply = await replied(telegram_server, ann, "You said: rate me later")
        await settled(gateway)
    async with road(database_url, model.url, **settings) as gateway:
        ann.react(reply, "👍")
        await telegram_server.wait_for(lambda: any(b.text == "👍 ✓" for b in reply.buttons), 20)
        assert [row["value"] for row in await gateway.rows("select value from votes")] == [1]


ORNAMENTS = {
    "a reaction": ("setMessageReaction", 400, "Bad Request: REACTION_INVALID"),
    "typing": ("sendChatAction", 400, "Bad Request: not enough rights"),
    "typing, broken": ("sendChatAction", 500, "Internal Server Error"),
    "the menu": ("setMyCommands", 400, "Bad Request: BOT_COMMAND_INVALID"),
}


@pytest.mark.parametrize(("method", "status", "words"), ORNAMENTS.values(), ids=list(ORNAMENTS))
async def test_g41_what_only_decorates_stops_no_reply(
    database_url: str,
    model: ModelServer,
    telegram_server: TelegramServer,
    brisk: None,
    method: str,
    status: int,
    words: str,
) -> None:
    """G41 · https://github.com/openclaw/openclaw/issues/81765 https://github.com/openclaw/openclaw/issues/14316: a chat that
    refuses a reaction, or any other ornament, gets its reply all the same.
    """
    telegram_server.fail_next(method, status, words, times=1000)
    ann = telegram_server.user("Ann")
    ann.chat.reactions = ()
    async with road(database_url, model.url, **telegram_settings(telegram_server)) as gateway:
        ann.say("hello")
        reply = await replied(telegram_server, ann, "You said: hello")
        ann.react(reply, "🎉")
        await settled(gateway)
        assert await count(gateway, "outbox where state <> 'sent'") == 0


ALBUMS = {"first": ("compare these", ""), "last": ("", "compare these"), "both": ("compare", "these"), "none": ("", "")}


@pytest.mark.parametrize("captions", ALBUMS.values(), ids=list(ALBUMS))
async def test_g42_an_album_is_one_message(
    telegram: Road, telegram_server: TelegramServer, captions: tuple[str, str]
) -> None:
    """G42 · https://github.com/openclaw/openclaw/issues/115325: two pictures sent together are answered once."""
    ann = telegram_server.user("Ann")
    ann.say("/help")
    await told(telegram_server, ann, "Just write to me")
    await settled(telegram)
    before = len(texts(ann))
    for caption in captions:
        ann.send_photo(caption, album="13579")
        await asyncio.sleep(0.015)
    await settled(telegram, beyond=2)
    said = [
        text for text in texts(ann)[before:] if text.startswith(("You said", "I can only read text here, so I could"))
    ]
    assert len(said) == 1


# -------------------------------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("place", ["General", "a topic", "a private topic"])
async def test_g45_a_reply_stays_in_its_topic(telegram: Road, telegram_server: TelegramServer, place: str) -> None:
    """G45 · https://github.com/NousResearch/hermes-agent/issues/13607 https://github.com/HKUDS/nanobot/issues/2627
    https://github.com/nanocoai/nanoclaw/issues/1420 https://github.com/HKUDS/nanobot/issues/2793: the topic goes from the
    question to everything sent for it; General is named for typing only.
    """
    ann = telegram_server.user("Ann")
    group = telegram_server.group("Forum", ann, forum=True)
    ann.say("the first message of the group", group.chat)
    chat, thread = group.chat, 0
    if place == "a topic":
        thread = group.topic("tea")
    elif place == "a private topic":
        chat, thread = ann.chat, 77
        chat.topics.add(thread)
    ann.say(f"@{telegram_server.world.bot['username']} hello", chat, thread=thread)
    await replied(telegram_server, chat, "hello")
    await settled(telegram)
    sent = telegram_server.calls_of("sendMessage")
    assert {str(c.values.get("message_thread_id")) for c in sent} == {str(thread) if thread else "None"}
    typed = {str(c.values.get("message_thread_id")) for c in telegram_server.calls_of("sendChatAction")}
    assert typed == {str(thread or 1)}
    assert {call.status for call in telegram_server.calls} == {200}


async def test_g45_topics_do_not_mix(telegram: Road, telegram_server: TelegramServer, model: ModelServer) -> None:
    """G45 · https://github.com/NousResearch/hermes-agent/issues/13607 https://github.com/HKUDS/nanobot/issues/2627
    https://github.com/nanocoai/nanoclaw/issues/1420 https://github.com/HKUDS/nanobot/issues/2793: what was said in one topic
    is not part of the talk in another.
    """
    ann = telegram_server.user("Ann")
    name = f"@{telegram_server.world.bot['username']}"
    group = telegram_server.group("Forum", ann, forum=True)
    for words in ("apples", "pears"):
        topic = group.topic(words)
        ann.say(f"{name} about {words}", group.chat, thread=topic)
        reply = await replied(telegram_server, group.chat, f"about {words}")
        assert reply.extra["message_thread_id"] == topic
    assert "apples" not in str(model.calls[-1].messages)
    assert "pears" in str(model.calls[-1].messages)


CHATTER = [
    "no question for you",
    "아무도 안 불렀어",
    "mentee, or not",
    "@somebody_else look",
    "👍",
    "3 * 4 = 12",
    "/help@some_other_bot",
]


async def test_g46_a_group_is_answered_only_when_it_asks(telegram: Road, telegram_server: TelegramServer) -> None:
    """G46 · https://github.com/HKUDS/nanobot/issues/1380: an administrator who reads everything is silent until a person names
    it or replies to it, and knows nobody who did neither.
    """
    ann, ben = telegram_server.user("Ann"), telegram_server.user("Ben")
    name = f"@{telegram_server.world.bot['username']}"
    group = telegram_server.group("Kitchen", ann, ben)
    group.promote_bot()
    for words in CHATTER:
        ben.say(words, group.chat)
    ann.say(f"{name} hello", group.chat)
    reply = await replied(telegram_server, group.chat, "hello")
    ann.say("and again", group.chat, reply_to=reply)
    await replied(telegram_server, group.chat, "and again")
    await settled(telegram)
    assert await asked(telegram) == ["hello", "and again"]
    assert [row["display_name"] for row in await telegram.rows("select display_name from people")] == ["Ann"]


@pytest.mark.parametrize(
    "kind", ["video", "photo", "voice", "sticker", "document", "animation", "video_note", "poll", "new_kind"]
)
async def test_g47_media_in_a_group_are_not_commented(
    telegram: Road, telegram_server: TelegramServer, kind: str
) -> None:
    """G47 · https://github.com/father-bot/chatgpt_telegram_bot/issues/454: media in a group that name nobody get no answer, not
    even that they cannot be read.
    """
    ann = telegram_server.user("Ann")
    group = telegram_server.group("Kitchen", ann)
    group.promote_bot()
    body = {"message_id": 900, "date": DATE, "chat": group.chat.card, "from": ann.card, kind: {"file_id": "f"}}
    telegram_server.emit({"message": body | {"caption": "look at this"}}, f"chat {group.chat.chat_id}")
    telegram_server.emit({"message": body | {"message_id": 901}}, f"chat {group.chat.chat_id}")
    ann.say("/help", group.chat)
    await told(telegram_server, group.chat, "Just write to me")
    await settled(telegram)
    assert len(texts(group.chat)) == 1
    assert await asked(telegram) == []


async def gone(gateway: Road, chat: Chat) -> None:
    """Wait until a chat is marked as one that nobody reads."""
    query = "select 1 from chats where external_id = :id and status = 'gone'"
    async with asyncio.timeout(20):
        while not await gateway.rows(query, id=str(chat.chat_id)):
            await asyncio.sleep(0.05)


def refused(server: TelegramServer, chat: Chat) -> list[str]:
    """Return what was sent to a chat in vain."""
    sent = [c for c in server.calls_of("sendMessage") if c.values["chat_id"] == str(chat.chat_id)]
    return [str(call.values["text"]) for call in sent if call.status == 403]


@pytest.mark.parametrize("way", ["blocked", "deactivated", "kicked"])
async def test_g49_who_is_gone_is_marked(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, way: str
) -> None:
    """G49 · https://github.com/PhilPinsdorf/FhAachenMensaBot/issues/70: a chat that refuses the bot is marked; no message is
    tried twice, everybody else is answered, and who comes back is too.
    """
    ann, ben = telegram_server.user("Ann"), telegram_server.user("Ben")
    group = telegram_server.group("Kitchen", ann)
    model.pace = faults.Slow(first_token_s=0.8)
    chat = group.chat if way == "kicked" else ann.chat
    ann.say(f"@{telegram_server.world.bot['username']} bye", chat)
    await telegram_server.wait_for(lambda: bool(model.calls), 20)
    {"blocked": ann.block, "deactivated": ann.deactivate, "kicked": group.remove_bot}[way]()
    await gone(telegram, chat)
    await settled(telegram)
    tried = refused(telegram_server, chat)
    assert len(tried) == len(set(tried))
    ben.say("hello")
    await replied(telegram_server, ben, "You said: hello")
    assert refused(telegram_server, chat) == tried
    if way == "blocked":
        ann.unblock()
        ann.say("I am back")
        await replied(telegram_server, ann, "You said: I am back")


async def test_g49_nothing_more_is_sent_to_who_is_gone(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    """G49 · https://github.com/PhilPinsdorf/FhAachenMensaBot/issues/70: what is ready only after that is not sent at all."""
    ann = telegram_server.user("Ann")
    model.pace = faults.Slow(first_token_s=3.0)
    ann.say("bye")
    await telegram_server.wait_for(lambda: bool(model.calls), 20)
    ann.block()
    await gone(telegram, ann.chat)
    assert await count(telegram, "turns where state = 'generating'") == 1
    tried = refused(telegram_server, ann.chat)
    await settled(telegram)
    assert refused(telegram_server, ann.chat) == tried


# ------------------------------------------------------------------------------------------------------------- presses


async def pressed(server: TelegramServer, ann: User, data: str, reply: Message) -> bool:
    """Press a button, wait until it is answered or cannot be any more; return whether it was answered in time."""
    before = len(server.calls_of("answerCallbackQuery"))
    press = ann.press_data(reply, data)
    await server.wait_for(lambda: len(server.calls_of("answerCallbackQuery")) > before, 20)
    return press.answered


async def test_g50_a_press_is_answered_before_its_work(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    """G50 · https://github.com/openclaw/openclaw/issues/80152: a button whose work takes the model long is answered first, so
    that the query does not grow too old.
    """
    ann = telegram_server.user("Ann")
    ann.say("hello")
    reply = await replied(telegram_server, ann, "You said: hello")
    await settled(telegram)
    model.pace = faults.Slow(first_token_s=2.5)
    telegram_server.world.query_life_s = 1.5
    again = next(b.data or "" for b in reply.buttons if (b.data or "").startswith("t:"))
    assert await pressed(telegram_server, ann, again, reply)
    up = next(b.data or "" for b in reply.buttons if b.text == "👍")
    assert await pressed(telegram_server, ann, up, reply)  # a vote overtakes the reply that is being written
    await telegram_server.wait_for(lambda: any(b.text == "👍 ✓" for b in reply.buttons), 2)
    await telegram_server.wait_for(lambda: texts(ann).count("You said: hello") == 2, 20)


@pytest.mark.parametrize("verb", ["t:", "c:"])
async def test_g50_a_press_beside_a_slow_reply_is_answered_at_once(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, verb: str
) -> None:
    """G50 · https://github.com/openclaw/openclaw/issues/80152: the same for a button pressed while another reply is still being
    written: what waits for its turn is the work, not the answer to the press.
    """
    ann = telegram_server.user("Ann")
    ann.say("hello")
    reply = await replied(telegram_server, ann, "You said: hello")
    await settled(telegram)
    model.pace = faults.Slow(first_token_s=2.5)
    telegram_server.world.query_life_s = 1.5
    ann.say("something slow")
    async with asyncio.timeout(10):
        while await count(telegram, "turns where state = 'generating'") == 0:
            await asyncio.sleep(0.02)
    data = next(b.data or "" for b in reply.buttons if (b.data or "").startswith(verb))
    assert await pressed(telegram_server, ann, data, reply)


REFUSALS = {
    "too old": (400, "Bad Request: query is too old and response timeout expired or query ID is invalid"),
    "a broken server": (502, "Bad Gateway"),
    "a flood": (429, "Too Many Requests: retry after 1"),
    "lost": (0, ""),
    "late": (-1, ""),
}


@pytest.mark.parametrize(("status", "words"), REFUSALS.values(), ids=list(REFUSALS))
async def test_g51_an_unanswered_press_has_its_effect(
    telegram: Road, telegram_server: TelegramServer, status: int, words: str
) -> None:
    """G51 · https://github.com/NousResearch/hermes-agent/issues/89879: a press whose answer fails or comes late still shows its
    choice on the buttons.
    """
    ann = telegram_server.user("Ann")
    ann.say("rate this")
    reply = await replied(telegram_server, ann, "You said: rate this")
    if status > 0:
        telegram_server.fail_next("answerCallbackQuery", status, words)
    elif status == 0:
        telegram_server.lose_response("answerCallbackQuery")
    else:
        telegram_server.delay("answerCallbackQuery", 1.0)
    ann.press(reply, "👎")
    await telegram_server.wait_for(lambda: any(b.text == "👎 ✓" for b in reply.buttons), 20)
    await told(telegram_server, ann, "What was wrong?")
    assert [row["value"] for row in await telegram.rows("select value from votes")] == [-1]


# ------------------------------------------------------------------------------------------------------- quarantine

ODD: dict[str, tuple[Item, str]] = {
    "no date": ({"message": {"message_id": 1, "chat": PRIVATE, "from": ANN, "text": "x"}}, "quarantined"),
    "a date in words": ({"message": {"message_id": 1, "date": "now", "chat": PRIVATE, "from": ANN}}, "quarantined"),
    "no chat": ({"message": {"message_id": 1, "date": DATE, "from": ANN, "text": "x"}}, "quarantined"),
    "a new kind of chat": (
        {"message": {"message_id": 1, "date": DATE, "chat": {"id": 5, "type": "orbit"}, "from": ANN, "text": "x"}},
        "quarantined",
    ),
    "a message that is a list": ({"message": []}, "quarantined"),
    "a new kind of reaction": (
        {
            "message_reaction": {
                "chat": PRIVATE, "message_id": 1, "date": DATE, "user": ANN, "old_reaction": [], "new_reaction": [{"type": "aura"}],
            }
        },
        "done",
    ),
    "a reaction without its list": (
        {"message_reaction": {"chat": PRIVATE, "message_id": 1, "user": ANN, "new_reaction": "👍"}},
        "quarantined",
    ),
    "a new kind of update": ({"hologram": {"id": 1}}, "done"),
    "a new kind of content": (
        {"message": {"message_id": 1, "date": DATE, "chat": PRIVATE, "from": ANN, "hologram": {}}},
        "refused",
    ),
    "no number": ({"update_id": None, "message": {"message_id": 1}}, "quarantined"),
    "nothing": ({}, "done"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "state"), ODD.values(), ids=list(ODD))
async def test_g53_an_odd_update_is_set_aside(
    posted: Road, telegram_server: TelegramServer, body: Item, state: str
) -> None:
    """G53: an update that lacks a date, or says something this version does not know, is taken with 200 and kept as it came;
    the next one is handled.
    """
    posts, ann = Posts(posted), telegram_server.user("Ann")
    assert await posts.post({"update_id": 7, **body}) == 200
    assert await posts.post(written(ann.say("after it"), 8)) == 200
    await replied(telegram_server, ann, "You said: after it")
    await settled(posted)
    assert (await handled(posted))[0] == state


async def test_g53_a_batch_goes_on(telegram: Road, telegram_server: TelegramServer) -> None:
    """G53: fetched by polling, none of them comes again and again, and nobody behind them waits."""
    for body, _ in ODD.values():
        telegram_server.emit(dict(body) | ({"update_id": None} if "update_id" in body else {}))
    telegram_server.emit({"message": {"message_id": 1}})
    ann = telegram_server.user("Ann")
    ann.say("after them")
    await replied(telegram_server, ann, "You said: after them")
    await settled(telegram)
    await telegram_server.wait_for(
        lambda: not [u for u in telegram_server.world.queue.pending if u.body.get("update_id")]
    )
    assert {update.times_sent for update in telegram_server.world.queue.sent if update.body.get("update_id")} == {1}


@pytest.mark.parametrize("caption", ["look", "사진이에요", "👀"])
def test_g53_what_is_new_keeps_its_words(caption: str) -> None:
    """G53: content of a kind that is not known yet still has the words that came with it."""
    body = {"message_id": 1, "date": DATE, "chat": PRIVATE, "from": ANN, "hologram": {"id": 3}, "caption": caption}
    (read,) = parse(json.dumps({"update_id": 1, "message": body}).encode(), ME)
    assert isinstance(read, MessageEvent)
    assert (read.text, read.media) == (caption, "unknown")


# ------------------------------------------------------------------------------------------------------------ captions


@pytest.mark.parametrize(
    ("caption", "kept"),
    [
        ("@somebody", "@somebody"),
        ("{me} what is this?", "what is this?"),
        ("{me} 이게 뭐야", "이게 뭐야"),
        ("👀", "👀"),
    ],
)
async def test_g76_a_caption_is_kept_and_answered(
    telegram: Road, telegram_server: TelegramServer, caption: str, kept: str
) -> None:
    """G76 · https://github.com/openclaw/openclaw/issues/1694: the words of a picture, a mention too, are stored and answered."""
    ann = telegram_server.user("Ann")
    ann.send_photo(caption.replace("{me}", f"@{telegram_server.world.bot['username']}"))
    await replied(telegram_server, ann, f"You said: {kept}")
    assert await asked(telegram) == [kept]


@pytest.mark.parametrize("place", ["private", "group"])
async def test_g76_a_picture_that_only_names_the_bot_is_answered(
    telegram: Road, telegram_server: TelegramServer, place: str
) -> None:
    """G76 · https://github.com/openclaw/openclaw/issues/1694: where nothing but the bot's own name is written under it, the
    picture is not dropped: the person reads that it could not be looked at.
    """
    ann = telegram_server.user("Ann")
    chat = ann.chat if place == "private" else telegram_server.group("Kitchen", ann).chat
    ann.send_photo(f"@{telegram_server.world.bot['username']}", chat)
    await told(telegram_server, chat, "could not look at what you sent (a picture)")
    assert await asked(telegram) == []


async def test_g76_the_model_sees_the_picture(
    seeing_telegram: Road, telegram_server: TelegramServer, eyes: ModelServer
) -> None:
    """G76 · https://github.com/openclaw/openclaw/issues/1694: the picture reaches the model with its words."""
    ann = telegram_server.user("Ann")
    ann.send_photo("what is this?")
    await replied(telegram_server, ann, "You said: what is this?")
    assert "image_url" in str(eyes.calls[-1].body)
