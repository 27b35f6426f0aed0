"""A plugin that vLLM loads in each of its processes: on a CPU, a request to the base stays without any adapter.

vLLM marks rows without an adapter by index -1. Its CPU kernels use that index as it is, and so read the last adapter
slot: once every slot has held an adapter, base requests that share a batch with adapter requests are answered with
whatever lies there. Its GPU kernels skip such rows. Here the projection of these rows is set to zero, which leaves the
base's own output untouched. The isolation probe at every start proves that it works, or that it is not needed any more.

Registered as entry point `vllm.general_plugins` in `pyproject.toml`. Knows nothing of the rest of Mentee.
"""

from typing import Any

# The tensors are torch's; this module must not import it, the supervisor stays small.
Tensor = Any
NO_ADAPTER = 0


def apply() -> None:
    """Put the guarded kernel in the place of the CPU's."""
    from vllm.lora.ops.torch_ops import lora_ops
    from vllm.lora.punica_wrapper import punica_cpu

    plain = lora_ops.bgmv_shrink
    if getattr(plain, "guards_base_rows", False):
        return

    def guarded(inputs: Tensor, weights: Tensor, output: Tensor, indices: Tensor, scaling: float = 1.0) -> None:
        plain(inputs, weights, output, indices, scaling)
        output[indices < NO_ADAPTER] = 0

    guarded.guards_base_rows = True  # type: ignore[attr-defined]  # the mark that it is in place
    # sgmv_shrink, used while prompts are read, calls the first by its name; decoding calls the second.
    lora_ops.bgmv_shrink = guarded
    punica_cpu.bgmv_shrink = guarded
