"""The cases of `cases/clients.txt` for redis-py and valkey-py, which have the same methods."""

import os
import threading
from pathlib import Path

import check
import redis

PORT = int(os.environ["WEFT_PORT"])
USER, PASSWORD = os.environ["WEFT_USER"], os.environ["WEFT_PASSWORD"]
FILES = Path(os.environ["WEFT_CASES"])
CHANNEL = "news:sport"
PATTERN = "news:*"
TRANSFER = (FILES / "transfer.lua").read_text(encoding="utf-8")


class Subject:
    """A library with the options of one kind of connection."""

    def __init__(self, library, options):
        self.library = library
        # valkey-py retries a command on a new connection only with this option.
        retry = library.retry.Retry(library.backoff.NoBackoff(), 3)
        self.options = {**options, "retry": retry, "retry_on_error": [library.ConnectionError]}
        self.r = self.connect(decode_responses=True)

    def connect(self, **more):
        return self.library.Redis(**self.options, **more)


# Observes the server without the library under test. Only one thread uses it, so it keeps one
# connection.
admin = redis.Redis(port=PORT, decode_responses=True)


def connected(s):
    s.r.ping()
    want = {(s.options["protocol"], s.options.get("username", "default"))}

    def seen():
        own = admin.client_id()
        others = [c for c in admin.client_list() if int(c["id"]) != own]
        return {(int(c["resp"]), c["user"]) for c in others}

    check.eventually("protocol and user", lambda: seen() == want)


def strings(s):
    every = bytes(range(256))
    check.equal("SET", s.r.set("k", "zażółć 🦀"), True)
    check.equal("GET", s.r.get("k"), "zażółć 🦀")
    binary = s.connect()
    check.equal("every byte", (binary.set(every, every), binary.get(every)), (True, every))
    check.equal("GET of a missing key", s.r.get("none"), None)
    check.equal("INCRBY", (s.r.incr("n", 41), s.r.incr("n")), (41, 42))
    check.equal("SET with EX", (s.r.set("k", "v", ex=100), s.r.ttl("k") > 90), (True, True))
    binary.close()


def collections(s):
    r = s.r
    admin.hset("h", mapping={"a": "1", "b": "2"})
    admin.sadd("s", "a", "b")
    admin.zadd("z", {"b": 2.5, "a": 1})
    check.equal("HGETALL", r.hgetall("h"), {"a": "1", "b": "2"})
    check.equal("SMEMBERS", set(r.smembers("s")), {"a", "b"})
    scores = [tuple(pair) for pair in r.zrange("z", 0, -1, withscores=True)]
    check.equal("ZRANGE WITHSCORES", scores, [("a", 1.0), ("b", 2.5)])


def errors(s):
    s.r.set("k", "v")
    text = "WRONGTYPE Operation against a key holding the wrong kind of value"
    check.error("LPUSH to a string", text, lambda: s.r.lpush("k", "x"), s.library.ResponseError)
    check.equal("the connection stays usable", s.r.get("k"), "v")


def pipeline(s):
    pipe = s.r.pipeline(transaction=False)
    for i in range(1_000):
        pipe.set(f"p:{i}", i).get(f"p:{i}")
    want = [answer for i in range(1_000) for answer in (True, str(i))]
    check.equal("replies", pipe.execute(), want)


def pipeline_error(s):
    pipe = s.r.pipeline(transaction=False).set("k", "v").incr("k").get("k")
    first, error, last = pipe.execute(raise_on_error=False)
    check.equal("the commands around it", (first, last), (True, "v"))
    check.holds("the error", isinstance(error, s.library.ResponseError), error)
    check.equal("its text", str(error), "value is not an integer or out of range")


def transaction(s):
    pipe = s.r.pipeline(transaction=True).incr("n").rpush("l", "a", "b").lrange("l", 0, -1)
    check.equal("EXEC", pipe.get("none").execute(), [1, 2, ["a", "b"], None])


def watched(s):
    seen = []

    def change(pipe):
        seen.append(pipe.get("k"))
        if len(seen) == 1:
            admin.set("k", "other")
        pipe.multi()
        pipe.append("k", "+mine")

    with s.r.pipeline() as pipe:
        pipe.watch("k")
        admin.set("k", "first")
        pipe.multi()
        pipe.set("k", "mine")
        check.error("EXEC", "Watched variable changed.", pipe.execute, s.library.WatchError)
    check.equal("nothing ran", s.r.get("k"), "first")
    check.equal("retried", s.r.transaction(change, "k"), [10])
    check.equal("what it saw", (seen, s.r.get("k")), (["first", "other"], "other+mine"))


def script(s):
    transfer = s.r.register_script(TRANSFER)
    s.r.mset({"a": 100, "b": 1})
    check.equal("the first run", transfer(keys=["a", "b"], args=[10]), [90, 11])
    check.equal("SCRIPT FLUSH", admin.script_flush(), True)
    check.equal("the run after it", transfer(keys=["b", "a"], args=[1]), [10, 91])


def script_error(s):
    transfer = s.r.register_script(TRANSFER)
    poor = lambda: transfer(keys=["a", "b"], args=[1])
    check.error("of the script", "POOR a has 0", poor, s.library.ResponseError)


def messages(p, count):
    """The next messages, by their type."""
    found = {"message": [], "pmessage": [], "smessage": []}
    while sum(map(len, found.values())) < count:
        message = p.get_message(ignore_subscribe_messages=True, timeout=30)
        if message:
            found[message["type"]].append(message["data"])
    return {kind: texts for kind, texts in found.items() if texts}


def subscribed(s):
    p = s.r.pubsub()
    p.subscribe(CHANNEL)
    p.psubscribe(PATTERN)
    check.eventually("both are subscribed", lambda: subscribers() == 1 and patterns() == 1)
    return p


def subscribers():
    return admin.pubsub_numsub(CHANNEL)[0][1]


def patterns():
    return admin.pubsub_numpat()


def pubsub(s):
    p = subscribed(s)
    sent = [str(i) for i in range(100)]
    counts = [s.r.publish(CHANNEL, text) for text in sent]
    check.equal("PUBLISH counts both", counts, [2] * 100)
    check.equal("each arrives twice", messages(p, 200), {"message": sent, "pmessage": sent})
    p.close()


def unsubscribed(s):
    p = subscribed(s)
    p.unsubscribe(CHANNEL)
    check.eventually("the channel has no subscriber", lambda: subscribers() == 0)
    check.equal("PUBLISH counts the pattern", s.r.publish(CHANNEL, "1"), 1)
    check.equal("the pattern's message", messages(p, 1), {"pmessage": ["1"]})
    p.punsubscribe(PATTERN)
    check.eventually("the pattern has no subscriber", lambda: patterns() == 0)
    check.equal("PUBLISH counts no client", s.r.publish(CHANNEL, "2"), 0)
    # Only confirmations are left to read.
    check.equal("nothing more", p.get_message(ignore_subscribe_messages=True, timeout=0.05), None)
    p.close()


def pubsub_killed(s):
    p = subscribed(s)
    s.r.publish(CHANNEL, "before")
    check.equal("before", messages(p, 2), {"message": ["before"], "pmessage": ["before"]})
    old = kill()

    def back():
        p.get_message(timeout=0)
        now = {c["id"] for c in admin.client_list() if c["sub"] == c["psub"] == "1"}
        return now and not now & old

    check.eventually("it subscribes again", back)
    s.r.publish(CHANNEL, "after")
    check.equal("after", messages(p, 2), {"message": ["after"], "pmessage": ["after"]})
    p.close()


def shard_channel(s):
    p = s.r.pubsub()
    p.ssubscribe(CHANNEL)
    subscribed = lambda: admin.pubsub_shardnumsub(CHANNEL)[0][1] == 1
    check.eventually("the shard channel has a subscriber", subscribed)
    sent = [str(i) for i in range(100)]
    counts = [s.r.spublish(CHANNEL, text) for text in sent]
    check.equal("SPUBLISH counts it", counts, [1] * 100)
    check.equal("messages", messages(p, 100), {"smessage": sent})
    p.close()


def served(s):
    got = []
    waiter = threading.Thread(target=lambda: got.append(s.r.blpop(["q", "other"], timeout=30)))
    waiter.start()
    check.eventually("BLPOP waits", lambda: any(
        "b" in c["flags"] and c["cmd"] == "blpop" for c in admin.client_list()))
    check.equal("RPUSH", admin.rpush("q", "job"), 1)
    waiter.join()
    check.equal("BLPOP", [tuple(pair) for pair in got], [("q", "job")])
    check.equal("the list is empty", s.r.exists("q"), 0)


def timed_out(s):
    check.equal("BLPOP", s.r.blpop("q", timeout=0.05), None)


def reconnection(s):
    check.equal("before", s.r.set("k", "v"), True)
    check.holds("connections were killed", len(kill()) >= 1)
    check.equal("after", (s.r.get("k"), s.r.incr("n")), ("v", 1))


def cached(s):
    # redis-py has a configuration for it, valkey-py a switch.
    option = {"cache_enabled": True}
    if hasattr(s.library, "cache"):
        option = {"cache_config": s.library.cache.CacheConfig()}
    r = s.connect(decode_responses=True, single_connection_client=True, **option)
    gets = lambda: admin.info("commandstats").get("cmdstat_get", {}).get("calls", 0)
    admin.set("k", "old")
    check.equal("the first GET", r.get("k"), "old")
    before = gets()
    check.equal("more GETs", {r.get("k") for _ in range(10)}, {"old"})
    check.equal("the server saw none of them", gets(), before)
    admin.set("k", "new")
    check.eventually("SET invalidates it", lambda: r.get("k") == "new")
    before = gets()
    check.equal("it is cached again", (r.get("k"), gets()), ("new", before))
    admin.flushall()
    check.eventually("FLUSHALL invalidates it", lambda: r.get("k") is None)
    r.close()


def kill():
    """Kills all connections except the admin's, and returns their ids when they are closed."""
    own = str(admin.client_id())
    old = {c["id"] for c in admin.client_list()} - {own}
    for kind in ("normal", "pubsub"):
        admin.client_kill_filter(_type=kind)
    listed = lambda: {c["id"] for c in admin.client_list()}
    check.eventually("the connections are closed", lambda: not listed() & old)
    return old


CASES = {
    "connect: protocol and user": connected,
    "types: strings": strings,
    "types: collections": collections,
    "types: errors": errors,
    "pipeline: replies in order": pipeline,
    "pipeline: an error inside": pipeline_error,
    "transaction: replies in order": transaction,
    "transaction: a watched key": watched,
    "script: before and after SCRIPT FLUSH": script,
    "script: an error": script_error,
    "pubsub: channel and pattern": pubsub,
    "pubsub: unsubscribed": unsubscribed,
    "pubsub: shard channel": shard_channel,
    "pubsub: after CLIENT KILL": pubsub_killed,
    "blocking: served": served,
    "blocking: timed out": timed_out,
    "reconnection: after CLIENT KILL": reconnection,
    "tracking: cached until invalidated": cached,
}


def run(library):
    """Runs the cases on each kind of connection; `library` is the module of a client."""
    lines = (FILES / "clients.txt").read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if line[:1] not in ("", "#")]
    login = {"username": USER, "password": PASSWORD}
    tls = {"host": "localhost", "port": int(os.environ["WEFT_TLS_PORT"]), "protocol": 3, **login}
    tls.update(ssl=True, ssl_ca_certs=os.environ["WEFT_CA"])
    for kind, options in {
        "resp2": {"port": PORT, "protocol": 2, **login},
        "resp3": {"port": PORT, "protocol": 3},
        "tls": tls,
    }.items():
        subject = Subject(library, options)
        for name in names:
            if name.startswith("tracking: ") and kind == "resp2":
                continue
            admin.flushall()
            CASES[name](subject)
            print(f"ok case {kind}: {name}", flush=True)
        subject.r.close()
