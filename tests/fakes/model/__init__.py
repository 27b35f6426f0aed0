"""An instant model server in vLLM's dialect; `python -m tests.fakes.model` runs it as a process."""

from tests.fakes.model.faults import BrokenStream, Cut, Garbage, Misshapen, NoLogprobs, NoTokenIds, Refuse, Slow
from tests.fakes.model.replies import Call, Reply
from tests.fakes.model.server import ModelServer

__all__ = [
    "BrokenStream", "Call", "Cut", "Garbage", "Misshapen", "ModelServer", "NoLogprobs", "NoTokenIds", "Refuse", "Reply", "Slow",
]  # fmt: skip
