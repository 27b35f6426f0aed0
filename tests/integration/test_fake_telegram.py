"""python-telegram-bot, unmodified, against the fake Bot API server: calls, errors, polling and webhooks."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReplyParameters, Update
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TimedOut,
)
from telegram.ext import (
    Application,
    ApplicationBuilder,
    CallbackQueryHandler,
    CommandHandler,
    MessageHandler,
    MessageReactionHandler,
    filters,
)
from telegram.request import HTTPXRequest

from tests.fakes.telegram import FloodLimits, TelegramServer

pytest_plugins = ["tests.fakes.fixtures"]
KEYBOARD = InlineKeyboardMarkup(
    [[InlineKeyboardButton("👍", callback_data="up"), InlineKeyboardButton("👎", callback_data="down")]]
)


def _bot(server: TelegramServer, token: str = "") -> Bot:
    request = HTTPXRequest(read_timeout=2, connect_timeout=2)
    return Bot(token or server.token, server.base_url, server.base_file_url, request=request)


@pytest.fixture(autouse=True)
def _durations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")


@pytest.fixture
async def bot(telegram_server: TelegramServer) -> AsyncIterator[Bot]:
    async with _bot(telegram_server) as started:
        yield started


# ---------------------------------------------------------------------------------------------------------- messages


async def test_send_and_edit_as_a_client_sees_it(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user("Ann")
    sent = await bot.send_message(ann.user_id, "thinking …")
    await bot.edit_message_text(
        "<b>done</b> 😀", ann.user_id, sent.message_id, parse_mode="HTML", reply_markup=KEYBOARD
    )
    shown = ann.chat.last
    assert shown.text == "done 😀"
    assert shown.entities == [{"type": "bold", "offset": 0, "length": 4}]
    assert [button.text for button in shown.buttons] == ["👍", "👎"]
    assert [face.text for face in shown.revisions] == ["thinking …", "done 😀"]
    await bot.edit_message_text("plain", ann.user_id, sent.message_id)
    assert ann.chat.last.buttons == []


async def test_an_edit_that_changes_nothing_is_refused(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    sent = await bot.send_message(ann.user_id, "same", reply_markup=KEYBOARD)
    with pytest.raises(BadRequest, match="Message is not modified"):
        await bot.edit_message_text(" same ", ann.user_id, sent.message_id, reply_markup=KEYBOARD)
    with pytest.raises(BadRequest, match="Message is not modified"):
        await bot.edit_message_reply_markup(ann.user_id, sent.message_id, reply_markup=KEYBOARD)
    await bot.edit_message_reply_markup(ann.user_id, sent.message_id)
    assert ann.chat.last.buttons == []
    assert len(ann.chat.last.revisions) == 2


async def test_what_cannot_be_edited(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    said = ann.say("mine")
    with pytest.raises(BadRequest, match="can't be edited"):
        await bot.edit_message_text("x", ann.user_id, said.message_id)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("x", ann.user_id, 999)
    document = await bot.send_document(ann.user_id, b"data", filename="a.txt")
    with pytest.raises(BadRequest, match="There is no text in the message to edit"):
        await bot.edit_message_text("x", ann.user_id, document.message_id)


@pytest.mark.parametrize("length", [4096, 4097])
async def test_the_length_is_counted_in_code_points(telegram_server: TelegramServer, bot: Bot, length: int) -> None:
    ann = telegram_server.user()
    if length == 4096:
        assert (await bot.send_message(ann.user_id, "😀" * length)).text == "😀" * length
        assert (await bot.send_message(ann.user_id, "<b>" + "a" * length + "</b>", parse_mode="HTML")).text
    else:
        with pytest.raises(BadRequest, match="Message is too long"):
            await bot.send_message(ann.user_id, "a" * length)


async def test_raw_bytes_are_bounded_before_parsing(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    with pytest.raises(BadRequest, match="Text is too long"):
        await bot.send_message(ann.user_id, "<b></b>" * 5000 + "x", parse_mode="HTML")


@pytest.mark.parametrize(("text", "why"), [("", "Message text is empty"), (" \n\t", "Text must be non-empty")])
async def test_empty_texts(telegram_server: TelegramServer, bot: Bot, text: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        await bot.send_message(telegram_server.user().user_id, text)


@pytest.mark.parametrize(
    ("mode", "text", "why"),
    [
        ("HTML", "a < b", 'Unsupported start tag "" at byte offset 2'),
        ("HTML", "<b>open", 'Can\'t find end tag corresponding to start tag "b"'),
        ("HTML", "<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("HTML", "밥</b>", "Unexpected end tag at byte offset 3"),
        ("HTML", '<span class="x">y</span>', 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("MarkdownV2", "Hi there.", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("MarkdownV2", "밥 *bold", "Can't find end of Bold entity at byte offset 4"),
        ("MarkdownV2", "```\nopen", "Can't find end of Pre entity at byte offset 0"),
        ("Markdown", "snake_case", "Can't find end of the entity starting at byte offset 5"),
    ],
)
async def test_markup_that_does_not_parse(
    telegram_server: TelegramServer, bot: Bot, mode: str, text: str, why: str
) -> None:
    ann = telegram_server.user()
    with pytest.raises(BadRequest) as caught:
        await bot.send_message(ann.user_id, text, parse_mode=mode)
    assert caught.value.message.lower() == f"can't parse entities: {why}".lower()  # the library changes the case
    assert ann.chat.messages == []


async def test_markup_that_parses(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    html = 'x <pre><code class="language-py">a&lt;1</code></pre> <a href="https://e.org/?a=1&amp;b=2">l</a>'
    await bot.send_message(ann.user_id, html, parse_mode="HTML")
    assert ann.chat.last.text == "x a<1 l"
    assert ann.chat.last.entities == [
        {"type": "pre", "offset": 2, "length": 3, "language": "py"},
        {"type": "text_link", "offset": 6, "length": 1, "url": "https://e.org/?a=1&b=2"},
    ]
    await bot.send_message(ann.user_id, "😀 *b _i_* `c\\`` ||s||\n>q", parse_mode="MarkdownV2")
    kinds = [(item["type"], item["offset"], item["length"]) for item in ann.chat.last.entities]
    expected = [("bold", 3, 3), ("italic", 5, 1), ("code", 7, 2), ("spoiler", 10, 1), ("blockquote", 12, 1)]
    assert (ann.chat.last.text, kinds) == ("😀 b i c` s\nq", expected)


@pytest.mark.parametrize(
    ("entity", "why"),
    [
        (MessageEntity("bold", 1, 1), "Entity begins in a middle of a UTF-16 symbol"),
        (MessageEntity("bold", 0, 9), "Entity ends after the end of the text at UTF-16 offset 9"),
        (MessageEntity("bold", 5, 1), "Entity begins after the end of the text at UTF-16 offset 5"),
        (MessageEntity("bold", -1, 2), "Receive an entity with incorrect offset -1"),
        (MessageEntity("nonsense", 0, 1), "Unsupported type specified"),
    ],
)
async def test_entities_out_of_bounds(
    telegram_server: TelegramServer, bot: Bot, entity: MessageEntity, why: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        await bot.send_message(telegram_server.user().user_id, "😀abc", entities=[entity])
    assert why.lower() in caught.value.message.lower()


async def test_entities_are_kept_and_bounded(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    sent = await bot.send_message(ann.user_id, " 😀 bold ", entities=[MessageEntity("bold", 4, 4)])
    assert sent.parse_entities() == {MessageEntity("bold", 3, 4): "bold"}
    many = [MessageEntity("code", place * 2, 1) for place in range(150)]
    assert len((await bot.send_message(ann.user_id, "x " * 150, entities=many)).entities) == 100


async def test_replies(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    said = ann.say("question")
    sent = await bot.send_message(ann.user_id, "answer", reply_parameters=ReplyParameters(said.message_id))
    assert sent.reply_to_message is not None
    assert sent.reply_to_message.text == "question"
    ann.delete(said)
    with pytest.raises(BadRequest, match="Message to be replied not found"):
        await bot.send_message(ann.user_id, "again", reply_parameters=ReplyParameters(said.message_id))
    allowed = ReplyParameters(said.message_id, allow_sending_without_reply=True)
    assert (await bot.send_message(ann.user_id, "again", reply_parameters=allowed)).reply_to_message is None


@pytest.mark.parametrize("data", ["", "d" * 65, "밥" * 22])
async def test_callback_data_is_bounded_in_bytes(telegram_server: TelegramServer, bot: Bot, data: str) -> None:
    button = InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data=data)]])
    with pytest.raises(BadRequest, match=r"(?i)button_data_invalid"):
        await bot.send_message(telegram_server.user().user_id, "x", reply_markup=button)


async def test_other_methods(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user(language_code="ko")
    await bot.send_chat_action(ann.user_id, "typing")
    with pytest.raises(BadRequest, match="Wrong parameter action"):
        await bot.send_chat_action(ann.user_id, "dancing")
    await bot.set_my_commands([BotCommand("start", "Begin")])
    await bot.set_my_commands([BotCommand("help", "도움말")], language_code="ko")
    assert ann.menu() == ["help"]
    assert [item.command for item in await bot.get_my_commands()] == ["start"]
    with pytest.raises(BadRequest):
        await bot.set_my_commands([BotCommand("Bad-Name", "x")])
    sent = await bot.send_message(ann.user_id, "x")
    assert await bot.delete_message(ann.user_id, sent.message_id)
    with pytest.raises(BadRequest, match="Message to delete not found"):
        await bot.delete_message(ann.user_id, sent.message_id)
    assert (await bot.get_chat(ann.user_id)).first_name == "Ann"
    assert [action for _, action in ann.chat.actions] == ["typing"]
    assert await bot.send_message_draft(ann.user_id, 7, "half a th")
    assert ann.chat.drafts == {7: "half a th"}


async def test_documents_go_up_and_down(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    sent = await bot.send_document(
        ann.user_id, b'{"a": 1}', caption="your <i>data</i>", filename="me.json", parse_mode="HTML"
    )
    assert sent.document is not None
    assert (sent.document.file_name, sent.document.file_size, sent.caption) == ("me.json", 8, "your data")
    file = await bot.get_file(sent.document.file_id)
    assert bytes(await file.download_as_bytearray()) == b'{"a": 1}'
    with pytest.raises(BadRequest, match="Invalid file_id"):
        await bot.get_file("nothing")


async def test_reactions_of_the_bot(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    said = ann.say("hi")
    assert await bot.set_message_reaction(ann.user_id, said.message_id, "👀")
    assert said.emoji_of(bot.id) == ["👀"]
    with pytest.raises(BadRequest, match=r"(?i)reaction_invalid"):
        await bot.set_message_reaction(ann.user_id, said.message_id, "🧪")
    with pytest.raises(BadRequest, match="Message to react not found"):
        await bot.set_message_reaction(ann.user_id, 999, "👍")


# ------------------------------------------------------------------------------------------------------------ errors


async def test_error_classes(telegram_server: TelegramServer, bot: Bot) -> None:
    ann, ben = telegram_server.user(), telegram_server.user(started=False)
    with pytest.raises(Forbidden, match=r"(?i)bot can't initiate conversation with a user"):
        await bot.send_message(ben.user_id, "x")
    ben.start()
    await bot.send_message(ben.user_id, "x")
    ann.block()
    with pytest.raises(Forbidden, match="bot was blocked by the user"):
        await bot.send_message(ann.user_id, "x")
    ann.unblock()
    ann.deactivate()
    with pytest.raises(Forbidden, match="user is deactivated"):
        await bot.send_message(ann.user_id, "x")
    with pytest.raises(BadRequest, match="Chat not found"):
        await bot.send_message(12345, "x")
    for token in ("7310001:another-token-than-the-known-one", "nonsense"):
        stranger = _bot(telegram_server, token)
        with pytest.raises(InvalidToken):
            await stranger.initialize()
        await stranger.shutdown()
    with pytest.raises(Exception, match="not found"):
        await bot.do_api_request("inventMethod")


async def test_a_group_that_moved(telegram_server: TelegramServer, bot: Bot) -> None:
    group = telegram_server.group("Team", telegram_server.user(), kind="group")
    old = group.chat.chat_id
    group.migrate()
    with pytest.raises(ChatMigrated) as caught:
        await bot.send_message(old, "x")
    assert caught.value.new_chat_id == group.chat.chat_id
    assert (await bot.send_message(caught.value.new_chat_id, "x")).chat.type == "supergroup"
    group.remove_bot()
    with pytest.raises(Forbidden, match="bot was kicked"):
        await bot.send_message(group.chat.chat_id, "x")


async def test_scripted_refusals(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    telegram_server.flood_next("sendMessage", 7, times=2)
    for _ in range(2):
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(ann.user_id, "x")
        assert caught.value.retry_after == timedelta(seconds=7)
    telegram_server.fail_next("sendMessage", 502)
    telegram_server.garble_next("sendMessage")
    for _ in range(2):
        with pytest.raises(NetworkError):
            await bot.send_message(ann.user_id, "x")
    await bot.send_message(ann.user_id, "through")
    assert [message.text for message in ann.chat.messages] == ["through"]
    assert [call.status for call in telegram_server.calls_of("sendMessage")] == [429, 429, 502, 502, 200]


async def test_a_lost_answer_means_the_work_was_done(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    telegram_server.lose_response("sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(ann.user_id, "arrived")
    assert [message.text for message in ann.chat.messages] == ["arrived"]


async def test_a_late_answer(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    telegram_server.delay("sendMessage", 0.3)
    with pytest.raises(TimedOut):
        await bot.send_message(ann.user_id, "x", read_timeout=0.05)
    await bot.send_message(ann.user_id, "y")


async def test_flood_limits(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    telegram_server.flood = FloodLimits(burst=2)
    for _ in range(2):
        await bot.send_message(ann.user_id, "x")
    with pytest.raises(RetryAfter):
        await bot.send_message(ann.user_id, "x")
    await bot.send_message(telegram_server.user().user_id, "others are free")


# ----------------------------------------------------------------------------------------------------------- polling


async def test_offsets_confirm(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    for word in ("a", "b", "c"):
        ann.say(word)
    first = await bot.get_updates(limit=2)
    assert [item.message.text for item in first if item.message] == ["a", "b"]
    assert await bot.get_updates(limit=2) == first
    assert [item.message.text for item in await bot.get_updates(first[-1].update_id + 1) if item.message] == ["c"]
    ann.say("d")
    assert [item.message.text for item in await bot.get_updates(-1) if item.message] == ["d"]
    assert len(await bot.get_updates(0)) == 1


async def test_long_polling_wakes_up(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    waiting = asyncio.create_task(bot.get_updates(timeout=5, read_timeout=6))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    ann.say("wake up")
    assert len(await asyncio.wait_for(waiting, 1)) == 1


async def test_conflicts(telegram_server: TelegramServer, bot: Bot) -> None:
    async with _bot(telegram_server) as twin:
        first = asyncio.create_task(twin.get_updates(timeout=5, read_timeout=6))
        await asyncio.sleep(0.1)
        assert await bot.get_updates() == ()
        with pytest.raises(Conflict, match=r"(?i)terminated by other getUpdates"):
            await first
    await bot.set_webhook(f"{telegram_server.url}/nowhere")
    with pytest.raises(Conflict, match=r"(?i)webhook is active"):
        await bot.get_updates()
    with pytest.raises(BadRequest, match=r"(?i)bad webhook"):
        await bot.set_webhook("http://example.org/hook")
    await bot.delete_webhook()
    assert await bot.get_updates() == ()


async def test_reactions_must_be_asked_for(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    sent = ann.say("hi")
    ann.react(sent, "👍")
    assert [item.message_reaction for item in await bot.get_updates()] == [None]
    await bot.get_updates(allowed_updates=Update.ALL_TYPES)
    ann.react(sent, "👎")
    update = (await bot.get_updates(-1))[0].message_reaction
    assert update is not None
    assert [item.to_dict()["emoji"] for item in (*update.old_reaction, *update.new_reaction)] == ["👍", "👎"]


async def test_an_application_runs_on_it(telegram_server: TelegramServer) -> None:
    ann = telegram_server.user("Ann")
    seen: list[str] = []
    application = _application(telegram_server, seen)
    async with application:
        assert application.updater is not None
        await application.start()
        await application.updater.start_polling(allowed_updates=Update.ALL_TYPES, poll_interval=0)
        ann.start("deep")
        await telegram_server.wait_for(lambda: ann.chat.from_bot)
        answer = ann.chat.from_bot[-1]
        press = ann.press(answer, "👍")
        await telegram_server.wait_for(lambda: press.answered)
        assert press.text == "noted up"
        ann.react(answer, "👎")
        ann.edit(ann.say("typo"), "type")
        telegram_server.emit({"from_the_future": {"x": 1}})
        await telegram_server.wait_for(lambda: "edited type" in seen)
        await application.updater.stop()
        await application.stop()
    assert seen == ["start deep", "callback up", "reaction 👎", "text typo", "edited type"]
    assert telegram_server.world.queue.pending == []


def _application(server: TelegramServer, seen: list[str]) -> "Application":  # type: ignore[type-arg]
    async def start(update: Update, context: object) -> None:
        assert update.message is not None
        seen.append(f"start {(update.message.text or '').split()[-1]}")
        await update.message.reply_text("welcome", reply_markup=KEYBOARD)

    async def pressed(update: Update, context: object) -> None:
        assert update.callback_query is not None
        seen.append(f"callback {update.callback_query.data}")
        await update.callback_query.answer(f"noted {update.callback_query.data}")

    async def reacted(update: Update, context: object) -> None:
        assert update.message_reaction is not None
        seen.append(f"reaction {update.message_reaction.new_reaction[0].to_dict()['emoji']}")

    async def wrote(update: Update, context: object) -> None:
        word = "edited" if update.edited_message else "text"
        seen.append(f"{word} {update.effective_message.text if update.effective_message else ''}")

    built = (
        ApplicationBuilder().token(server.token).base_url(server.base_url).base_file_url(server.base_file_url).build()
    )
    built.add_handler(CommandHandler("start", start))
    built.add_handler(CallbackQueryHandler(pressed))
    built.add_handler(MessageReactionHandler(reacted))
    built.add_handler(MessageHandler(filters.TEXT, wrote))
    return built


async def test_callbacks_expire(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    await bot.send_message(ann.user_id, "rate me", reply_markup=KEYBOARD)
    telegram_server.world.query_life_s = 0.05
    press = ann.press(ann.chat.last, "up")
    await asyncio.sleep(0.1)
    with pytest.raises(BadRequest, match=r"(?i)Query is too old and response timeout expired or query ID is invalid"):
        await bot.answer_callback_query(press.query_id)
    with pytest.raises(ValueError, match="no such callback button"):
        ann.press(ann.chat.last, "nothing")
    gone = ann.press(ann.chat.last, "down", gone=True)
    query = (await bot.get_updates(-1))[0].callback_query
    assert query is not None
    assert query.message is not None
    assert not query.message.is_accessible
    assert gone.data == "down"


async def test_a_press_is_answered_once(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    await bot.send_message(ann.user_id, "rate me", reply_markup=KEYBOARD)
    press = ann.press(ann.chat.last, "up")
    await bot.answer_callback_query(press.query_id, "thanks", show_alert=True)
    assert (press.answered, press.text, press.alert) == (True, "thanks", True)
    with pytest.raises(BadRequest, match="too old"):
        await bot.answer_callback_query(press.query_id)


async def test_topics_and_drafts(telegram_server: TelegramServer, bot: Bot) -> None:
    ann = telegram_server.user()
    forum = telegram_server.group("Forum", ann, forum=True)
    chat_id, topic = forum.chat.chat_id, forum.topic("Talk")
    sent = await bot.send_message(chat_id, "in the topic", message_thread_id=topic)
    assert (sent.message_thread_id, sent.is_topic_message) == (topic, True)
    assert (await bot.send_message(chat_id, "in General")).message_thread_id is None
    assert await bot.send_chat_action(chat_id, "typing", message_thread_id=1)
    for call in (
        bot.send_message(chat_id, "x", message_thread_id=1),
        bot.send_message(ann.user_id, "x", message_thread_id=9),
    ):
        with pytest.raises(BadRequest, match="Message thread not found"):
            await call
    with pytest.raises(BadRequest, match=r"(?i)textdraft_peer_invalid"):
        await bot.send_message_draft(chat_id, 1, "x")


async def test_a_new_person_is_not_an_unblocked_one(telegram_server: TelegramServer, bot: Bot) -> None:
    ben = telegram_server.user(started=False)
    ben.start()
    assert [update.my_chat_member for update in await bot.get_updates()] == [None]
    ben.block()
    ben.say("back")
    assert [bool(update.my_chat_member) for update in await bot.get_updates()] == [False, True, True, False]


async def test_polling_survives_an_outage(telegram_server: TelegramServer) -> None:
    seen: list[str] = []
    ann = telegram_server.user()
    async with _application(telegram_server, seen) as application:
        assert application.updater is not None
        await application.start()
        await application.updater.start_polling(poll_interval=0, allowed_updates=Update.ALL_TYPES)
        await telegram_server.stop()
        ann.say("while it is down")
        await telegram_server.start()
        await telegram_server.wait_for(lambda: seen, timeout_s=15)
        await application.updater.stop()
        await application.stop()
    assert seen == ["text while it is down"]
