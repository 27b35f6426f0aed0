"""The bundled model is made once and whole, whoever asks for it at the same time, and whoever was killed while making it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.domain.profiles import DEFAULT_PROFILE
from app.embedded import model

pytestmark = pytest.mark.slow
MAKE = """
import sys
from pathlib import Path

from app.domain.profiles import profile
from app.embedded import model
from app.embedded.parts import Home

print(model.ensure(Home(Path(sys.argv[1])), profile(sys.argv[2])))
"""


def test_who_comes_while_it_is_made_waits_for_it(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", MAKE, str(tmp_path), DEFAULT_PROFILE]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=110)[0].strip() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1]
    assert model.identity(Path(said[0])).profile == DEFAULT_PROFILE
    assert [path.name for path in (tmp_path / "models").iterdir() if path.is_dir()] == [Path(said[0]).name]


@pytest.mark.nightly
def test_what_a_killed_maker_left_is_not_mixed_into_the_model(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", MAKE, str(tmp_path), DEFAULT_PROFILE]
    killed = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (begun := list(tmp_path.glob("models/.*.part"))):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.kill()
    killed.wait(timeout=10)
    seen: list[str] = []
    second = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    while second.poll() is None:
        seen += [path.name for path in tmp_path.glob("models/.*.part")]
        time.sleep(0.05)
    made = Path(second.communicate(timeout=10)[0].strip())
    assert second.returncode == 0
    assert set(seen) - {begun[0].name}  # it wrote where the child of the one that was killed does not
    assert model.identity(made).revision == model.weights_hash(made)
    assert [path.name for path in (tmp_path / "models").iterdir() if path.is_dir()] == [made.name]
