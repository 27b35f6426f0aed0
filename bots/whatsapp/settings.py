"""What an operator sets for WhatsApp through Twilio: off, or set up whole. Half of it would lose messages without a word."""

import re
from typing import Self

from pydantic import Field, SecretStr, model_validator

from app.config import ChannelSettings, Settings

_ACCOUNT_SID = re.compile(r"AC[0-9a-fA-F]{32}")
_ADDRESS = re.compile(r"whatsapp:\+[1-9][0-9]{6,14}")


class WhatsAppSettings(ChannelSettings):
    """Each field is one line of `.env.example`."""

    twilio_account_sid: str | None = None
    twilio_auth_token: SecretStr | None = None
    twilio_base_url: str | None = Field(None, description="only for a server that speaks Twilio's API in its place")
    whatsapp_from: str | None = Field(None, description="the bot's own sender, whatsapp:+<number>")
    whatsapp_business_purpose: str | None = Field(None, description="what the bot does for which business")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needed = {
            "TWILIO_ACCOUNT_SID": self.twilio_account_sid,
            "TWILIO_AUTH_TOKEN": self.twilio_auth_token and self.twilio_auth_token.get_secret_value(),
            "WHATSAPP_FROM": self.whatsapp_from,
            "WHATSAPP_BUSINESS_PURPOSE": (self.whatsapp_business_purpose or "").strip(),
        }
        missing = [name for name, value in needed.items() if not value]
        if len(missing) == len(needed):
            return self
        if missing:
            message = f"WhatsApp also needs {', '.join(missing)}; docs/whatsapp.md explains each"
            raise ValueError(message)
        if not _ACCOUNT_SID.fullmatch(self.twilio_account_sid or ""):
            message = "TWILIO_ACCOUNT_SID is AC and 32 hexadecimal digits, as Twilio's console shows it"
            raise ValueError(message)
        if not _ADDRESS.fullmatch(self.whatsapp_from or ""):
            message = "WHATSAPP_FROM is whatsapp:+ and the number with its country code, without spaces"
            raise ValueError(message)
        return self

    @property
    def on(self) -> bool:
        return self.whatsapp_from is not None

    def lacking(self, house: Settings) -> str | None:
        if self.on and not (house.public_url or "").startswith("https://"):
            return "WhatsApp also needs PUBLIC_URL (https://...); docs/whatsapp.md explains each"
        return None
