"""Celery on the server: several workers share a queue, and one dies in the middle of a task.

Usage: main.py celery, with the server's port in WEFT_PORT.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# For `check`.
sys.path.append(str(HERE.parent.parent / "python"))

import check
from celery import chain
from tasks import count, die_once, double, fail_once, seen, store

PLAIN, LATE, FAILING, CHAINS = 100, 20, 20, 10


def start(number, visibility_seconds=3600):
    """Starts a worker process that runs one task at a time."""
    command = [sys.executable, "-B", "-m", "celery", "--quiet", "--app", "tasks", "worker"]
    command += ["--loglevel", "warning", "--hostname", f"worker{number}@test"]
    command += ["--pool", "solo", "--concurrency", "1"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    environment = {**os.environ, "WEFT_VISIBILITY_SECONDS": str(visibility_seconds)}
    return subprocess.Popen(command, cwd=HERE, env=environment, stdin=subprocess.PIPE)


def done(runs, workers):
    """Whether at least `runs` tasks ran and no message is left."""
    ended = [worker.args for worker in workers if worker.poll() is not None]
    if ended:
        check.fail("all workers run", f"one ended: {ended}")
    return left() == 0 and sum(map(int, seen.hvals("runs"))) >= runs


def left():
    """The number of waiting and of unacknowledged messages."""
    return seen.llen("celery") + seen.hlen("unacked") + seen.zcard("unacked_index")


def end(workers):
    """Ends the workers after their current tasks."""
    for worker in workers:
        worker.terminate()
    check.equal("the workers end", {worker.wait(30) for worker in workers}, {0})


def exactly_once():
    """Three workers run each task as often as it should run."""
    workers = [start(number) for number in range(3)]
    check.eventually("the workers are ready", lambda: seen.get("ready") == "3", 60)
    for i in range(PLAIN):
        count.delay(f"plain:{i}")
    for i in range(LATE):
        count.apply_async([f"late:{i}"], countdown=0.5)
    for i in range(FAILING):
        fail_once.delay(f"failing:{i}")
    for i in range(CHAINS):
        chain(double.s(1), double.s(), store.s(f"chain:{i}")).delay()
    total = PLAIN + LATE + 2 * FAILING + 4 * CHAINS
    check.eventually("all tasks are done", lambda: done(total, workers), 60)
    end(workers)
    wanted = {"plain": "1", "late": "1", "failing": "2", "chain": "4"}
    runs = seen.hgetall("runs")
    check.equal("all tasks ran", len(runs), PLAIN + LATE + FAILING + CHAINS)
    wrong = {name: n for name, n in runs.items() if n != wanted[name.split(":")[0]]}
    check.equal("each as often as it should", wrong, {})
    check.equal("nothing is left", left(), 0)


def restored():
    """A worker dies with an unacknowledged message, which another worker gets."""
    seen.flushall()
    die_once.delay("fatal")
    for i in range(5):
        count.delay(f"after:{i}")
    check.equal("the worker died", start("dying").wait(30), -9)
    check.equal("it kept the message", (seen.hlen("unacked"), seen.llen("celery")), (1, 5))
    check.equal("the task began once", seen.hgetall("runs"), {"fatal": "1"})
    workers = [start("saving", visibility_seconds=5)]
    check.eventually("all tasks are done", lambda: done(7, workers), 30)
    end(workers)
    wanted = {"fatal": "2", **{f"after:{i}": "1" for i in range(5)}}
    check.equal("each ran as often as it should", seen.hgetall("runs"), wanted)
    check.equal("nothing is left", left(), 0)


if __name__ == "__main__":
    exactly_once()
    restored()
