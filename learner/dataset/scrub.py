"""What must not be learnt by heart: addresses, numbers, keys. Finds kinds, never returns the text it found.

Boundaries are written by hand, because Korean particles follow an address without a blank and a word boundary misses
them. Rather one prompt too few than a card number in the weights.
"""

import re
from typing import Literal

import phonenumbers

Finding = Literal["email", "phone", "card", "resident_number", "secret", "address", "too_long"]

MAX_CHARS = 2000
_EMAIL = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_CARD = re.compile(r"(?<!\d)(?:\d[ -]?){12,18}\d(?!\d)")
_RESIDENT = re.compile(r"(?<!\d)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])-?[1-8]\d{6}(?!\d)")
_SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|AKIA[0-9A-Z]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|sk-[A-Za-z0-9_-]{20,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|(?<!\d)\d{8,10}:[A-Za-z0-9_-]{35}"
    r"|(?:password|passwort|passwd|비밀번호|암호)\s*(?:is|:|=|는|은)\s*\S+",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<!\d)(?:\d{1,3}\.){3}\d{1,3}(?!\d)|https?://[^/\s]+:[^/\s]+@|[?&](?:token|key|sig)=[^&\s]+")
_PHONE_REGIONS = ("KR", "US")


def findings(text: str) -> tuple[Finding, ...]:
    """Return which kinds of thing in `text` keep it out of a training; empty: it may go in."""
    found: list[Finding] = []
    if len(text) > MAX_CHARS:
        found.append("too_long")
    if _EMAIL.search(text):
        found.append("email")
    if any(_luhn(match.group()) for match in _CARD.finditer(text)):
        found.append("card")
    if _RESIDENT.search(text):
        found.append("resident_number")
    if _SECRET.search(text):
        found.append("secret")
    if _ADDRESS.search(text):
        found.append("address")
    if any(_has_phone(text, region) for region in _PHONE_REGIONS):
        found.append("phone")
    return tuple(found)


def _has_phone(text: str, region: str) -> bool:
    return any(True for _ in phonenumbers.PhoneNumberMatcher(text[:MAX_CHARS], region))


def _luhn(text: str) -> bool:
    digits = [int(c) for c in text if c.isdigit()]
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2]]  # noqa: PLR2004  # digit sum of the double
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
