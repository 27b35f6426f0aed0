"""Twilio's Content API, as far as a WhatsApp bot needs it: templates made, approval asked for, a template filled and sent.

Strict where the real one is: JSON bodies with known fields, at most 10 buttons of 20 characters (3 without Meta's approval),
variables that are one JSON object of strings, none empty, none with line breaks or runs of spaces.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.fakes.twilio.errors import ApiError
from tests.fakes.twilio.sids import new_sid

Json = dict[str, Any]
URL = "https://content.twilio.com/v1/Content"
CATEGORIES = frozenset({"UTILITY", "MARKETING", "AUTHENTICATION"})
_FIELDS = frozenset({"friendly_name", "language", "variables", "types"})
_GAP = re.compile(r"\{\{(\w+)\}\}")
_NAME = re.compile(r"[a-z0-9_]{1,512}")
MAX_BODY, MAX_TITLE, MAX_ID, MAX_BUTTONS, MAX_UNAPPROVED = 1024, 20, 200, 10, 3
MAX_VALUE = 255


@dataclass(slots=True)
class Content:
    """A template, and what became of the request to approve it."""

    account_sid: str
    friendly_name: str | None
    language: str
    variables: dict[str, str]
    types: Json
    sid: str = field(default_factory=lambda: new_sid("HX"))
    approval: Json | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def approved(self) -> bool:
        """Whether Meta lets it out at any time."""
        return bool(self.approval and self.approval["status"] == "approved")

    @property
    def buttons(self) -> list[Json]:
        """Its quick replies."""
        return list(self.types.get("twilio/quick-reply", {}).get("actions", []))

    def document(self) -> Json:
        """The resource as the API shows it."""
        stamp = self.at.strftime("%Y-%m-%dT%H:%M:%SZ")
        links = {
            "approval_create": f"{URL}/{self.sid}/ApprovalRequests/whatsapp",
            "approval_fetch": f"{URL}/{self.sid}/ApprovalRequests",
        }
        return {
            "sid": self.sid, "account_sid": self.account_sid, "friendly_name": self.friendly_name, "language": self.language,
            "variables": self.variables, "types": self.types, "url": f"{URL}/{self.sid}", "links": links,
            "date_created": stamp, "date_updated": stamp,
        }  # fmt: skip

    def approval_document(self) -> Json:
        """The approval as the API shows it; without a request it says so."""
        unsubmitted = {"name": "", "category": "", "content_type": "", "status": "unsubmitted", "rejection_reason": ""}
        whatsapp = {"type": "whatsapp", "allow_category_change": True} | (self.approval or unsubmitted)
        return {
            "sid": self.sid,
            "account_sid": self.account_sid,
            "whatsapp": whatsapp,
            "url": f"{URL}/{self.sid}/ApprovalRequests",
        }


@dataclass(slots=True)
class Contents:
    """The templates of one account."""

    account_sid: str
    known: dict[str, Content] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def create(self, body: object) -> Content:
        """Make a template of a request's JSON."""
        asked = _object(body, _FIELDS)
        types, language = asked.get("types"), asked.get("language")
        if not isinstance(language, str) or not isinstance(types, dict) or not types:
            raise ApiError(20001)
        for kind, shape in types.items():
            _check(kind, shape)
        variables = asked.get("variables") or {}
        if not isinstance(variables, dict) or not all(isinstance(value, str) for value in variables.values()):
            raise ApiError(20001)
        made = Content(self.account_sid, asked.get("friendly_name"), language, dict(variables), types)
        self.known[made.sid] = made
        return made

    def find(self, sid: str) -> Content:
        """The template `sid`."""
        if sid not in self.known:
            raise ApiError(20404)
        return self.known[sid]

    def ask_approval(self, sid: str, body: object) -> Json:
        """Hand a template to Meta; what becomes of it is said by `decide`."""
        content = self.find(sid)
        asked = _object(body, frozenset({"name", "category"}))
        if not _NAME.fullmatch(str(asked.get("name"))) or asked.get("category") not in CATEGORIES:
            raise ApiError(20001)
        if asked["name"] in self.names:
            raise ApiError(20001)  # Meta gives no name away twice, not even to whoever asks again or deleted it
        self.names.add(asked["name"])
        kind = next(iter(content.types))
        content.approval = {
            "name": asked["name"], "category": asked["category"], "content_type": kind, "status": "received",
            "rejection_reason": "",
        }  # fmt: skip
        return content.approval | {"allow_category_change": True}

    def delete(self, sid: str) -> None:
        """Delete a template, as in the console."""
        del self.known[sid]

    def decide(self, status: str) -> None:
        """Let Meta say the same of every template that was handed in."""
        for content in self.known.values():
            if content.approval:
                content.approval["status"] = status

    def fill(self, sid: str, given: str | None) -> tuple[str, dict[str, str]]:
        """What a template says with its gaps filled: its text, and the payload of each button by label."""
        if sid not in self.known:
            raise ApiError(21655)
        content = self.known[sid]
        values = {**content.variables, **_variables(given)}
        if len(content.buttons) > MAX_UNAPPROVED and not content.approved:
            raise ApiError(63013)
        shape = content.types.get("twilio/quick-reply") or content.types["twilio/text"]
        buttons = {b["title"]: _filled(b["id"], values) for b in content.buttons}
        return _filled(shape["body"], values), buttons


def _object(body: object, fields: frozenset[str]) -> Json:
    if not isinstance(body, dict) or body.keys() - fields:
        raise ApiError(20001)
    return body


def _check(kind: str, shape: object) -> None:
    if kind == "twilio/text":
        _text(_object(shape, frozenset({"body"})).get("body"), 1600)
        return
    if kind != "twilio/quick-reply":
        raise ApiError(20001)
    asked = _object(shape, frozenset({"body", "actions"}))
    _text(asked.get("body"), MAX_BODY)
    actions = asked.get("actions")
    if not isinstance(actions, list) or not 1 <= len(actions) <= MAX_BUTTONS:
        raise ApiError(20001)
    for action in actions:
        button = _object(action, frozenset({"type", "title", "id"}))
        if button.get("type", "QUICK_REPLY") != "QUICK_REPLY":
            raise ApiError(20001)
        _text(button.get("title"), MAX_TITLE)
        _text(button.get("id"), MAX_ID)


def _text(value: object, longest: int) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise ApiError(20001)


def _variables(given: str | None) -> Mapping[str, str]:
    if given is None:
        return {}
    try:
        values = json.loads(given)
    except ValueError as error:
        raise ApiError(21656) from error
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise ApiError(21656)
    for value in values.values():
        if not value.strip() or "\n" in value or " " * 5 in value or len(value) > MAX_VALUE:
            raise ApiError(63013)
    return values


def _filled(text: str, values: Mapping[str, str]) -> str:
    if any(name not in values for name in _GAP.findall(text)):
        raise ApiError(21656)
    return _GAP.sub(lambda gap: values[gap[1]], text)
