"""What an operator sets for Telegram. The token alone switches it on."""

import re
from typing import Literal, Self

from pydantic import SecretStr, field_validator, model_validator

from app.config import ChannelSettings, Settings

_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")
_SECRET_CHARS = 16


class TelegramSettings(ChannelSettings):
    """Each field is one line of `.env.example`."""

    telegram_bot_token: SecretStr | None = None
    telegram_base_url: str = "https://api.telegram.org/bot"
    telegram_mode: Literal["polling", "webhook"] = "polling"
    telegram_webhook_secret: SecretStr | None = None

    @field_validator("telegram_bot_token")
    @classmethod
    def _whole_token(cls, token: SecretStr | None) -> SecretStr | None:
        if token and not _TOKEN.fullmatch(token.get_secret_value()):
            message = "a token is <number>:<letters and digits>, as @BotFather gave it"
            raise ValueError(message)
        return token

    @model_validator(mode="after")
    def _secret_long_enough(self) -> Self:
        secret = self.telegram_webhook_secret
        if secret and len(secret.get_secret_value()) < _SECRET_CHARS:
            message = f"TELEGRAM_WEBHOOK_SECRET needs at least {_SECRET_CHARS} characters"
            raise ValueError(message)
        return self

    @property
    def on(self) -> bool:
        return self.telegram_bot_token is not None

    @property
    def token(self) -> str:
        """The bot's token, `""` where there is none."""
        return self.telegram_bot_token.get_secret_value() if self.telegram_bot_token else ""

    @property
    def number(self) -> str:
        """The bot's own id, which its token begins with."""
        return self.token.partition(":")[0]

    def lacking(self, house: Settings) -> str | None:
        needed = {"PUBLIC_URL": house.public_url, "TELEGRAM_WEBHOOK_SECRET": self.telegram_webhook_secret}
        missing = " and ".join(name for name, value in needed.items() if not value)
        return f"TELEGRAM_MODE=webhook needs {missing}" if missing and self.telegram_mode == "webhook" else None
