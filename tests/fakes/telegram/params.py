"""Parameters of a call: the same names arrive as query, form, JSON or multipart, and as text or as values.

Owns reading and types; raises the server's 400 for what does not fit.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web
from aiohttp.web_request import FileField

from tests.fakes.telegram.errors import JSON, bad_request

_MISSING: Final = {"chat_id": "chat_id is empty", "text": "message text is empty"}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came with the call."""

    name: str
    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Params:
    """Values by name, and the files of a multipart call."""

    values: JSON
    files: dict[str, Upload] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether a value other than nothing was given."""
        return self.values.get(name) not in (None, "")

    def text(self, name: str, default: str = "") -> str:
        """A string; numbers are taken as their digits."""
        value = self.values.get(name)
        return default if value is None else str(value)

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number."""
        if not self.has(name):
            return default
        try:
            return int(self.values[name])
        except (TypeError, ValueError) as error:
            raise bad_request(f"can't parse {name}: expected an Integer") from error

    def flag(self, name: str) -> bool:
        """A Boolean in any spelling the server takes."""
        return str(self.values.get(name, "")).lower() in ("true", "yes", "1")

    def structure(self, name: str) -> Any:  # noqa: ANN401 - the caller looks at what came
        """A JSON value, parsed if it came as text; None if it did not come."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except ValueError as error:
            raise bad_request(f"can't parse {name.replace('_', ' ')} JSON object") from error

    def need(self, name: str) -> None:
        """Refuse the call where a required value is missing."""
        if not self.has(name):
            raise bad_request(_MISSING.get(name, f'parameter "{name}" is required'))


async def read(request: web.Request) -> Params:
    """Collect the parameters of a request; its own query first, then the body."""
    values: JSON = dict(request.query)
    files: dict[str, Upload] = {}
    if request.content_type == "application/json":
        try:
            body = json.loads(await request.read() or b"{}")
        except ValueError as error:
            raise bad_request("can't parse request body as a JSON object") from error
        values |= body if isinstance(body, dict) else {}
    elif request.can_read_body:
        for name, value in (await request.post()).items():
            if isinstance(value, FileField):
                files[name] = Upload(value.filename, value.content_type, value.file.read())
            else:
                values[name] = value
    return Params(values, files)
