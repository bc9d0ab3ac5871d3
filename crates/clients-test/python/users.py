"""Users: redis-py's methods for ACL, and clients that log in with a name and a password."""

import check
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

RULES = {
    "categories": ["+@read", "+@write", "+@connection", "+@transaction", "+@scripting",
                   "-@dangerous"],
    "keys": ["job:*"],
    "selectors": [],
}
NO_KEY = "No permissions to access a key"
WRONG = "invalid username-password pair or user is disabled."


def create(r, **more):
    """The user worker: all of `job:*`, and nothing dangerous."""
    options = {"enabled": True, "reset": True, "passwords": ["+se cret"], **RULES, **more}
    return r.acl_setuser("worker", **options)


def login(connect, password="se cret"):
    """A connection of the user, which is not opened again when the server closes it."""
    return connect(username="worker", password=password, single_connection_client=True,
                   retry=Retry(NoBackoff(), 0))


def no_command(name):
    return f"User worker has no permissions to run the '{name}' command"


def may(r, connect):
    check.equal("ACL SETUSER", create(r), True)
    w = login(connect)
    denied = redis.exceptions.NoPermissionError
    check.equal("ACL WHOAMI as admin", r.acl_whoami(), "default")
    check.equal("SET and GET", (w.set("job:1", "v"), w.get("job:1")), (True, "v"))
    check.error("another key", NO_KEY, lambda: w.get("other"), denied)
    check.error("a second key", NO_KEY, lambda: w.mget("job:1", "other"), denied)
    check.error("FLUSHALL", no_command("flushall"), w.flushall, denied)
    check.error("CONFIG GET", no_command("config|get"), lambda: w.config_get("port"), denied)
    check.error("ACL WHOAMI", no_command("acl|whoami"), w.acl_whoami, denied)
    check.equal("the connection goes on", w.get("job:1"), "v")
    w.close()
    r.acl_deluser("worker")


def refused(r, connect):
    create(r)
    kind = redis.AuthenticationError
    check.error("a wrong password", WRONG, lambda: login(connect, "secret"), kind)
    r.acl_setuser("worker", enabled=False)
    check.error("a disabled user", WRONG, lambda: login(connect), kind)
    r.acl_setuser("worker", enabled=True)
    w = login(connect)
    check.equal("an enabled user", w.ping(), True)
    w.close()
    r.acl_deluser("worker")


def changed(r, connect):
    create(r)
    w = login(connect)
    check.equal("before", w.set("job:1", "v"), True)
    r.acl_setuser("worker", enabled=True, commands=["-set"])
    check.error("without SET", no_command("set"), lambda: w.set("job:1", "w"))
    check.equal("GET still", w.get("job:1"), "v")
    r.acl_setuser("worker", enabled=True, commands=["+set"], keys=["more:*"])
    check.equal("a new pattern", (w.set("job:1", "w"), w.set("more:1", "w")), (True, True))
    w.close()
    r.acl_deluser("worker")


def deleted(r, connect):
    create(r)
    w = login(connect)
    users = lambda: [c["user"] for c in r.client_list()]
    check.holds("CLIENT LIST has the user", "worker" in users(), users())
    check.equal("ACL DELUSER", r.acl_deluser("worker", "nobody"), 1)
    check.eventually("the connection is closed", lambda: "worker" not in users())
    try:
        answer = w.get("job:1")
    except (redis.ConnectionError, redis.AuthenticationError) as raised:
        check.holds("it cannot go on", True, raised)
    else:
        check.fail("it cannot go on", f"GET answered {answer}")
    check.error("nor come back", WRONG, lambda: login(connect), redis.AuthenticationError)


def combined(r, connect):
    create(r)
    w = login(connect)
    pipe = w.pipeline().set("job:1", "v").set("other", "v")
    text = f"Command # 2 (SET other v) of pipeline caused error: {NO_KEY}"
    check.error("a transaction", text, pipe.execute, redis.ResponseError)
    check.equal("nothing ran", r.dbsize(), 0)
    check.equal("EXEC of what is allowed", w.pipeline().set("job:1", "v").execute(), [True])
    reach = w.register_script("return redis.call('GET', ARGV[1])")
    check.equal("a script", reach(keys=["job:1"], args=["job:1"]), "v")
    check.error("a script's key", NO_KEY, lambda: reach(keys=["other"], args=["job:1"]))
    text = f"ACL failure in script: {NO_KEY} script: {reach.sha}, on @user_script:1."
    check.error("what it reaches for", text, lambda: reach(keys=["job:1"], args=["other"]))
    w.close()
    r.acl_deluser("worker")


def inspected(r, connect):
    r.acl_log_reset()
    create(r)
    user = r.acl_getuser("worker")
    check.equal("ACL GETUSER has flags", "on" in user["flags"], True)
    check.holds("ACL GETUSER has commands", "+@scripting" in str(user), user)
    check.holds("ACL GETUSER has keys", "~job:*" in str(user["keys"]), user)
    check.equal("ACL GETUSER of nobody", r.acl_getuser("nobody"), None)
    listed = [line for line in r.acl_list() if line.startswith("user worker on ")]
    check.holds("ACL LIST", len(listed) == 1 and " ~job:* " in listed[0], listed)
    check.equal("ACL USERS", sorted(r.acl_users()), ["default", "worker"])
    check.equal("ACL DRYRUN", r.acl_dryrun("worker", "GET", "job:1"), "OK")
    text = "User worker has no permissions to access the 'other' key"
    check.equal("ACL DRYRUN of another key", r.acl_dryrun("worker", "GET", "other"), text)
    w = login(connect)
    for _ in range(3):
        check.error("a denied GET", NO_KEY, lambda: w.get("other"))
    entry = r.acl_log()[0]
    seen = [entry[name] for name in ("reason", "context", "object", "username")]
    check.equal("ACL LOG", seen, ["key", "toplevel", "other", "worker"])
    check.equal("ACL LOG counts", (int(entry["count"]), len(r.acl_log())), (3, 1))
    w.close()
    r.acl_deluser("worker")


CASES = {
    "user: may do what the rules say": may,
    "user: refused": refused,
    "user: rules change": changed,
    "user: deleted": deleted,
    "user: transactions and scripts": combined,
    "user: inspected": inspected,
}
