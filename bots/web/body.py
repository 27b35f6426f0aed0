"""JSON bodies, read strictly: closed fields, exact types, no duplicates, and a sentence that names what is wrong."""

import json
from collections.abc import Mapping
from typing import NoReturn

from aiohttp import web

from app.errors import InvalidInputError
from bots.web.guard import read_body

JSON = "application/json"


async def read_json(request: web.Request) -> Mapping[str, object]:
    """Return the request's JSON object.

    Raises:
        InvalidInputError: another content type, no JSON, or JSON that is no object.
        TooLargeError: above 256 KiB.
    """
    if request.content_type != JSON:
        raise InvalidInputError(f"the content type must be {JSON}")
    return parse_object(await read_body(request))


def parse_object(body: bytes) -> Mapping[str, object]:
    """Return the JSON object in `body`.

    Raises:
        InvalidInputError: the message says what is wrong and where.
    """
    try:
        value = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"the body is not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"the body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from error
    except RecursionError as error:
        raise InvalidInputError("the body is nested too deeply") from error
    except ValueError as error:
        # Python refuses integers of thousands of digits that way.
        raise InvalidInputError("the body holds a number that is too long") from error
    if not isinstance(value, dict):
        raise InvalidInputError("the body must be a JSON object")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidInputError("a field is there twice")
    return found


def _constant(name: str) -> NoReturn:
    raise InvalidInputError(f"{name} is not JSON")


def closed(body: Mapping[str, object], *known: str) -> None:
    """Raise `InvalidInputError` for a field that is not `known`."""
    for name in body:
        if name not in known:
            raise InvalidInputError(f"unknown field {name[:40]!a}")


def words(body: Mapping[str, object], name: str, *, most: int | None = None) -> str:
    """Return the text of a field that must be there, of at most `most` characters."""
    value = body.get(name)
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a text")
    if most is not None and len(value) > most:
        raise InvalidInputError(f"{name} is longer than {most} characters")
    return value


def optional_words(body: Mapping[str, object], name: str, *, most: int) -> str | None:
    """Return the text of a field that may be absent or null."""
    return None if body.get(name) is None else words(body, name, most=most)
