"""Reply markup: inline keyboards are checked as the server checks them and kept; other keyboards are only accepted.

Owns the rules for buttons. Does not know messages.
"""

from dataclasses import dataclass
from typing import Final

from tests.fakes.telegram.errors import JSON, bad_request

MAX_CALLBACK_BYTES: Final = 64
MAX_BUTTONS: Final = 100
_ACTIONS: Final = (
    "url",
    "callback_data",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
)
_OTHERS: Final = ("keyboard", "remove_keyboard", "force_reply")


@dataclass(frozen=True, slots=True)
class Button:
    """One inline button as a person sees it."""

    text: str
    data: str | None
    url: str | None


@dataclass(frozen=True, slots=True)
class Keyboard:
    """Rows of inline buttons, in the JSON that came."""

    rows: tuple[tuple[JSON, ...], ...]

    def buttons(self) -> list[Button]:
        """All buttons, row by row."""
        return [Button(item["text"], item.get("callback_data"), item.get("url")) for row in self.rows for item in row]

    def to_json(self) -> JSON:
        """The InlineKeyboardMarkup object."""
        return {"inline_keyboard": [list(row) for row in self.rows]}


def keyboard(given: object) -> Keyboard | None:
    """The inline keyboard of a `reply_markup`; None where there is none. Raises `ApiError` 400."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise bad_request("object expected as reply markup")
    if "inline_keyboard" not in given:
        if given and not any(name in given for name in _OTHERS):
            raise bad_request("can't parse reply keyboard markup JSON object")
        return None
    rows = given["inline_keyboard"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request('field "inline_keyboard" must be of type Array')
    checked = tuple(tuple(_button(item) for item in row) for row in rows if row)
    if sum(map(len, checked)) > MAX_BUTTONS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    return Keyboard(checked) if checked else None


def _button(item: object) -> JSON:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        raise bad_request('can\'t parse inline keyboard button: Field "text" must be of type String')
    if not item["text"].strip():
        raise bad_request("can't parse inline keyboard button: Button text must be non-empty")
    if not any(name in item for name in _ACTIONS):
        raise bad_request("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    if "callback_data" in item and not 1 <= len(str(item["callback_data"]).encode()) <= MAX_CALLBACK_BYTES:
        raise bad_request("BUTTON_DATA_INVALID")
    url = item.get("url")
    if url is not None and ("." not in url or " " in url) and not str(url).startswith(("tg://", "http://localhost")):
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
    return item
