"""`mentee run` where something stands in its way: one sentence, and nothing is left behind."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.config import Settings
from app.embedded.parts import Home, free_port
from app.embedded.run import children_environment
from tests.support.small_disk import may_mount, on_small_disk

ROOT = Path(__file__).parents[2]
FULL = 'dd if=/dev/zero of=ballast bs=512 2>/dev/null; exec "$@"'


@pytest.mark.skipif(not may_mount(), reason="a small disk can be mounted by root only")
def test_a_full_disk_is_a_sentence_with_its_remedy(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    ports = {name: str(free_port()) for name in ("MENTEE_PORT", "POSTGRES_PORT", "VALKEY_PORT", "VLLM_PORT")}
    command = on_small_disk(disk, "sh", "-c", f"cd {disk} && {FULL}", "sh", sys.executable, "-m", "app.cli", "run")
    # The home lies on the full disk before anything was ever started there.
    env = {**os.environ, **ports, "MENTEE_HOME": str(disk / "var"), "LANGUAGE": "en", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Only 0.0 GB" in done.stderr
    assert str(disk / "var") in done.stderr


def test_children_are_told_the_precision_that_the_model_is_served_in(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.create()
    given = {"database_url": "postgresql://u:p@h/d", "broker_url": "redis://h", "model": "qwen3-0.6b"}
    embedded = Settings(_env_file=None, **given)
    assert children_environment(embedded, home)["VLLM_DTYPE"] == "float32"
    elsewhere = Settings(_env_file=None, vllm_base_url="http://gpu:8000", **given)
    assert children_environment(elsewhere, home)["VLLM_DTYPE"] == "bfloat16"


RUN = """
import asyncio, sys
from pathlib import Path

from app.config import Settings
from app.domain.profiles import profile
from app.embedded.messages import Texts
from app.embedded.parts import Home
from app.embedded.run import _Run

settings = Settings(_env_file=None, database_url=sys.argv[2], broker_url="redis://127.0.0.1:1")
home = Home(Path(sys.argv[1]))
home.create()
asyncio.run(_Run(settings, Texts("en"), home, profile(settings.model)).main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_waits_for_another_to_make_the_model_says_so_and_can_be_stopped(
    tmp_path: Path, database_url: str, number: signal.Signals
) -> None:
    (tmp_path / "models").mkdir()
    with (tmp_path / "models" / ".lock").open("w") as made_elsewhere:
        fcntl.flock(made_elsewhere, fcntl.LOCK_EX)
        made_elsewhere.write("4711")
        made_elsewhere.flush()
        argv = [sys.executable, "-u", "-c", RUN, str(tmp_path), database_url]
        with (tmp_path / "said").open("w") as out, subprocess.Popen(argv, cwd=ROOT, stdout=out) as waiting:
            while "4711" not in (tmp_path / "said").read_text("utf-8"):
                assert waiting.poll() is None
                time.sleep(0.05)
            time.sleep(1.0)
            waiting.send_signal(number)
            assert waiting.wait(timeout=10) == 0
    said = (tmp_path / "said").read_text("utf-8").splitlines()
    assert sum("4711" in line for line in said) == 1
    assert "Everything is stopped" in said[-1]
