"""Turn the bundled GGUF into a safetensors model: `python -m app.embedded.convert GGUF DIRECTORY`.

Runs once, in a process of its own, because it imports torch. Knows nothing of where the result will lie or of what
is written beside it (`app/embedded/model.py`).
"""

import argparse
import json
from pathlib import Path

END_OF_TURN = "<|im_end|>"
PAD = 0


def convert(gguf: Path, target: Path) -> None:
    """Write weights, tokenizer, chat template and generation settings of `gguf` to `target` in float32."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32)
    config = loaded.config
    # A model loaded from GGUF refuses to be saved; a fresh one of the same shape takes over its weights.
    fresh = LlamaForCausalLM(config)
    fresh.load_state_dict(loaded.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    end = tokenizer.convert_tokens_to_ids(END_OF_TURN)
    fresh.generation_config = GenerationConfig(bos_token_id=tokenizer.bos_token_id, eos_token_id=end, pad_token_id=PAD)
    fresh.save_pretrained(str(target), safe_serialization=True)
    tokenizer.save_pretrained(str(target))
    _finish(target, end)


def _finish(target: Path, end: int) -> None:
    """Remove traces of the GGUF from `config.json` that other readers stumble over."""
    path = target / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for trace in ("quantization_config", "_model_name_or_path"):
        config.pop(trace, None)
    config["eos_token_id"] = end
    # Padding with the end of turn would teach the model to stop.
    config["pad_token_id"] = PAD
    path.write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")


def main() -> None:
    """Read the two paths from the command line and convert."""
    parser = argparse.ArgumentParser(description="Convert a GGUF model to safetensors.")
    parser.add_argument("gguf", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    convert(arguments.gguf, arguments.target)


if __name__ == "__main__":
    main()
