"""The training loop and its LoRA models; runs in a process of its own."""
