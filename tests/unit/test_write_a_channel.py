"""`docs/write-a-channel.md` shows the example as it is, whole and in order."""

import re
import tomllib
from pathlib import Path

import pytest

from app.gateway.channels import GROUP

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "write-a-channel.md").read_text("utf-8")
BLOCK = re.compile(r"^```\w+ title=(?P<title>\S+)\n(?P<body>.*?)\n```$", re.MULTILINE | re.DOTALL)


def shown(title: str) -> str:
    return "\n".join(block["body"] for block in BLOCK.finditer(PAGE) if block["title"] == title)


def lines(code: str) -> list[str]:
    return [line for line in code.splitlines() if line]


@pytest.mark.parametrize("name", ["parrot.py", "test_parrot.py"])
def test_the_code_of_the_page_is_the_code_that_is_tested(name: str) -> None:
    assert lines(shown(name)) == lines((ROOT / "tests" / "example_channel" / name).read_text("utf-8"))


def test_the_entry_point_of_the_page_is_the_one_that_is_looked_for() -> None:
    page = tomllib.loads(shown("pyproject.toml"))
    assert page["project"]["entry-points"] == {GROUP: {"parrot": "parrot:PACKAGE"}}


def test_the_project_of_the_page_is_the_example_and_runs_its_tests_as_ours_are_run() -> None:
    page, ours = tomllib.loads(shown("pyproject.toml")), tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert page["build-system"] == ours["build-system"]
    assert page["tool"]["setuptools"] == {"py-modules": ["parrot"]}
    assert page["tool"]["pytest"]["ini_options"].items() <= ours["tool"]["pytest"]["ini_options"].items()
