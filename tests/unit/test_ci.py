"""A green run of CI means that the tests ran: what they need and is missing fails it, and does not skip them."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("required",), 1)])
def test_a_machine_without_a_browser_skips_but_ci_fails(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    bash, who = shutil.which("bash"), shutil.which("id")
    assert bash
    assert who
    (tmp_path / "id").symlink_to(who)  # nothing else is found there: no browser, and nothing to install one with
    done = subprocess.run(
        [bash, str(ROOT / "requirements" / "browser.sh"), *arguments],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == code
    assert "No Chromium found" in done.stderr
    assert ("skipped." in done.stderr) is (code == 0)


def test_ci_asks_for_the_browser_and_for_torch_before_it_tests() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    before = script[: script.index("make test")]
    assert "browser.sh required" in before
    assert "import torch, transformers, peft" in before
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
