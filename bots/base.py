"""What a channel and the dialogue agree on beyond `app.ports`: raw updates, what a person sees, how a stream is shown."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawUpdate:
    """One authentic update before parsing: its bytes, the keys that make it a repeat, and its lane.

    `keys` are the platform's own identifiers (update id; chat, message and edit date); any key seen before makes the
    update a repeat. A body whose keys cannot be read uses its SHA-256. Updates of one `lane` are handled one at a time
    in the order of acceptance.
    """

    body: bytes
    keys: tuple[str, ...]
    lane: str


Accept = Callable[[Sequence[RawUpdate]], Awaitable[None]]
"""Stores a batch durably, repeats dropped, before it returns. Raises `StoreUnavailableError` when it cannot store all of it:
the same batch again does no harm.
"""
