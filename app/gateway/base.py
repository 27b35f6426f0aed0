"""Which base is served: the profile, and the identity that lies beside its weights."""

from pathlib import Path

from app.domain.profiles import IDENTITY_FILE, BaseProfile, ModelIdentity
from app.domain.turn import BaseIdentity
from app.errors import ConfigError
from app.services.request import Base
from app.telemetry import Log

log = Log(__name__)
UNKNOWN = "unknown"


def served_base(chosen: BaseProfile, model_dir: Path | None) -> Base:
    """Return the base by name and identity. Where its folder cannot be read, turns are answered but never learnt from."""
    found = _identity(model_dir)
    if found is None:
        log.warning("base:identity:unknown", hint="set MODEL_DIR to the folder of the served base")
        return Base(
            chosen.key,
            BaseIdentity(chosen.title, UNKNOWN, UNKNOWN, UNKNOWN),
            chosen.context,
            learnable=False,
            sees=chosen.sees,
        )
    identity = BaseIdentity(found.base_id, found.revision, found.tokenizer_hash, found.chat_template_hash)
    return Base(chosen.key, identity, chosen.context, learnable=True, sees=chosen.sees)


def _identity(model_dir: Path | None) -> ModelIdentity | None:
    if model_dir is None:
        return None
    try:
        return ModelIdentity.parse((model_dir / IDENTITY_FILE).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"MODEL_DIR: {model_dir.name} has no {IDENTITY_FILE}") from error
