"""The locks are complete, exact, and free of what breaks the rest; the scripts find a Python that runs."""

import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ("gateway", "cpu", "dev")
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)(\s*;.*)?$")
BREAKING = {"torchvision", "torchaudio", "torchcodec", "vllm", "llm", "llama-cpp-python"}


def _lines(lock: str) -> list[str]:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _names(lock: str) -> list[str]:
    found = [PIN.match(line) for line in _lines(lock)]
    return [re.sub(r"[-_.]+", "-", match["name"]).lower() for match in found if match]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_an_exact_pin(lock: str) -> None:
    assert [line for line in _lines(lock) if not PIN.match(line)] == []


def test_nothing_is_pinned_twice() -> None:
    names = [name for lock in LOCKS for name in _names(lock)]
    assert len(names) == len(set(names))


def _asked_by(name: str, extras: set[str]) -> set[str]:
    """Return what an installed package asks for here, with these of its extras."""
    asked = set()
    for text in metadata.requires(name) or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            asked.add(canonicalize_name(requirement.name))
    return asked


def test_the_gateway_lock_is_complete() -> None:
    """It is installed without dependencies, so everything that anything in it asks for must be in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    direct = {canonicalize_name(r.name): set(r.extras) for r in map(Requirement, project["dependencies"])}
    locked = set(_names("gateway"))
    assert direct.keys() <= locked
    absent = {"async-timeout", "setuptools"}  # asked for by old Pythons, and by nobody at run time
    wanted = {asked for name in locked - absent for asked in _asked_by(name, direct.get(name, set()))}
    assert wanted - absent - locked == set()


def test_the_gateway_is_free_of_torch_and_nothing_brings_what_breaks_it() -> None:
    assert "torch" not in _names("gateway")
    assert "torch" in _names("cpu")
    assert BREAKING.isdisjoint(name for lock in LOCKS for name in _names(lock))


@pytest.mark.parametrize("path", ["pyproject.toml", "Makefile", "requirements", ".ci/run"])
def test_no_index_is_named(path: str) -> None:
    files = [ROOT / path] if (ROOT / path).is_file() else sorted((ROOT / path).iterdir())
    assert [file.name for file in files if re.search(r"index-url|https?://", file.read_text(encoding="utf-8"))] == []


def _shim(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def _installing(tmp_path: Path, shims: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the script in an empty checkout where PATH has nothing but `shims`."""
    checkout = tmp_path / "checkout"
    (checkout / "requirements").mkdir(parents=True)
    script = checkout / "requirements" / "install.sh"
    script.write_text((ROOT / "requirements" / "install.sh").read_text(encoding="utf-8"), encoding="utf-8")
    for tool in ("bash", "dirname"):
        (shims / tool).symlink_to(f"/bin/{tool}" if Path(f"/bin/{tool}").exists() else f"/usr/bin/{tool}")
    env = {key: value for key, value in os.environ.items() if key != "PYTHON_BIN"} | {"PATH": str(shims)} | given
    command = [str(shims / "bash"), str(script), "gateway"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=20, check=False)


FITS = 'case "$1" in -c) exit 0;; -V) echo the one named NAME; exit 0;; esac; exit 3'
TOO_OLD = "exit 1"


@pytest.mark.parametrize(
    ("bodies", "given", "taken"),
    [
        ({"python3": FITS, "python3.12": FITS, "python3.11": FITS}, "", "python3"),
        ({"python3": TOO_OLD, "python3.12": FITS, "python3.11": FITS}, "", "python3.12"),
        ({"python3": TOO_OLD, "python3.12": TOO_OLD, "python3.11": FITS}, "", "python3.11"),
        ({"python3": FITS, "python3.12": FITS, "python3.11": FITS}, "python3.11", "python3.11"),
    ],
)
def test_the_python_that_people_mean_is_taken_first(
    tmp_path: Path, bodies: dict[str, str], given: str, taken: str
) -> None:
    shims = tmp_path / "bin"
    for name, body in bodies.items():
        _shim(shims, name, body.replace("NAME", name))
    done = _installing(tmp_path, shims, **({"PYTHON_BIN": given} if given else {}))
    assert f"with the one named {taken}\n" in done.stderr


def test_without_a_fitting_python_there_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    """A version manager leaves commands that only fail; an old Python runs but does not fit."""
    shims = tmp_path / "bin"
    for name in ("python3.11", "python3.12"):
        _shim(shims, name, "echo not installed >&2; exit 127")
    for name in ("python3", "python"):
        _shim(shims, name, "exit 1")
    done = _installing(tmp_path, shims)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Python 3.11 or 3.12" in done.stderr
    assert "PYTHON_BIN" in done.stderr
