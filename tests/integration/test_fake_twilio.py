"""The server that stands for Twilio: strict where the real one is, and of the form that its own description gives.

The description is read where it lies beside the checkout.
"""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bots.whatsapp.templates import MAX_BODY, MAX_BUTTONS, MAX_TITLE, definitions, without_approval
from tests.fakes.twilio import Person, TwilioServer
from tests.fakes.twilio.content import Content

JSON = dict[str, Any]
SPEC_FILE = Path(__file__).parents[3] / "shared" / "data" / "twilio_content_v1.openapi.json"
QUICK = {"twilio/quick-reply": {"body": "How?", "actions": [{"type": "QUICK_REPLY", "title": "Good", "id": "{{1}}"}]}}


@pytest.fixture(scope="module")
def spec() -> JSON:
    """Twilio's description of its Content API."""
    if not SPEC_FILE.exists():
        pytest.skip("../shared/data/twilio_content_v1.openapi.json is not here")
    return dict(json.loads(SPEC_FILE.read_text()))


@pytest.fixture
async def http(twilio_server: TwilioServer) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that is signed in."""
    headers = {"Authorization": aiohttp.encode_basic_auth(twilio_server.account_sid, twilio_server.token)}
    async with aiohttp.ClientSession(twilio_server.url, headers=headers) as session:
        yield session


@pytest.fixture
def ann(twilio_server: TwilioServer) -> Person:
    """Somebody to write to."""
    twilio_server.reports = False
    return twilio_server.person()


def faults_of(spec: JSON, schema: JSON, value: object, where: str) -> list[str]:
    """What is wrong with a value by a schema of the description; empty where it fits."""
    if "$ref" in schema:
        return faults_of(spec, spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]], value, where)
    if value is None:
        return [] if schema.get("nullable") else [f"{where} is null"]
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    }  # fmt: skip
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return [f"{where} is no {schema['type']}"]
    if isinstance(value, str):
        wrong = "pattern" in schema and not re.search(schema["pattern"], value)
        return [f"{where} does not look right"] if wrong or value not in schema.get("enum", [value]) else []
    if isinstance(value, list):
        return [
            fault for n, item in enumerate(value) for fault in faults_of(spec, schema["items"], item, f"{where}[{n}]")
        ]
    return _faults_of_object(spec, schema, value, where) if isinstance(value, dict) else []


def _faults_of_object(spec: JSON, schema: JSON, value: JSON, where: str) -> list[str]:
    known = schema.get("properties")
    if known is None:
        return []
    faults = [f"{where}.{name} is missing" for name in schema.get("required", []) if name not in value]
    faults += [f"{where}.{name} is unknown" for name in value.keys() - known.keys()]
    for name in value.keys() & known.keys():
        faults += faults_of(spec, known[name], value[name], f"{where}.{name}")
    return faults


def answer_of(spec: JSON, path: str, method: str) -> JSON:
    """The schema of a call's answer."""
    (good,) = (code for code in spec["paths"][path][method]["responses"] if code.startswith("2"))
    return dict(spec["paths"][path][method]["responses"][good]["content"]["application/json"]["schema"])


def request_of(spec: JSON, path: str) -> JSON:
    """The schema of a call's body."""
    return dict(spec["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"])


def test_the_checker_sees_what_is_wrong(spec: JSON) -> None:
    schema = {"$ref": "#/components/schemas/ContentCreateRequest"}
    good = {"language": "en", "types": QUICK}
    assert faults_of(spec, schema, good, "c") == []
    assert faults_of(spec, schema, {"types": QUICK}, "c") == ["c.language is missing"]
    assert faults_of(spec, schema, good | {"colour": "x"}, "c") == ["c.colour is unknown"]
    assert faults_of(spec, schema, good | {"language": 1}, "c") == ["c.language is no string"]


def test_what_we_ask_for_is_what_twilio_describes(spec: JSON) -> None:
    for one in definitions():
        assert faults_of(spec, request_of(spec, "/v1/Content"), one.body(), one.name) == []


def test_what_we_ask_for_keeps_within_the_limits() -> None:
    for one in definitions():
        for shape in one.types.values():
            assert 0 < len(shape["body"]) <= MAX_BODY
            assert len(shape.get("actions", [])) <= MAX_BUTTONS
            assert all(0 < len(action["title"]) <= MAX_TITLE for action in shape.get("actions", []))
        assert re.fullmatch(r"[a-z0-9_]+", one.full_name)
    names = [one.full_name for one in definitions()]
    assert len(set(names)) == len(names) == 4
    assert {one.name for one in without_approval()} == {"ask"}


async def test_answers_are_what_twilio_describes(spec: JSON, http: aiohttp.ClientSession) -> None:
    create, content = "/v1/Content", "/v1/Content/{Sid}"
    async with http.post(create, json={"language": "en", "types": QUICK, "variables": {"1": "x"}}) as answer:
        assert answer.status == 201
        made = await answer.json()
    assert faults_of(spec, answer_of(spec, create, "post"), made, "made") == []
    async with http.get(f"{create}/{made['sid']}") as answer:
        assert faults_of(spec, answer_of(spec, content, "get"), await answer.json(), "content") == []
    for before in (True, False):
        async with http.get(f"{create}/{made['sid']}/ApprovalRequests") as answer:
            fetched = await answer.json()
            assert faults_of(spec, answer_of(spec, f"{content}/ApprovalRequests", "get"), fetched, "approval") == []
            assert fetched["whatsapp"]["status"] == ("unsubmitted" if before else "received")
        if before:
            body = {"name": "mentee_x", "category": "UTILITY"}
            async with http.post(f"{create}/{made['sid']}/ApprovalRequests/whatsapp", json=body) as answer:
                assert answer.status == 201
                path = "/v1/Content/{ContentSid}/ApprovalRequests/whatsapp"
                assert faults_of(spec, request_of(spec, path), body, "asked") == []
                assert faults_of(spec, answer_of(spec, path, "post"), await answer.json(), "approved") == []


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/Content", {"types": QUICK}, 400),
        ("/v1/Content", {"language": "en", "types": {}}, 400),
        ("/v1/Content", {"language": "en", "types": QUICK, "colour": 1}, 400),
        ("/v1/Content", {"language": "en", "types": {"twilio/text": {"body": ""}}}, 400),
        ("/v1/Content", {"language": "en", "types": {"twilio/quick-reply": {"body": "x" * 1025, "actions": []}}}, 400),
        ("/v1/Content", {"language": "en", "types": {"twilio/quick-reply": {"body": "x", "actions": []}}}, 400),
        (
            "/v1/Content",
            {
                "language": "en",
                "types": {"twilio/quick-reply": {"body": "x", "actions": [{"title": "y" * 21, "id": "1"}]}},
            },
            400,
        ),
        ("/v1/Content/HXnone/ApprovalRequests/whatsapp", {"name": "a", "category": "UTILITY"}, 404),
    ],
)
async def test_what_twilio_refuses_to_make(http: aiohttp.ClientSession, path: str, body: JSON, status: int) -> None:
    async with http.post(path, json=body) as answer:
        assert answer.status == status


def template(server: TwilioServer, buttons: int = 1, *, approved: bool = False) -> Content:
    """A template with so many quick replies, whose payloads are variables."""
    actions = [{"title": f"B{n}", "id": f"{{{{{n}}}}}"} for n in range(1, buttons + 1)]
    made = server.contents.create(
        {"language": "en", "types": {"twilio/quick-reply": {"body": "How?", "actions": actions}}}
    )
    if approved:
        server.contents.ask_approval(made.sid, {"name": made.sid.lower(), "category": "UTILITY"})
        server.contents.decide("approved")
    return made


async def send(http: aiohttp.ClientSession, server: TwilioServer, ann: Person, **more: str) -> int | None:
    """Send a message and return the error's code, None where it was taken."""
    form = {"To": ann.address, "From": server.sender} | more
    async with http.post(f"/2010-04-01/Accounts/{server.account_sid}/Messages.json", data=form) as answer:
        code: int | None = (await answer.json()).get("code")
        return code


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ('{"1": "v:x:u"}', None),
        ("{}", 21656),
        (None, 21656),
        ("no json", 21656),
        ("[1]", 21656),
        ('{"1": 1}', 21656),
        ('{"1": ""}', 63013),
        ('{"1": "two\\nlines"}', 63013),
        ('{"1": "many     spaces"}', 63013),
        (json.dumps({"1": "x" * 256}), 63013),
    ],
)
async def test_how_a_template_is_filled(
    http: aiohttp.ClientSession, twilio_server: TwilioServer, ann: Person, variables: str | None, code: int | None
) -> None:
    given = {"ContentVariables": variables} if variables is not None else {}
    sid = template(twilio_server).sid
    assert await send(http, twilio_server, ann, ContentSid=sid, **given) == code
    if code is None:
        assert ann.got[0].buttons == {"B1": "v:x:u"}


async def test_which_templates_may_be_sent(
    http: aiohttp.ClientSession, twilio_server: TwilioServer, ann: Person
) -> None:
    four = {"ContentVariables": json.dumps({str(n): "x" for n in range(1, 5)})}
    one = {"ContentVariables": '{"1": "x"}'}
    assert await send(http, twilio_server, ann, ContentSid="HX" + "0" * 32) == 21655
    assert await send(http, twilio_server, ann, ContentSid=template(twilio_server, 4).sid, **four) == 63013
    assert (
        await send(http, twilio_server, ann, ContentSid=template(twilio_server, 4, approved=True).sid, **four) is None
    )
    ann.refusal = 63016
    assert await send(http, twilio_server, ann, Body="free") == 63016
    assert await send(http, twilio_server, ann, ContentSid=template(twilio_server).sid, **one) == 63016
    assert await send(http, twilio_server, ann, ContentSid=template(twilio_server, approved=True).sid, **one) is None
