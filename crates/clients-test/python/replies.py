"""The requests that all clients send alike: cases/replies.txt says their form."""

import os

import check
from redis.exceptions import RedisError


def run(r):
    """`r` has one connection, decodes replies, and its database is empty before and after."""
    count = 0
    with open(os.environ["WEFT_REPLIES"], encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line and not line.startswith("#"):
                name, reply, request = line.split(" | ")
                check.equal(name, answer(r.connection, request.split(" ")), reply)
                count += 1
    check.holds("replies that all clients read alike", count > 30, count)


def answer(connection, words):
    """The reply in the notation of the file, past what the client makes of replies by command."""
    try:
        connection.send_command(*words)
        reply = connection.read_response()
    except RedisError as raised:
        text = str(raised)
        # redis-py removes the code ERR, and no other.
        has_code = text.startswith(("NOPROTO ", "WRONGTYPE "))
        return f"-{text}" if has_code else f"-ERR {text}"
    if reply is None:
        return "_"
    return f":{reply}" if isinstance(reply, int) else f"+{reply}"
