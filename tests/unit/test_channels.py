"""Channel packages: found by entry point, their settings read and checked, and what is wrong with one said by its name."""

import sys
from importlib.metadata import EntryPoint

import pytest

from app import config
from app.config import ChannelSettings, Settings
from app.domain.consent import EVERY_PURPOSE, NEVER_SHARED, UNSTATED
from app.embedded.run import _check_channels
from app.errors import ConfigError, PartError
from app.gateway import channels
from app.main import check_paths
from bots.package import ChannelPackage
from bots.telegram.package import PACKAGE as TELEGRAM


def on() -> dict[str, bool]:
    """Return which channels the environment switches on."""
    found = channels.read(channels.find(), config._read())
    return {one.package.name: one.settings.on for one in found}


WHOLE = {
    "TWILIO_ACCOUNT_SID": "AC" + "0a" * 16,
    "TWILIO_AUTH_TOKEN": "token",
    "WHATSAPP_FROM": "whatsapp:+15550100123",
    "WHATSAPP_BUSINESS_PURPOSE": "answers questions about orders",
    "PUBLIC_URL": "https://bot.example.org",
}


def _set(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_whatsapp_is_off_until_it_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not on()["whatsapp"]
    _set(monkeypatch, WHOLE)
    assert on()["whatsapp"]


@pytest.mark.parametrize("lacking", list(WHOLE))
def test_whatsapp_set_up_in_part_names_what_lacks(monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    _set(monkeypatch, {name: value for name, value in WHOLE.items() if name != lacking})
    with pytest.raises(ConfigError, match=f"needs {lacking}"):
        on()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("TWILIO_ACCOUNT_SID", "SK" + "0" * 32, "TWILIO_ACCOUNT_SID is AC"),
        ("WHATSAPP_FROM", "+15550100123", "WHATSAPP_FROM is whatsapp:"),
        ("WHATSAPP_FROM", "whatsapp:+1 555 010", "WHATSAPP_FROM is whatsapp:"),
        ("PUBLIC_URL", "http://bot.example.org", "needs PUBLIC_URL"),
        ("WHATSAPP_BUSINESS_PURPOSE", "  ", "needs WHATSAPP_BUSINESS_PURPOSE"),
    ],
)
def test_what_cannot_be_meant_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    _set(monkeypatch, WHOLE | {name: value})
    with pytest.raises(ConfigError, match=words):
        on()


@pytest.mark.parametrize("token", ["planted", "planted:x", "12:plan ted", ":planted"])
def test_a_malformed_telegram_token_is_told_and_not_shown(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", token)
    with pytest.raises(ConfigError, match="TELEGRAM_BOT_TOKEN: a token is") as told:
        on()
    assert "planted" not in str(told.value)


def test_an_empty_token_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "")
    assert on() == {"web": True, "telegram": False, "whatsapp": False}


def test_a_webhook_needs_its_address_and_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, {"TELEGRAM_BOT_TOKEN": "1:a", "TELEGRAM_MODE": "webhook"})
    with pytest.raises(ConfigError, match="TELEGRAM_MODE=webhook needs PUBLIC_URL and TELEGRAM_WEBHOOK_SECRET"):
        on()
    _set(monkeypatch, {"PUBLIC_URL": "https://bot.example.org", "TELEGRAM_WEBHOOK_SECRET": "short"})
    with pytest.raises(ConfigError, match="at least 16"):
        on()
    monkeypatch.setenv("TELEGRAM_WEBHOOK_SECRET", "s" * 16)
    assert on()["telegram"]


@pytest.mark.parametrize("listed", ["telegram:12345", "telegram:1, whatsapp:+15550100999, whatsapp:KR.abc123"])
def test_people_are_listed_as_their_channel_names_them(monkeypatch: pytest.MonkeyPatch, listed: str) -> None:
    monkeypatch.setenv("ALLOWED_PEOPLE", listed)
    assert on()


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("12345", "entry 1: name each as <channel>:<id>"),
        ("telegram:1,telegram:", "entry 2: name each as <channel>:<id>"),
        ("telegram: 1", "entry 1: name each as <channel>:<id>"),
        ("whatsapp:+1 555", "entry 1: name each as <channel>:<id>"),
        ("Telegram:1", "entry 1: name each as <channel>:<id>"),
        ("telegram:1, telegram:2 ,telegram:1", "entry 3 is entry 1 again"),
        ("web:ann", "nobody is named by web:, but as in telegram:12345, whatsapp:[+]15550100123"),
        ("pigeon:7", "nobody is named by pigeon:, but as in"),
        ("telegram:@ann", "name people of telegram as in telegram:12345"),
        ("telegram:-100123", "name people of telegram as in telegram:12345"),
        ("telegram:012", "name people of telegram as in telegram:12345"),
        ("whatsapp:15550100999", "name people of whatsapp as in whatsapp:[+]15550100123"),
        ("whatsapp:+1-555-0100", "name people of whatsapp as in whatsapp:[+]15550100123"),
        ("whatsapp:whatsapp:+15550100999", "name people of whatsapp as in whatsapp:[+]15550100123"),
        ("whatsapp:ann", "name people of whatsapp as in whatsapp:[+]15550100123"),
    ],
)
def test_people_whom_no_channel_knows_are_refused(monkeypatch: pytest.MonkeyPatch, listed: str, words: str) -> None:
    monkeypatch.setenv("ALLOWED_PEOPLE", listed)
    with pytest.raises(ConfigError, match=f"ALLOWED_PEOPLE: {words}"):
        on()


def test_what_is_said_on_whatsapp_never_serves_the_shared_model() -> None:
    rules = channels.data_use(channels.read(channels.find(), Settings(_env_file=None)))
    assert rules == {"web": EVERY_PURPOSE, "telegram": EVERY_PURPOSE, "whatsapp": NEVER_SHARED}


class PigeonSettings(ChannelSettings):
    """One setting."""

    pigeon_loft: str | None = None

    @property
    def on(self) -> bool:
        return self.pigeon_loft is not None


class GreedySettings(ChannelSettings):
    """Reads a token that is another's."""

    telegram_bot_token: str | None = None


def package(name: str, settings: type[ChannelSettings] = PigeonSettings) -> ChannelPackage:
    return ChannelPackage(name, settings, lambda _: "1", None, TELEGRAM.build, TELEGRAM.doctor)


PIGEON, SECOND_TELEGRAM, GREEDY = package("pigeon"), package("telegram"), package("greedy", GreedySettings)
SHOUTING, NO_PACKAGE = package("Pigeon!"), object()
UNSETTLED = package("unsettled", dict)  # type: ignore[arg-type]


def __getattr__(name: str) -> object:
    """A package that ends its process as it is imported."""
    if name == "LEAVING":
        sys.exit(0)
    raise AttributeError(name)


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """What installed packages bring."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(channels, "entry_points", lambda group: [point for point in points if point.group == group])
    return points


def point(what: str, name: str = "pigeon") -> EntryPoint:
    return EntryPoint(name, f"tests.unit.test_channels:{what}" if ":" not in what else what, channels.GROUP)


def test_a_package_is_found_by_its_entry_point_and_trains_nothing_unless_it_says_so(
    brought: list[EntryPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    brought.append(point("PIGEON"))
    assert not on()["pigeon"]
    monkeypatch.setenv("PIGEON_LOFT", "roof")
    assert on()["pigeon"]
    found = channels.read(channels.find(), Settings(_env_file=None))
    assert channels.data_use(found)["pigeon"] == UNSTATED


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("not_there:PACKAGE", "pigeon .not_there:PACKAGE. cannot be imported .ModuleNotFoundError"),
        ("NOT_THERE", "cannot be imported .AttributeError"),
        ("NO_PACKAGE", "is no ChannelPackage"),
        ("SHOUTING", "is no ChannelPackage with a name in small letters"),
        ("SECOND_TELEGRAM", "there is another channel package named telegram; uninstall one"),
        ("UNSETTLED", "its settings are no ChannelSettings"),
        ("LEAVING", "cannot be imported .SystemExit"),
        ("GREEDY", "channel package greedy: TELEGRAM_BOT_TOKEN is a setting of telegram already"),
    ],
)
def test_a_package_that_cannot_be_used_ends_the_start_with_its_name(
    brought: list[EntryPoint], what: str, words: str
) -> None:
    brought.append(point(what))
    with pytest.raises(ConfigError, match=words):
        channels.find()


def test_what_the_gateway_would_refuse_is_known_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHATSAPP_FROM", "whatsapp:+15550100123")
    with pytest.raises(PartError, match="WhatsApp also needs TWILIO_ACCOUNT_SID"):
        _check_channels()
    monkeypatch.delenv("WHATSAPP_FROM")
    _check_channels()


def test_a_check_that_takes_too_long_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.embedded.run.CHECK_TIMEOUT_S", 0.01)
    with pytest.raises(PartError, match=r"could not be checked within 0\.01 s"):
        _check_channels()


@pytest.mark.parametrize(
    "paths",
    [["/admin/parrot"], ["/"], ["readyz"], ["/metrics"], ["webhooks/parrot"], ["/webhooks/parrot", "/webhooks/parrot"]],
)
def test_a_path_that_no_channel_can_have_is_a_sentence(paths: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"claims? the path"):
        check_paths(paths)
    check_paths(["/chat", "/webhooks/parrot", "/webhooks/pigeon"])
