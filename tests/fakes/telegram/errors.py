"""The error answers of the Bot API, with the sentences the real server sends.

Owns wording and shape only; which error applies is decided where the method is handled.
"""

from typing import Any

JSON = dict[str, Any]


class ApiError(Exception):
    """A refused call: HTTP status, description and the optional `parameters` object."""

    def __init__(self, code: int, description: str, parameters: JSON | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def to_json(self) -> JSON:
        """The body of the answer."""
        body: JSON = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            body["parameters"] = self.parameters
        return body


def bad_request(text: str) -> ApiError:
    """400 with the prefix that the server puts before every sentence."""
    return ApiError(400, f"Bad Request: {text}")


def cannot_parse(text: str) -> ApiError:
    """400 for markup or entities that do not parse."""
    return bad_request(f"can't parse entities: {text}")


def forbidden(text: str) -> ApiError:
    """403: the bot may not write there."""
    return ApiError(403, f"Forbidden: {text}")


def conflict(text: str) -> ApiError:
    """409: somebody else receives the updates."""
    return ApiError(409, f"Conflict: {text}")


def too_many_requests(retry_after: int) -> ApiError:
    """429; `retry_after` in whole seconds."""
    return ApiError(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after})


def migrated(new_chat_id: int) -> ApiError:
    """400 for a group that became a supergroup."""
    text = "Bad Request: group chat was upgraded to a supergroup chat"
    return ApiError(400, text, {"migrate_to_chat_id": new_chat_id})
