"""The bench from an empty clone, on a checkout whose `make run` is a second's work: what is cloned, given, stopped, removed."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from app.bench import install as bench
from app.errors import PartError

# Says what it was given, then stays; a part of a process group of its own stays too, as ours do, until it is told to end.
RUN = """
import json, os, pathlib, signal, subprocess, sys, time
part = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)

def stop(*_):
    part.terminate()
    part.wait()
    sys.exit(0)

signal.signal(signal.SIGINT, stop)
said = {"env": dict(os.environ), "part": part.pid, "pid": os.getpid(), "cwd": os.getcwd()}
pathlib.Path("said.new").write_text(json.dumps(said))
pathlib.Path("said.new").rename("said.json")
time.sleep(600)
"""


def git(folder: Path, *arguments: str) -> None:
    program = shutil.which("git")
    assert program
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    subprocess.run((program, *who, *arguments), cwd=folder, check=True, timeout=20)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "what a run does")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "Makefile").write_text("run:\n\t@exec python3 run.py\n", "utf-8")
    (folder / "run.py").write_text(RUN, "utf-8")
    (folder / ".gitignore").write_text("var/\n", "utf-8")
    git(folder, "init", "-q")
    commit(folder)
    (folder / "var").mkdir()
    (folder / "not-committed").write_text("", "utf-8")
    return folder


async def _said(clone: bench.Clone) -> dict[str, object]:
    path = clone.folder / "said.json"
    async with asyncio.timeout(20):
        while not path.exists():
            clone.still()
            await asyncio.sleep(0.05)
    return dict(json.loads(path.read_text("utf-8")))


def _alive(pid: object) -> bool:
    return psutil.pid_exists(int(str(pid))) and psutil.Process(int(str(pid))).status() != psutil.STATUS_ZOMBIE


async def test_a_clone_is_started_on_free_ports_without_the_callers_settings_and_leaves_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"DATABASE_URL": "postgresql://mine", "MAKEFLAGS": "-n", "VIRTUAL_ENV": "/mine"}.items():
        monkeypatch.setenv(name, value)
    async with bench.made(checkout) as clone:
        said = await _said(clone)
        given = said["env"]
        assert isinstance(given, dict)
        assert {name: int(given[name]) for name in bench.PORTS} == clone.ports
        assert len(set(clone.ports.values())) == len(bench.PORTS)
        assert not given.keys() & {"DATABASE_URL", "VIRTUAL_ENV"}
        assert given["PIP_NO_CACHE_DIR"] == "1"
        assert said["cwd"] == str(clone.folder)
        assert sorted(p.name for p in clone.folder.iterdir() if not p.name.startswith(".")) == [
            "Makefile",
            "run.py",
            "said.json",
        ]
        assert _alive(said["pid"])
        assert clone.seconds > 0
    assert not _alive(said["pid"])
    assert not _alive(said["part"])
    assert not clone.folder.parent.exists()


async def test_a_run_that_ends_is_said_with_its_last_line(checkout: Path) -> None:
    (checkout / "run.py").write_text("print('no room'); raise SystemExit(3)", "utf-8")
    commit(checkout)
    async with bench.made(checkout) as clone:
        await asyncio.wait_for(clone.process.wait(), 20)
        with pytest.raises(PartError, match=r"did not come up in \d+ s: make.*Error 3"):
            clone.still()


async def test_what_cannot_be_cloned_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROOT", tmp_path / "nothing")
    figure = await bench.install()
    assert figure.verdict == "unmeasured"
    assert "git clone" in str(figure.detail["error"])


async def test_who_breaks_it_off_leaves_nothing_either(checkout: Path) -> None:
    seen: dict[str, object] = {}

    async def measure() -> None:
        async with bench.made(checkout) as clone:
            seen.update(await _said(clone), folder=clone.folder)
            await asyncio.Event().wait()

    measuring = asyncio.create_task(measure())
    async with asyncio.timeout(20):
        while "folder" not in seen:
            await asyncio.sleep(0.05)
    measuring.cancel()
    await asyncio.gather(measuring, return_exceptions=True)
    assert not _alive(seen["pid"])
    assert not _alive(seen["part"])
    assert not Path(str(seen["folder"])).exists()
