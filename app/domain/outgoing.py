"""What goes out: the content of one message part, as Markdown text and buttons, the same for every channel.

A channel renders it. Serialised to and from JSON for the outbox row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self, TypedDict


class ButtonDocument(TypedDict):
    """A button as stored."""

    label: str
    data: str


class TemplateDocument(TypedDict):
    """A template's use as stored."""

    sid: str
    variables: dict[str, str]


class ContentDocument(TypedDict, total=False):
    """A content as stored in `outbox.content`."""

    text: str
    buttons: list[list[ButtonDocument]]
    reply_to: str | None
    file_name: str | None
    template: TemplateDocument | None


@dataclass(frozen=True, slots=True)
class Template:
    """A message that was laid down at the platform beforehand: its id there, and what fills its gaps by their names."""

    sid: str
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Button:
    """One button: what is read and what comes back when it is pressed (1-64 bytes)."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class Content:
    """What one message part should show: Markdown `text`, rows of buttons, and for a file its name (`text` is then its body).

    Where a `template` says the same at its platform, that is sent, and `text` where the platform does not take it.
    """

    text: str
    buttons: tuple[tuple[Button, ...], ...] = field(default_factory=tuple)
    reply_to: str | None = None
    file_name: str | None = None
    template: Template | None = None

    @property
    def choices(self) -> tuple[Button, ...]:
        """The buttons that a number stands for where none can be pressed, the first being 1.

        Those under a reply are none of them: a thumb, a reply to it, and /retry say the same in words.
        """
        buttons = tuple(button for row in self.buttons for button in row)
        return () if any(button.data.startswith("v:") for button in buttons) else buttons

    def spelled_out(self) -> "Content":
        """Return the content as a channel without buttons shows it: each choice a line with its number as a command."""
        lines = [f"/{number} {button.label}" for number, button in enumerate(self.choices, 1)]
        return replace(self, text="\n".join([f"{self.text}\n", *lines])) if lines else self

    def document(self) -> ContentDocument:
        """Return the JSON form."""
        rows = [[ButtonDocument(label=b.label, data=b.data) for b in row] for row in self.buttons]
        shown = ContentDocument(text=self.text, buttons=rows, reply_to=self.reply_to, file_name=self.file_name)
        if self.template:
            shown["template"] = TemplateDocument(sid=self.template.sid, variables=dict(self.template.variables))
        return shown

    @classmethod
    def of(cls, document: ContentDocument) -> Self:
        """Return the content of its JSON form."""
        rows = tuple(tuple(Button(b["label"], b["data"]) for b in row) for row in document.get("buttons", []))
        used = document.get("template")
        template = Template(used["sid"], used["variables"]) if used else None
        return cls(document.get("text", ""), rows, document.get("reply_to"), document.get("file_name"), template)
