"""Mentee: a chat-bot gateway whose model learns from the people who talk to it."""

__version__ = "0.1.0"
