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


@pytest.mark.parametrize("name", ["PUBLIC_URL", "MENTEE_SECRET", "DATABASE_URL", "JUDGE_MODEL"])
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
