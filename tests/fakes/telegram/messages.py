"""Messages as all clients see them now, with every earlier face of an edited one.

Owns the Message object's JSON. Knows chats and people only as the JSON that identifies them.
"""

from dataclasses import dataclass, field

from tests.fakes.telegram.errors import JSON
from tests.fakes.telegram.markup import Button, Keyboard
from tests.fakes.telegram.text import Formatted


@dataclass(frozen=True, slots=True)
class Revision:
    """One face of a message: what was shown from `at` (Unix seconds) on."""

    text: str
    buttons: tuple[Button, ...]
    at: float


@dataclass(slots=True)
class Message:
    """A message in a chat; `extra` holds fields that are passed through as they are (media, service, forwards)."""

    message_id: int
    chat_id: int
    chat: JSON
    date: float
    sender: JSON | None = None
    body: Formatted | None = None
    caption: Formatted | None = None
    keyboard: Keyboard | None = None
    reply_to: "Message | None" = None
    extra: JSON = field(default_factory=dict)
    edit_date: float | None = None
    deleted: bool = False
    reactions: dict[int, list[JSON]] = field(default_factory=dict)
    revisions: list[Revision] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text or caption, empty where there is none."""
        shown = self.body or self.caption
        return shown.text if shown else ""

    @property
    def entities(self) -> list[JSON]:
        """Entities of the text or caption."""
        shown = self.body or self.caption
        return shown.entities_json() if shown else []

    @property
    def buttons(self) -> list[Button]:
        """Inline buttons, row by row."""
        return self.keyboard.buttons() if self.keyboard else []

    @property
    def from_bot(self) -> bool:
        """Whether a bot wrote it."""
        return bool(self.sender and self.sender["is_bot"])

    def emoji_of(self, actor: int) -> list[str]:
        """The plain emoji that one actor put on it."""
        return [item["emoji"] for item in self.reactions.get(actor, []) if item["type"] == "emoji"]

    def snapshot(self, at: float) -> None:
        """Keep the present face in the history."""
        self.revisions.append(Revision(self.text, tuple(self.buttons), at))

    def to_json(self, *, nested: bool = False) -> JSON:
        """The Message object; a nested one does not show what it replies to."""
        data: JSON = {"message_id": self.message_id, "date": int(self.date), "chat": self.chat, **self.extra}
        if self.sender is not None:
            data["from"] = self.sender
        if self.edit_date is not None:
            data["edit_date"] = int(self.edit_date)
        for name, shown in (("text", self.body), ("caption", self.caption)):
            if shown is not None:
                data[name] = shown.text
            if shown is not None and shown.entities:
                data["entities" if name == "text" else "caption_entities"] = shown.entities_json()
        if self.keyboard is not None:
            data["reply_markup"] = self.keyboard.to_json()
        if self.reply_to is not None and not nested:
            data["reply_to_message"] = self.reply_to.to_json(nested=True)
        return data
