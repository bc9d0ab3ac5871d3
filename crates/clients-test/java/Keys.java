// The key commands: life, expiry, names, databases, iteration, inspection.

import java.util.Set;
import java.util.TreeSet;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.args.FlushMode;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.ScanResult;

final class Keys {
  private final Jedis r;

  Keys(Jedis r) {
    this.r = r;
  }

  /** Database 0 is empty before and after. */
  void run() throws InterruptedException {
    life();
    expiry();
    expiryConditions();
    names();
    databases();
    iteration();
    inspection();
    r.flushAll();
  }

  private void life() {
    r.mset("a", "1", "b", "2", "c", "3");
    Check.equal("EXISTS counts each mention", r.exists("a", "b", "none", "a"), 3);
    Check.equal("TOUCH", r.touch("a", "none"), 1);
    Check.equal("TYPE", r.type("a"), "string");
    Check.equal("TYPE of nothing", r.type("none"), "none");
    Check.equal("DEL", r.del("a", "none"), 1);
    Check.equal("UNLINK", r.unlink("b", "c", "none"), 2);
    Check.equal("DBSIZE after that", r.dbSize(), 0);
    Check.equal("RANDOMKEY of nothing", r.randomKey(), null);
    r.set("only", "1");
    Check.equal("RANDOMKEY", r.randomKey(), "only");
    r.del("only");
  }

  private void expiry() throws InterruptedException {
    long now = System.currentTimeMillis() / 1000;
    r.set("k", "v");
    Check.equal("TTL without expiry", r.ttl("k"), -1);
    Check.equal("PTTL without expiry", r.pttl("k"), -1);
    Check.equal("TTL of nothing", r.ttl("none"), -2);
    Check.equal("PTTL of nothing", r.pttl("none"), -2);
    Check.equal("EXPIRETIME without expiry", r.expireTime("k"), -1);
    Check.equal("PEXPIRETIME of nothing", r.pexpireTime("none"), -2);
    Check.equal("EXPIRE of nothing", r.expire("none", 10), 0);
    Check.equal("EXPIRE", r.expire("k", 100), 1);
    Check.between("TTL after EXPIRE", r.ttl("k"), 90, 100);
    Check.equal("PEXPIRE", r.pexpire("k", 30_000), 1);
    Check.between("PTTL after PEXPIRE", r.pttl("k"), 25_000, 30_000);
    Check.equal("EXPIREAT", r.expireAt("k", now + 70), 1);
    Check.equal("EXPIRETIME", r.expireTime("k"), now + 70);
    Check.equal("PEXPIREAT", r.pexpireAt("k", now * 1000 + 80_003), 1);
    Check.equal("PEXPIRETIME", r.pexpireTime("k"), now * 1000 + 80_003);
    Check.equal("PERSIST", r.persist("k"), 1);
    Check.equal("PERSIST again", r.persist("k"), 0);
    Check.equal("TTL after PERSIST", r.ttl("k"), -1);
    Check.equal("EXPIRE in the past", r.expire("k", -1), 1);
    Check.equal("EXISTS after it", r.exists("k"), false);
    r.set("soon", "v");
    r.pexpire("soon", 1);
    Check.eventually("a key with PEXPIRE 1 is gone", () -> !r.exists("soon"));
  }

  private void expiryConditions() {
    r.set("k", "v");
    Check.equal("EXPIRE XX without expiry", r.expire("k", 100, ExpiryOption.XX), 0);
    Check.equal("EXPIRE GT without expiry", r.expire("k", 100, ExpiryOption.GT), 0);
    Check.equal("EXPIRE NX without expiry", r.expire("k", 100, ExpiryOption.NX), 1);
    Check.equal("EXPIRE NX with expiry", r.expire("k", 200, ExpiryOption.NX), 0);
    Check.equal("EXPIRE GT of less", r.expire("k", 50, ExpiryOption.GT), 0);
    Check.equal("EXPIRE GT of more", r.expire("k", 200, ExpiryOption.GT), 1);
    Check.equal("EXPIRE LT of more", r.expire("k", 300, ExpiryOption.LT), 0);
    Check.equal("EXPIRE LT of less", r.expire("k", 60, ExpiryOption.LT), 1);
    Check.equal("EXPIRE XX with expiry", r.expire("k", 70, ExpiryOption.XX), 1);
    Check.between("TTL after all", r.ttl("k"), 60, 70);
    r.persist("k");
    Check.equal("EXPIRE LT without expiry", r.expire("k", 10, ExpiryOption.LT), 1);
    r.del("k");
  }

  private void names() {
    r.setex("a", 100, "1");
    Check.equal("RENAME", r.rename("a", "b"), "OK");
    Check.between("TTL of a renamed key", r.ttl("b"), 90, 100);
    Check.error("RENAME of nothing", "ERR no such key", () -> r.rename("none", "x"));
    r.set("c", "3");
    Check.equal("RENAMENX onto a key", r.renamenx("b", "c"), 0);
    Check.equal("RENAMENX", r.renamenx("b", "d"), 1);
    Check.equal("COPY", r.copy("d", "e", false), true);
    Check.equal("what COPY left", r.get("e"), "1");
    Check.between("TTL of a copy", r.ttl("e"), 90, 100);
    Check.equal("COPY onto a key", r.copy("c", "e", false), false);
    Check.equal("COPY REPLACE", r.copy("c", "e", true), true);
    Check.equal("what COPY REPLACE left", r.get("e"), "3");
    Check.equal("COPY of nothing", r.copy("none", "x", false), false);
    Check.equal("COPY DB", r.copy("c", "c", 1, false), true);
    String same = "ERR source and destination objects are the same";
    Check.error("COPY onto itself", same, () -> r.copy("c", "c", false));
    r.flushAll();
  }

  private void databases() {
    r.set("k", "zero");
    Check.equal("MOVE", r.move("k", 3), 1);
    Check.equal("EXISTS after MOVE", r.exists("k"), false);
    Check.equal("MOVE of nothing", r.move("k", 3), 0);
    Check.equal("SELECT", r.select(3), "OK");
    Check.equal("GET in database 3", r.get("k"), "zero");
    r.select(0);
    r.set("k", "other");
    Check.equal("MOVE onto a key", r.move("k", 3), 0);
    Check.equal("SWAPDB", r.swapDB(0, 3), "OK");
    Check.equal("GET after SWAPDB", r.get("k"), "zero");
    Check.equal("FLUSHDB", r.flushDB(), "OK");
    Check.equal("DBSIZE after FLUSHDB", r.dbSize(), 0);
    r.select(3);
    Check.equal("FLUSHDB left database 3", r.get("k"), "other");
    r.select(0);
    Check.equal("FLUSHDB ASYNC", r.flushDB(FlushMode.ASYNC), "OK");
    Check.equal("FLUSHALL SYNC", r.flushAll(FlushMode.SYNC), "OK");
    r.select(3);
    Check.equal("FLUSHALL emptied database 3", r.dbSize(), 0);
    r.select(0);
    Check.error("SELECT of no database", "ERR DB index is out of range", () -> r.select(99));
  }

  private void iteration() {
    Set<String> all = new TreeSet<>();
    for (int i = 0; i < 1000; i++) {
      all.add("user:" + i);
    }
    all.forEach(key -> r.set(key, "x"));
    r.set("other", "y");
    all.add("other");
    Set<String> classes = new TreeSet<>(r.keys("user:[1-2]"));
    Check.equal("KEYS", r.keys("user:99?").size(), 10);
    Check.equal("KEYS of a class", classes, Set.of("user:1", "user:2"));
    Check.equal("KEYS of nothing", r.keys("none*"), Set.of());
    ScanResult<String> page = r.scan("0", new ScanParams().count(10));
    int found = page.getResult().size();
    boolean part = !page.isCompleteIteration() && found >= 1 && found < 200;
    Check.holds("SCAN COUNT gives a part", part, page.getResult());
    Check.equal("SCAN sees every key", scan(new ScanParams().count(100), null), all);
    Check.equal("SCAN MATCH", scan(new ScanParams().match("oth*"), null), Set.of("other"));
    ScanParams wide = new ScanParams().count(500);
    Check.equal("SCAN TYPE string", scan(wide, "string"), all);
    Check.equal("SCAN TYPE list", scan(wide, "list"), Set.of());
    Check.equal("DBSIZE", r.dbSize(), 1001);
    r.flushDB();
  }

  /** What a whole iteration finds. */
  private Set<String> scan(ScanParams params, String type) {
    Set<String> found = new TreeSet<>();
    ScanResult<String> page = null;
    for (String cursor = "0"; page == null || !page.isCompleteIteration(); ) {
      page = type == null ? r.scan(cursor, params) : r.scan(cursor, params, type);
      found.addAll(page.getResult());
      cursor = page.getCursor();
    }
    return found;
  }

  private void inspection() {
    r.mset("int", "12345", "embstr", "short", "raw", "x".repeat(100));
    Check.equal("OBJECT ENCODING of a number", r.objectEncoding("int"), "int");
    Check.equal("OBJECT ENCODING of a short text", r.objectEncoding("embstr"), "embstr");
    Check.equal("OBJECT ENCODING of a long text", r.objectEncoding("raw"), "raw");
    Check.equal("OBJECT ENCODING of nothing", r.objectEncoding("none"), null);
    Check.equal("OBJECT REFCOUNT", (long) r.objectRefcount("raw"), 1);
    Check.between("OBJECT IDLETIME", r.objectIdletime("raw"), 0, 5);
    Check.between("MEMORY USAGE", r.memoryUsage("raw"), 100, 400);
    Check.equal("MEMORY USAGE of nothing", r.memoryUsage("none"), null);
    r.flushDB();
  }
}
