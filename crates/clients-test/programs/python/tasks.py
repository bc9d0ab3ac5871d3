"""The tasks and settings of Celery, for the workers and for the sender.

Celery's control commands, events and results, which use PUBLISH and SUBSCRIBE, are off. The broker
remains: BRPOP, and MULTI with WATCH over unacknowledged messages.
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
        # After this time an unacknowledged message goes to another worker.
        "visibility_timeout": float(os.environ.get("WEFT_VISIBILITY_SECONDS", "3600")),
        "unacked_restore_interval": 0.5,
        "unacked_restore_throttle": 1,
    },
)
seen = redis.Redis.from_url(ADDRESS, decode_responses=True)


@app.task
def count(name):
    """Counts its runs."""
    seen.hincrby("runs", name, 1)


@app.task(bind=True, max_retries=1)
def fail_once(self, name):
    """Fails the first time."""
    seen.hincrby("runs", name, 1)
    if self.request.retries == 0:
        raise self.retry(countdown=0.05)


@app.task(bind=True)
def die_once(self, name):
    """Kills its worker the first time."""
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
    """Ends a worker with the process that started it, which holds the other end of its input."""

    def wait():
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@worker_ready.connect
def count_ready(**_):
    """Counts the workers that handle signals by now."""
    seen.incr("ready")
