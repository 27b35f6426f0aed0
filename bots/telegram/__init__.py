"""The Telegram channel: receive, parse, render, split, pace, send."""

import os

# python-telegram-bot then gives waiting times as timedelta, its coming default, instead of warning at each one:
# https://docs.python-telegram-bot.org/en/v22.8/telegram.error.html#telegram.error.RetryAfter
os.environ.setdefault("PTB_TIMEDELTA", "true")
