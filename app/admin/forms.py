"""What came in with a request, as closed schemas: unknown or doubled fields, wrong vocabulary and oversized text are refused."""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit
from uuid import UUID

from aiohttp import web
from multidict import MultiMapping

from app.domain.text import storable
from app.errors import InvalidInputError, NotFoundError

MAX_FIELD = 20_000
CSRF_FIELD = "csrf"
PREFIX = "/admin"


class FormError(InvalidInputError):
    """The form has a field that it should not have, twice, or too long."""


class ChoiceError(InvalidInputError):
    """This value is not among the choices."""


class MissingError(InvalidInputError):
    """A field that is needed is empty."""


class ReasonMissingError(MissingError):
    """Please say why: the audit log keeps the reason."""


class Fields:
    """The fields of a form or a query string."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """Return a field without the spaces around it, empty when it was not sent."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """Return a field as it was typed."""
        return next(iter(self._values.get(name, [])), "")

    def needed(self, name: str) -> str:
        """Return a field that must not be empty."""
        value = self.text(name)
        if not value:
            raise MissingError
        return value

    def reason(self) -> str:
        """Return the field `reason`, which must not be empty."""
        value = self.text("reason")
        if not value:
            raise ReasonMissingError
        return value

    def choice(self, name: str, choices: Collection[str], default: str = "") -> str:
        """Return a field of a closed vocabulary; sent but empty means empty, not sent means `default`."""
        if name not in self._values:
            return default
        value = self.text(name)
        if value and value not in choices:
            raise ChoiceError
        return value

    def several(self, name: str, choices: Collection[str]) -> list[str]:
        """Return all values of a field of a closed vocabulary."""
        values = self._values.get(name, [])
        if not set(values) <= set(choices):
            raise ChoiceError
        return values

    def whole(self, name: str, default: int, most: int = 2**62) -> int:
        """Return a whole number from 0 to `most`."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and len(value) < len(str(2**63)) and int(value) <= most):
            raise ChoiceError
        return int(value)


def read_fields(source: MultiMapping[object], allowed: Collection[str], several: Collection[str] = ()) -> Fields:
    """Return the fields of `source`.

    Raises:
        FormError: a field is not in `allowed`, was sent twice (unless in `several`), is too long or is a file.
    """
    values: dict[str, list[str]] = {}
    for name in source:
        sent = source.getall(name)
        doubled = len(sent) > 1 and name not in several
        if name not in allowed or doubled or not all(isinstance(v, str) and len(v) <= MAX_FIELD for v in sent):
            raise FormError
        values[name] = [storable(str(v)) for v in sent]
    return Fields(values)


def path_id(request: web.Request, name: str) -> UUID:
    """Return an id from the path; what is no id is simply not there.

    Raises:
        NotFoundError: it is no id.
    """
    try:
        return UUID(request.match_info[name])
    except ValueError as error:
        raise NotFoundError from error


def own_path(target: str) -> str:
    """Return `target` when it is a path of the panel, else the panel's first page: a redirect never leaves it."""
    try:
        parts = urlsplit(target)
    except ValueError:  # half an address of a host
        return f"{PREFIX}/"
    plain = target.isascii() and target.isprintable() and "\\" not in target and ".." not in parts.path
    inside = parts.path == PREFIX or parts.path.startswith(f"{PREFIX}/")
    return target if plain and inside and not parts.scheme and not parts.netloc else f"{PREFIX}/"
