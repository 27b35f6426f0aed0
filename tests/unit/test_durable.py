"""Files and folders that are there whole or not at all, whoever dies, fills the disk or comes first."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from learner.durable import appearing, discard, write_atomically
from tests.support.small_disk import may_mount, small_folder

_FILL = """
import sys
from pathlib import Path
from learner.durable import appearing, write_durably
with appearing(Path(sys.argv[1])) as hidden:
    write_durably(hidden / "a", b"whole")
"""


def filled(target: Path, kill_at: str) -> int:
    """Fill a folder in a process of its own; return how it ended."""
    environment = os.environ | {"MENTEE_KILL_AT": kill_at}
    return subprocess.run(
        [sys.executable, "-c", _FILL, str(target)], env=environment, timeout=60, check=False
    ).returncode


def test_a_folder_whose_writer_is_killed_never_appears(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    assert filled(target, "folder:filled") == -signal.SIGKILL
    assert not target.exists()
    assert filled(target, "nowhere") == 0
    assert (target / "a").read_bytes() == b"whole"


def test_a_folder_that_could_not_be_filled_leaves_nothing(tmp_path: Path) -> None:
    def half() -> None:
        with appearing(tmp_path / "folder") as hidden:
            (hidden / "a").write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert list(tmp_path.iterdir()) == []


def test_who_comes_second_is_told_and_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def both() -> None:
        with appearing(target) as second, appearing(target) as first:
            assert first != second
            (second / "a").write_bytes(b"second")
            (first / "a").write_bytes(b"first")

    with pytest.raises(OSError, match="not empty"):
        both()
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert (target / "a").read_bytes() == b"first"
    discard(target)
    discard(target)
    assert not target.exists()


@pytest.mark.skipif(not may_mount(), reason="a disk of a few pages can be mounted by root only")
def test_a_heartbeat_on_a_full_disk_keeps_the_one_before(tmp_path: Path) -> None:
    with small_folder(tmp_path / "disk", kib=4) as disk:
        beat = disk.path / "beat"
        write_atomically(beat, b"one")
        with pytest.raises(OSError, match="No space left"):
            write_atomically(beat, b"two")
        assert beat.read_bytes() == b"one"
        assert [p.name for p in disk.path.iterdir()] == ["beat"]
