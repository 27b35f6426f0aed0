"""Settings: a bad value or combination is refused with a sentence that says what to set."""

from pathlib import Path

import pytest

from app import config
from app.errors import ConfigError


@pytest.mark.parametrize(
    "several", ["http://a:8000,http://b:8000", "http://a:8000, http://b:8000", "http://a http://b"]
)
def test_several_model_servers_are_refused_rather_than_half_supported(
    monkeypatch: pytest.MonkeyPatch, several: str
) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", several)
    with pytest.raises(ConfigError, match="VLLM_BASE_URL names several model servers; name the one"):
        config._read()


def test_one_model_server_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://a:8000")
    assert config._read().vllm_base_url == "http://a:8000"


@pytest.mark.parametrize("alone", ["TRANSCRIBE_BASE_URL", "TRANSCRIBE_MODEL"])
def test_a_transcriber_is_set_up_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch, alone: str) -> None:
    monkeypatch.setenv(alone, "http://a")
    with pytest.raises(ConfigError, match="set TRANSCRIBE_BASE_URL and TRANSCRIBE_MODEL together"):
        config._read()


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
    assert not config._read().whatsapp
    _set(monkeypatch, WHOLE)
    assert config._read().whatsapp


@pytest.mark.parametrize("lacking", list(WHOLE))
def test_whatsapp_set_up_in_part_names_what_lacks(monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    _set(monkeypatch, {name: value for name, value in WHOLE.items() if name != lacking})
    with pytest.raises(ConfigError, match=f"needs {lacking}"):
        config._read()


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
        config._read()


@pytest.mark.parametrize("name", ["PUBLIC_URL", "MENTEE_SECRET", "DATABASE_URL", "JUDGE_MODEL", "TELEGRAM_BOT_TOKEN"])
def test_an_empty_value_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "")
    settings = config._read()
    assert getattr(settings, name.lower()) is None
    assert not settings.beyond_loopback


def test_an_empty_line_of_the_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("PUBLIC_URL=\nMENTEE_SECRET=\nMENTEE_PORT=\n")
    settings = config.Settings(_env_file=tmp_path / "env")
    assert (settings.public_url, settings.mentee_secret, settings.mentee_port) == (None, None, 8080)


@pytest.mark.parametrize(
    ("name", "value"),
    [("LADDER_MIN_CONFIDENCE", "2"), ("LADDER_GRADUATE_AFTER_USES", "many"), ("MENTEE_PORT", "0")],
)
def test_a_bad_value_is_told_by_its_own_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"^{name}: Input should be"):
        config._read()


@pytest.mark.parametrize("token", ["planted", "planted:x", "12:plan ted", ":planted"])
def test_a_malformed_telegram_token_is_told_and_not_shown(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", token)
    with pytest.raises(ConfigError, match="TELEGRAM_BOT_TOKEN: a token is") as told:
        config._read()
    assert "planted" not in str(told.value)
