"""A base model of a few thousand weights with a byte tokenizer and a chat template, made and seeded at test time.

It speaks no language; it is real to transformers, peft and the trainer, and loads in a blink.
"""

from collections.abc import Sequence
from pathlib import Path

from learner.dataset.manifest import Manifest, Snapshot, manifest_item
from learner.train.job import Bodies, RunSpec, write_job
from learner.types import (
    Anchor,
    BaseIdentity,
    ChatMessage,
    Example,
    Lesson,
    ServedTurn,
    TrainingItem,
    TrainSettings,
)

BASE = BaseIdentity("tiny", "r1", "t" * 64, "c" * 64)
SALT = b"0123456789abcdef"
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SETTINGS = TrainSettings(
    rank=2, alpha=4, steps=3, rollouts_per_step=4, max_new_tokens=6, learning_rate=5e-3, niceness=0, threads=1
)
ITEMS = tuple(TrainingItem(f"p{i}", (ChatMessage("user", text),)) for i, text in enumerate(("rain?", "eggs?", "sun")))
LESSONS = (Lesson("l1", "End with Bye.", (Example("hi", None, "Hello. Bye."),)),)
ANCHORS = (Anchor("a1", (ChatMessage("user", "hi"),), "Hello. Bye."),)


def make_tiny_base(directory: Path, seed: int = 0) -> Path:
    """Write the model and return its directory."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    words = _write_tokenizer(directory)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(str(directory))
    return directory


def make_tiny_seeing_base(directory: Path, seed: int = 0) -> Path:
    """Write a model of the same size that also sees, in the form of Qwen3-VL, and return its directory."""
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    words = _write_tokenizer(directory)
    torch.manual_seed(seed)
    rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
    text = {
        "vocab_size": words + 4,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 1024,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.3,
        "rope_parameters": rope,
    }
    sight = {"depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "out_hidden_size": 32}
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    marks = {name: words + number for number, name in enumerate(names)}
    config = Qwen3VLConfig(text_config=text, vision_config=sight | {"deepstack_visual_indexes": [0]}, **marks)
    Qwen3VLForConditionalGeneration(config).save_pretrained(str(directory))
    return directory


def _write_tokenizer(directory: Path) -> int:
    """Write a tokenizer of single bytes; return how many tokens it knows."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    specials = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*specials, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|pad|>")
    fast.add_special_tokens({"additional_special_tokens": specials[1:2]})
    fast.chat_template = TEMPLATE
    fast.save_pretrained(str(directory))
    return len(vocabulary)


def lay_job(
    run_dir: Path,
    model_dir: Path,
    settings: TrainSettings = SETTINGS,
    *,
    seed: int = 1,
    run_id: str = "run-1",
    resume: bool = False,
    items: Sequence[TrainingItem] = ITEMS,
    served_turns: Sequence[ServedTurn] = (),
    base: BaseIdentity = BASE,
    lessons: Sequence[Lesson] = LESSONS,
    anchors: Sequence[Anchor] = ANCHORS,
) -> Snapshot:
    """Write a run's input and return its snapshot."""
    bodies = Bodies(SALT, tuple(items), tuple(lessons), tuple(anchors), tuple(served_turns))
    named = tuple(manifest_item(SALT, body) for body in (*items, *lessons, *anchors))
    snapshot = Snapshot(Manifest("person", base, named, settings, "test", seed))
    write_job(run_dir, RunSpec(run_id, model_dir, snapshot, resume), bodies)
    return snapshot
