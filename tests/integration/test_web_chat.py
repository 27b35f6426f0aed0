"""The web chat at its HTTP interface: who may come in, what is accepted, what is shown, with the rows it makes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar
from sqlalchemy import func, insert, select, update

from app.domain.event import MessageEvent, PressEvent
from app.domain.outgoing import Content
from app.domain.press import Press
from app.services.stream import Item
from app.store import Store, outbox, webchat_read
from app.store.tables.admin import login_attempts
from app.store.tables.people import accounts, chats, consent_events, invitations, people, sessions
from app.store.tables.road import inbox, turns
from app.store.tables.road import outbox as outbox_rows
from bots.web.cookie import invitation_hash
from bots.web.parse import parse
from tests.support.webchat import WebChat, running_web_chat

Body = dict[str, object]


class Person:
    """Somebody with a browser: a cookie jar, and the Origin header that a browser adds."""

    def __init__(self, chat: WebChat) -> None:
        self.chat = chat
        self.http = ClientSession(cookie_jar=CookieJar(unsafe=True))
        self.code = ""

    async def post(self, path: str, body: object, **headers: str) -> ClientResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", "Origin": self.chat.url} | headers
        answer = await self.http.post(f"{self.chat.url}/chat/api/{path}", data=data, headers=sent)
        await answer.read()
        return answer

    async def get(self, path: str) -> ClientResponse:
        answer = await self.http.get(f"{self.chat.url}/chat/api/{path}")
        await answer.read()
        return answer

    async def start(self, **body: object) -> ClientResponse:
        answer = await self.post("start", body)
        if answer.status == 201:
            self.code = (await answer.json())["recovery_code"]
        return answer

    async def send(self, kind: str = "message", **fields: object) -> ClientResponse:
        return await self.post("updates", {"id": str(uuid4()), "kind": kind} | fields)

    async def items(self) -> list[Body]:
        found: list[Body] = (await (await self.get("messages")).json())["items"]
        return found

    async def until(self, count: int, kind: str = "reply") -> list[Body]:
        """Return the items once `count` of a kind are shown and have their ids."""
        for _ in range(200):
            items = await self.items()
            if len([i for i in items if i.get("kind") == kind and i.get("message_id")]) >= count:
                return items
            await asyncio.sleep(0.03)
        raise AssertionError(items)

    async def me(self) -> dict[str, Body]:
        found: dict[str, Body] = await (await self.get("me")).json()
        return found

    def cookie(self) -> str:
        (found,) = [c for c in self.http.cookie_jar if c.key == "mentee_chat"]
        return found.value

    def wear(self, token: str) -> None:
        self.http.cookie_jar.update_cookies({"mentee_chat": token})


@pytest.fixture
async def chat(store: Store) -> AsyncIterator[WebChat]:
    async with running_web_chat(store) as running:
        yield running


@pytest.fixture
async def person(chat: WebChat) -> AsyncIterator[Person]:
    arrived = Person(chat)
    assert (await arrived.start(language="en")).status == 201
    yield arrived
    await arrived.http.close()


@pytest.fixture
async def stranger(chat: WebChat) -> AsyncIterator[Person]:
    somebody = Person(chat)
    yield somebody
    await somebody.http.close()


async def count(store: Store, table: object) -> int:
    async with store.begin() as tx:
        return int(await tx.scalar(select(func.count()).select_from(table)) or 0)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------ people


async def test_a_newcomer_gets_a_cookie_that_only_the_browser_can_read(stranger: Person, store: Store) -> None:
    answer = await stranger.start(language="ko")
    assert answer.status == 201
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert len(stranger.cookie()) == 43  # 256 bits
    async with store.begin() as tx:
        account = (await tx.execute(select(accounts))).one()
        room = (await tx.execute(select(chats))).one()
        agreed = (await tx.execute(select(consent_events))).one()
    assert stranger.cookie() not in account.external_id
    assert len(account.external_id) == 64
    assert room.external_id == str(room.id) == str(account.id)
    assert (agreed.purpose, agreed.event, agreed.notice_language) == ("service", "given", "ko")
    assert {p: c["on"] for p, c in (await stranger.me())["consents"].items()} == {
        "memory": False,
        "personal_training": False,
        "shared_training": False,
        "human_review": False,
        "outside_judge": False,
    }


async def test_what_was_left_off_at_the_first_visit_is_known_as_refused(stranger: Person, store: Store) -> None:
    assert (await stranger.start(language="en", left_off=["memory", "everything"])).status == 400
    assert (await stranger.start(language="en", left_off=["memory", "human_review"])).status == 201
    async with store.begin() as tx:
        found = (await tx.execute(select(consent_events.c.purpose, consent_events.c.event))).all()
    assert {tuple(row) for row in found} == {("service", "given"), ("memory", "refused"), ("human_review", "refused")}
    consents = (await stranger.me())["consents"]
    assert consents["memory"] == {"on": False, "answered": True}
    assert consents["shared_training"] == {"on": False, "answered": False}


async def test_behind_https_the_cookie_is_bound_to_the_host(store: Store) -> None:
    async with running_web_chat(store, {"public_url": "https://chat.example.org"}) as chat:
        somebody = Person(chat)
        await add_invitation(store, "let me in")
        answer = await somebody.start(invitation="let me in")
        assert answer.status == 201
        assert answer.headers["Set-Cookie"].startswith("__Host-mentee_chat=")
        assert "Secure" in answer.headers["Set-Cookie"]
        await somebody.http.close()


async def test_the_recovery_code_brings_a_person_back_however_it_is_typed(
    chat: WebChat, person: Person, stranger: Person
) -> None:
    await person.send(text="hello")
    await person.until(1)
    answer = await stranger.post("recover", {"code": f" {person.code.lower().replace('-', ' ')} "})
    assert answer.status == 200
    assert stranger.cookie() != person.cookie()
    assert [i.get("text") for i in await stranger.items() if i["who"] == "you"] == ["hello"]
    assert len(await person.items()) == 2  # the first browser stays


async def test_a_new_code_ends_the_old_one(person: Person, stranger: Person) -> None:
    old = person.code
    new = (await (await person.post("recovery-code", {})).json())["recovery_code"]
    assert (await stranger.post("recover", {"code": old})).status == 404
    assert (await stranger.post("recover", {"code": new})).status == 200


async def test_guessing_codes_is_slowed_down(person: Person, stranger: Person, store: Store) -> None:
    for _ in range(10):
        assert (await stranger.post("recover", {"code": "2222-2222-2222-2222"})).status == 404
    answer = await stranger.post("recover", {"code": person.code})
    assert answer.status == 429
    assert (await answer.json())["error"]["code"] == "too_many"
    async with store.begin() as tx:
        await tx.execute(update(login_attempts).values(at=func.now() - func.make_interval(0, 0, 0, 0, 0, 6)))
    assert (await stranger.post("recover", {"code": person.code})).status == 200


async def test_arriving_again_and_again_is_slowed_down(stranger: Person) -> None:
    for _ in range(30):
        assert (await stranger.start()).status == 201
    assert (await stranger.start()).status == 429


async def test_whoever_leaves_is_gone_from_this_browser_and_the_cookie_is_worthless(person: Person) -> None:
    token = person.cookie()
    assert (await person.post("leave", {})).status == 200
    assert (await person.get("me")).status == 401
    person.wear(token)
    assert (await person.get("me")).status == 401
    assert (await person.post("recover", {"code": person.code})).status == 200
    assert (await person.get("me")).status == 200


async def test_leaving_with_a_message_on_its_way_does_not_lose_it(chat: WebChat, person: Person, store: Store) -> None:
    chat.gate.clear()
    await person.send(text="first")
    await person.send(text="second")
    await person.post("leave", {})
    chat.gate.set()
    assert (await person.post("recover", {"code": person.code})).status == 200
    shown = await person.until(2)
    assert [i["text"] for i in shown if i["who"] == "you"] == ["first", "second"]
    assert await count(store, people) == 1


async def add_invitation(store: Store, code: str, **values: object) -> None:
    async with store.begin() as tx:
        await tx.execute(insert(invitations).values(code_hash=invitation_hash(code), **values))


async def test_beyond_loopback_an_invitation_is_needed_and_spent(store: Store) -> None:
    async with running_web_chat(store, {"public_url": "http://127.0.0.1"}) as chat:
        await add_invitation(store, "once")
        await add_invitation(store, "late", expires_at=func.now() - func.make_interval(0, 0, 0, 1))
        first, second = Person(chat), Person(chat)
        for refused in ({}, {"invitation": "twice"}, {"invitation": "late"}):
            answer = await second.start(**refused)
            assert (answer.status, (await answer.json())["error"]["code"]) == (403, "invitation")
        assert await count(store, people) == 0
        assert (await first.start(invitation=" once ")).status == 201
        assert (await second.start(invitation="once")).status == 403
        assert await count(store, people) == 1
        await first.http.close()
        await second.http.close()


# ----------------------------------------------------------------------------------------------- cross-site


ELSEWHERE: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Host": "evil.example", "Origin": "http://evil.example"},
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/x-www-form-urlencoded"},
]
CHANGING = ("updates", "start", "recover", "leave", "recovery-code", "language")


async def test_nothing_changes_for_another_site(person: Person, store: Store, subtests: pytest.Subtests) -> None:
    before = (await count(store, people), await count(store, inbox), await person.me())
    bodies = {"updates": {"id": str(uuid4()), "kind": "message", "text": "x"}, "recover": {"code": person.code}}
    for path in CHANGING:
        for headers in ELSEWHERE:
            with subtests.test(path, headers=headers):
                answer = await person.post(path, bodies.get(path, {}), **headers)
                assert answer.status in {400, 403}
                assert "Set-Cookie" not in answer.headers
    assert (await count(store, people), await count(store, inbox), await person.me()) == before


@pytest.mark.parametrize("host", ["[", "[::1", "127.0.0.1]", ""])
async def test_a_host_that_is_none_is_refused(person: Person, host: str) -> None:
    for path in ("me", "start"):
        answer = await person.http.get(f"{person.chat.url}/chat/api/{path}", headers={"Host": host})
        assert 400 <= answer.status < 500
    assert (await person.post("leave", {}, Host=host, Origin=f"http://{host}")).status in {400, 403}


async def test_a_script_without_origin_is_refused(person: Person) -> None:
    answer = await person.http.post(f"{person.chat.url}/chat/api/leave", json={})
    assert answer.status == 403


async def test_reading_never_changes(person: Person) -> None:
    assert [(await person.get(path)).status for path in CHANGING] == [405] * len(CHANGING)


async def test_every_answer_has_the_headers(person: Person) -> None:
    for path in ("", "/static/chat.js", "/strings/ko.json", "/api/me", "/api/nothing", "/api/messages?after=x"):
        answer = await person.http.get(f"{person.chat.url}/chat{path}")
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"


async def test_the_page_holds_no_script_and_no_style_of_its_own(person: Person) -> None:
    page = await (await person.http.get(f"{person.chat.url}/chat")).text()
    assert "<style" not in page
    assert "style=" not in page
    assert " onclick" not in page
    assert page.count("<script") == page.count('<script type="module" src=') == 1


async def test_a_stranger_reads_nothing(stranger: Person) -> None:
    stranger.wear("x" * 43)
    for path in ("me", "messages", "stream", "files/1"):
        assert (await stranger.get(path)).status == 401


# ------------------------------------------------------------------------------------------------- updates


async def stored_body(store: Store) -> bytes:
    async with store.begin() as tx:
        return bytes(await tx.scalar(select(inbox.c.body).order_by(inbox.c.id.desc()).limit(1)) or b"")


async def test_a_message_is_stored_under_the_account_of_the_cookie(person: Person, store: Store) -> None:
    answer = await person.send(text="Hello, world")
    assert answer.status == 202
    event = parse(await stored_body(store))
    async with store.begin() as tx:
        account = (await tx.execute(select(accounts))).one()
    assert isinstance(event, MessageEvent)
    assert (event.text, event.command) == ("Hello, world", None)
    assert event.sender.external_id == account.external_id
    assert event.chat.external_id == str(account.id)
    assert event.sender.language == "en"


async def test_the_same_id_twice_has_one_effect(person: Person, store: Store) -> None:
    update_ = {"id": str(uuid4()), "kind": "message", "text": "once"}
    assert [(await person.post("updates", update_)).status for _ in range(3)] == [202] * 3
    assert await count(store, inbox) == 1
    await person.until(1)
    assert await count(store, turns) == 1


async def test_ids_of_different_people_do_not_meet(person: Person, stranger: Person, store: Store) -> None:
    await stranger.start()
    update_ = {"id": str(uuid4()), "kind": "message", "text": "mine"}
    for who in (person, stranger):
        assert (await who.post("updates", update_)).status == 202
    assert await count(store, inbox) == 2


AN_ID = "8d0bb1ff-84d7-4f51-9a4c-3f1c3a3b1a11"
WRONG: list[tuple[object, str]] = [
    (b"{", "JSON"),
    (b"\xff\xfe", "UTF-8"),
    (b"[]", "object"),
    (b'"text"', "object"),
    (b"[" * 100_000, "nested"),
    (b'{"id": NaN}', "NaN"),
    (b'{"kind": "message", "kind": "press"}', "twice"),
    ({}, "kind"),
    ({"kind": "shout"}, "kind"),
    ({"kind": ["message"]}, "kind"),
    ({"kind": "message", "text": "x"}, "id"),
    ({"kind": "message", "text": "x", "id": "1"}, "id"),
    ({"kind": "message", "text": "x", "id": 7}, "id"),
    ({"kind": "message", "id": AN_ID}, "text"),
    ({"kind": "message", "id": AN_ID, "text": 5}, "text"),
    ({"kind": "message", "id": AN_ID, "text": "", "account": "x"}, "account"),
    ({"kind": "message", "id": AN_ID, "text": "", "chat": "x"}, "chat"),
    ({"kind": "press", "id": AN_ID, "data": "v" * 65}, "data"),
    ({"kind": "press", "id": AN_ID, "data": ""}, "data"),
    ({"kind": "press", "id": AN_ID, "data": "é"}, "data"),
    ({"kind": "command", "id": AN_ID, "command": "New!"}, "command"),
    ({"kind": "correction", "id": AN_ID, "text": "x"}, "reply_to"),
]


async def test_a_wrong_body_is_refused_by_name(person: Person, store: Store, subtests: pytest.Subtests) -> None:
    for body, named in WRONG:
        with subtests.test(str(body)[:60]):
            answer = await person.post("updates", body)
            assert answer.status == 400
            error = (await answer.json())["error"]
            assert error["code"] == "invalid"
            assert named in error["message"]
    assert await count(store, inbox) == 0


async def test_what_is_too_large_is_refused_before_it_is_read(person: Person, store: Store) -> None:
    answer = await person.send(text="x" * (256 * 1024))
    assert answer.status == 413
    assert (await answer.json())["error"]["code"] == "too_large"

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 16_384

    url = f"{person.chat.url}/chat/api/updates"
    headers = {"Origin": person.chat.url, "Content-Type": "application/json"}
    with contextlib.suppress(ConnectionError):
        assert (await person.http.post(url, data=pieces(), headers=headers)).status == 413
    assert await count(store, inbox) == 0


ANY_TEXT = ["", "   ", "👍", "\u202eright to left", "\x00nul", "x" * 100_000, "a\u200bb", "<script>alert(1)</script>"]


async def test_any_text_is_accepted_and_left_to_the_dialogue(
    person: Person, store: Store, subtests: pytest.Subtests
) -> None:
    for text in ANY_TEXT:
        with subtests.test(text[:20]):
            assert (await person.send(text=text)).status == 202
            event = parse(await stored_body(store))
            assert isinstance(event, MessageEvent)
            assert event.text == text.replace("\x00", "\ufffd")


async def test_lone_surrogates_are_replaced_where_they_are_parsed(person: Person, store: Store) -> None:
    body = b'{"id": "8d0bb1ff-84d7-4f51-9a4c-3f1c3a3b1a11", "kind": "message", "text": "a\\ud800b"}'
    assert (await person.post("updates", body)).status == 202
    assert b"\\ud800" in await stored_body(store)
    event = parse(await stored_body(store))
    assert isinstance(event, MessageEvent)
    assert event.text == "a\ufffdb"


COMMANDS: list[tuple[dict[str, str], str | None, str]] = [
    ({"text": "/help"}, "help", ""),
    ({"text": "/learn on"}, "learn", "on"),
    ({"text": " /Learn  on "}, "learn", "on"),
    ({"text": "a /help"}, None, ""),
    ({"text": "/usr/bin"}, None, ""),
    ({"kind": "command", "command": "learn", "text": "on"}, "learn", "on"),
    ({"kind": "command", "command": "new"}, "new", ""),
]


async def test_commands_are_known_as_words_and_as_buttons(
    person: Person, store: Store, subtests: pytest.Subtests
) -> None:
    for fields, command, argument in COMMANDS:
        with subtests.test(str(fields)):
            assert (await person.send(**({"kind": "message"} | fields))).status == 202
            event = parse(await stored_body(store))
            assert isinstance(event, MessageEvent)
            assert (event.command, event.argument) == (command, argument)


async def test_a_correction_points_at_the_reply(person: Person, store: Store) -> None:
    await person.send(text="hello")
    (reply,) = [i for i in await person.until(1) if i.get("kind") == "reply"]
    await person.send("correction", text="Shorter, please", reply_to=reply["message_id"])
    shown = await person.until(1, "notice")
    assert [i["text"] for i in shown if i["who"] == "you"] == ["hello", "Shorter, please"]
    (line,) = (await person.me())["memory"]
    assert line["text"] == "Shorter, please"
    assert line["road"]["uses"] == [0, 8]


LANES: list[tuple[dict[str, str], bool]] = [
    ({"kind": "message", "text": "hello"}, False),
    ({"kind": "message", "text": "/stop"}, True),
    ({"kind": "command", "command": "stop"}, True),
    ({"kind": "message", "text": " /Cancel"}, True),
    ({"kind": "command", "command": "cancel"}, True),
    ({"kind": "command", "command": "new"}, False),
    ({"kind": "press", "data": "v:abc:u"}, True),
    ({"kind": "press", "data": "s:memory:1"}, True),
    ({"kind": "press", "data": "x"}, True),
    ({"kind": "press", "data": "t:abc"}, False),
    ({"kind": "press", "data": "c:abc"}, False),
]


async def test_votes_and_stop_overtake(person: Person, store: Store, subtests: pytest.Subtests) -> None:
    for fields, overtakes in LANES:
        with subtests.test(str(fields)):
            await person.send(**fields)
            async with store.begin() as tx:
                lane = await tx.scalar(select(inbox.c.lane).order_by(inbox.c.id.desc()).limit(1))
            assert str(lane).endswith(":now") is overtakes


async def test_a_press_names_the_message_it_was_under(person: Person, store: Store) -> None:
    await person.send("press", data="k:abc:keep", reply_to="w1")
    event = parse(await stored_body(store))
    assert isinstance(event, PressEvent)
    assert (event.data, event.message_id) == ("k:abc:keep", "w1")


async def test_stop_reaches_a_reply_that_is_being_written(chat: WebChat, person: Person) -> None:
    chat.gate.clear()
    await person.send(text="tell me everything")
    for _ in range(100):
        if any(i.get("kind") == "pending" for i in await person.items()):
            break
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.3)  # it is half written now
    await person.send("command", command="stop")
    shown = await person.until(1)
    assert shown[-1]["turn"]["state"] == "stopped"  # type: ignore[index]


# ------------------------------------------------------------------------------------------------ messages


async def test_a_vote_is_shown_until_it_is_taken_back(person: Person) -> None:
    await person.send(text="hello")
    (reply,) = [i for i in await person.until(1) if i.get("kind") == "reply"]
    turn = str(reply["turn"]["id"])  # type: ignore[index]
    for choice, value in (("u", 1), ("d", -1), ("0", 0)):
        await person.send("press", data=f"v:{turn}:{choice}")
        for _ in range(100):
            (reply,) = [i for i in await person.items() if i.get("kind") == "reply"]
            if reply["turn"]["vote"] == value:  # type: ignore[index]
                break
            await asyncio.sleep(0.02)
        assert reply["turn"]["vote"] == value  # type: ignore[index]
        # The page draws votes itself; what else a message offers is passed on.
        labels = [b["label"] for row in reply["buttons"] for b in row]  # type: ignore[attr-defined]
        assert ("Wrong fact" in labels) is (choice == "d")
        assert not {"👍", "👎"} & set(labels)


async def test_a_forged_press_changes_nothing_for_others(person: Person, stranger: Person) -> None:
    await person.send(text="hello")
    (reply,) = [i for i in await person.until(1) if i.get("kind") == "reply"]
    await stranger.start()
    await stranger.send("press", data=f"v:{reply['turn']['id']}:d")  # type: ignore[index]
    await stranger.send(text="something of my own")
    await stranger.until(1)
    (reply,) = [i for i in await person.items() if i.get("kind") == "reply"]
    assert reply["turn"]["vote"] == 0  # type: ignore[index]


async def test_nobody_sees_what_others_wrote(person: Person, stranger: Person) -> None:
    await stranger.start()
    await person.send(text="my secret")
    await person.until(1)
    assert await stranger.items() == []


async def test_answering_again_keeps_both_replies(person: Person) -> None:
    await person.send(text="hello")
    (reply,) = [i for i in await person.until(1) if i.get("kind") == "reply"]
    await person.send("press", data=f"t:{reply['turn']['id']}")  # type: ignore[index]
    shown = await person.until(2)
    assert [i["who"] for i in shown] == ["you", "bot", "bot"]
    assert [i["turn"]["again"] for i in shown[1:]] == [False, True]  # type: ignore[index]


async def test_a_new_conversation_begins_empty_and_the_old_one_can_be_read(person: Person) -> None:
    await person.send(text="in the first")
    await person.until(1)
    await person.send("command", command="new")
    await person.until(1, "notice")
    page = await (await person.get("messages")).json()
    assert (page["conversation"], page["current"], page["older"]) == (2, 2, 1)
    assert [i["kind"] for i in page["items"]] == ["notice"]
    await person.send(text="in the second")
    await person.until(1)
    page = await (await person.get("messages")).json()
    assert [i.get("text") or i["kind"] for i in page["items"]] == ["notice", "in the second", "reply"]
    old = await (await person.get("messages?conversation=1")).json()
    assert [i.get("text") or i["kind"] for i in old["items"]] == ["in the first", "reply"]
    assert old["older"] is None


async def test_only_what_came_later_can_be_asked_for(person: Person) -> None:
    await person.send(text="hello")
    shown = await person.until(1)
    later = await (await person.get(f"messages?after={shown[0]['position']}")).json()
    assert [i["kind"] for i in later["items"]] == ["reply"]


async def test_a_number_must_be_a_number(person: Person) -> None:
    for query in ("after=x", "after=-1", "after=1e9", "conversation=²", f"conversation={'9' * 30}"):
        assert (await person.get(f"messages?{query}")).status == 400


async def test_a_conversation_that_is_not_there_is_empty(person: Person) -> None:
    for number in (0, 2, 999):
        page = await (await person.get(f"messages?conversation={number}")).json()
        assert page["items"] == []


async def test_texts_that_were_not_kept_are_not_made_up(person: Person, store: Store) -> None:
    await person.send(text="hello")
    await person.until(1)
    async with store.begin() as tx:
        await tx.execute(update(turns).values(user_text=None, reply_text=None))
        await tx.execute(update(outbox.outbox).values(content={}))
        await tx.execute(update(sessions).values(ended_at=func.now()))
    shown = (await (await person.get("messages?conversation=1")).json())["items"]
    assert [(i["who"], i.get("text"), i.get("kind")) for i in shown] == [("you", None, None), ("bot", None, "pending")]
    assert shown[1]["turn"]["repeatable"] is False


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    '<a href="https://x" onmouseover="alert(1)">x</a>',
    "<iframe src=https://evil.example></iframe>",
    "<svg><script>alert(1)</script></svg>",
    "<style>*{display:none}</style>",
    "<form action=https://evil.example><input></form>",
    '```html"onload="alert(1)\n<script>alert(1)</script>\n```',
    "[x]: javascript:alert(1)\n\n[x]",
    '<https://x"onclick=alert(1)>',
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "| <script>a</script> | b |\n|---|---|\n| c | <img src=x onerror=a> |",
]


async def test_hostile_markdown_is_only_text(chat: WebChat, person: Person, subtests: pytest.Subtests) -> None:
    async with chat.store.begin() as tx:
        room = (await tx.execute(select(chats.c.id))).scalar_one()
        for text in HOSTILE:
            await outbox.put(tx, room, Content(text))
    items = await person.until(len(HOSTILE), "notice")
    for text, item in zip(HOSTILE, items, strict=True):
        with subtests.test(text):
            shown = str(item["html"]).lower()
            for tag in ("<script", "<img", "<iframe", "<svg", "<style", "<form", "<input"):
                assert tag not in shown
            assert 'href="javascript' not in shown
            assert 'href="data' not in shown
            assert not [p for p in shown.split("<")[1:] if " on" in p.partition(">")[0]]


async def test_markdown_is_shown_as_meant(chat: WebChat, person: Person) -> None:
    chat.answers["hello"] = (
        "**bold** and `code`\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[here](https://example.org)"
    )
    await person.send(text="hello")
    (reply,) = [i for i in await person.until(1) if i.get("kind") == "reply"]
    shown = str(reply["html"])
    for wanted in (
        "<strong>bold</strong>",
        "<code>code</code>",
        "<li>one</li>",
        "<td>1</td>",
        'href="https://example.org"',
    ):
        assert wanted in shown
    assert 'rel="noopener noreferrer nofollow ugc"' in shown


async def test_a_file_is_saved_by_its_owner_alone(person: Person, stranger: Person) -> None:
    await person.send("command", command="export")
    (item,) = [i for i in await person.until(1, "file") if i.get("kind") == "file"]
    path = str(item["file"]["href"]).removeprefix("/chat/api/")  # type: ignore[index]
    answer = await person.get(path)
    assert answer.status == 200
    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''mentee.json")
    assert await answer.json(content_type=None) == {"everything": []}
    await stranger.start()
    assert (await stranger.get(path)).status == 404
    assert (await person.get("files/999999999")).status == 404


async def test_a_message_is_no_file(person: Person) -> None:
    await person.send(text="hello")
    (reply,) = [i for i in await person.until(1) if i.get("kind") == "reply"]
    assert (await person.get(f"files/{reply['id']}")).status == 404


# ------------------------------------------------------------------------------------------------------ me


async def test_a_switch_is_a_press_and_shows_when_it_was_done(person: Person) -> None:
    for choice, state in (("1", True), ("0", False)):
        await person.send("press", data=f"s:memory:{choice}")
        for _ in range(100):
            if (await person.me())["consents"]["memory"]["on"] is state:  # type: ignore[index]
                break
            await asyncio.sleep(0.02)
        assert (await person.me())["consents"]["memory"] == {"on": state, "answered": True}


async def test_memory_can_be_taken_back(person: Person) -> None:
    await person.send(text="hello")
    (reply,) = [i for i in await person.until(1) if i.get("kind") == "reply"]
    await person.send("correction", text="Use short words", reply_to=reply["message_id"])
    await person.until(1, "notice")
    (line,) = (await person.me())["memory"]
    await person.send("press", data=Press("m", str(line["id"]), "undo").data())
    for _ in range(100):
        if not (await person.me())["memory"]:
            break
        await asyncio.sleep(0.02)
    assert not (await person.me())["memory"]


async def test_the_language_is_kept(person: Person) -> None:
    assert (await person.post("language", {"language": "ko"})).status == 200
    assert (await person.me())["language"] == "ko"
    assert (await person.post("language", {"language": "xx"})).status == 400
    page = await (await person.http.get(f"{person.chat.url}/chat")).text()
    assert '<html lang="ko"' in page


async def test_strings_are_the_same_in_both_languages(person: Person) -> None:
    both = [await (await person.http.get(f"{person.chat.url}/chat/strings/{n}.json")).json() for n in ("en", "ko")]
    assert both[0].keys() == both[1].keys()
    assert (await person.http.get(f"{person.chat.url}/chat/strings/xx.json")).status == 404


# -------------------------------------------------------------------------------------------------- stream


async def events_of(person: Person, want: str, act: object = None) -> list[tuple[str, Body]]:
    """Return what the stream says until an event named `want` came."""
    seen: list[tuple[str, Body]] = []
    async with asyncio.timeout(10), person.http.get(f"{person.chat.url}/chat/api/stream") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        name = ""
        async for raw in answer.content:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                seen.append((name, json.loads(line.removeprefix("data: "))))
                if name == want and len(seen) > 1:
                    return seen
                if callable(act) and len(seen) == 1:
                    await act()
    return seen


async def test_the_stream_shows_a_reply_growing(person: Person) -> None:
    async def speak() -> None:
        await person.send(text="hello")

    seen = await events_of(person, "live", speak)
    assert seen[0][0] == "changed"
    texts = [str(e["text"]) for name, e in seen if name == "live"]
    assert texts == sorted(texts, key=len)


async def test_the_stream_sees_what_another_gateway_did(chat: WebChat, person: Person, store: Store) -> None:
    async def elsewhere() -> None:
        async with store.begin() as tx:
            room = await tx.scalar(select(chats.c.id))
            assert room is not None
            await outbox.put(tx, room, Content("from elsewhere"))

    assert [name for name, _ in await events_of(person, "changed", elsewhere)] == ["changed", "changed"]


async def test_the_stream_sees_that_an_old_message_changed(chat: WebChat, person: Person, store: Store) -> None:
    async with store.begin() as tx:
        room = await tx.scalar(select(chats.c.id))
        assert room is not None
        first = await outbox.put(tx, room, Content("old"))
        for number in range(webchat_read.WATCHED_ROWS):
            await outbox.put(tx, room, Content(f"newer {number}"))
        await tx.execute(update(outbox_rows).where(outbox_rows.c.id == first).values(provider_message_id="m1"))

    async def elsewhere() -> None:
        async with store.begin() as tx:
            assert await outbox.replace(tx, room, "m1", Content("old, and redrawn"))

    assert [name for name, _ in await events_of(person, "changed", elsewhere)] == ["changed", "changed"]


async def test_the_stream_tells_the_short_answer_to_a_press(chat: WebChat, person: Person, store: Store) -> None:
    async with store.begin() as tx:
        room = await tx.scalar(select(chats.c.id))

    async def note() -> None:
        await chat.channel.answer_press(f"{room}:1", "Thanks!")

    assert (await events_of(person, "note", note))[-1] == ("note", {"text": "Thanks!"})


async def test_the_stream_ends_when_the_person_leaves(person: Person) -> None:
    async def leave() -> None:
        await person.post("leave", {})

    assert (await events_of(person, "gone", leave))[-1][0] == "gone"


async def test_the_stream_is_of_one_chat_only(chat: WebChat, person: Person, stranger: Person) -> None:
    await stranger.start()

    async def other_speaks() -> None:
        await stranger.send(text="not for you")
        await stranger.until(1)
        await person.send(text="hello")

    seen = await events_of(person, "live", other_speaks)
    assert "not for you" not in json.dumps(seen)


async def test_streams_are_counted_and_given_back(chat: WebChat, person: Person) -> None:
    url = f"{chat.url}/chat/api/stream"
    opened = [await person.http.get(url) for _ in range(20)]
    assert {a.status for a in opened} == {200}
    assert (await person.http.get(url)).status == 429
    for answer in opened:
        answer.close()
    for _ in range(100):
        answer = await person.http.get(url)
        if answer.status == 200:
            break
        await asyncio.sleep(0.05)
    assert answer.status == 200
    answer.close()


async def test_publishing_to_nobody_keeps_nothing(chat: WebChat) -> None:
    nobody = uuid4()
    chat.streams.publish(nobody, Item(text="x"))
    await chat.channel.answer_press("nonsense", "x")
    assert chat.streams._subscribers == {}
    async with chat.streams.subscribe(nobody) as queue:
        assert queue.empty()
