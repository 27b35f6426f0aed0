"""The supervisor against small real processes: start, watch, restart, stop, and nobody left behind."""

import asyncio
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from app.embedded.console import Console
from app.embedded.messages import Texts
from app.embedded.parts import Command, Home, Part
from app.embedded.process import end_leftovers, log_path
from app.embedded.supervisor import Supervisor
from app.errors import PartError
from tests.support.small_disk import may_mount, on_small_disk

# Writes its pid and stays; with a child of its own that ignores SIGTERM, as a worker's trainer may.
STAYS = """
import os, pathlib, subprocess, sys, time
out = pathlib.Path(sys.argv[1])
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(600)"])
with out.open("a") as file:
    file.write(f"{os.getpid()} {child.pid}\\n")
print("secret of nobody", flush=True)
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "var")
    made.create()
    return made


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
async def supervisor(home: Home, output: io.StringIO) -> AsyncIterator[Supervisor]:
    console = Console(Texts("en"), home.run / "durations.json", output)
    made = Supervisor(home, console)
    yield made
    await made.stop()


def _part(name: str, record: Path, code: str = STAYS, **values: object) -> Part:
    async def ready() -> bool:
        return record.exists() and record.read_text(encoding="utf-8").endswith("\n")

    argv = (sys.executable, "-c", code, str(record))
    return Part(name=name, command=lambda: Command(argv), ready=ready, stop_timeout_s=2, **values)


def _pids(record: Path) -> list[list[int]]:
    return [[int(pid) for pid in line.split()] for line in record.read_text(encoding="utf-8").splitlines()]


async def _until(condition: Callable[[], bool], limit_s: float = 20) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_part_that_dies_is_restarted_and_said_so(
    supervisor: Supervisor, output: io.StringIO, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    await supervisor.start(_part("one", record))
    first, grandchild = _pids(record)[0]
    os.kill(first, signal.SIGKILL)
    await _until(lambda: len(_pids(record)) == 2)
    await _until(lambda: "is back" in output.getvalue())
    assert "one        stopped by itself (signal 9); starting it again in 1 s" in output.getvalue()
    await _until(lambda: not _alive(grandchild))


async def test_a_full_disk_while_a_part_is_started_again_takes_nothing_else_down(
    supervisor: Supervisor, output: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.embedded.supervisor.FIRST_BACKOFF_S", 0.1)
    record, prepared = tmp_path / "record", []

    def prepare() -> None:
        prepared.append(len(prepared))
        if len(prepared) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    await supervisor.start(_part("one", record, prepare=prepare))
    os.kill(_pids(record)[0][0], signal.SIGKILL)
    await _until(lambda: "is back" in output.getvalue())
    assert "one cannot be run: No space left on device" in output.getvalue()
    assert len(prepared) == 3
    watching = asyncio.create_task(supervisor.watched())
    assert not (await asyncio.wait([watching], timeout=0.2))[0]
    watching.cancel()


async def test_a_disk_that_is_full_at_the_first_start_is_a_sentence(supervisor: Supervisor, tmp_path: Path) -> None:
    def prepare() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(PartError, match="one cannot be run: No space left on device"):
        await supervisor.start(_part("one", tmp_path / "record", prepare=prepare))


async def test_stopping_goes_backwards_and_leaves_nobody(
    supervisor: Supervisor, output: io.StringIO, tmp_path: Path, home: Home
) -> None:
    records = [tmp_path / "first", tmp_path / "second"]
    for record in records:
        await supervisor.start(_part(record.name, record))
    pids = [pid for record in records for pid in _pids(record)[0]]
    assert all(_alive(pid) for pid in pids)
    await supervisor.stop()
    await _until(lambda: not any(_alive(pid) for pid in pids))
    said = output.getvalue()
    assert said.index("second     stopping") < said.index("first      stopping")
    assert not list(home.run.glob("*.pid"))


async def test_a_part_that_ignores_the_request_is_ended_after_its_time(supervisor: Supervisor, tmp_path: Path) -> None:
    record = tmp_path / "stubborn"
    await supervisor.start(_part("stubborn", record, "import signal; signal.signal(15, signal.SIG_IGN)\n" + STAYS))
    began = time.monotonic()
    await supervisor.stop()
    assert 2 <= time.monotonic() - began < 10
    await _until(lambda: not any(_alive(pid) for pid in _pids(record)[0]))


async def test_a_part_that_never_starts_is_a_sentence_with_the_last_line_of_its_log(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.embedded.supervisor.FIRST_BACKOFF_S", 0.05)
    with pytest.raises(PartError, match=r"broken does not start \(exit code 3\): no such table.*broken\.log"):
        await supervisor.start(_part("broken", tmp_path / "x", "import sys; print('no such table'); sys.exit(3)"))


async def test_a_part_that_does_not_answer_in_its_time(supervisor: Supervisor, tmp_path: Path) -> None:
    silent = _part("silent", tmp_path / "x", "import time; time.sleep(600)", start_timeout_s=0.5)
    with pytest.raises(PartError, match="silent did not answer within 0 s"):
        await supervisor.start(silent)


async def test_logs_of_earlier_runs_are_kept_for_a_while(supervisor: Supervisor, tmp_path: Path, home: Home) -> None:
    for number in range(5):
        log_path(home, "one").write_text(f"run {number}", encoding="utf-8")
        record = tmp_path / f"record{number}"
        await supervisor.start(_part("one", record))
        await supervisor.stop()
    kept = sorted(path.name for path in home.logs.iterdir())
    assert kept == ["one.log", "one.log.1", "one.log.2", "one.log.3"]
    assert (home.logs / "one.log.1").read_text(encoding="utf-8") == "run 4"


SUPERVISED = """
import asyncio, pathlib, sys
sys.path.insert(0, {root!r})
sys.path.insert(0, {tests!r})
from app.embedded.console import Console
from app.embedded.messages import Texts
from app.embedded.parts import Home
from app.embedded.supervisor import Supervisor
import test_embedded_supervisor as parts

async def main():
    home = Home(pathlib.Path({home!r}))
    supervisor = Supervisor(home, Console(Texts("en"), home.run / "d.json"))
    await supervisor.start(parts._part("kept", pathlib.Path({record!r})))
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def _killed_supervisor(home: Home, record: Path) -> list[int]:
    """Start a part under a supervisor of its own, kill that supervisor, return the part's processes."""
    root = Path(__file__).parents[2]
    code = SUPERVISED.format(root=str(root), tests=str(Path(__file__).parent), home=str(home.root), record=str(record))
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.DEVNULL)
    await _until(lambda: record.exists() and record.read_text(encoding="utf-8").endswith("\n"))
    await _until((home.run / "kept.pid").exists)
    process.kill()
    await process.wait()
    return _pids(record)[0]


# Ends the part, fills the disk under the home, frees it again; says what the supervisor said and whom it left.
ON_A_FULL_DISK = """
import asyncio, contextlib, io, json, os, pathlib, psutil, signal, sys
sys.path.insert(0, {root!r})
sys.path.insert(0, {tests!r})
from app.embedded.console import Console
from app.embedded.messages import Texts
from app.embedded.parts import Home
from app.embedded.supervisor import Supervisor
import test_embedded_supervisor as parts

async def main():
    home, record, output = Home(pathlib.Path({home!r})), pathlib.Path({record!r}), io.StringIO()
    home.create()
    supervisor = Supervisor(home, Console(Texts("en"), home.run / "d.json", output))
    await supervisor.start(parts._part("one", record))
    os.kill(parts._pids(record)[0][0], signal.SIGKILL)
    await parts._until(lambda: not (home.run / "one.pid").exists())
    ballast = home.root / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))
    await parts._until(lambda: "cannot be run" in output.getvalue())
    left = [process.pid for process in psutil.Process().children(recursive=True)]
    ballast.unlink()
    await parts._until(lambda: "is back" in output.getvalue())
    await supervisor.stop()
    print(json.dumps({{"said": output.getvalue(), "left": left}}))

asyncio.run(main())
"""


@pytest.mark.skipif(not may_mount(), reason="a small disk can be mounted by root only")
async def test_a_part_whose_pid_finds_no_room_is_not_left_running(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    disk, record = tmp_path / "disk", tmp_path / "record"
    disk.mkdir()
    code = ON_A_FULL_DISK.format(
        root=str(root), tests=str(Path(__file__).parent), home=str(disk / "var"), record=str(record)
    )
    process = await asyncio.create_subprocess_exec(*on_small_disk(disk, sys.executable, "-c", code), stdout=-1)
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    seen = json.loads(output)
    assert "one cannot be run: No space left on device" in seen["said"]
    assert seen["left"] == []


async def test_parts_stop_when_the_supervisor_is_killed(home: Home, tmp_path: Path) -> None:
    part, grandchild = await _killed_supervisor(home, tmp_path / "record")
    await _until(lambda: not _alive(part))
    assert json.loads((home.run / "kept.pid").read_text(encoding="utf-8"))["pid"] == part  # for the next start
    os.kill(grandchild, signal.SIGKILL)


def test_the_next_start_ends_what_is_left_and_nothing_else(home: Home, tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    born = psutil.Process(left.pid).create_time()
    (home.run / "left.pid").write_text(f'{{"pid": {left.pid}, "born": {born}}}', encoding="utf-8")
    (home.run / "reused.pid").write_text(f'{{"pid": {stranger.pid}, "born": {born - 1000}}}', encoding="utf-8")
    (home.run / "damaged.pid").write_text("not a record", encoding="utf-8")
    try:
        end_leftovers(home)
        assert not _alive(left.pid)
        assert stranger.poll() is None
        assert not list(home.run.glob("*.pid"))
    finally:
        for process in (stranger, left):
            process.kill()
            process.wait(5)


async def test_a_part_that_takes_long_says_so_where_no_bar_is_drawn(
    home: Home, output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.embedded.console.STILL_S", 0.1)
    async with Console(Texts("en"), home.run / "durations.json", output).job("schema", "part.done"):
        await asyncio.sleep(0.35)
    first, *still, last = output.getvalue().splitlines()
    assert "starting, about 5 s" in first
    assert len(still) >= 2
    assert all("still starting, 0 s so far" in line for line in still)
    assert "done" in last
