"""redis-py drives the server: synchronous, and its asyncio twin over the same ground in short.
valkey-py and redis-py do what each client does.

Usage: main.py resp2|resp3|auth|tls|unix|redis-py|valkey-py, with the addresses in WEFT_* variables.
"""

import asyncio
import os
import sys

import admin
import check
import clients
import combined
import keys
import load
import redis
import redis.asyncio
import replies
import strings
import valkey
from redis.backoff import NoBackoff
from redis.retry import Retry

PORT = int(os.environ["WEFT_PORT"])
# For calls that are to fail: by default redis-py tries them again for seconds.
ONCE = Retry(NoBackoff(), 0)


def commands(protocol):
    """All commands over one protocol."""

    def connect(blocking_pool=False, **options):
        options = {"decode_responses": True, **options}
        options.update(host="127.0.0.1", port=PORT, protocol=protocol)
        if not blocking_pool:
            return redis.Redis(**options)
        return redis.Redis(connection_pool=redis.BlockingConnectionPool(**options))

    with connect(single_connection_client=True) as r:
        strings.run(r)
        keys.run(r)
        admin.run(r, connect, protocol)
        r.flushall()
        replies.run(r)
        combined.run(r, connect)
    load.run(connect)
    asyncio.run(asynchronous(protocol))


async def asynchronous(protocol):
    """What differs in the asyncio client: its own reader, pool and pipeline."""
    address = f"redis://127.0.0.1:{PORT}/2?protocol={protocol}"
    async with redis.asyncio.from_url(address, decode_responses=True) as r:
        check.equal("asyncio SET", await r.set("k", "v", px=50_000), True)
        check.equal("asyncio GET", await r.get("k"), "v")
        counts = await asyncio.gather(*(r.incr("n") for _ in range(100)))
        check.equal("asyncio gathers 100 INCR", sorted(counts), list(range(1, 101)))
        pipe = r.pipeline(transaction=False)
        for i in range(1_000):
            pipe.set(f"a:{i}", i)
        check.equal("asyncio pipeline", await pipe.execute(), [True] * 1_000)
        check.equal("the URL's database", (await r.client_info())["db"], 2)
        check.equal("asyncio FLUSHDB", await r.flushdb(), True)


def auth():
    """A server with requirepass."""
    password = os.environ["WEFT_PASSWORD"]
    wrong = "invalid username-password pair or user is disabled."
    # RESP2 meets the answer to PING, RESP3 that to HELLO.
    without = {2: "Authentication required.", 3: "HELLO must be called with the client already "
               "authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used "
               "to authenticate the client and select the RESP protocol version at the same time"}
    for protocol in (2, 3):
        def connect(**options):
            options.update(port=PORT, protocol=protocol, decode_responses=True, retry=ONCE)
            return redis.Redis(**options)

        r = connect(password=password)
        check.equal("SET with the password", (r.set("k", "v"), r.get("k")), (True, "v"))
        r = connect(username="default", password=password)
        check.equal("with the user default too", r.get("k"), "v")
        kind = redis.AuthenticationError
        check.error("without", without[protocol], connect().ping, kind)
        check.error("a wrong password", wrong, connect(password="wrong").ping, kind)
        r = connect(username="nobody", password=password)
        check.error("a wrong user", wrong, r.ping, kind)
    r = connect(password=password, single_connection_client=True)
    check.error("AUTH with a wrong one", wrong, lambda: r.execute_command("AUTH", "wrong"))
    check.equal("the old login holds", r.get("k"), "v")
    check.equal("CONFIG SET requirepass", r.config_set("requirepass", "new"), True)
    check.error("the old one is refused", wrong, connect(password=password).ping)
    check.equal("the new one is taken", connect(password="new").ping(), True)


def tls():
    """TLS, with the certificates checked on both sides."""
    files = {"ssl": True, "ssl_ca_certs": os.environ["WEFT_CA"], "decode_responses": True}
    files["retry"] = ONCE
    own = {"ssl_certfile": os.environ["WEFT_CERT"], "ssl_keyfile": os.environ["WEFT_KEY"]}
    for protocol in (2, 3):
        r = redis.Redis(host="localhost", port=PORT, protocol=protocol, **files)
        check.equal("PING over TLS", r.ping(), True)
        value = "x" * 3_000_000
        check.equal("SET of 3 MB over TLS", r.set("k", value), True)
        check.holds("GET of 3 MB over TLS", r.get("k") == value)
        pipe = r.pipeline(transaction=False)
        for i in range(2_000):
            pipe.set(f"k:{i}", i).get(f"k:{i}")
        check.equal("a pipeline over TLS", pipe.execute()[1::2], [str(i) for i in range(2_000)])
        r.flushdb()
    mutual = int(os.environ["WEFT_MUTUAL_PORT"])
    r = redis.Redis(host="localhost", port=mutual, **files, **own)
    check.equal("PING with a client certificate", r.ping(), True)
    refused(redis.Redis(host="localhost", port=mutual, **files), "without a client certificate")
    refused(redis.Redis(host="localhost", port=PORT, ssl=True, retry=ONCE), "an unknown authority")
    refused(redis.Redis(host="localhost", port=PORT, retry=ONCE), "no TLS at all")


def refused(r, name):
    """No command gets through."""
    try:
        answer = r.ping()
    except (redis.ConnectionError, redis.TimeoutError):
        check.holds(f"refused: {name}", True)
    else:
        check.fail(f"refused: {name}", f"PING answered {answer}")


def unix():
    """The unix socket."""
    path = os.environ["WEFT_SOCKET"]
    for protocol in (2, 3):
        r = redis.Redis(unix_socket_path=path, protocol=protocol, decode_responses=True)
        check.equal("PING over the socket", r.ping(), True)
        check.equal("SET and GET over it", (r.set("k", "v"), r.get("k")), (True, "v"))
        info = r.client_info()
        check.holds("CLIENT INFO has the path", info["addr"].startswith(path), info)
        over_tcp = redis.Redis(port=PORT, protocol=protocol, decode_responses=True)
        check.equal("TCP sees the same keys", over_tcp.get("k"), "v")


PARTS = {
    "resp2": lambda: commands(2),
    "resp3": lambda: commands(3),
    "auth": auth,
    "tls": tls,
    "unix": unix,
    "redis-py": lambda: clients.run(redis),
    "valkey-py": lambda: clients.run(valkey),
}

if __name__ == "__main__":
    PARTS[sys.argv[1]]()
