"""What every task stands on: database, settings, model servers, the base and its folders. Made once a worker process."""

import hashlib
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from app.clients.vllm import VllmClient
from app.config import Settings
from app.domain.places import Places
from app.domain.profiles import IDENTITY_FILE, MAX_RANK, BaseProfile, ModelIdentity, served
from app.domain.turn import BaseIdentity as StoredIdentity
from app.errors import ConfigError
from app.ports import Model
from app.services.release import base_served
from app.store import Store
from learner.gate.measure import Scorer
from learner.gate.server import ProcessScorer
from learner.serve.probe import ProbeBase
from learner.serve.reconcile import Fleet, Reconciler
from learner.types import BaseIdentity

POOL_SIZE = 4
PATIENCE_S = 600.0
"""The learner asks for whole replies and lets everybody else go first, so that one may take long on a busy server."""
ROOT = Path(__file__).parents[1]


MakeScorer = Callable[[Path, Path, Path], Scorer]
"""Makes the gates' scorer from (model folder, checkpoint folder, folder to work in)."""


@dataclass(frozen=True, slots=True)
class Learner:
    """The surroundings of a task."""

    store: Store
    settings: Settings
    profile: BaseProfile
    model_dir: Path
    places: Places
    fleet: Fleet
    reconciler: Reconciler
    owner: str
    code_revision: str
    scorer: MakeScorer
    python_path: Path = field(default=ROOT.parent)

    @property
    def base(self) -> BaseIdentity:
        """The base by what decides whether an adapter fits."""
        return self.fleet.identity

    @property
    def stored_base(self) -> StoredIdentity:
        """The same as rows name it."""
        b = self.base
        return StoredIdentity(b.base_id, b.revision, b.tokenizer_digest, b.template_digest)


async def open_learner(settings: Settings) -> Learner:
    """Return the surroundings for these settings; nothing connects yet.

    Raises:
        ConfigError: DATABASE_URL or MODEL_DIR is missing.
    """
    if settings.database_url is None:
        raise ConfigError("DATABASE_URL: set it to postgresql://..., or start everything with `mentee run`")
    chosen = served(settings)
    key = settings.vllm_api_key.get_secret_value() if settings.vllm_api_key else None
    url = settings.vllm_base_url or f"http://127.0.0.1:{settings.vllm_port}"
    client = VllmClient(url, api_key=key, token_timeout_s=PATIENCE_S, template_arguments=chosen.chat_template_args)
    models: dict[str, Model] = {url: client}
    store = Store(settings.database_url.get_secret_value(), pool_size=POOL_SIZE)
    return assemble(store, settings, chosen, models)


def assemble(store: Store, settings: Settings, chosen: BaseProfile, models: Mapping[str, Model]) -> Learner:
    """Put a learner together from parts that are already open.

    Raises:
        ConfigError: MODEL_DIR is missing or holds no identity.
    """
    if settings.model_dir is None:
        raise ConfigError("MODEL_DIR: set it to the folder of the served base, or start everything with `mentee run`")
    model_dir = settings.model_dir.resolve()
    places = Places(settings.mentee_home.resolve())
    probe = ProbeBase(chosen.key, model_dir, "float32" if chosen.dtype == "float32" else "lower")
    fleet = Fleet(models, probe, identity(model_dir), max(MAX_RANK, chosen.lora.rank))
    return Learner(
        store=store,
        settings=settings,
        profile=chosen,
        model_dir=model_dir,
        places=places,
        fleet=fleet,
        reconciler=Reconciler(store, fleet, places, base_served),
        owner=f"{socket.gethostname()}:{os.getpid()}",
        code_revision=code_revision(),
        scorer=ProcessScorer,
    )


def identity(model_dir: Path) -> BaseIdentity:
    """Return which base lies in `model_dir`. Raises `ConfigError` when it has no readable identity."""
    try:
        found = ModelIdentity.parse((model_dir / IDENTITY_FILE).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"MODEL_DIR: {model_dir.name} has no {IDENTITY_FILE}") from error
    return BaseIdentity(found.base_id, found.revision, found.tokenizer_hash, found.chat_template_hash)


@lru_cache
def code_revision() -> str:
    """Return a digest of the code that decides what a training gives; with seed and snapshot it fixes the adapter."""
    digest = hashlib.sha256()
    for folder in ("algo", "train"):
        for path in sorted((ROOT / folder).glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
