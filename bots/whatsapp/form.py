"""Reads Twilio's form bodies without trusting them: every field, blanks and repeats included.

Only `InvalidInputError` comes out of here, with the field's name and never its value.
Source of the fields: https://www.twilio.com/docs/messaging/guides/webhook-request
"""

from urllib.parse import parse_qsl

from multidict import MultiDict

from app.domain.text import storable
from app.errors import InvalidInputError

Form = MultiDict[str]
MAX_FIELDS = 500
MAX_DIGITS = 99
ME = "whatsapp:"


def read_form(body: bytes) -> Form:
    """Return the form in `body`. Raises `InvalidInputError` when there is none."""
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, strict_parsing=True, max_num_fields=MAX_FIELDS
        )
    except ValueError as error:
        raise InvalidInputError("the body is no form") from error
    return MultiDict(pairs)


def field(form: Form, name: str) -> str:
    """Return a field that every such form has, storable."""
    value = maybe(form, name)
    if value is None:
        raise InvalidInputError(f"{name} is missing or blank")
    return value


def maybe(form: Form, name: str) -> str | None:
    """Return a field, storable; None where it is missing or blank."""
    value = form.get(name, "").strip()
    return storable(value) if value else None


def number(form: Form, name: str) -> int:
    """Return a whole number of zero or more, 0 where the field is missing."""
    value = maybe(form, name) or "0"
    if not (value.isascii() and value.isdecimal() and len(value) <= MAX_DIGITS):
        raise InvalidInputError(f"{name} is not a whole number")
    return int(value)


def sender(form: Form) -> str:
    """Return who wrote: the id that stays theirs where Twilio gives it, else the address they wrote from."""
    return maybe(form, "ExternalUserId") or address(form)


def address(form: Form) -> str:
    """Return the address they wrote from, to which replies go: a number, or an id where Meta shows no number."""
    value = field(form, "From")
    if not value.startswith(ME):
        raise InvalidInputError("From is no WhatsApp address")
    return value
