"""The files in `cases/`, which all languages read, and threads that work at the same time."""

import os
import threading


def text(name):
    """The contents of `cases/NAME`."""
    with open(os.path.join(os.environ["WEFT_CASES"], name), encoding="utf-8") as file:
        return file.read()


def names(name):
    """The names of cases that `cases/NAME` lists."""
    return [line for line in text(name).splitlines() if line[:1] not in ("", "#")]


def in_threads(count, work):
    """Runs `work(number)` in as many threads, and raises the first error of any."""
    errors = []

    def run(number):
        try:
            work(number)
        except Exception as raised:
            errors.append(raised)

    threads = [threading.Thread(target=run, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
