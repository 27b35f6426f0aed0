"""Settings: read from the environment and `.env`, validated once at start, free of torch.

Owns what is the house's; what belongs to one channel is in its package (`ChannelSettings`). A bad value or combination
raises `ConfigError` with a sentence that says what to set; values of secrets are never printed.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import ConfigError

Network = IPv4Network | IPv6Network
LADDER_PREFIX = "LADDER_"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_ALLOWED = re.compile(r"[a-z][a-z0-9_-]*:\S+")


class LadderSettings(BaseSettings):
    """Thresholds of the authority ladder (`app/domain/ladder.py`)."""

    model_config = SettingsConfigDict(env_prefix=LADDER_PREFIX, env_file=".env", env_ignore_empty=True, extra="ignore")

    graduate_after_uses: int = Field(8, ge=1, description="replies that used a memory line before it may graduate")
    graduate_after_sessions: int = Field(2, ge=1, description="different conversations that used the line")
    graduate_min_examples: int = Field(1, ge=1, description="approved examples a line needs before it may graduate")
    graduate_after_failures: int = Field(
        3, ge=1, description="replies that broke the line although it was in the prompt"
    )
    min_confidence: float = Field(0.6, ge=0, le=1, description="below this a classification is asked, not acted upon")
    train_min_prompts: int = Field(3, ge=1, description="consented prompts of the person a training needs")
    train_cooldown_s: int = Field(3600, ge=0, description="least seconds between two trainings of one person")


class Settings(BaseSettings):
    """Everything an operator can set; each field is one line of `.env.example`."""

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore")

    mentee_home: Path = Field(Path("var"), description="where the embedded parts keep their data")
    mentee_host: str = Field("127.0.0.1", description="address the gateway listens on")
    mentee_port: int = Field(8080, ge=1, le=65535, description="port of web chat and panel")
    public_url: str | None = Field(None, description="address under which people reach the gateway (https://...)")
    trusted_proxies: str | None = Field(None, description="addresses or networks of our own proxies, by commas")
    mentee_secret: SecretStr | None = Field(None, description="key for dedupe and tokens; made at first start if unset")
    language: Literal["en", "ko"] = Field("en", description="language where nothing else tells")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    database_url: SecretStr | None = Field(None, description="postgresql://...; unset: the embedded PostgreSQL")
    broker_url: SecretStr | None = Field(None, description="redis://...; unset: the embedded Valkey")
    vllm_base_url: str | None = Field(None, description="http://host:8000; unset: the embedded vLLM")
    vllm_api_key: SecretStr | None = None
    vllm_dtype: Literal["float32", "bfloat16"] | None = Field(
        None, description="precision that vllm_base_url serves in; unset: the profile's own"
    )
    vllm_port: int = Field(8100, ge=1, le=65535, description="port of the embedded vLLM (loopback)")
    postgres_port: int = Field(8132, ge=1, le=65535, description="port of the embedded PostgreSQL (loopback)")
    valkey_port: int = Field(8179, ge=1, le=65535, description="port of the embedded Valkey (loopback)")
    model: str = Field("smollm2-135m", description="base profile, see app/domain/profiles.py")
    model_dir: Path | None = Field(
        None, description="directory of the served base, for its identity; set by `mentee run`"
    )
    train_device: Literal["cpu", "cuda"] = Field("cpu", description="where trainings run; cuda: a GPU of their own")
    allow_download: bool = Field(False, description="fetch a base model that is not bundled")

    judge_base_url: str | None = None
    judge_model: str | None = None
    judge_api_key: SecretStr | None = None

    transcribe_base_url: str | None = None
    transcribe_model: str | None = None
    transcribe_api_key: SecretStr | None = None

    metrics_token: SecretStr | None = Field(None, description="lets other machines read /metrics, as a bearer token")

    raw_body_days: int = Field(3, ge=1, description="days that raw updates are kept")
    model_wait_s: float = Field(
        120.0,
        ge=0,
        description="how long a message waits for a model server that takes no connections, as at its start",
    )
    model_timeout_s: float = Field(120.0, gt=0, description="longest wait for the next token of a reply")
    max_reply_tokens: int = Field(256, ge=1)
    max_input_chars: int = Field(8000, ge=1, description="longer messages are refused with a sentence")
    held_days: int = Field(
        30,
        ge=1,
        description="days that a message waits for a person's next word where WhatsApp takes it only after that",
    )
    retention_left_days: int = Field(
        30, ge=0, description="days after which who opted out or blocked the bot is forgotten; 0: never"
    )
    retention_silent_days: int = Field(
        730, ge=0, description="days of silence after which a person is forgotten; 0: never"
    )
    answer_within_minutes: int = Field(
        60, ge=1, description="an older message is answered only if it is the newest of its chat"
    )
    private_bots: bool = Field(False, description="bots on platforms answer only who is allowed or was invited")
    allowed_people: str | None = Field(None, description="who needs no invitation: <channel>:<id>, by commas")
    quota_replies_per_minute: int = Field(
        30, ge=0, description="replies a person may ask for within a minute; 0: no limit"
    )
    quota_tokens_per_day: int = Field(0, ge=0, description="tokens a person may use in a day (UTC); 0: no limit")
    ask_per_day: int = Field(2, ge=0, description="questions how a reply was that a person gets in a day; 0: none")
    ask_after_silent_replies: int = Field(10, ge=1, description="replies without a word about any, before one is asked")
    ask_new_checkpoint_replies: int = Field(
        3, ge=0, description="first replies of a new checkpoint that may be asked about"
    )
    session_idle_minutes: int = Field(30, ge=1)
    session_max_hours: int = Field(24, ge=1)
    retries_on_correction: int = Field(3, ge=0, le=8, description="rewrites sampled when a reply is corrected")

    ladder: LadderSettings = Field(default_factory=LadderSettings)

    @field_validator("language", mode="before")
    @classmethod
    def _first_locale(cls, value: object) -> object:
        # LANGUAGE is also gettext's list of locales ("ko_KR:en"), set on many desktops: its first language counts.
        first = str(value).split(":")[0][:2].lower()
        return first if first in {"en", "ko"} else "en"

    @field_validator("public_url")
    @classmethod
    def _an_address(cls, address: str | None) -> str | None:
        if address and not _ADDRESS.fullmatch(address):
            raise ValueError("write it with https:// (or http://) and without spaces, as in https://bot.example.org")
        return address

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, proxies: str | None) -> str | None:
        try:
            networks(proxies)
        except ValueError as error:
            message = "name addresses or networks, as in 127.0.0.1,10.0.0.0/8"
            raise ValueError(message) from error
        return proxies

    @field_validator("allowed_people")
    @classmethod
    def _each_with_its_channel(cls, listed: str | None) -> str | None:
        names = _listed(listed)
        for place, one in enumerate(names, 1):
            if not _ALLOWED.fullmatch(one):
                message = f"entry {place}: name each as <channel>:<id>, as in telegram:12345, separated by commas"
                raise ValueError(message)
            if (before := names.index(one) + 1) < place:
                message = f"entry {place} is entry {before} again; name each person once"
                raise ValueError(message)
        return listed

    @model_validator(mode="after")
    def _combinations(self) -> Self:
        if bool(self.judge_base_url) != bool(self.judge_model):
            message = "set JUDGE_BASE_URL and JUDGE_MODEL together, or neither"
            raise ValueError(message)
        if bool(self.transcribe_base_url) != bool(self.transcribe_model):
            message = "set TRANSCRIBE_BASE_URL and TRANSCRIBE_MODEL together, or neither"
            raise ValueError(message)
        if self.vllm_base_url and ("," in self.vllm_base_url or len(self.vllm_base_url.split()) > 1):
            # Chats ask one server: adapters on others would answer nobody, and be forgotten by half.
            message = "VLLM_BASE_URL names several model servers; name the one that serves chats and adapters"
            raise ValueError(message)
        if self.mentee_secret and len(self.mentee_secret.get_secret_value()) < 32:  # noqa: PLR2004
            message = "MENTEE_SECRET needs at least 32 characters"
            raise ValueError(message)
        return self

    @property
    def allowed(self) -> frozenset[str]:
        """The people who need no invitation, each as `channel:id`."""
        return frozenset(_listed(self.allowed_people))

    @property
    def beyond_loopback(self) -> bool:
        """Whether people on other machines can reach the gateway; then a newcomer needs an invitation."""
        return self.mentee_host not in LOOPBACK or self.public_url is not None

    @property
    def proxies(self) -> tuple[Network, ...]:
        """The networks whose word about a client's address counts."""
        return networks(self.trusted_proxies)

    @property
    def address(self) -> str:
        """Where people reach the gateway: its public address, else the one on this machine."""
        return (self.public_url or f"http://127.0.0.1:{self.mentee_port}").rstrip("/")


class ChannelSettings(BaseSettings):
    """What a channel package lets an operator set: each field is one variable of the environment and of `.env`.

    A package's field names begin with its own name, or with that of the service behind it: they share one file with the
    house's settings and with other packages'.
    """

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore")

    @property
    def on(self) -> bool:
        """Whether the channel is switched on; then everything that it needs is set."""
        raise NotImplementedError

    def lacking(self, house: Settings) -> str | None:  # noqa: ARG002 - for packages that look
        """Return the sentence that says what of the house's settings the channel needs as well; None where nothing lacks."""
        return None


S = TypeVar("S", bound=BaseSettings)


def _listed(names: str | None) -> tuple[str, ...]:
    return tuple(one.strip() for one in (names or "").split(",") if one.strip())


def networks(listed: str | None) -> tuple[Network, ...]:
    """Return the networks in a list by commas; an address is the smallest one. Raises `ValueError`."""
    return tuple(ip_network(one) for one in _listed(listed))


@lru_cache
def load() -> Settings:
    """Return the validated settings.

    Raises:
        ConfigError: a value is missing, malformed or contradicts another.
    """
    return _read()


def _read() -> Settings:
    return read(Settings)


def read(kind: type[S]) -> S:
    """Return settings of a kind from the environment and `.env`.

    Raises:
        ConfigError: a value is missing, malformed or contradicts another.
    """
    try:
        return kind()
    except ValidationError as error:
        nested = error.title == LadderSettings.__name__
        prefix = LADDER_PREFIX if nested else kind.model_config.get("env_prefix", "")
        raise ConfigError("; ".join(_sentence(prefix, e["loc"], e["msg"]) for e in error.errors())) from error


def _sentence(prefix: str, loc: tuple[int | str, ...], message: str) -> str:
    name = (prefix + "_".join(str(part) for part in loc)).upper() if loc else ""
    text = message.removeprefix("Value error, ")
    return f"{name}: {text}" if name else text
