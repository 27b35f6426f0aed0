"""The house has the rooms that its import rules name."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_says_what_it_is() -> None:
    silent = [
        path
        for top in ("app", "bots", "learner")
        for path in (ROOT / top).rglob("__init__.py")
        if not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []
