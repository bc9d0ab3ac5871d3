// Scripts and functions: Jedis's methods for EVAL, SCRIPT, FUNCTION and FCALL. It has no object for
// a script, so the fallback from EVALSHA is the one that its users write.

import static java.util.Map.entry;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.args.FlushMode;
import redis.clients.jedis.args.FunctionRestorePolicy;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.resps.LibraryInfo;

final class Scripts {
  static final Map<String, Combined.Case> CASES = Map.ofEntries(
      entry("script: EVALSHA falls back to EVAL", Scripts::fallsBack),
      entry("script: types of replies", Scripts::types),
      entry("script: errors", Scripts::errors),
      entry("script: read only", Scripts::readOnly),
      entry("script: in a transaction", Scripts::inTransaction),
      entry("script: seen whole", Scripts::seenWhole),
      entry("function: loaded and called", Scripts::loaded),
      entry("function: dumped and restored", Scripts::dumped),
      entry("function: read only", Scripts::functionReadOnly));

  private static final String TRANSFER = Session.shared("transfer.lua");
  private static final String LIBRARY = Session.shared("library.lua");
  private static final String NOTHING = "0".repeat(40);

  /** EVALSHA, and EVAL when the server does not know the script. */
  private static Object run(Jedis r, String sha, List<String> keys, long amount) {
    List<String> arguments = List.of(String.valueOf(amount));
    try {
      return r.evalsha(sha, keys, arguments);
    } catch (JedisNoScriptException unknown) {
      return r.eval(TRANSFER, keys, arguments);
    }
  }

  private static void fallsBack(Session s) {
    Jedis r = s.r();
    r.mset("a", "100", "b", "1");
    String sha = r.scriptLoad(TRANSFER);
    Check.equal("SCRIPT FLUSH", r.scriptFlush(), "OK");
    Check.equal("the first run", run(r, sha, List.of("a", "b"), 10), List.of(90L, 11L));
    Check.equal("SCRIPT EXISTS", r.scriptExists(sha, NOTHING), List.of(true, false));
    Check.equal("EVALSHA", r.evalsha(sha, 2, "a", "b", "1"), List.of(89L, 12L));
    Check.equal("SCRIPT FLUSH SYNC", r.scriptFlush(FlushMode.SYNC), "OK");
    Check.equal("SCRIPT EXISTS after it", r.scriptExists(sha), false);
    Check.equal("the run after it", run(r, sha, List.of("b", "a"), 2), List.of(10L, 91L));
    Check.equal("SCRIPT LOAD", r.scriptLoad(TRANSFER), sha);
  }

  private static void types(Session s) {
    List<Object> nested = List.of(1L, List.of("nested", "k"));
    List<Object> want =
        Arrays.asList(42L, 2L, -7L, "text", "FINE", nested, null, 1L, "{\"a\":[1,2]}", "2");
    Object got = s.r().eval(Session.shared("replies.lua"), 1, "k", "x", "y");
    Check.equal("replies", got, want);
  }

  private static void errors(Session s) {
    Jedis r = s.r();
    r.mset("text", "abc", "a", "3");
    String increment = r.scriptLoad("return redis.call('INCR', KEYS[1])");
    String notInteger = "ERR value is not an integer or out of range script: " + increment
        + ", on @user_script:1.";
    Check.error("of a command", notInteger, () -> r.evalsha(increment, 1, "text"));
    Check.error("of the script", "POOR a has 3", () -> r.eval(TRANSFER, 2, "a", "b", "4"));
    String missing = "NOSCRIPT No matching script. Please use EVAL.";
    Check.error("NOSCRIPT", missing, () -> r.evalsha(NOTHING));
    try {
      r.eval("return (");
      Check.fail("of the compiler", "the script ran");
    } catch (JedisDataException raised) {
      String compiling = "ERR Error compiling script (new function): user_script:1: ";
      Check.holds("of the compiler", raised.getMessage().startsWith(compiling), raised);
    }
  }

  private static void readOnly(Session s) {
    Jedis r = s.r();
    r.set("k", "v");
    List<String> key = List.of("k");
    String get = "return redis.call('GET', KEYS[1])";
    Check.equal("EVAL_RO", r.evalReadonly(get, key, List.of()), "v");
    String set = "return redis.call('SET', KEYS[1], 'w')";
    String text = "ERR Write commands are not allowed from read-only scripts. script: "
        + r.scriptLoad(set) + ", on @user_script:1.";
    Check.error("a write", text, () -> r.evalReadonly(set, key, List.of()));
    Check.equal("nothing was written", r.get("k"), "v");
  }

  private static void inTransaction(Session s) {
    s.r().scriptFlush();
    Transaction t = s.r().multi();
    t.set("a", "5");
    Response<Object> script = t.eval(TRANSFER, 2, "a", "b", "2");
    t.get("a");
    Check.equal("EXEC", t.exec(), List.of("OK", List.of(3L, 2L), "3"));
    Check.equal("the script", script.get(), List.of(3L, 2L));
  }

  private static void seenWhole(Session s) throws InterruptedException {
    s.r().mset("a", "1000", "b", "1000");
    String sha = s.r().scriptLoad(TRANSFER);
    AtomicInteger working = new AtomicInteger(4);
    s.together(5, (own, number) -> {
      if (number < 4) {
        List<String> keys = number % 2 == 0 ? List.of("a", "b") : List.of("b", "a");
        for (int i = 0; i < 100; i++) {
          run(own, sha, keys, number / 2 + 1);
        }
        working.decrementAndGet();
      }
      while (working.get() > 0) {
        List<String> seen = own.mget("a", "b");
        if (seen.stream().mapToInt(Integer::parseInt).sum() != 2000) {
          Check.fail("the sum of a and b", seen.toString());
        }
      }
    });
    Check.equal("what is left", s.r().mget("a", "b"), List.of("1000", "1000"));
  }

  private static void loaded(Session s) {
    Jedis r = s.r();
    r.functionFlush();
    Check.equal("FUNCTION LOAD", r.functionLoad(LIBRARY), "accounts");
    String exists = "ERR Library 'accounts' already exists";
    Check.error("FUNCTION LOAD again", exists, () -> r.functionLoad(LIBRARY));
    Check.equal("FUNCTION LOAD REPLACE", r.functionLoadReplace(LIBRARY), "accounts");
    LibraryInfo listed = r.functionList("acc*").get(0);
    Check.equal("FUNCTION LIST", listed.getLibraryName(), "accounts");
    List<String> names =
        listed.getFunctions().stream().map(f -> f.get("name").toString()).sorted().toList();
    Check.equal("FUNCTION LIST has the functions", names, List.of("balance", "transfer"));
    r.set("a", "10");
    List<String> keys = List.of("a", "b");
    Check.equal("FCALL", r.fcall("transfer", keys, List.of("3")), 3L);
    Check.equal("what FCALL left", r.mget("a", "b"), List.of("7", "3"));
    Check.equal("FUNCTION DELETE", r.functionDelete("accounts"), "OK");
    Check.error("FCALL after it", "ERR Function not found",
        () -> r.fcall("transfer", keys, List.of("3")));
    Check.error("FUNCTION DELETE again", "ERR Library not found",
        () -> r.functionDelete("accounts"));
  }

  private static void dumped(Session s) {
    Jedis r = s.r();
    r.functionLoadReplace(LIBRARY);
    byte[] dump = r.functionDump();
    Check.equal("FUNCTION FLUSH", r.functionFlush(FlushMode.SYNC), "OK");
    Check.equal("FUNCTION LIST after it", r.functionList().size(), 0);
    Check.equal("FUNCTION RESTORE", r.functionRestore(dump), "OK");
    r.set("a", "7");
    Check.equal("FCALL", r.fcall("balance", List.of("a"), List.of()), "7");
    String exists = "ERR Library accounts already exists";
    Check.error("FUNCTION RESTORE again", exists, () -> r.functionRestore(dump));
    byte[] other = dump.clone();
    other[other.length - 1] ^= 1;
    String wrong = "ERR DUMP payload version or checksum are wrong";
    Check.error("FUNCTION RESTORE of another", wrong,
        () -> r.functionRestore(other, FunctionRestorePolicy.REPLACE));
    r.functionFlush();
  }

  private static void functionReadOnly(Session s) {
    Jedis r = s.r();
    r.functionLoadReplace(LIBRARY);
    r.set("a", "7");
    Check.equal("FCALL_RO", r.fcallReadonly("balance", List.of("a"), List.of()), "7");
    String text = "ERR Can not execute a script with write flag using *_ro command.";
    Check.error("FCALL_RO that writes", text,
        () -> r.fcallReadonly("transfer", List.of("a", "b"), List.of("1")));
    r.functionFlush();
  }

  private Scripts() {}
}
