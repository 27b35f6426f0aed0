"""The Telegram channel: receive, parse, render, send."""
