"""Checks that print a line each. The first one that fails ends the program."""

import sys
import time


def equal(name, got, want):
    """Checks that the answer is `want`, in value and in type."""
    if got != want or type(got) is not type(want):
        fail(name, f"got {short(got)}, want {short(want)}")
    print("ok", name, flush=True)


def holds(name, condition, seen=""):
    """Checks a condition about `seen`."""
    if not condition:
        fail(name, f"does not hold for {short(seen)}")
    print("ok", name, flush=True)


def error(name, text, call, kind):
    """Checks that the call raises `kind` with exactly this text."""
    try:
        answer = call()
    except kind as raised:
        equal(name, str(raised), text)
    else:
        fail(name, f"got {short(answer)}, want the error {text!r}")


def eventually(name, call, seconds=10):
    """Waits until the call returns a true value."""
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
    """The value as text, cut to 500 characters."""
    text = repr(value)
    return text if len(text) < 500 else text[:500] + "..."
