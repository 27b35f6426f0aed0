"""Settings: a bad value or combination is refused with a sentence that says what to set."""

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
