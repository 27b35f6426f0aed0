"""Identifiers as Twilio makes them."""

import secrets


def new_sid(prefix: str = "SM") -> str:
    """A fresh identifier."""
    return prefix + secrets.token_hex(16)
