"""The bundled base model for slow tests: the one of this checkout, converted where `make run` did not do so before."""

from functools import lru_cache
from pathlib import Path

from app.domain.profiles import DEFAULT_PROFILE, profile
from app.embedded import model
from app.embedded.parts import Home
from learner.types import BaseIdentity

ROOT = Path(__file__).parent.parent.parent


@lru_cache
def bundled_model() -> tuple[Path, BaseIdentity]:
    """Return the model's directory and identity."""
    chosen = profile(DEFAULT_PROFILE)
    directory = model.ensure(Home(ROOT / "var"), chosen)
    found = model.identity(directory)
    return directory, BaseIdentity(found.base_id, found.revision, found.tokenizer_hash, found.chat_template_hash)
