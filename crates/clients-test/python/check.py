"""One line for each check, and the end of the program at the first one that does not hold."""

import sys
import time


def equal(name, got, want):
    """The answer is `want`, in value and in type."""
    if got != want or type(got) is not type(want):
        fail(name, f"got {short(got)}, want {short(want)}")
    print("ok", name, flush=True)


def holds(name, condition, seen=""):
    """The condition is true; `seen` says what was looked at."""
    if not condition:
        fail(name, f"does not hold for {short(seen)}")
    print("ok", name, flush=True)


def between(name, got, low, high):
    """The answer is a number from `low` to `high`, both included."""
    holds(f"{name} in {low}..{high}", isinstance(got, (int, float)) and low <= got <= high, got)


def error(name, text, call, kind=Exception):
    """The call raises `kind` with exactly this text."""
    try:
        answer = call()
    except kind as raised:
        equal(name, str(raised), text)
    else:
        fail(name, f"got {short(answer)}, want the error {text!r}")


def eventually(name, call, seconds=10):
    """The call becomes true within some seconds: for what the server does in its own time."""
    deadline = time.monotonic() + seconds
    while not call():
        if time.monotonic() > deadline:
            fail(name, f"not within {seconds} seconds")
        time.sleep(0.005)
    print("ok", name, flush=True)


def fail(name, reason):
    """Ends the program."""
    print("FAILED", name + ":", reason, flush=True)
    sys.exit(1)


def short(value):
    """The value as text, cut where it would fill the screen."""
    text = repr(value)
    return text if len(text) < 500 else text[:500] + "..."
