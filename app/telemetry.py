"""Logs and metrics without anything a person wrote: JSON lines, event names `subject:object:action`, no tokens.

Knows which libraries print secrets (httpx prints the bot token in URLs) and keeps them quiet.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Histogram

# Labels are a channel's name and words of ours: never a person, a chat or anything they wrote.
REGISTRY = CollectorRegistry()
UPDATES = Counter(
    "mentee_updates", "Updates that came in: new, or a repeat of one.", ["channel", "result"], registry=REGISTRY
)
REFUSED = Counter("mentee_posts_refused", "Posts that were not authentic.", ["channel"], registry=REGISTRY)
HANDLED = Counter("mentee_updates_handled", "Updates by how they ended.", ["state"], registry=REGISTRY)
TURNS = Counter("mentee_turns", "Replies by how they ended.", ["channel", "state", "failure"], registry=REGISTRY)
FIRST_TOKEN = Histogram(
    "mentee_first_token_seconds",
    "From asking the model to its first token.",
    ["channel"],
    buckets=(0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60),
    registry=REGISTRY,
)
REPLY = Histogram(
    "mentee_reply_seconds",
    "From asking the model to the end of the reply.",
    ["channel"],
    buckets=(0.5, 1, 2, 5, 10, 20, 60, 120, 300),
    registry=REGISTRY,
)
PARTS = Counter("mentee_parts", "Message parts by what became of them.", ["channel", "result"], registry=REGISTRY)
VOTES = Counter("mentee_votes", "Votes that changed something.", ["channel", "vote"], registry=REGISTRY)
ASKS = Counter(
    "mentee_asks", "Questions how a reply was, by why they were asked.", ["channel", "reason"], registry=REGISTRY
)
ANSWERED = Counter(
    "mentee_asks_answered", "Questions how a reply was that were answered.", ["channel", "reason"], registry=REGISTRY
)
CORRECTIONS = Counter("mentee_corrections", "Corrections in words.", ["channel"], registry=REGISTRY)

QUIET = (
    "httpx",
    "httpcore",
    "aiohttp.access",
    "telegram.Bot",
    "telegram.ext",
    "twilio",
    "sqlalchemy.engine",
    "asyncio",
)
# asyncio puts reprs into its messages: of exceptions, results and arguments, which may hold what a person wrote.
_REPR = re.compile(r"""['"(\n]|\b(?:exception|result)=""")


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, event, and the fields given with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; an exception is named by type and place, never by its message, which may hold user text."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
            line["where"] = _place(record)
        return json.dumps(line, ensure_ascii=False, default=str)


def _event(record: logging.LogRecord) -> str:
    message = record.getMessage()
    return _REPR.split(message, maxsplit=1)[0].rstrip() if record.name == "asyncio" else message


def _place(record: logging.LogRecord) -> str:
    trace = record.exc_info[2] if record.exc_info else None
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""


def configure(level: str) -> None:
    """Send every log line of this process to stderr as JSON at `level`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class Log:
    """A logger whose events carry fields: `log.info("turn:reply:sent", turn=turn_id)`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def info(self, event: str, **fields: object) -> None:
        """Log what happened."""
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, **fields: object) -> None:
        """Log what an operator should know."""
        self._logger.warning(event, extra={"fields": fields})

    def failure(self, event: str, error: BaseException | None = None, **fields: object) -> None:
        """Log what went wrong, by the error's type and place."""
        exc_info = (type(error), error, error.__traceback__) if error else None
        self._logger.error(event, exc_info=exc_info, extra={"fields": fields})
