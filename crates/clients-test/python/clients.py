"""The cases that every client library has, for redis-py and valkey-py, whose methods are the same.

`cases/clients.txt` says what the cases assert.
"""

import os
import threading

import check
import redis
import shared

PORT = int(os.environ["WEFT_PORT"])
CHANNEL = "news:sport"
PATTERN = "news:*"
TRANSFER = shared.text("transfer.lua")


class Subject:
    """A library with options for one kind of connection."""

    def __init__(self, library, options):
        self.library = library
        # valkey-py tries a command again on a new connection only when told to.
        retry = library.retry.Retry(library.backoff.NoBackoff(), 3)
        self.options = {**options, "retry": retry, "retry_on_error": [library.ConnectionError]}
        self.r = self.connect(decode_responses=True)

    def connect(self, **more):
        return self.library.Redis(**self.options, **more)


# Looks on past the library under test; one thread uses it, so it has one connection.
admin = redis.Redis(port=PORT, decode_responses=True)


def strings(s):
    every = bytes(range(256))
    check.equal("SET", s.r.set("k", "zażółć 🦀"), True)
    check.equal("GET", s.r.get("k"), "zażółć 🦀")
    plain = s.connect()
    check.equal("every byte", (plain.set(every, every), plain.get(every)), (True, every))
    check.equal("GET of nothing", s.r.get("none"), None)
    check.equal("INCRBY", (s.r.incr("n", 41), s.r.incr("n")), (41, 42))
    check.equal("SET with EX", (s.r.set("k", "v", ex=100), s.r.ttl("k") > 90), (True, True))
    plain.close()


def collections(s):
    r = s.r
    check.equal("HSET", r.hset("h", mapping={"a": "1", "b": "2"}), 2)
    check.equal("HGETALL", r.hgetall("h"), {"a": "1", "b": "2"})
    check.equal("RPUSH", r.rpush("l", "a", "b", "c"), 3)
    check.equal("LRANGE", r.lrange("l", 0, -1), ["a", "b", "c"])
    check.equal("SADD", r.sadd("s", "a", "b", "a"), 2)
    check.equal("SMEMBERS", set(r.smembers("s")), {"a", "b"})
    check.equal("ZADD", r.zadd("z", {"b": 2.5, "a": 1}), 2)
    scores = [tuple(pair) for pair in r.zrange("z", 0, -1, withscores=True)]
    check.equal("ZRANGE WITHSCORES", scores, [("a", 1.0), ("b", 2.5)])
    number = r.xadd("x", {"f": "v"})
    check.equal("XRANGE", r.xrange("x"), [(number, {"f": "v"})])


def errors(s):
    s.r.set("k", "v")
    text = "WRONGTYPE Operation against a key holding the wrong kind of value"
    check.error("LPUSH to a string", text, lambda: s.r.lpush("k", "x"), s.library.ResponseError)
    check.equal("the connection goes on", s.r.get("k"), "v")


def pipeline(s):
    pipe = s.r.pipeline(transaction=False)
    for i in range(1_000):
        pipe.set(f"p:{i}", i).get(f"p:{i}")
    want = [answer for i in range(1_000) for answer in (True, str(i))]
    check.equal("replies", pipe.execute(), want)


def pipeline_error(s):
    pipe = s.r.pipeline(transaction=False).set("k", "v").incr("k").get("k")
    first, error, last = pipe.execute(raise_on_error=False)
    check.equal("its neighbours", (first, last), (True, "v"))
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
    check.equal("tried again", s.r.transaction(change, "k"), [10])
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
    """The next messages: the channel's, and what came by the pattern."""
    found = {"message": [], "pmessage": []}
    while sum(map(len, found.values())) < count:
        message = p.get_message(ignore_subscribe_messages=True, timeout=30)
        if message:
            found[message["type"]].append(message["data"])
    return found["message"], found["pmessage"]


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
    check.equal("each arrives twice", messages(p, 200), (sent, sent))
    p.close()


def unsubscribed(s):
    p = subscribed(s)
    p.unsubscribe(CHANNEL)
    check.eventually("the channel is left", lambda: subscribers() == 0)
    check.equal("PUBLISH counts the pattern", s.r.publish(CHANNEL, "1"), 1)
    check.equal("it comes once", messages(p, 1), ([], ["1"]))
    p.punsubscribe(PATTERN)
    check.eventually("the pattern is left", lambda: patterns() == 0)
    check.equal("PUBLISH counts nobody", s.r.publish(CHANNEL, "2"), 0)
    # Confirmations are all that is left to read.
    check.equal("nothing more", p.get_message(ignore_subscribe_messages=True, timeout=0.05), None)
    p.close()


def pubsub_killed(s):
    p = subscribed(s)
    s.r.publish(CHANNEL, "before")
    check.equal("before", messages(p, 2), (["before"], ["before"]))
    old = kill()

    def back():
        p.get_message(timeout=0)
        now = {c["id"] for c in admin.client_list() if c["sub"] == c["psub"] == "1"}
        return now and not now & old

    check.eventually("it subscribes again", back)
    s.r.publish(CHANNEL, "after")
    check.equal("after", messages(p, 2), (["after"], ["after"]))
    p.close()


def served(s):
    got = []
    waiter = threading.Thread(target=lambda: got.append(s.r.blpop(["q", "other"], timeout=30)))
    waiter.start()
    check.eventually("it waits", lambda: any(
        "b" in c["flags"] and c["cmd"] == "blpop" for c in admin.client_list()))
    check.equal("RPUSH", admin.rpush("q", "job"), 1)
    waiter.join()
    check.equal("BLPOP", [tuple(pair) for pair in got], [("q", "job")])
    check.equal("it is taken", s.r.exists("q"), 0)


def out_of_time(s):
    check.equal("BLPOP", s.r.blpop("q", timeout=0.05), None)


def reconnection(s):
    check.equal("before", s.r.set("k", "v"), True)
    check.holds("all are killed", len(kill()) >= 1)
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
    check.equal("more of them", {r.get("k") for _ in range(10)}, {"old"})
    check.equal("they stay in the client", gets(), before)
    admin.set("k", "new")
    check.eventually("SET invalidates it", lambda: r.get("k") == "new")
    before = gets()
    check.equal("it is cached again", (r.get("k"), gets()), ("new", before))
    admin.flushall()
    check.eventually("FLUSHALL does so too", lambda: r.get("k") is None)
    r.close()


def kill():
    """Kills all connections but that of the admin, and gives their ids."""
    own = str(admin.client_id())
    old = {c["id"] for c in admin.client_list()} - {own}
    for kind in ("normal", "pubsub"):
        admin.client_kill_filter(_type=kind)
    listed = lambda: {c["id"] for c in admin.client_list()}
    check.eventually("they are gone", lambda: not listed() & old)
    return old


CASES = {
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
    "pubsub: after CLIENT KILL": pubsub_killed,
    "blocking: served": served,
    "blocking: out of time": out_of_time,
    "reconnection: after CLIENT KILL": reconnection,
    "caching: until invalidated": cached,
}


def run(library):
    """`library` is the module of a client."""
    tls = {"host": "localhost", "port": int(os.environ["WEFT_TLS_PORT"]), "protocol": 3}
    tls.update(ssl=True, ssl_ca_certs=os.environ["WEFT_CA"])
    for kind, options in {
        "resp2": {"port": PORT, "protocol": 2},
        "resp3": {"port": PORT, "protocol": 3},
        "tls": tls,
    }.items():
        subject = Subject(library, options)
        for name in shared.names("clients.txt"):
            if name.startswith("caching: ") and kind == "resp2":
                continue
            admin.flushall()
            CASES[name](subject)
            print(f"ok case {kind}: {name}", flush=True)
        subject.r.close()
