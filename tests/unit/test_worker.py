"""The worker's own loop: what was to run as long as the worker does not end unnoticed."""

import asyncio
import threading
import time

import pytest

from app import worker


def test_background_work_that_ends_is_said(caplog: pytest.LogCaptureFixture) -> None:
    runtime = object.__new__(worker._Runtime)  # without a database
    runtime._loop = asyncio.new_event_loop()
    thread = threading.Thread(target=runtime._loop.run_forever)
    thread.start()

    async def broken() -> None:
        raise ZeroDivisionError

    runtime.begin(broken())
    try:
        deadline = time.monotonic() + 10
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        runtime._loop.call_soon_threadsafe(runtime._loop.stop)
        thread.join()
        runtime._loop.close()
    (said,) = [r for r in caplog.records if r.getMessage() == "worker:background:ended"]
    assert said.exc_info
    assert said.exc_info[0] is ZeroDivisionError
