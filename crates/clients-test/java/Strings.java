// The string commands, through the methods that Jedis has for them.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.GetExParams;
import redis.clients.jedis.params.LCSParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.LCSMatchResult;

final class Strings {
  private final Jedis r;

  Strings(Jedis r) {
    this.r = r;
  }

  /** The database is empty before and after. */
  void run() throws InterruptedException {
    setAndGet();
    setExpiring();
    getex();
    many();
    counters();
    ranges();
    lcs();
    r.flushDB();
  }

  private void setAndGet() {
    Check.equal("GET of nothing", r.get("none"), null);
    Check.equal("SET", r.set("k", "v"), "OK");
    Check.equal("GET", r.get("k"), "v");
    Check.equal("SET NX on a key", r.set("k", "w", new SetParams().nx()), null);
    Check.equal("SET NX on nothing", r.set("n", "1", new SetParams().nx()), "OK");
    Check.equal("SET XX on nothing", r.set("none", "1", new SetParams().xx()), null);
    Check.equal("SET XX on a key", r.set("k", "x", new SetParams().xx()), "OK");
    Check.equal("SET GET", r.setGet("k", "y"), "x");
    Check.equal("SET GET on nothing", r.setGet("fresh", "1"), null);
    Check.equal("SET NX GET", r.setGet("k", "z", new SetParams().nx()), "y");
    Check.equal("what SET NX GET left", r.get("k"), "y");
    Check.equal("GETSET", r.getSet("k", "g"), "y");
    Check.equal("GETDEL", r.getDel("k"), "g");
    Check.equal("GETDEL of nothing", r.getDel("k"), null);
    Check.equal("SETNX", r.setnx("s", "1"), 1);
    Check.equal("SETNX on a key", r.setnx("s", "2"), 0);
    Check.equal("SET of an empty value", r.set("e", ""), "OK");
    Check.equal("GET of an empty value", r.get("e"), "");
  }

  private void setExpiring() throws InterruptedException {
    long now = System.currentTimeMillis() / 1000;
    Check.equal("SET EX", r.set("k", "v", new SetParams().ex(100)), "OK");
    Check.between("TTL after EX", r.ttl("k"), 90, 100);
    Check.equal("SET PX", r.set("k", "v", new SetParams().px(50_000)), "OK");
    Check.between("PTTL after PX", r.pttl("k"), 45_000, 50_000);
    Check.equal("SET EXAT", r.set("k", "v", new SetParams().exAt(now + 200)), "OK");
    Check.equal("EXPIRETIME after EXAT", r.expireTime("k"), now + 200);
    Check.equal("SET PXAT", r.set("k", "v", new SetParams().pxAt(now * 1000 + 300_001)), "OK");
    Check.equal("PEXPIRETIME after PXAT", r.pexpireTime("k"), now * 1000 + 300_001);
    Check.equal("SET KEEPTTL", r.set("k", "w", new SetParams().keepTtl()), "OK");
    Check.equal("PEXPIRETIME after KEEPTTL", r.pexpireTime("k"), now * 1000 + 300_001);
    r.set("k", "w");
    Check.equal("SET drops the expiry", r.ttl("k"), -1);
    Check.equal("SETEX", r.setex("k", 100, "v"), "OK");
    Check.between("TTL after SETEX", r.ttl("k"), 90, 100);
    Check.equal("PSETEX", r.psetex("k", 90_000, "v"), "OK");
    Check.between("PTTL after PSETEX", r.pttl("k"), 85_000, 90_000);
    r.set("gone", "v", new SetParams().px(1));
    Check.eventually("a key with PX 1 is gone", () -> r.get("gone") == null);
    Check.equal("SET EXAT in the past", r.set("k", "v", new SetParams().exAt(1)), "OK");
    Check.equal("GET after EXAT in the past", r.get("k"), null);
  }

  private void getex() {
    long now = System.currentTimeMillis() / 1000;
    r.set("k", "v");
    Check.equal("GETEX", r.getEx("k", new GetExParams()), "v");
    Check.equal("TTL after GETEX", r.ttl("k"), -1);
    Check.equal("GETEX EX", r.getEx("k", new GetExParams().ex(100)), "v");
    Check.between("TTL after GETEX EX", r.ttl("k"), 90, 100);
    Check.equal("GETEX PX", r.getEx("k", new GetExParams().px(70_000)), "v");
    Check.between("PTTL after GETEX PX", r.pttl("k"), 65_000, 70_000);
    r.getEx("k", new GetExParams().exAt(now + 50));
    Check.equal("GETEX EXAT", r.expireTime("k"), now + 50);
    r.getEx("k", new GetExParams().pxAt(now * 1000 + 60_007));
    Check.equal("GETEX PXAT", r.pexpireTime("k"), now * 1000 + 60_007);
    Check.equal("GETEX PERSIST", r.getEx("k", new GetExParams().persist()), "v");
    Check.equal("TTL after GETEX PERSIST", r.ttl("k"), -1);
    Check.equal("GETEX of nothing", r.getEx("none", new GetExParams().ex(5)), null);
  }

  private void many() {
    Check.equal("MSET", r.mset("m1", "1", "m2", "2"), "OK");
    Check.equal("MGET", r.mget("m1", "none", "m2"), Arrays.asList("1", null, "2"));
    Check.equal("MSETNX with a taken key", r.msetnx("m2", "x", "m3", "x"), 0);
    Check.equal("what MSETNX left", r.mget("m2", "m3"), Arrays.asList("2", null));
    Check.equal("MSETNX", r.msetnx("m3", "3", "m4", "4"), 1);
    List<String> pairs = new ArrayList<>();
    List<String> keys = new ArrayList<>();
    List<String> values = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      keys.add("many:" + i);
      values.add(String.valueOf(i));
      pairs.addAll(List.of("many:" + i, String.valueOf(i)));
    }
    Check.equal("MSET of 1000", r.mset(pairs.toArray(new String[0])), "OK");
    Check.equal("MGET of 1000", r.mget(keys.toArray(new String[0])), values);
  }

  private void counters() {
    Check.equal("INCR", r.incr("c"), 1);
    Check.equal("INCRBY", r.incrBy("c", 41), 42);
    Check.equal("DECR", r.decr("c"), 41);
    Check.equal("DECRBY", r.decrBy("c", 50), -9);
    Check.equal("INCRBY to the largest", r.incrBy("big", Long.MAX_VALUE), Long.MAX_VALUE);
    String overflow = "ERR increment or decrement would overflow";
    Check.error("INCR past the largest", overflow, () -> r.incr("big"));
    Check.equal("INCRBYFLOAT", r.incrByFloat("f", 10.5), 10.5);
    Check.equal("INCRBYFLOAT of 0.1", r.incrByFloat("f", 0.1), 10.6);
    Check.equal("the text INCRBYFLOAT left", r.get("f"), "10.6");
    r.set("f", "3.0e3");
    Check.equal("INCRBYFLOAT on an exponent", r.incrByFloat("f", 200), 3200.0);
    Check.equal("the text without an exponent", r.get("f"), "3200");
  }

  private void ranges() {
    Check.equal("APPEND to nothing", r.append("a", "Hello"), 5);
    Check.equal("APPEND", r.append("a", " World"), 11);
    Check.equal("STRLEN", r.strlen("a"), 11);
    Check.equal("STRLEN of nothing", r.strlen("none"), 0);
    Check.equal("GETRANGE", r.getrange("a", 0, 4), "Hello");
    Check.equal("GETRANGE from the end", r.getrange("a", -5, -1), "World");
    Check.equal("GETRANGE past the end", r.getrange("a", 6, 100), "World");
    Check.equal("GETRANGE of an empty range", r.getrange("a", 5, 3), "");
    Check.equal("SUBSTR", r.substr("a", 0, 4), "Hello");
    Check.equal("SETRANGE", r.setrange("a", 6, "Redis"), 11);
    Check.equal("what SETRANGE left", r.get("a"), "Hello Redis");
    Check.equal("SETRANGE past the end", r.setrange("p", 3, "x"), 4);
    Check.equal("the zeros before it", r.get("p"), "\0\0\0x");
  }

  private void lcs() {
    r.mset("l1", "ohmytext", "l2", "mynewtext");
    Check.equal("LCS", r.lcs("l1", "l2", new LCSParams()).getMatchString(), "mytext");
    Check.equal("LCS LEN", r.lcs("l1", "l2", new LCSParams().len()).getLen(), 6);
    String both = "4-7/5-8:0 2-3/0-1:0 len 6";
    Check.equal("LCS IDX", matches(new LCSParams().idx()), both);
    LCSParams params = new LCSParams().idx().minMatchLen(4);
    Check.equal("LCS IDX MINMATCHLEN", matches(params), "4-7/5-8:0 len 6");
    params = new LCSParams().idx().minMatchLen(4).withMatchLen();
    Check.equal("LCS IDX WITHMATCHLEN", matches(params), "4-7/5-8:4 len 6");
  }

  /** The matches as text: ranges in both, the length where asked for, and the total. */
  private String matches(LCSParams params) {
    LCSMatchResult result = r.lcs("l1", "l2", params);
    StringBuilder text = new StringBuilder();
    for (LCSMatchResult.MatchedPosition match : result.getMatches()) {
      text.append(match.getA().getStart()).append('-').append(match.getA().getEnd()).append('/');
      text.append(match.getB().getStart()).append('-').append(match.getB().getEnd());
      text.append(':').append(match.getMatchLen()).append(' ');
    }
    return text.append("len ").append(result.getLen()).toString();
  }
}
