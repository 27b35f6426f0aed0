"""What a button says: a verb, a row and a choice, at most 64 bytes. Forgeable; whoever handles it checks whose row it is."""

import base64
import binascii
from dataclasses import dataclass
from uuid import UUID

from app.errors import InvalidInputError

# verb -> the choices it knows; an empty tuple takes none.
VERBS: dict[str, tuple[str, ...]] = {
    "v": ("u", "d", "0"),  # vote on a turn: up, down, take back
    "r": ("fact", "style", "once", "topic"),  # why a turn was voted down
    "c": (),  # correct a turn
    "a": (),  # allow memory, and keep the wish that was not kept for want of it
    "n": (),  # "no, that was a new question": not a correction
    "w": ("y", "n"),  # a rewrite fits, or none does
    "e": ("no",),  # write no example
    "m": ("undo",),  # take a memory line back
    "k": ("keep", "back"),  # keep a release, or go back
    "t": (),  # answer a turn again
    "s": ("1", "0"),  # a consent switch; the row is the purpose
    "f": ("chat", "learnt", "all", "no"),  # what to forget
    "x": (),  # stop writing
    "o": ("out", "stay"),  # opt out, or it was not meant
}

# Buttons that begin a reply, or change what the next message means, keep their place in the chat; the others overtake.
IN_ORDER = frozenset({"a", "c", "e", "n", "r", "t", "w", "f"})


@dataclass(frozen=True, slots=True)
class Press:
    """A pressed button: `verb`, the row it is about (a short id or a word) and the choice."""

    verb: str
    subject: str = ""
    choice: str = ""

    def data(self) -> str:
        """Return the callback data."""
        return f"{self.verb}:{self.subject}:{self.choice}".rstrip(":")

    @property
    def row(self) -> UUID:
        """The id of the row it is about."""
        return long_id(self.subject)


def parse(data: str) -> Press:
    """Return what `data` says.

    Raises:
        InvalidInputError: not one of ours.
    """
    verb, _, rest = data.partition(":")
    subject, _, choice = rest.partition(":")
    known = VERBS.get(verb)
    if known is None or (known and choice not in known) or (not known and choice):
        raise InvalidInputError("this button is not one of ours")
    return Press(verb, subject, choice)


def overtakes(data: str) -> bool:
    """Whether a button need not wait for a reply that is being written."""
    return data.partition(":")[0] not in IN_ORDER


def short_id(row: UUID) -> str:
    """Return a row id in 22 characters."""
    return base64.urlsafe_b64encode(row.bytes).rstrip(b"=").decode()


def long_id(short: str) -> UUID:
    """Return the row id that `short_id` wrote.

    Raises:
        InvalidInputError: not such an id.
    """
    try:
        return UUID(bytes=base64.urlsafe_b64decode(short + "=="))
    except (ValueError, binascii.Error) as error:
        raise InvalidInputError("this button is not one of ours") from error
