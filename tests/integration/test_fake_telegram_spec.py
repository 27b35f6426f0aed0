"""The fake Bot API server held against the machine-readable specification, where that lies beside the checkout."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.telegram import TelegramServer, User
from tests.fakes.telegram.methods import ALL, Method

pytest_plugins = ["tests.fakes.fixtures"]
JSON = dict[str, Any]
SPEC_FILE = Path(__file__).parents[3] / "shared" / "data" / "telegram_bot_api.json"
PLAIN: dict[str, tuple[type, ...]] = {
    "Integer": (int,),
    "String": (str,),
    "Boolean": (bool,),
    "Float": (int, float),
    "True": (bool,),
}
REACTIONS = ["message", "edited_message", "channel_post", "callback_query", "message_reaction", "my_chat_member"]


@pytest.fixture(scope="module")
def spec() -> JSON:
    if not SPEC_FILE.exists():
        pytest.skip("../shared/data/telegram_bot_api.json is not here")
    return dict(json.loads(SPEC_FILE.read_text()))


def faults_of(spec: JSON, declared: list[str], value: object, where: str) -> list[str]:
    """What is wrong with a value of one of the declared types; empty where it fits one of them."""
    attempts = [_faults_of_one(spec, kind, value, where) for kind in declared]
    return min(attempts, key=len)


def _faults_of_one(spec: JSON, kind: str, value: object, where: str) -> list[str]:
    if kind.startswith("Array of "):
        if not isinstance(value, list):
            return [f"{where} is no array"]
        inner = [kind.removeprefix("Array of ")]
        return [
            fault for place, item in enumerate(value) for fault in faults_of(spec, inner, item, f"{where}[{place}]")
        ]
    if kind in PLAIN:
        fits = isinstance(value, PLAIN[kind]) and (kind in ("Boolean", "True")) == isinstance(value, bool)
        return [] if fits else [f"{where} is no {kind}"]
    declaration = spec["types"][kind]
    if declaration.get("subtypes"):
        return faults_of(spec, declaration["subtypes"], value, where)
    return _faults_of_object(spec, kind, declaration.get("fields", []), value, where)


def _faults_of_object(spec: JSON, kind: str, fields: list[JSON], value: object, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where} is no {kind}"]
    known = {field["name"]: field for field in fields}
    faults = [f"{where}.{name} is unknown to {kind}" for name in value.keys() - known.keys()]
    faults += [f"{where}.{name} is missing" for name, field in known.items() if field["required"] and name not in value]
    for name in value.keys() & known.keys():
        faults += faults_of(spec, known[name]["types"], value[name], f"{where}.{name}")
    return faults


def test_the_checker_sees_what_is_wrong(spec: JSON) -> None:
    user: JSON = {"id": 1, "is_bot": False, "first_name": "A"}
    assert faults_of(spec, ["User"], user, "u") == []
    assert faults_of(spec, ["User"], user | {"nickname": "x"}, "u") == ["u.nickname is unknown to User"]
    assert faults_of(spec, ["User"], {"id": 1, "is_bot": 0, "first_name": "A"}, "u") == ["u.is_bot is no Boolean"]
    assert faults_of(spec, ["User"], {"id": 1, "is_bot": False}, "u") == ["u.first_name is missing"]


def test_every_method_exists_with_its_required_parameters(spec: JSON) -> None:
    for method in ALL:
        declared = spec["methods"][method.name]
        required = {field["name"] for field in declared.get("fields", []) if field["required"]}
        given_up = {"setWebhook": {"url"}}.get(method.name, set())  # an empty address removes the webhook
        assert set(method.required) == required - given_up, method.name


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls methods by plain HTTP."""

    server: TelegramServer
    http: aiohttp.ClientSession
    ann: User

    async def call(self, method: str, values: JSON) -> tuple[int, JSON]:
        async with self.http.post(f"{self.server.base_url}{self.server.token}/{method}", json=values) as response:
            return response.status, await response.json()

    def valid(self) -> dict[str, JSON]:
        """Parameters with which each method succeeds."""
        chat = self.ann.user_id
        said = self.ann.say("hello /start https://e.org")
        mine = self.server.world.add_message(self.ann.chat, self.server.world.bot_user, body=said.body)
        press = self.ann.press_data(mine, "x")
        target: JSON = {"chat_id": chat, "message_id": mine.message_id}
        buttons = {"inline_keyboard": [[{"text": "a", "callback_data": "b"}]]}
        return {
            "getMe": {},
            "getUpdates": {"allowed_updates": REACTIONS},
            "setWebhook": {"url": ""},
            "deleteWebhook": {},
            "getWebhookInfo": {},
            "sendMessage": {
                "chat_id": chat,
                "text": "<b>x</b> <pre><code class='language-py'>y</code></pre>",
                "parse_mode": "HTML",
                "reply_parameters": {"message_id": said.message_id},
                "reply_markup": buttons,
            },
            "sendDocument": {
                "chat_id": chat,
                "document": self.server.file("a.txt", b"a", "text/plain"),
                "caption": "c",
            },
            "sendChatAction": {"chat_id": chat, "action": "typing"},
            "sendMessageDraft": {"chat_id": chat, "draft_id": 3, "text": "x"},
            "editMessageText": {**target, "text": "new", "reply_markup": buttons},
            "editMessageReplyMarkup": target,
            "setMessageReaction": {**target, "reaction": [{"type": "emoji", "emoji": "👍"}]},
            "deleteMessage": target,
            "answerCallbackQuery": {"callback_query_id": press.query_id},
            "setMyCommands": {"commands": [{"command": "a", "description": "b"}]},
            "getMyCommands": {},
            "deleteMyCommands": {},
            "getChat": {"chat_id": chat},
            "getChatMember": {"chat_id": chat, "user_id": chat},
            "getChatMemberCount": {"chat_id": chat},
            "getFile": {"file_id": self.server.file("b.bin", b"b")},
        }


@pytest.fixture
async def caller(telegram_server: TelegramServer) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        yield Caller(telegram_server, http, telegram_server.user("Ann", username="ann_user"))


async def test_results_are_of_the_declared_types(spec: JSON, caller: Caller) -> None:
    valid = caller.valid()
    assert valid.keys() == {method.name for method in ALL}
    for method, values in valid.items():
        status, answer = await caller.call(method, values)
        assert (status, answer["ok"]) == (200, True), (method, answer)
        assert faults_of(spec, spec["methods"][method]["returns"], answer["result"], method) == []


@pytest.mark.parametrize("method", [method for method in ALL if method.required], ids=lambda method: method.name)
async def test_required_parameters_are_enforced(spec: JSON, caller: Caller, method: Method) -> None:
    declared = spec["methods"][method.name]["fields"]
    for field in declared:
        if not field["required"]:
            continue
        values = {name: value for name, value in caller.valid()[method.name].items() if name != field["name"]}
        status, answer = await caller.call(method.name, values)
        assert status == 400, (method.name, field["name"])
        assert answer.keys() == {"ok", "error_code", "description"}
        assert answer["description"].startswith("Bad Request: ")


async def test_every_update_is_of_the_declared_type(spec: JSON, caller: Caller) -> None:
    server, ann = caller.server, caller.ann
    server.world.queue.allow([*REACTIONS])
    group = server.group("Team", ann, kind="supergroup", forum=True)
    group.promote_bot()
    topic = group.topic("Talk")
    said = ann.say("hello @mentee_test_bot", group.chat, thread=topic)
    ann.say("see", reply_to=said, quote="hello", chat=group.chat)
    group.say_anonymously("as the group")
    ann.react(said, "👍", "🔥")
    ann.react(said)
    group.react_anonymously(said, "👎")
    ann.forward("theirs", {"type": "hidden_user", "sender_user_name": "B"})
    ann.forward("ours", {"type": "user", "sender_user": ann.card})
    ann.edit(ann.say("typo"), "type")
    ann.send_photo("one", album="7")
    ann.send_photo(album="7")
    ann.send_voice()
    ann.block()
    ann.unblock()
    server.channel("News").post("post")
    mine = server.world.add_message(ann.chat, server.world.bot_user, body=said.body)
    ann.press_data(mine, "x")
    ann.press_data(mine, "x", gone=True)
    basic = server.group("Old", ann, kind="group")
    basic.migrate()
    kinds = set()
    for update in server.world.queue.pending:
        assert faults_of(spec, ["Update"], update.body, "update") == []
        kinds |= update.body.keys() - {"update_id"}
    assert kinds == set(REACTIONS)
    assert len(server.world.queue.pending) == 24


async def test_webhook_info_and_members(spec: JSON, caller: Caller) -> None:
    server = caller.server
    group = server.group("Team", caller.ann)
    for change in (None, group.promote_bot, group.remove_bot):
        if change is not None:
            change()
        values = {"chat_id": group.chat.chat_id, "user_id": server.world.bot_id}
        _, answer = await caller.call("getChatMember", values)
        assert faults_of(spec, ["ChatMember"], answer["result"], "member") == []
    await caller.call("setWebhook", {"url": f"{server.url}/nowhere", "allowed_updates": ["message"]})
    caller.ann.say("x")
    await server.wait_for(lambda: server.world.webhook.last_error)
    _, answer = await caller.call("getWebhookInfo", {})
    assert faults_of(spec, ["WebhookInfo"], answer["result"], "info") == []
    assert answer["result"]["pending_update_count"] >= 1
    assert answer["result"]["last_error_message"] == "Wrong response from the webhook: 404 Not Found"
