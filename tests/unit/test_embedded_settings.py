"""`.env.example` names every setting once, with its default."""

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.config import LadderSettings, Settings
from app.gateway.channels import BUILT_IN
from bots.telegram.settings import TelegramSettings

EXAMPLE = Path(__file__).parents[2] / ".env.example"
LINE = re.compile(r"^#(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)$", re.MULTILINE)


def _example() -> list[tuple[str, str]]:
    return [(match["name"], match["value"]) for match in LINE.finditer(EXAMPLE.read_text(encoding="utf-8"))]


def _known() -> dict[str, object]:
    plain = {name.upper(): field.default for name, field in Settings.model_fields.items() if name != "ladder"}
    for package in (point.load() for point in BUILT_IN):
        plain |= {name.upper(): field.default for name, field in package.settings.model_fields.items()}
    return plain | {f"LADDER_{name.upper()}": field.default for name, field in LadderSettings.model_fields.items()}


def test_every_setting_is_there_once() -> None:
    names = [name for name, _ in _example()]
    assert sorted(names) == sorted(_known())


@pytest.mark.parametrize(("name", "value"), _example())
def test_the_line_shows_the_default(name: str, value: str) -> None:
    default = _known()[name]
    if default is not None:
        assert value.lower() == str(default).lower()


def test_every_line_is_explained() -> None:
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    blocks = [lines[number - 1] for number, line in enumerate(lines) if LINE.match(line)]
    assert all(block.startswith(("# ", "#")) for block in blocks)


def test_secrets_do_not_print_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "12:planted")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:planted@h/d")
    settings = TelegramSettings(_env_file=None)
    assert isinstance(settings.telegram_bot_token, SecretStr)
    assert "planted" not in repr(settings) + repr(Settings(_env_file=None))
