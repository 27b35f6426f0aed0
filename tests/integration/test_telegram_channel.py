"""The Telegram channel against a server that speaks the Bot API, through python-telegram-bot as it is."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from app.domain.event import ChatAddress
from app.domain.outgoing import Button, Content
from app.errors import (
    ChannelAwayError,
    ChatMovedError,
    DeliveryError,
    DeliveryRetryError,
    DeliveryUncertainError,
    RecipientGoneError,
)
from app.ports import Channel
from bots.telegram.pace import Pacer
from bots.telegram.send import TelegramChannel, build_bot
from tests.fakes.telegram import FloodLimits, Message, TelegramServer, User


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as running:
        yield running


class Patient(Pacer):
    """A pacer whose slots need no waiting; flood waits stay."""

    async def turn(self, address: ChatAddress, action: str) -> None:
        """Look for a flood wait only."""
        if address.external_id in self._chats and self._chats[address.external_id].flood > self._clock():
            raise DeliveryRetryError


@pytest.fixture
async def channel(server: TelegramServer) -> AsyncIterator[TelegramChannel]:
    opened = TelegramChannel(build_bot(server.token, server.base_url), Patient())
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
def ann(server: TelegramServer) -> User:
    return server.user("Ann")


def address(user: User) -> ChatAddress:
    return ChatAddress(str(user.user_id))


def last(user: User) -> Message:
    return user.chat.everything[-1]


async def test_before_it_is_connected_nothing_is_lost(server: TelegramServer, ann: User) -> None:
    unconnected = TelegramChannel(build_bot(server.token, server.base_url))
    with pytest.raises(ChannelAwayError):
        unconnected.parse(b"{}")
    with pytest.raises(DeliveryRetryError):
        await unconnected.send(address(ann), Content("hello"))
    with pytest.raises(DeliveryRetryError):
        await unconnected.edit(address(ann), "1", Content("hello"))
    await unconnected.typing(address(ann))
    await unconnected.answer_press("1", "")
    assert ann.chat.from_bot == []


def test_it_is_a_channel(channel: Channel) -> None:
    assert channel.name == "telegram"
    assert (channel.capabilities.max_units, channel.capabilities.live_edit_s) == (4096, 1.0)
    assert channel.capabilities.reactions


async def test_a_reply_arrives_with_formats_buttons_and_its_place(channel: TelegramChannel, ann: User) -> None:
    question = ann.say("How?")
    rows = ((Button("👍", "fb:1:u"), Button("👎", "fb:1:d")),)
    content = Content("**Like** `this` 😀 *so*", rows, reply_to=str(question.message_id))
    sent = await channel.send(address(ann), content)
    shown = last(ann)
    assert (str(shown.message_id), shown.text) == (sent, "Like this 😀 so")
    assert [(e["type"], e["offset"], e["length"]) for e in shown.entities] == [
        ("bold", 0, 4),
        ("code", 5, 4),
        ("italic", 13, 2),
    ]
    assert [(b.text, b.data) for b in shown.buttons] == [("👍", "fb:1:u"), ("👎", "fb:1:d")]
    assert shown.reply_to is question


async def test_a_reply_to_a_deleted_message_still_arrives(channel: TelegramChannel, ann: User) -> None:
    question = ann.say("Never mind")
    ann.delete(question)
    await channel.send(address(ann), Content("Here", reply_to=str(question.message_id)))
    assert last(ann).text == "Here"


@pytest.mark.parametrize("markdown", ["", "  \n", "\u200b\u202e"])
async def test_a_reply_of_which_nothing_is_seen_is_three_dots(
    channel: TelegramChannel, ann: User, markdown: str
) -> None:
    await channel.send(address(ann), Content(markdown))
    assert last(ann).text == "…"


async def test_every_part_of_a_long_reply_is_taken(channel: TelegramChannel, ann: User) -> None:
    code = "\n".join(f"x{n} = '😀' * {n}" for n in range(400))
    markdown = (
        f"# Title\n\n{'Words and more. ' * 300}\n\n```python\n{code}\n```\n\n> quoted\n\n| a | b |\n|--|--|\n| 1 | 2 |"
    )
    parts = channel.split(markdown)
    assert len(parts) > 2
    for part in parts:
        await channel.send(address(ann), Content(part))
    assert "x399 = '😀' * 399" in ann.chat.everything[-1].text + ann.chat.everything[-2].text
    assert any(e.get("language") == "python" for m in ann.chat.everything for e in m.entities)


async def test_an_edit_shows_the_new_words_and_the_same_words_are_success(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    sent = await channel.send(address(ann), Content("…"))
    await channel.edit(address(ann), sent, Content("so far"))
    await channel.edit(address(ann), sent, Content("so far"))
    assert len(server.calls_of("editMessageText")) == 1
    rated = Content("so far, **done**", ((Button("👍", "u"),),))
    # https://github.com/NousResearch/hermes-agent/issues/1759
    await channel.edit(address(ann), sent, rated)
    await channel.edit(address(ann), sent, rated)
    assert [c.status for c in server.calls_of("editMessageText")] == [200, 200, 400]
    assert (last(ann).text, [b.data for b in last(ann).buttons]) == ("so far, done", ["u"])
    assert len(ann.chat.everything) == 1


async def test_refused_formats_and_only_these_fall_back_to_plain_text(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    server.fail_next("sendMessage", 400, "Bad Request: can't parse entities: unexpected end at byte offset 3")
    await channel.send(address(ann), Content("**x**"))
    assert (last(ann).text, last(ann).entities) == ("x", [])
    server.fail_next("sendMessage", 400, "Bad Request: message is too long")
    with pytest.raises(DeliveryError, match="too long"):
        await channel.send(address(ann), Content("**x**"))
    server.fail_next("editMessageText", 400, "Bad Request: can't parse entities: unexpected end")
    await channel.edit(address(ann), str(last(ann).message_id), Content("**y**"))
    assert last(ann).text == "y"
    assert len(ann.chat.everything) == 1


# https://github.com/NousResearch/hermes-agent/issues/102402
async def test_a_flood_wait_says_how_long_and_holds_up_no_other_chat(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    ben = server.user("Ben")
    server.flood_next("sendMessage", 149)
    with pytest.raises(DeliveryRetryError) as refused:
        await channel.send(address(ann), Content("hi"))
    assert refused.value.retry_after_s == pytest.approx(149)
    with pytest.raises(DeliveryRetryError):
        await channel.send(address(ann), Content("hi"))
    assert len(server.calls_of("sendMessage")) == 1
    await channel.send(address(ben), Content("hello"))
    assert last(ben).text == "hello"


# https://github.com/NousResearch/hermes-agent/issues/16668
async def test_a_lost_answer_is_uncertain_for_sending_and_harmless_for_editing(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    server.lose_response("sendMessage")
    with pytest.raises(DeliveryUncertainError) as refused:
        await channel.send(address(ann), Content("once"))
    assert not refused.value.retryable
    sent = str(last(ann).message_id)
    server.lose_response("editMessageText")
    with pytest.raises(DeliveryRetryError):
        await channel.edit(address(ann), sent, Content("twice", ((Button("👍", "u"),),)))
    await channel.edit(address(ann), sent, Content("twice", ((Button("👍", "u"),),)))
    assert [m.text for m in ann.chat.everything] == ["twice"]


async def test_what_never_left_may_be_sent_again(channel: TelegramChannel, ann: User, server: TelegramServer) -> None:
    await server.stop()
    with pytest.raises(DeliveryRetryError):
        await channel.send(address(ann), Content("hi"))
    await server.start()
    await channel.send(address(ann), Content("hi"))
    assert [m.text for m in ann.chat.everything] == ["hi"]


async def test_a_gateway_error_does_not_double_a_message(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    server.garble_next("sendMessage")
    with pytest.raises(DeliveryUncertainError):
        await channel.send(address(ann), Content("hi"))
    assert len(server.calls_of("sendMessage")) == 1


# https://github.com/PhilPinsdorf/FhAachenMensaBot/issues/70
async def test_who_blocked_the_bot_is_gone(channel: TelegramChannel, ann: User) -> None:
    ann.block()
    with pytest.raises(RecipientGoneError):
        await channel.send(address(ann), Content("hi"))
    with pytest.raises(RecipientGoneError):
        await channel.send(ChatAddress("424242"), Content("hi"))


async def test_a_group_that_moved_tells_its_new_id(channel: TelegramChannel, ann: User, server: TelegramServer) -> None:
    group = server.group("Tea", ann, kind="group")
    old = str(group.chat.chat_id)
    group.migrate()
    with pytest.raises(ChatMovedError) as moved:
        await channel.send(ChatAddress(old, kind="group"), Content("hi"))
    assert moved.value.new_chat_id == str(group.chat.chat_id)


# https://github.com/HKUDS/nanobot/issues/2627 https://github.com/nanocoai/nanoclaw/issues/1420
async def test_topics_are_kept_and_a_vanished_one_falls_back_to_the_chat(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    group = server.group("Forum", ann, forum=True)
    ann.say("the first message of the group", group.chat)
    chat, thread = str(group.chat.chat_id), group.topic("News")
    await channel.send(ChatAddress(chat, str(thread), "group"), Content("in the topic"))
    await channel.send(ChatAddress(chat, "1", "group"), Content("in General"))
    await channel.typing(ChatAddress(chat, "1", "group"))
    await channel.send(ChatAddress(chat, "99999", "group"), Content("nowhere"))
    threads = [c.values.get("message_thread_id") for c in server.calls_of("sendMessage")]
    assert [str(t) for t in threads] == [str(thread), "None", "99999", "None"]
    assert str(server.calls_of("sendChatAction")[0].values["message_thread_id"]) == "1"


# https://github.com/NousResearch/hermes-agent/issues/89879 https://github.com/openclaw/openclaw/issues/80152
async def test_a_press_is_answered_and_too_late_is_no_failure(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    await channel.send(address(ann), Content("x", ((Button("👍", "u"),),)))
    press = ann.press(last(ann), "👍")
    await channel.answer_press(press.query_id, "Thank you! " * 50)
    assert press.answered
    assert len(press.text) <= 200
    server.world.query_life_s = -1
    await channel.answer_press(ann.press(last(ann), "👍").query_id, "late")


async def test_typing_never_fails(channel: TelegramChannel, ann: User, server: TelegramServer) -> None:
    server.fail_next("sendChatAction", 500)
    await channel.typing(address(ann))
    await channel.typing(address(ann))
    ann.block()
    await channel.typing(address(ann))
    assert [call.status for call in server.calls_of("sendChatAction")] == [500, 200, 403]


async def test_button_data_is_one_to_sixty_four_bytes(
    channel: TelegramChannel, ann: User, server: TelegramServer
) -> None:
    for data in ("", "가" * 22):
        with pytest.raises(DeliveryError, match="64 bytes"):
            await channel.send(address(ann), Content("x", ((Button("b", data),),)))
    assert server.calls_of("sendMessage") == []
    await channel.send(address(ann), Content("x", ((Button("b", "가" * 21),),)))


async def test_a_file_is_a_document(channel: TelegramChannel, ann: User, server: TelegramServer) -> None:
    sent = await channel.send(address(ann), Content('{"turns": []}', file_name="export.json"))
    assert str(last(ann).message_id) == sent
    assert last(ann).extra["document"]["file_name"] == "export.json"


async def test_menus_are_set_per_language(channel: TelegramChannel, server: TelegramServer) -> None:
    await channel.publish_commands({"": [("help", "What I can do")], "ko": [("help", "도움말"), ("new", "새 대화")]})
    assert server.user("Kim", language_code="ko").menu() == ["help", "new"]
    assert server.user("Ann", language_code="de").menu() == ["help"]


async def test_a_wrong_token_is_said_at_the_start(server: TelegramServer) -> None:
    channel = TelegramChannel(build_bot("1234:AAAAAAAAAAAAAAAAAAAAAAAAAAAAA", server.base_url))
    with pytest.raises(DeliveryError, match="TELEGRAM_BOT_TOKEN"):
        await channel.start()


async def test_a_start_that_failed_may_be_tried_again(server: TelegramServer, ann: User) -> None:
    await server.stop()
    channel = TelegramChannel(build_bot(server.token, server.base_url))
    with pytest.raises(DeliveryRetryError):
        await channel.start()
    await server.start()
    await channel.start()
    await channel.send(address(ann), Content("up"))
    await channel.close()
    assert last(ann).text == "up"


async def test_with_the_real_pace_the_limits_are_not_met(ann: User, server: TelegramServer) -> None:
    server.flood = FloodLimits()
    channel = TelegramChannel(build_bot(server.token, server.base_url))
    await channel.start()
    sent = await channel.send(address(ann), Content("…"))
    for n in range(3):
        await channel.edit(address(ann), sent, Content(f"step {n}"))
    others = [server.user(f"U{n}") for n in range(8)]
    await asyncio.gather(*(channel.send(address(user), Content("hi")) for user in others))
    await channel.close()
    assert {call.status for call in server.calls} == {200}
    at = [call.at for call in server.calls_of("editMessageText")]
    assert all(later - earlier > 0.95 for earlier, later in pairwise(at))
