"""The Celery side: one application, one task that says "look at this job", and the relay that sends it.

`celery -A app.worker worker -Q train ...` runs the learner's tasks. Messages carry an id and nothing else; JSON only;
no results are kept. All work of a worker process happens on one event loop that lives as long as the process, in a
thread of its own, so that the pool's threads and the broker's connection never share one with it.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar
from uuid import UUID

from celery import Celery
from celery.signals import setup_logging, worker_ready
from kombu import Queue
from kombu.exceptions import OperationalError

from app import config, telemetry
from app.errors import ConfigError
from app.services.relay import BrokerAwayError, Relay
from app.store import Store
from app.telemetry import Log

QUEUES = ("score", "train", "evaluate", "release")
TASK = "mentee.wake"
# Above the longest task: a message that is given out twice does no harm, but it is not wanted either.
VISIBILITY_TIMEOUT_S = 6 * 3600
SEND_RETRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2}

T = TypeVar("T")

_log = Log(__name__)


def _configuration() -> dict[str, object]:
    """Return Celery's settings; read when first needed, so that importing this module needs no settings."""
    transport = {
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        # Without these two, messages of a killed worker come back only after minutes.
        "unacked_restore_interval": 3,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 3,
        "socket_timeout": 10,
        "socket_keepalive": True,
    }
    return {
        "broker_url": broker_url(),
        "broker_transport_options": transport,
        "broker_connection_retry_on_startup": True,
        "broker_connection_timeout": 5,
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "result_backend": None,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_queues": [Queue(name) for name in QUEUES],
        "task_create_missing_queues": False,
        "task_default_queue": "release",
        "worker_prefetch_multiplier": 1,
        "worker_hijack_root_logger": False,
        "worker_send_task_events": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "enable_utc": True,
    }


def broker_url() -> str:
    """Return the broker's address.

    Raises:
        ConfigError: BROKER_URL is not set; `mentee run` sets it for the embedded Valkey.
    """
    url = config.load().broker_url
    if url is None:
        raise ConfigError("BROKER_URL: set it to redis://..., or start everything with `make run`")
    return url.get_secret_value()


celery = Celery("mentee", set_as_current=False)
celery.add_defaults(_configuration)


def _log_as_everywhere(**_: object) -> None:
    telemetry.configure(config.load().log_level)


def _begin_background(sender: Any, **_: object) -> None:  # noqa: ANN401  # Celery's own consumer, which has no types
    """Keep the model servers as desired from the start, in the worker that serves the release queue."""
    if "release" in sender.app.amqp.queues.consume_from:
        from learner.tasks.background import background  # noqa: PLC0415  # a gateway that only sends needs none of it

        runtime = _Runtime.get()
        runtime.begin(background(runtime.learner))


setup_logging.connect(_log_as_everywhere)
worker_ready.connect(_begin_background)


@celery.task(name=TASK, bind=False)  # type: ignore[untyped-decorator]  # Celery ships no types
def wake(job_id: str) -> None:
    """Do the job with this id, if it is still to be done."""
    from learner.tasks.run import handle  # noqa: PLC0415  # a gateway that only sends needs none of it

    runtime = _Runtime.get()
    runtime.call(handle(runtime.learner, UUID(job_id)))


def send(job_id: UUID, queue: str) -> None:
    """Tell the broker of a job.

    Raises:
        BrokerAwayError: it did not take the message in time.
    """
    try:
        celery.send_task(TASK, args=[str(job_id)], queue=queue, retry=True, retry_policy=SEND_RETRY, ignore_result=True)
    except (OperationalError, OSError) as error:
        raise BrokerAwayError from error


def relay(store: Store) -> Relay:
    """Return the relay of a gateway; the caller runs it as a task."""
    return Relay(store, send)


class _Runtime:
    """The event loop of a worker process and what its tasks stand on; made at the first task, after any fork."""

    _made: "_Runtime | None" = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        from learner.tasks.context import open_learner  # noqa: PLC0415  # the same as in `wake`

        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="learner-loop", daemon=True).start()
        self.learner = self.call(open_learner(config.load()))

    @classmethod
    def get(cls) -> "_Runtime":
        """Return this process's runtime."""
        with cls._lock:
            cls._made = cls._made or cls()
            return cls._made

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` on the loop beside everything else; that it ended is said, since nobody waits for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop).add_done_callback(_ended)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _ended(work: Future[None]) -> None:
    """Say that what was to run as long as the worker does not run any more."""
    _log.failure("worker:background:ended", None if work.cancelled() else work.exception())
