"""Replies on their way, and platforms that ask to wait: exactly one whole reply in the end, whatever happens meanwhile."""

import asyncio

import pytest

from bots.telegram.send import TelegramChannel
from tests.cases.talk import count, replied, settled, texts, told
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer, User
from tests.support.road import Road

WORDS = "one two three four five six seven eight nine ten"
NUMBERED = " ".join(f"n{n}" for n in range(60))
KOREAN = "하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉 열 😀 끝"


@pytest.fixture
async def ann(telegram: Road, telegram_server: TelegramServer) -> User:
    """Somebody who was greeted already."""
    user = telegram_server.user("Ann")
    user.say("/help")
    await told(telegram_server, user, "Just write to me")
    await settled(telegram)
    return user


def channel_of(gateway: Road) -> TelegramChannel:
    """Return the running gateway's channel."""
    part = gateway.gateway.channels["telegram"]
    assert part is not None
    return part.channel


async def wait_over(gateway: Road) -> None:
    """Let the time pass that Telegram asked to wait, on its own clock and on the database's."""
    channel_of(gateway)._pacer._chats.clear()
    await gateway.rows("update outbox set due_at = now() where state = 'due' returning id")


async def put_off(gateway: Road) -> float:
    """Wait until a message is put off; return for how many seconds."""
    query = "select extract(epoch from due_at - now())::float as s from outbox where error = 'asked_to_wait'"
    async with asyncio.timeout(20):
        while not (rows := await gateway.rows(query)):
            await asyncio.sleep(0.05)
    return float(rows[0]["s"])


def copies(user: User, text: str) -> int:
    """Return how many messages show the reply, whole or in part."""
    head = text.split(maxsplit=1)[0]
    return len([shown for shown in texts(user) if shown.startswith(head)])


@pytest.mark.parametrize(("reply", "seconds", "times"), [(WORDS, 1, 1), (KOREAN, 1, 3), (NUMBERED, 2, 1)])
async def test_g26_a_flood_wait_during_edits_leaves_one_reply(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User, reply: str, seconds: int, times: int
) -> None:
    """G26 · https://github.com/NousResearch/hermes-agent/issues/16668 https://github.com/NousResearch/hermes-agent/issues/8375:
    Telegram asks to wait while a reply is shown growing: in the end the whole reply is there, once.
    """
    model.reply_with(reply)
    model.pace = faults.Slow(per_token_s=2.0 / len(reply.split()))
    telegram_server.flood_next("editMessageText", seconds, times)
    ann.say("count")
    shown = await replied(telegram_server, ann, reply.rsplit(maxsplit=1)[-1], 30)
    await settled(telegram)
    assert shown.text == reply
    assert copies(ann, reply) == 1
    assert 429 in {call.status for call in telegram_server.calls_of("editMessageText")}


async def test_g26_a_long_flood_wait_ends_the_growing_and_not_the_reply(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    """G26 · https://github.com/NousResearch/hermes-agent/issues/16668 https://github.com/NousResearch/hermes-agent/issues/8375:
    told to wait 20 s, nothing more is edited until then; afterwards the one message shows the whole reply.
    """
    model.reply_with(WORDS)
    model.pace = faults.Slow(per_token_s=0.25)
    telegram_server.flood_next("editMessageText", 20)
    ann.say("count")
    assert 15 < await put_off(telegram) <= 20
    assert len(telegram_server.calls_of("editMessageText")) == 1
    assert copies(ann, WORDS) == 0  # only the placeholder: nothing was sent beside it
    sent = len(telegram_server.calls_of("sendMessage"))
    await wait_over(telegram)
    shown = await replied(telegram_server, ann, WORDS)
    assert shown.text == WORDS
    assert len(telegram_server.calls_of("sendMessage")) == sent


@pytest.mark.parametrize("seconds", [1, 35])
async def test_g27_the_mark_of_writing_goes_when_the_wait_is_over(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User, seconds: int
) -> None:
    """G27 · https://github.com/NousResearch/hermes-agent/issues/36965: the last edit, which takes the "…" off, is told to wait:
    it is made later, and no second message is sent.
    """
    model.reply_with(WORDS)
    model.pace = faults.Slow(per_token_s=0.3)
    ann.say("count")
    growing = await told(telegram_server, ann, "two")
    assert growing.text.endswith("…")
    telegram_server.flood_next("editMessageText", seconds, 1)
    sent = len(telegram_server.calls_of("sendMessage"))
    if seconds > 5:
        await put_off(telegram)
        assert growing.text.endswith("…")
        await wait_over(telegram)
    await telegram_server.wait_for(lambda: growing.text == WORDS and bool(growing.buttons), 20)
    await settled(telegram)
    assert len(telegram_server.calls_of("sendMessage")) == sent
    assert copies(ann, WORDS) == 1


@pytest.mark.parametrize("seconds", [149, 223])
@pytest.mark.parametrize("part", ["the first", "the second"])
async def test_g29_a_reply_that_must_wait_minutes_is_kept_and_sent(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User, seconds: int, part: str
) -> None:
    """G29 · https://github.com/NousResearch/hermes-agent/issues/102402: the send is told to wait for minutes: the message is
    kept, somebody else is answered meanwhile, and then it arrives whole.
    """
    long = " ".join(f"z{n}" for n in range(1000))
    model.reply_with(long)
    model.pace = faults.Slow(first_token_s=0.5)
    ben = telegram_server.user("Ben")
    ann.say("at length")
    if part == "the second":
        await telegram_server.wait_for(lambda: any("Thinking" in t or "…" in t for t in texts(ann)), 20)
    telegram_server.flood_next("sendMessage", seconds)
    assert seconds - 10 < await put_off(telegram) <= seconds
    model.heal()
    ben.say("hello")
    await replied(telegram_server, ben, "You said: hello")
    await wait_over(telegram)
    await replied(telegram_server, ann, "z999", 30)
    await settled(telegram)
    read = " ".join(text for text in texts(ann) if text.startswith("z"))
    assert read == long
    assert [call.status for call in telegram_server.calls_of("sendMessage")].count(429) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Bad Request: message is not modified",
        "Bad Request: MESSAGE IS NOT MODIFIED",
    ],
)
async def test_g31_not_modified_stops_nothing(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User, words: str
) -> None:
    """G31 · https://github.com/NousResearch/hermes-agent/issues/1759: an edit that changes nothing is success: the reply goes on
    growing and ends whole.
    """
    model.reply_with(WORDS)
    model.pace = faults.Slow(per_token_s=0.35)
    telegram_server.fail_next("editMessageText", 400, words)
    ann.say("count")
    shown = await replied(telegram_server, ann, WORDS)
    await settled(telegram)
    grown = [r.text for r in shown.revisions if r.text.endswith(" …") and r.text.startswith("one")]
    assert grown
    assert copies(ann, WORDS) == 1
    assert await count(telegram, "outbox where state <> 'sent'") == 0


async def test_g31_the_same_vote_twice_is_no_failure(
    telegram: Road, telegram_server: TelegramServer, ann: User
) -> None:
    """G31 · https://github.com/NousResearch/hermes-agent/issues/1759: buttons that show already what they shall are left so."""
    ann.say("rate this")
    reply = await replied(telegram_server, ann, "You said: rate this")
    up = next(b for b in reply.buttons if b.text == "👍")
    for _ in range(2):
        ann.press_data(reply, up.data or "")
    await telegram_server.wait_for(lambda: any(b.text == "👍 ✓" for b in reply.buttons), 10)
    ann.say("and go on")
    await replied(telegram_server, ann, "You said: and go on")
    await settled(telegram)
    assert [row["value"] for row in await telegram.rows("select value from votes")] == [1]
    assert await count(telegram, "outbox where state <> 'sent'") == 0


@pytest.mark.parametrize("place", ["private", "group", "topic"])
async def test_g32_no_draft_is_ever_asked_for(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User, place: str
) -> None:
    """G32 · https://github.com/openclaw/openclaw/issues/7803 https://github.com/nullclaw/nullclaw/issues/626: where drafts are
    refused for a chat nothing is spammed: growing replies are edits, in every kind of chat.
    """
    telegram_server.fail_next("sendMessageDraft", 400, "Bad Request: TEXTDRAFT_PEER_INVALID", times=100)
    model.reply_with(WORDS)
    model.pace = faults.Slow(per_token_s=0.25)
    group = telegram_server.group("Kitchen", ann, forum=place == "topic")
    thread = group.topic("tea") if place == "topic" else 0
    chat = ann.chat if place == "private" else group.chat
    ann.say(f"@{telegram_server.world.bot['username']} count", chat, thread=thread)
    shown = await replied(telegram_server, chat, WORDS)
    assert any(r.text.endswith(" …") for r in shown.revisions)
    assert telegram_server.calls_of("sendMessageDraft") == []
    assert {call.status for call in telegram_server.calls} == {200}


async def test_g33_one_message_grows_and_stays(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, ann: User
) -> None:
    """G33 · https://github.com/vercel/chat/issues/782 https://github.com/NousResearch/hermes-agent/issues/26157
    https://github.com/grammyjs/stream/issues/2: nothing flickers: the reply is one message that only grows, none is deleted
    and no draft stands over it. How apps draw a draft cannot be replayed here; we use none.
    """
    model.reply_with(WORDS)
    model.pace = faults.Slow(per_token_s=0.35)
    ann.say("count")
    shown = await replied(telegram_server, ann, WORDS)
    await settled(telegram)
    grown = [r.text.removesuffix(" …") for r in shown.revisions if r.text.startswith("one")]
    assert all(WORDS.startswith(text) for text in grown)
    assert [len(text) for text in grown] == sorted(len(text) for text in grown)
    assert ann.chat.drafts == {}
    assert not any(message.deleted for message in ann.chat.everything)
    assert copies(ann, WORDS) == 1
