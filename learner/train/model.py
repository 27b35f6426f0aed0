"""The policy: a frozen base with one LoRA adapter, which is also teacher and reference when the adapter is off.

Owns loading, forward passes at serving positions and the adapter's tensors. Full precision, safetensors only.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from torch import Tensor
from transformers import (
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
)

from app.domain.profiles import LINEAR_TARGETS
from app.errors import ArtifactError, InvalidInputError
from learner.train.batch import Batch
from learner.train.render import Renderer


def lora_config(rank: int, alpha: int, targets: Sequence[str] = LINEAR_TARGETS) -> LoraConfig:
    """Return the LoRA form that servers and gates know.

    Raises:
        InvalidInputError: a target that is no linear layer of a block; adapters on lm_head or embeddings make
            teacher and server disagree by nats.
    """
    if not targets or set(targets) - set(LINEAR_TARGETS):
        raise InvalidInputError(f"LoRA goes on {', '.join(LINEAR_TARGETS)} only")
    return LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=0.0, bias="none", target_modules=list(targets), task_type="CAUSAL_LM"
    )


class Policy:
    """Student with the adapter on, teacher and reference with it off; one set of weights."""

    def __init__(self, model: Any, renderer: Renderer, device: str) -> None:  # noqa: ANN401  # peft is untyped
        self.model = model
        self.renderer = renderer
        self.device = device

    @classmethod
    def restore(cls, model_dir: Path, checkpoint_dir: Path, device: str = "cpu") -> "Policy":
        """Load the base with a stored adapter on it; nothing is trained.

        Raises:
            ArtifactError: base or adapter cannot be read, or the adapter has other modules than the base.
        """
        base, renderer = _load_base(model_dir)
        try:
            model = PeftModel.from_pretrained(base.to(device), str(checkpoint_dir), local_files_only=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise ArtifactError("the adapter does not fit the base") from error
        model.eval()
        return cls(model, renderer, device)

    @classmethod
    def load(  # where from, what form, and how it is prompted
        cls,
        model_dir: Path,
        rank: int,
        alpha: int,
        seed: int,
        device: str = "cpu",
        template_args: Mapping[str, bool] | None = None,
    ) -> "Policy":
        """Load the base and put a fresh, seeded adapter on it.

        Raises:
            ArtifactError: the base cannot be read.
        """
        base, renderer = _load_base(model_dir, template_args)
        torch.manual_seed(seed)
        model = get_peft_model(base.to(device), lora_config(rank, alpha))
        model.eval()  # no dropout anywhere: what is computed here is what is served
        return cls(model, renderer, device)

    def trainable(self) -> list[torch.nn.Parameter]:
        """Return the adapter's parameters in a fixed order."""
        return [p for _, p in sorted(self.model.named_parameters()) if p.requires_grad]

    def response_logits(self, batch: Batch) -> Tensor:
        """Return the logits that predict each response token, (B, T, V)."""
        width = batch.response_BT.shape[1]
        out = self.model(
            input_ids=batch.ids_BS,
            attention_mask=batch.attention_BS,
            position_ids=batch.positions_BS,
            logits_to_keep=width + 1,
            use_cache=False,
        )
        logits: Tensor = out.logits[:, :-1]
        return logits

    @contextmanager
    def without_adapter(self) -> Iterator[None]:
        """Switch the adapter off: the base as teacher or reference; no gradients."""
        with torch.no_grad(), self.model.disable_adapter():
            yield

    def adapter_tensors(self) -> dict[str, NDArray[np.float32]]:
        """Return the adapter as float32 arrays under the names peft stores."""
        state = get_peft_model_state_dict(self.model)
        return {name: tensor.detach().to("cpu", torch.float32).contiguous().numpy() for name, tensor in state.items()}


def _load_base(model_dir: Path, template_args: Mapping[str, bool] | None = None) -> tuple[Any, Renderer]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(model_dir), local_files_only=True)
        config = AutoConfig.from_pretrained(str(model_dir), local_files_only=True)
        # A model that also sees is trained by words alone; LINEAR_TARGETS name nothing of what it sees with.
        form = (
            AutoModelForImageTextToText
            if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
            else AutoModelForCausalLM
        )
        base = form.from_pretrained(str(model_dir), dtype=torch.float32, local_files_only=True, use_safetensors=True)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"the base model in {model_dir.name} cannot be read") from error
    return base, Renderer(tokenizer, _end_ids(base, tokenizer), template_args)


def _end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:  # noqa: ANN401  # transformers is untyped here
    """Return the ids that end a turn, the chat template's own first."""
    configured = model.generation_config.eos_token_id
    listed = configured if isinstance(configured, list) else [configured]
    ends = [tokenizer.eos_token_id, *listed]
    return tuple(dict.fromkeys(int(i) for i in ends if i is not None))
