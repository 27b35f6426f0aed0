"""Refused calls as Twilio words them.

Codes: https://www.twilio.com/docs/api/errors
"""

from aiohttp import web

_STATUS = {20003: 401, 20404: 404, 20429: 429, 20500: 500}
_WORDS = {
    20001: "Invalid request body",
    20003: "Authenticate",
    20404: "The requested resource was not found",
    20429: "Too Many Requests",
    21211: "Invalid 'To' Phone Number",
    21602: "Message body is required.",
    21604: "A 'To' phone number is required.",
    21610: "Attempt to send to unsubscribed recipient",
    21617: "The concatenated message body exceeds the 1600 character limit",
    21655: "The ContentSid is Invalid",
    21656: "The ContentVariables Parameter is invalid",
    63007: "Twilio could not find a Channel with the specified From address",
    63013: "This message send failed because it violates Channel provider's policy",
    63016: "Failed to send freeform message because you are outside the allowed window",
}


class ApiError(Exception):
    """A refused call."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
        self.status = _STATUS.get(code, 400)

    def to_response(self) -> web.Response:
        """The answer as Twilio words it."""
        body = {
            "code": self.code,
            "message": _WORDS.get(self.code, "Refused"),
            "more_info": f"https://www.twilio.com/docs/errors/{self.code}",
            "status": self.status,
        }
        return web.json_response(body, status=self.status)
