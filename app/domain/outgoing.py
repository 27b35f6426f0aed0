"""What goes out: the content of one message part, as Markdown text and buttons, the same for every channel.

A channel renders it. Serialised to and from JSON for the outbox row.
"""

from dataclasses import dataclass, field
from typing import Self, TypedDict


class ButtonDocument(TypedDict):
    """A button as stored."""

    label: str
    data: str


class ContentDocument(TypedDict, total=False):
    """A content as stored in `outbox.content`."""

    text: str
    buttons: list[list[ButtonDocument]]
    reply_to: str | None
    file_name: str | None


@dataclass(frozen=True, slots=True)
class Button:
    """One button: what is read and what comes back when it is pressed (1-64 bytes)."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class Content:
    """What one message part should show: Markdown `text`, rows of buttons, and for a file its name (`text` is then its body)."""

    text: str
    buttons: tuple[tuple[Button, ...], ...] = field(default_factory=tuple)
    reply_to: str | None = None
    file_name: str | None = None

    def document(self) -> ContentDocument:
        """Return the JSON form."""
        rows = [[ButtonDocument(label=b.label, data=b.data) for b in row] for row in self.buttons]
        return ContentDocument(text=self.text, buttons=rows, reply_to=self.reply_to, file_name=self.file_name)

    @classmethod
    def of(cls, document: ContentDocument) -> Self:
        """Return the content of its JSON form."""
        rows = tuple(tuple(Button(b["label"], b["data"]) for b in row) for row in document.get("buttons", []))
        return cls(document.get("text", ""), rows, document.get("reply_to"), document.get("file_name"))
