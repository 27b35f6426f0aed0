"""Reads the Bot API's JSON without trusting it: each access names what it expects and refuses what it does not get.

Only `InvalidInputError` comes out of here, with the field's name and never its value.
Source of the shapes: https://core.telegram.org/bots/api#available-types
"""

import json
from collections.abc import Mapping, Sequence

from app.domain.text import storable
from app.errors import InvalidInputError

Json = Mapping[str, object]


def read_object(body: bytes) -> Json:
    """Return the JSON object in `body`. Raises `InvalidInputError` when there is none."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("the update is not JSON") from error
    return _object(value, "update")


def object_at(parent: Json, name: str) -> Json:
    """Return the object under `name`."""
    return _object(parent.get(name), name)


def maybe_object(parent: Json, name: str) -> Json | None:
    """Return the object under `name`, None where there is none."""
    return object_at(parent, name) if parent.get(name) is not None else None


def objects_at(parent: Json, name: str) -> Sequence[Json]:
    """Return the objects of the list under `name`, empty where there is none."""
    value = parent.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidInputError(f"{name} is not a list")
    return [_object(item, name) for item in value]


def int_at(parent: Json, name: str) -> int:
    """Return the whole number under `name`."""
    value = parent.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInputError(f"{name} is missing or not a whole number")
    return value


def maybe_int(parent: Json, name: str) -> int | None:
    """Return the whole number under `name`, None where there is none."""
    return int_at(parent, name) if parent.get(name) is not None else None


def str_at(parent: Json, name: str) -> str:
    """Return the text under `name`, storable."""
    value = parent.get(name)
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} is missing or not a text")
    return storable(value)


def maybe_str(parent: Json, name: str) -> str | None:
    """Return the text under `name`, storable; None where there is none."""
    return str_at(parent, name) if parent.get(name) is not None else None


def flag_at(parent: Json, name: str) -> bool:
    """Whether the flag under `name` is set."""
    return parent.get(name) is True


def _object(value: object, name: str) -> Json:
    if not isinstance(value, dict):
        raise InvalidInputError(f"{name} is missing or not an object")
    return value
