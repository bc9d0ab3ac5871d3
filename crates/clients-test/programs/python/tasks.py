"""The tasks of Celery, and its settings: for the workers and for who sends.

Celery's control commands, events and results use PUBLISH and SUBSCRIBE and are off. What is left is
the broker: BRPOP, and MULTI with WATCH over the messages that are not acknowledged.
"""

import os
import signal
import sys
import threading

import redis
from celery import Celery
from celery.signals import worker_init, worker_ready

PORT = os.environ["WEFT_PORT"]
ADDRESS = f"redis://127.0.0.1:{PORT}/0"

app = Celery("tasks", broker=ADDRESS)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_enable_remote_control=False,
    worker_prefetch_multiplier=4,
    # A worker ends with the server.
    broker_connection_retry=False,
    broker_connection_retry_on_startup=False,
    broker_transport_options={
        # How long a message may stay without acknowledgement before another worker gets it.
        "visibility_timeout": float(os.environ.get("WEFT_VISIBILITY_SECONDS", "3600")),
        "unacked_restore_interval": 0.5,
        "unacked_restore_throttle": 1,
    },
)
seen = redis.Redis.from_url(ADDRESS, decode_responses=True)


@app.task
def count(name):
    """Counts how often it ran."""
    seen.hincrby("runs", name, 1)


@app.task(bind=True, max_retries=1)
def fail_once(self, name):
    """Fails the first time."""
    seen.hincrby("runs", name, 1)
    if self.request.retries == 0:
        raise self.retry(countdown=0.05)


@app.task(bind=True)
def die_once(self, name):
    """Ends its worker the first time."""
    if seen.hincrby("runs", name, 1) == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task
def double(number):
    """A link of a chain."""
    return 2 * number


@app.task
def store(number, name):
    """The end of a chain."""
    seen.hincrby("runs", name, number)


@worker_init.connect
def end_with_parent(**_):
    """A worker ends with the process that started it, whose pipe is its input."""

    def wait():
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@worker_ready.connect
def tell(**_):
    """From here on a worker answers signals."""
    seen.incr("ready")
