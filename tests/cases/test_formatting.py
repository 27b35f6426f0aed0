"""Formatting and length: whatever Markdown a model writes, all of it is read, in messages that the platforms take."""

import re

import pytest
from wcwidth import iter_graphemes

from tests.cases.talk import (
    FAMILY,
    asked,
    count,
    formats,
    got,
    letters,
    on_telegram,
    on_whatsapp,
    replied,
    seen,
    settled,
    texts,
    told,
    units,
)
from tests.fakes.model import ModelServer, faults
from tests.fakes.telegram import TelegramServer
from tests.fakes.twilio import TwilioServer
from tests.support.road import Road

UNCLOSED = {
    "a bare fence": "Set it so:\n```\nsend(text, parse_mode=None)",
    "a fence with a language": "```python\nparse_mode = 'x'\n\nand more_of_it",
    "within an item": "- first\n  ```py\n  parse_mode\n- last",
    "within a quote": "> ```\n> parse_mode",
    "in the middle of a line": "the ``` of parse_mode",
    "one backtick": "call `parse_mode and go",
    "Korean": "이렇게 하세요:\n```\n값 = parse_mode_다",
    "tildes": "~~~sh\nparse_mode=1",
}


@pytest.mark.parametrize("markdown", UNCLOSED.values(), ids=list(UNCLOSED))
def test_g01_an_unclosed_fence_is_shown(markdown: str) -> None:
    """G01 · https://github.com/n3d1117/chatgpt-telegram-bot/issues/151: code that never ends, with the library's own words
    in it, is read all the same; the Bot API takes it as it is sent.
    """
    assert letters("parse_mode") == letters("".join(re.findall(r"parse_mode", seen(markdown))))
    language = {"python", "py", "sh"}
    written = [word for word in re.findall(r"\w+", markdown) if word not in language]
    assert re.findall(r"\w+", seen(markdown)) == written


async def test_g01_refused_formats_are_shown_plain(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    """G01 · https://github.com/n3d1117/chatgpt-telegram-bot/issues/151: where Telegram refuses the formats nevertheless, the
    person reads the reply without them, once.
    """
    model.reply_with("Use **parse_mode** like `this`")
    model.pace = faults.Slow(first_token_s=0.7)
    refusal = "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 33"
    ann = telegram_server.user("Ann")
    ann.say("/help")
    await told(telegram_server, ann, "Just write to me")
    telegram_server.fail_next("editMessageText", 400, refusal)
    ann.say("how?")
    reply = await replied(telegram_server, ann, "Use parse_mode like this")
    assert reply.entities == []
    assert [call.status for call in telegram_server.calls_of("editMessageText")] == [400, 200]
    await settled(telegram)
    assert texts(ann).count("Use parse_mode like this") == 1


UNBALANCED = [
    "**never closed", "closed too often** and **so**", "***one* and **two", "__a **b__ c**", "**", "** spaced **",
    "_**~~`deep`~~**", "**굵게 시작하고 끝이 없음", "**「強調」は", f"*{FAMILY} **and", "**שלום *עולם**", "[label](http://", "![", "*" * 999,
    "a * b ** c *** d", "~~gone", "|a|b\n|-|", "> > **q", "1. **", "<x>half", "</x>", "\\", "&amp;&lt;**",
]  # fmt: skip


@pytest.mark.parametrize("markdown", UNBALANCED)
def test_g02_unbalanced_marks_lose_nothing(markdown: str) -> None:
    """G02 · https://github.com/rikkichy/ollama-telegram/issues/27: stars that do not pair up neither lose the reply nor a
    word of it, on either platform.
    """
    plain = markdown.replace("&amp;", "").replace("&lt;", "")
    (shown,) = on_telegram(markdown)
    assert letters(shown.text) == letters(plain)
    assert letters("".join(on_whatsapp(markdown)).replace("http", "")) == letters(plain.replace("http", ""))


async def test_g02_a_broken_reply_reaches_its_reader(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    """G02 · https://github.com/rikkichy/ollama-telegram/issues/27: the same through a gateway: read, and no call refused."""
    ann = telegram_server.user("Ann")
    for number, markdown in enumerate(("**open and *more", "`tick and **bold", "### **[half](http://e.org", "~~__**_")):
        model.reply_with(f"reply {number} {markdown}")
        ann.say("go on")
        await replied(telegram_server, ann, f"reply {number}")
    assert {call.status for call in telegram_server.calls} == {200}


NESTED_FENCES = {
    "python in markdown": ("```markdown\nSay:\n```python\nprint(1)\n```\nBye.\n```\nAfter", "markdown", "print(1)"),
    "two in one": ("```md\n```js\na\n```\n```sh\nb\n```\n```\nAfter", "md", "b"),
    "tildes inside": ("```markdown\n~~~c\nx;\n~~~\n```\nAfter", "markdown", "x;"),
    "already longer": ("````markdown\n```python\nprint(1)\n```\n````\nAfter", "markdown", "print(1)"),
    "Korean": ("```markdown\n설명:\n```python\nprint('안녕')\n```\n끝\n```\nAfter", "markdown", "print('안녕')"),
    "other case": ("```Markdown\n```rust\nfn a() {}\n```\n```\nAfter", "Markdown", "fn a() {}"),
}


@pytest.mark.parametrize(("markdown", "language", "inner"), NESTED_FENCES.values(), ids=list(NESTED_FENCES))
def test_g04_a_fence_in_a_fence_stays_inside(markdown: str, language: str, inner: str) -> None:
    """G04 · https://github.com/skoropadas/telegramify-markdown/issues/10: a Markdown sample that holds fences is one block of
    its language, the inner fences read as text, and what follows is not code.
    """
    (shown,) = on_telegram(markdown)
    (block,) = [e for e in shown.entities if e.kind == "pre"]
    assert block.extra["language"] == language
    assert inner in shown.part(block)
    assert re.search(r"(```|~~~)\w+", shown.part(block))
    assert shown.text.endswith("\nAfter")
    assert "After" not in shown.part(block)


MARKS_AS_CODE = {
    "two stars": ("- `**` makes **bold**", ["**"], ["bold"]),
    "several": ("- `**` and `__` and `*`: **all**, *these*", ["**", "__", "*"], ["all"]),
    "a number": ("1. `~~` is **not** `**`", ["~~", "**"], ["not"]),
    "Korean": ("- `**`는 **굵게**라는 뜻", ["**"], ["굵게"]),
    "deep": ("- a\n  - `**` then **b**", ["**"], ["b"]),
    "a backtick": ("- `` ` `` is **one**", ["`"], ["one"]),
    "in a heading": ("**before** `**` **after**", ["**"], ["before", "after"]),
}


@pytest.mark.parametrize(("markdown", "code", "bold"), MARKS_AS_CODE.values(), ids=list(MARKS_AS_CODE))
def test_g05_marks_shown_as_code_format_nothing(markdown: str, code: list[str], bold: list[str]) -> None:
    """G05 · https://github.com/skoropadas/telegramify-markdown/issues/3: an item that shows a mark as code and makes bold
    beside it has exactly these formats, and no backslash is read.
    """
    found = formats(markdown)
    assert [words for kind, words in found if kind == "code"] == code
    assert [words for kind, words in found if kind == "bold"] == bold
    assert "\\" not in seen(markdown)
    assert all(f"*{words}*" in on_whatsapp(markdown)[0] for words in bold)


TREES = {
    "two spaces": "- web/\n  - parts/\n    - Menu.tsx",
    "four spaces": "- web/\n    - parts/\n        - Menu.tsx",
    "tabs": "* web/\n\t* parts/\n\t\t* Menu.tsx",
    "numbers": "1. web/\n   1. parts/\n      1. Menu.tsx",
    "mixed": "- web/\n  1. parts/\n     + Menu.tsx",
    "blank lines": "- web/\n\n  - parts/\n\n    - Menu.tsx",
}


@pytest.mark.parametrize("markdown", TREES.values(), ids=list(TREES))
def test_g07_every_nested_item_has_its_line(markdown: str) -> None:
    """G07 · https://github.com/sudoskys/telegramify-markdown/issues/99: a tree of files is read as a tree: one line an item,
    the deeper ones further in.
    """
    for shown in (seen(markdown), on_whatsapp(markdown)[0]):
        lines = [line for line in shown.split("\n") if line.strip()]
        assert [line.split()[-1] for line in lines] == ["web/", "parts/", "Menu.tsx"]
        depths = [len(line) - len(line.lstrip()) for line in lines]
        assert depths == sorted(set(depths))


@pytest.mark.parametrize("bullet", ["- ", "1. ", "* "])
@pytest.mark.parametrize("second", ["and then more", "**굵게** 그리고", "👍 fine"])
def test_g07_paragraphs_of_an_item_stay_apart(bullet: str, second: str) -> None:
    """G07 · https://github.com/sudoskys/telegramify-markdown/issues/99: two paragraphs of one item are not glued together."""
    markdown = f"{bullet}first thought\n\n{' ' * len(bullet)}{second}\n{bullet}next"
    for shown in (seen(markdown), on_whatsapp(markdown)[0]):
        assert re.search(r"first thought\n\n +\W*\w", shown)
        assert re.search(r"\n\S+ next$", shown)


NAMES = [
    "snake_case_name",
    "@under_score_bot",
    "__init__.py",
    "a_b*c`d",
    "[brackets](x",
    "Łukasz_김_😀",
    "_x_y_",
    "1. Ann",
]


@pytest.mark.parametrize("name", NAMES)
async def test_g09_a_name_with_marks_harms_nothing(telegram: Road, telegram_server: TelegramServer, name: str) -> None:
    """G09 · https://github.com/python-telegram-bot/python-telegram-bot/issues/1663: a person whose name or words hold marks is
    greeted, answered and told who they are; no call is refused.
    """
    ann = telegram_server.user(name, username="under_score_name")
    ann.say(f"I am {name}")
    await replied(telegram_server, ann, "You said")
    ann.say("/whoami")
    await told(telegram_server, ann, "Answering")
    assert {call.status for call in telegram_server.calls} == {200}
    assert await asked(telegram) == [f"I am {name}"]


@pytest.mark.parametrize(
    "words",
    [
        "I am allergic to snake_case_nuts",
        "Please always end with '@under_score_bot'",
        "Please always end with '__init__'",
        "Please always end with '*5* stars'",
    ],
)
async def test_g09_what_is_remembered_is_quoted_as_it_was_said(
    telegram: Road, telegram_server: TelegramServer, words: str
) -> None:
    """G09 · https://github.com/python-telegram-bot/python-telegram-bot/issues/1663: a person's words in a message of the bot
    are escaped: they are read as they were written.
    """
    ann = telegram_server.user("Ann")
    ann.say("/learn on")
    await told(telegram_server, ann, "On: I may learn")
    ann.say("What do you know of me?")
    reply = await replied(telegram_server, ann, "You said: What")
    ann.say(words, reply_to=reply)
    kept = await told(telegram_server, ann, "I'll keep this in mind")
    assert [row["text"] for row in await telegram.rows("select text from memory_lines")] == [words]
    assert words in kept.text


ENDLESS = {
    "a word": "x" * 9000,
    "words": "some words " * 900,
    "Korean": "한국어문장이띄어쓰기없이" * 800,
    "emoji": "😀" * 5000,
    "Hebrew": "שלום עולם " * 900,
    "code": "```python\n" + "value = 1\n" * 900 + "```",
    "lines": "line\n" * 2500,
}


@pytest.mark.parametrize("markdown", ENDLESS.values(), ids=list(ENDLESS))
def test_g11_more_than_one_message_holds_comes_in_several(markdown: str) -> None:
    """G11 · https://github.com/openclaw/openclaw/issues/67396: a reply longer than a message is cut, each part taken by the
    platform, and put together again nothing is missing.
    """
    whole = letters(markdown.replace("```python", ""))
    shown = on_telegram(markdown)
    assert len(shown) > 1
    assert all(units(part.text) <= 4096 for part in shown)
    assert letters("".join(part.text for part in shown)) == whole
    assert letters("".join(on_whatsapp(markdown))) == whole


async def test_g11_all_parts_of_a_long_reply_arrive(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer
) -> None:
    """G11 · https://github.com/openclaw/openclaw/issues/67396: through a gateway every part of it arrives once, in order."""
    words = [f"wort{n}" for n in range(900)]
    model.reply_with(" ".join(words))
    ann = telegram_server.user("Ann")
    ann.say("everything, please")
    await replied(telegram_server, ann, "wort899", 30)
    await settled(telegram)
    assert re.findall(r"wort\d+", " ".join(texts(ann))) == words
    assert await count(telegram, "outbox where state <> 'sent'") == 0


@pytest.mark.parametrize("lead", ["", "a", "ab", "가", "a" * 4095, "a" * 1499])
@pytest.mark.parametrize(
    "symbol", ["😀", FAMILY, "🇰🇷", "👍🏽", "e\u0301", "\u1112\u1161\u11ab", "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3"]
)
def test_g12_no_cut_goes_through_a_sign(symbol: str, lead: str) -> None:
    """G12 · https://github.com/openclaw/openclaw/issues/93921: where a cut falls on an emoji or a composed letter, it stays
    whole: no part has half of one, none is lost.
    """
    for parts in ([part.text for part in on_telegram(lead + symbol * 2500)], on_whatsapp(lead + symbol * 2500)):
        whole = "".join(parts)
        assert whole == lead + symbol * 2500
        assert {sign for part in parts for sign in iter_graphemes(part)} <= {symbol, *lead}


GROWING = {
    "a table": "| n | text |\n|---|---|\n" + "\n".join(f"| **{n}** | a & b < c > d |" for n in range(150)),
    "signs of HTML": "a < b & c > d " * 270,
    "entities": "&amp;&lt;&gt; " * 300,
    "many bold words": " ".join(f"**b{n}** & <i>i{n}</i>" for n in range(400)),
    "links": " ".join(f"[l{n}](https://e.org/?a={n}&b=<{n}>)" for n in range(300)),
    "Korean table": "| 이름 | 값 |\n|---|---|\n" + "\n".join(f"| **항목{n}** | 가 & 나 |" for n in range(200)),
}


@pytest.mark.parametrize("markdown", GROWING.values(), ids=list(GROWING))
def test_g14_what_is_measured_is_what_is_sent(markdown: str) -> None:
    """G14 · https://github.com/openclaw/openclaw/issues/31194 https://github.com/openclaw/openclaw/issues/57924: signs and
    formats that grow when they are rendered do not make a message too long.
    """
    for part in on_telegram(markdown):
        assert units(part.text) <= 4096
        assert len(part.entities) <= 100
    assert all(units(part) <= 1500 for part in on_whatsapp(markdown))
    numbers = re.findall(r"\d+", re.sub(r"\([^)]*\)", "", markdown))
    assert re.findall(r"\d+", " ".join(part.text for part in on_telegram(markdown))) == numbers


@pytest.mark.parametrize(
    "refusal", ["Bad Request: message is too long", "Bad Request: MESSAGE_TOO_LONG", "Bad Request: text is too long"]
)
async def test_g14_too_long_is_for_good(
    telegram: Road, telegram_server: TelegramServer, refusal: str, caplog: pytest.LogCaptureFixture
) -> None:
    """G14 · https://github.com/openclaw/openclaw/issues/31194 https://github.com/openclaw/openclaw/issues/57924: a message that
    Telegram finds too long is not sent for ever; the operator's log says so, and the next reply comes.
    """
    ann = telegram_server.user("Ann")
    ann.say("/help")
    await told(telegram_server, ann, "Just write to me")
    await settled(telegram)
    telegram_server.fail_next("sendMessage", 400, refusal)
    before = len(telegram_server.calls_of("sendMessage"))
    ann.say("/whoami")
    await settled(telegram, beyond=1)
    assert len(telegram_server.calls_of("sendMessage")) == before + 1
    assert await count(telegram, "outbox where state = 'failed'") == 1
    assert "outbox:part:given_up" in caplog.messages
    ann.say("still there?")
    await replied(telegram_server, ann, "You said: still there?")


NO_ROOM = {
    "an endless target": f"[here](https://e.org/{'a' * 9000}) and on",
    "an endless label": f"[{'label ' * 1500}](https://e.org)",
    "formats in formats": "**_~~" * 60 + "deep" + "~~_**" * 60,
    "quotes in quotes": "> " * 150 + "deep",
    "an endless language": f"```{'x' * 5000}\ncode\n```",
    "a format a letter": "".join(f"**{c}**`{c}`" for c in "abcdefghij" * 60),
    "Korean bold a syllable": "".join(f"**{c}** " for c in "가나다라마바사" * 60),
    "endless backticks": f"~~~\n{'`' * 3000}code\n~~~",
    "backticks beside a fence": f"~~~ a`b {'deep ' * 400}\n{'code ' * 900}\n~~~",
    "an endless title": f'[t](https://e.org "{"title " * 1200}")',
}


@pytest.mark.parametrize("markdown", NO_ROOM.values(), ids=list(NO_ROOM))
def test_g15_formats_that_leave_no_room_lose_no_words(markdown: str) -> None:
    """G15 · https://github.com/openclaw/openclaw/issues/102910: where formats take all the room, the formats give way and the
    words are sent; nothing is raised.
    """
    shown = on_telegram(markdown)
    assert all(units(part.text) <= 4096 for part in shown)
    words = re.compile(r"deep|here|and on|code|[가-힣]|label|title")
    assert words.findall(" ".join(part.text for part in shown)) == words.findall(markdown)
    said = on_whatsapp(markdown)
    assert all(units(part) <= 1500 for part in said)
    assert words.findall(" ".join(said)) == words.findall(markdown)


PARAGRAPHS = {
    "English": [f"word{n}" for n in range(3000)],
    "Korean": [f"낱말{n}이라는" for n in range(2500)],
    "Hebrew": [f"מילה{n}" for n in range(2500)],
    "long words": ["donaudampfschiff" + "fahrt" * 20 + str(n) for n in range(150)],
    "emoji": [f"😀{n}" for n in range(3000)],
    "bold": [f"**w{n}**" if n % 97 == 0 else f"w{n}" for n in range(3000)],
}


@pytest.mark.parametrize("words", PARAGRAPHS.values(), ids=list(PARAGRAPHS))
def test_g16_a_long_paragraph_is_cut_between_words(words: list[str]) -> None:
    """G16 · https://github.com/openclaw/openclaw/issues/104473 https://github.com/openclaw/openclaw/issues/104377: every word of
    a paragraph without a line break is in one part.
    """
    plain = [word.strip("*") for word in words]
    shown = [part.text for part in on_telegram(" ".join(words))]
    assert len(shown) > 1
    assert [word for part in shown for word in part.split()] == plain
    assert [word.strip("*") for part in on_whatsapp(" ".join(words)) for word in part.split()] == plain


TABLES = {
    "plain": ("| fruit | n |\n|---|--:|\n| fig | 12 |\n| apple | 3 |", ["fruit", "fig", "apple"]),
    "without edges": ("fruit | n\n--|--\nfig | 1", ["fruit", "fig"]),
    "Korean": ("| 과일 | 수 |\n|---|---|\n| 무화과 | 12 |\n| fig | 3 |", ["과일", "무화과", "fig"]),
    "emoji": ("| a | b |\n|---|---|\n| 😀 | x |\n| yy | z |", ["a", "😀", "yy"]),
}


@pytest.mark.parametrize(("markdown", "first"), TABLES.values(), ids=list(TABLES))
def test_g18_a_table_is_a_table(markdown: str, first: list[str]) -> None:
    """G18 · https://github.com/agentscope-ai/QwenPaw/issues/7590: a table is a padded block on Telegram and labelled lines on
    WhatsApp; the row of dashes is no text and no bar leads a line.
    """
    (shown,) = on_telegram(markdown)
    (block,) = shown.entities
    assert block.kind == "pre"
    assert shown.part(block) == shown.text
    rows = [line for line in shown.text.split("\n") if "|" in line]
    assert [row.split("|")[0].strip() for row in rows] == first
    assert not any(row.startswith("|") for row in rows)
    (said,) = on_whatsapp(markdown)
    assert "|" not in said
    assert all(f"{first[0]}: {value}" in said for value in first[1:])


@pytest.mark.parametrize(
    "plain", ["foo | bar", "||spoiler||", "| a | b |", "a || b && c | d", "x | y\nnot | a table", "세로 | 줄"]
)
def test_g18_what_is_no_table_is_left(plain: str) -> None:
    """G18 · https://github.com/agentscope-ai/QwenPaw/issues/7590: bars that make no table are read as they were written."""
    assert seen(plain) == plain
    assert formats(plain) == []
    assert on_whatsapp(plain) == [plain]


@pytest.mark.parametrize(
    "reply",
    [
        "**안녕하세요**, 반갑습니다.\n\n- 하나\n- 둘",
        "# 標題\n中文**粗體**內容",
        "**「日本語」**です。`コード`",
        "한글 😀 *기울임*",
    ],
)
async def test_g20_east_asian_replies_are_ordinary_messages(
    telegram: Road, telegram_server: TelegramServer, model: ModelServer, reply: str
) -> None:
    """G20 · https://github.com/NousResearch/hermes-agent/issues/50222 https://github.com/NousResearch/hermes-agent/issues/47653:
    Korean, Chinese and Japanese come as plain text with entities, never as a rich message that some apps draw badly.
    """
    model.reply_with(reply)
    ann = telegram_server.user("Ann")
    ann.say("hi")
    shown = await replied(telegram_server, ann, seen(reply))
    assert {e["type"] for e in shown.entities} <= {"bold", "italic", "code"}
    methods = {call.method.lower() for call in telegram_server.calls}
    assert not {m for m in methods if "rich" in m or "draft" in m}
    assert all("parse_mode" not in call.values for call in telegram_server.calls)


LONG_FOR_WHATSAPP = {
    "a little too long": "Warm bread every day. " * 78,
    "Korean": "갓 구운 빵이 있습니다. " * 200,
    "emoji": "🥖" * 1700,
    "one word": "b" * 1700,
    "a family": FAMILY * 180,
    "a list": "\n".join(f"- **item {n}**: fresh" for n in range(120)),
    "just what fits": "y" * 1500,
}


@pytest.mark.parametrize("reply", LONG_FOR_WHATSAPP.values(), ids=list(LONG_FOR_WHATSAPP))
async def test_g22_no_part_is_longer_than_whatsapp_takes(
    whatsapp: Road, twilio_server: TwilioServer, model: ModelServer, reply: str
) -> None:
    """G22 · https://github.com/BotBuilderCommunity/botbuilder-community-js/issues/329
    https://github.com/chatwoot/chatwoot/issues/2206: a reply of more than 1600 characters comes in parts that Twilio takes,
    whole when put together.
    """
    model.reply_with(reply)
    ann = twilio_server.person()
    await ann.say("hello")
    await settled(whatsapp, 30)
    parts = [re.sub(r"^\(\d+/\d+\)\n\n", "", text) for text in ann.texts[2:]]
    assert all(units(text) <= 1600 for text in ann.texts)
    assert letters("".join(parts)) == letters("".join(on_whatsapp(reply)))
    assert not [call for call in twilio_server.calls if call.status >= 400]


async def test_g22_a_part_that_twilio_refuses_is_told(
    whatsapp: Road, twilio_server: TwilioServer, caplog: pytest.LogCaptureFixture
) -> None:
    """G22 · https://github.com/BotBuilderCommunity/botbuilder-community-js/issues/329
    https://github.com/chatwoot/chatwoot/issues/2206: should Twilio find a message too long after all, it is not sent again and
    the operator's log says so.
    """
    ann = twilio_server.person()
    await ann.say("/help")
    await settled(whatsapp)
    sent = len(twilio_server.calls)
    twilio_server.fail_next(21617)
    await ann.say("/whoami")
    await settled(whatsapp)
    messages = [call.status for call in twilio_server.calls[sent:] if call.path.endswith("Messages.json")]
    assert messages == [400]
    assert await count(whatsapp, "outbox where state = 'failed'") == 1
    assert "outbox:part:given_up" in caplog.messages


BOTH = {
    "stars": ("***launch now***", "_*launch now*_"),
    "underscores": ("___launch now___", "_*launch now*_"),
    "one word of underscores": ("___launch___", "_*launch*_"),
    "mixed": ("**_launch now_**", "*_launch now_*"),
    "mixed the other way": ("*__launch now__*", "_*launch now*_"),
    "Korean": ("***지금 시작***", "_*지금 시작*_"),
    "emoji": ("***go 🚀***", "_*go 🚀*_"),
    "over two lines": ("***launch\nnow***", "_*launch*_\n_*now*_"),
    "in an item": ("- ***launch***", "- _*launch*_"),
    "bold in it": ("***launch* now**", "*_launch_ now*"),
    "italic at its end": ("**launch *now***", "*launch _now_*"),
    "struck": ("~~***gone***~~", "~_*gone*_~"),
    "in code it stays": ("`***x***`", "`***x***`"),
    "a word's beginning": ("**T**ea and **C**o", "Tea and Co"),
    "before an apostrophe": ("**Ann**'s tea", "*Ann*'s tea"),
}


@pytest.mark.parametrize(("markdown", "said"), BOTH.values(), ids=list(BOTH))
def test_g23_bold_and_italic_at_once(markdown: str, said: str) -> None:
    """G23 · https://github.com/NousResearch/hermes-agent/issues/55296: both at once become both of WhatsApp's marks, and no
    star is left to be read.
    """
    assert on_whatsapp(markdown) == [said]


@pytest.mark.parametrize("markdown", ["pre***fix***es", "re**do**ne", "**T**", "말**굵게**말", "a***b*c**d"])
def test_g23_within_a_word_no_doubled_star_is_left(markdown: str) -> None:
    """G23 · https://github.com/NousResearch/hermes-agent/issues/55296: where WhatsApp formats nothing, within a word, no pair
    of stars is read either, and no letter is lost.
    """
    (said,) = on_whatsapp(markdown)
    assert "**" not in said
    assert letters(said) == letters(markdown)


CONVERTED = {
    "bold": ("**Serviços**", "*Serviços*"),
    "a link": ("[Map](https://maps.example/a_b?c=d)", "Map (https://maps.example/a_b?c=d)"),
    "a bold link": ("**[Map](https://m.example)**", "*Map (https://m.example)*"),
    "a heading": ("# Title", "*Title*"),
    "a deep heading": ("#### Título **forte**", "*Título forte*"),
    "Korean": ("## 제목\n**굵게**와 [지도](https://m.example)", "*제목*\n*굵게*와 지도 (https://m.example)"),
    "code": ("```js\nlet **a** = 1\n```", "```\nlet **a** = 1\n```"),
    "code beside it": ("Run `npm **x**` **now**", "Run `npm **x**` *now*"),
    "a picture": ("![cake](https://c.example/1.png)", "cake (https://c.example/1.png)"),
    "struck": ("~~old~~ **new**", "~old~ *new*"),
    "Hebrew": ("**שלום** [כאן](https://m.example)", "*שלום* כאן (https://m.example)"),
    "emoji": ("**🍞 Pão** e *café*", "*🍞 Pão* e _café_"),
    "all together": (
        "# Hi\n\n- **A**: [b](https://b.example)\n\n```py\nx\n```",
        "*Hi*\n\n- *A*: b (https://b.example)\n\n```\nx\n```",
    ),
    "nothing": ("nothing to convert", "nothing to convert"),
}


@pytest.mark.parametrize(("markdown", "said"), CONVERTED.values(), ids=list(CONVERTED))
def test_g25_markdown_becomes_whatsapp_s_own_marks(markdown: str, said: str) -> None:
    """G25 · https://github.com/fazer-ai/agents/issues/466 https://github.com/openclaw/openclaw/issues/14791: bold, links, headings
    and code are read as WhatsApp writes them, not as Markdown.
    """
    assert on_whatsapp(markdown) == [said]


async def test_g25_what_arrives_is_converted(whatsapp: Road, twilio_server: TwilioServer, model: ModelServer) -> None:
    """G25 · https://github.com/fazer-ai/agents/issues/466 https://github.com/openclaw/openclaw/issues/14791: the same, on the
    phone of a person.
    """
    model.reply_with("# Hours\n**Open** from 7, see [map](https://m.example)")
    ann = twilio_server.person()
    await ann.say("when?")
    assert (await got(ann, "Hours")).body == "*Hours*\n*Open* from 7, see map (https://m.example)"
