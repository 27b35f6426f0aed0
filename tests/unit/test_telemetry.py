"""A log line holds nothing that a person wrote, whoever logs it."""

import asyncio
import gc
import json
import logging
import sys

import pytest

from app.telemetry import JsonFormatter

WORDS = "my secret word"


def lines(caplog: pytest.LogCaptureFixture) -> str:
    """Return what was logged, as it is written."""
    return "\n".join(JsonFormatter().format(record) for record in caplog.records)


async def fails() -> None:
    raise ValueError(WORDS)


async def test_an_exception_that_nobody_retrieved_is_named_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    task = asyncio.create_task(fails())
    await asyncio.wait([task])
    del task
    gc.collect()
    written = lines(caplog)
    assert WORDS in "".join(record.getMessage() for record in caplog.records)
    assert WORDS not in written
    line = json.loads(written)
    assert (line["event"], line["error"]) == ("Task exception was never retrieved", "ValueError")


async def test_a_callback_that_fails_is_named_without_its_arguments(caplog: pytest.LogCaptureFixture) -> None:
    def callback(_words: str) -> None:
        raise ValueError(WORDS)

    asyncio.get_running_loop().call_soon(callback, WORDS)
    await asyncio.sleep(0)
    written = lines(caplog)
    assert WORDS not in written
    assert json.loads(written)["event"].startswith("Exception in callback test_a_callback_that_fails")


def test_other_loggers_keep_their_whole_event() -> None:
    record = logging.LogRecord("app", logging.INFO, __file__, 1, "turn:reply:stored (twice)", None, None)
    assert json.loads(JsonFormatter().format(record))["event"] == "turn:reply:stored (twice)"


def test_an_exception_is_named_by_type_and_place() -> None:
    try:
        int(WORDS)
    except ValueError:
        record = logging.LogRecord("app", logging.ERROR, __file__, 1, "it:failed", None, sys.exc_info())
    line = json.loads(JsonFormatter().format(record))
    assert line["error"] == "ValueError"
    assert WORDS not in json.dumps(line)
