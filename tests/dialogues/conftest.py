"""Fixtures of the dialogues: those of the integration tier."""

from tests.integration.conftest import brisk

__all__ = ["brisk"]
