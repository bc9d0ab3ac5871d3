"""Bytes, bulk and connections: what an application does to a server besides single commands."""

import random
import threading

import check
import redis


def run(connect):
    """`connect(**options)` makes clients of the protocol under test."""
    binary(connect(decode_responses=False))
    unicode(connect())
    large(connect(decode_responses=False))
    pipelines(connect())
    concurrency(connect)
    pool(connect)
    reconnecting(connect)
    connect().flushall()


def binary(r):
    every = bytes(range(256))
    check.equal("a value of every byte", (r.set("bin", every), r.get("bin")), (True, every))
    check.equal("a key of every byte", (r.set(every, "x"), r.get(every)), (True, b"x"))
    check.equal("KEYS gives it back", sorted(r.keys("*")), sorted([every, b"bin"]))
    protocol = b"$3\r\nfoo\r\n*1\r\n+OK\r\n\0"
    check.equal("a value like the protocol", (r.set("p", protocol), r.get("p")), (True, protocol))
    check.equal("ECHO of bytes", r.echo(every), every)
    check.equal("an empty key", (r.set("", "x"), r.get("")), (True, b"x"))
    r.flushdb()


def unicode(r):
    text = "Zażółć gęślą jaźń 日本語 🦀 \u0000 \u202e"
    check.equal("a text in Unicode", (r.set("ключ🗝", text), r.get("ключ🗝")), (True, text))
    check.equal("STRLEN counts bytes", r.strlen("ключ🗝"), len(text.encode()))
    r.flushdb()


def large(r):
    value = random.Random(1).randbytes(10_000_000)
    check.equal("SET of 10 MB", r.set("large", value), True)
    check.equal("STRLEN of 10 MB", r.strlen("large"), len(value))
    check.holds("GET of 10 MB", r.get("large") == value)
    within = r.getrange("large", 5_000_000, 5_000_099)
    check.equal("GETRANGE within", within, value[5_000_000:5_000_100])
    check.equal("APPEND to it", r.append("large", b"end"), len(value) + 3)
    check.equal("UNLINK of it", r.unlink("large"), 1)


def pipelines(r):
    pipe = r.pipeline(transaction=False)
    for i in range(5_000):
        pipe.set(f"p:{i}", i)
        pipe.get(f"p:{i}")
    want = [answer for i in range(5_000) for answer in (True, str(i))]
    check.equal("a pipeline of 10,000", pipe.execute(), want)
    pipe.set("text", "abc").incr("text").get("text")
    answers = pipe.execute(raise_on_error=False)
    wrong = isinstance(answers[1], redis.ResponseError)
    check.holds("an error within a pipeline", wrong, answers)
    check.equal("its neighbours", (answers[0], answers[2]), (True, "abc"))
    check.equal("DBSIZE after it", r.dbsize(), 5_001)
    r.flushdb()


def concurrency(connect):
    clients = [connect(single_connection_client=True) for _ in range(20)]

    def count(client):
        for _ in range(250):
            client.incr("counter")

    threads = [threading.Thread(target=count, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check.equal("20 connections count to 5,000", clients[0].get("counter"), "5000")
    for client in clients:
        client.close()


def pool(connect):
    r = connect(max_connections=4, blocking_pool=True)
    wrong = []

    def use(number):
        for i in range(50):
            r.set(f"pool:{number}", i)
            if r.get(f"pool:{number}") != str(i):
                wrong.append((number, i))

    threads = [threading.Thread(target=use, args=[number]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check.equal("12 threads share a pool of 4", wrong, [])
    r.close()
    r.connection_pool.disconnect()


def reconnecting(connect):
    admin = connect(single_connection_client=True)
    r = connect(max_connections=1, blocking_pool=True, client_name="again")
    number = r.client_id()
    check.equal("CLIENT KILL of an idle one", admin.client_kill_filter(_id=number), 1)
    check.equal("it reconnects", (r.set("back", "yes"), r.get("back")), (True, "yes"))
    check.holds("under a new id", r.client_id() > number, number)
    check.equal("with its name", r.client_getname(), "again")
