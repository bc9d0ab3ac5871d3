// Transactions: Jedis's Transaction, which is MULTI and EXEC, and WATCH with its own retry.

import static java.util.Map.entry;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;

final class Transactions {
  static final Map<String, Combined.Case> CASES = Map.ofEntries(
      entry("transaction: replies in order", Transactions::replies),
      entry("transaction: an error inside", Transactions::errorInside),
      entry("transaction: a refused command aborts", Transactions::refusedInside),
      entry("transaction: discarded", Transactions::discarded),
      entry("transaction: seen whole", Transactions::seenWhole),
      entry("watch: a change aborts", Transactions::changeAborts),
      entry("watch: unwatched", Transactions::unwatched),
      entry("watch: retried until it holds", Transactions::retried));

  private static final String NOT_INTEGER = "ERR value is not an integer or out of range";
  private static final String ABORTED =
      "EXECABORT Transaction discarded because of previous errors.";

  private static void replies(Session s) {
    Transaction t = s.r().multi();
    t.set("n", "41");
    t.incr("n");
    Response<String> number = t.get("n");
    t.lpush("l", "a", "b");
    t.lrange("l", 0, -1);
    t.get("none");
    List<Object> want = Arrays.asList("OK", 42L, "42", 2L, List.of("b", "a"), null);
    Check.equal("replies", t.exec(), want);
    Check.equal("one of them", number.get(), "42");
  }

  private static void errorInside(Session s) {
    Transaction t = s.r().multi();
    t.set("text", "abc");
    Response<Long> wrong = t.incr("text");
    Response<Long> length = t.append("text", "d");
    List<Object> answers = t.exec();
    Check.holds("the error", answers.get(1) instanceof JedisDataException, answers);
    Check.error("the error as an exception", NOT_INTEGER, wrong::get);
    Check.equal("its neighbours", answers.get(0) + "" + length.get(), "OK4");
    Check.equal("they ran", s.r().get("text"), "abcd");
  }

  private static void refusedInside(Session s) {
    s.r().set("k", "old");
    Transaction t = s.r().multi();
    t.set("k", "new");
    // Jedis gives EXEC's error and keeps to itself what each command got.
    t.sendCommand(() -> "NOSUCH".getBytes(), "a");
    Check.error("EXEC", ABORTED, t::exec);
    t.close();
    Check.equal("nothing ran", s.r().get("k"), "old");
  }

  private static void discarded(Session s) {
    Transaction t = s.r().multi();
    t.incr("n");
    Check.equal("DISCARD", t.discard(), "OK");
    Check.error("EXEC after it", "ERR EXEC without MULTI", () -> Check.raw(s.r(), "EXEC"));
    Check.equal("nothing ran", s.r().exists("n"), false);
    Transaction next = s.r().multi();
    next.incr("n");
    Check.equal("the next one", next.exec(), List.of(1L));
  }

  private static void seenWhole(Session s) throws InterruptedException {
    String[] keys = IntStream.range(0, 16).mapToObj(i -> "whole:" + i).toArray(String[]::new);
    for (String key : keys) {
      s.r().set(key, "0");
    }
    AtomicInteger writing = new AtomicInteger(3);
    s.together(5, (own, number) -> {
      if (number < 3) {
        for (int i = 0; i < 100; i++) {
          Transaction t = own.multi();
          for (String key : keys) {
            t.set(key, number + ":" + i);
          }
          t.exec();
        }
        writing.decrementAndGet();
      }
      while (writing.get() > 0) {
        List<String> seen = own.mget(keys);
        if (new HashSet<>(seen).size() != 1) {
          Check.fail("values of two transactions in one MGET", seen.toString());
        }
      }
    });
  }

  private static void changeAborts(Session s) {
    try (Jedis own = s.another()) {
      own.set("k", "1");
      Check.equal("WATCH", own.watch("k"), "OK");
      Check.equal("GET while watching", own.get("k"), "1");
      s.r().set("k", "other");
      Transaction t = own.multi();
      t.set("k", "mine");
      t.set("k2", "mine");
      Check.equal("EXEC", t.exec(), null);
      Check.equal("nothing ran", own.mget("k", "k2"), Arrays.asList("other", null));
    }
  }

  private static void unwatched(Session s) {
    try (Jedis own = s.another()) {
      own.watch("k", "k2");
      s.r().set("k", "other");
      Check.equal("UNWATCH", own.unwatch(), "OK");
      Transaction t = own.multi();
      t.append("k", "+mine");
      Check.equal("EXEC", t.exec(), List.of(10L));
    }
  }

  private static void retried(Session s) throws InterruptedException {
    List<String> seen = new ArrayList<>();
    try (Jedis own = s.another()) {
      increment(own, value -> {
        seen.add(value);
        if (seen.size() == 1) {
          s.r().set("n", "10");
        }
      });
    }
    Check.equal("it ran twice", seen, Arrays.asList(null, "10"));
    Check.equal("what it left", s.r().get("n"), "11");
    s.r().set("n", "0");
    s.together(5, (own, number) -> {
      for (int i = 0; i < 20; i++) {
        increment(own, value -> {});
      }
    });
    Check.equal("5 clients count to 100", s.r().get("n"), "100");
  }

  /** Counts {@code n} up by GET and SET, again after each conflict. */
  private static void increment(Jedis own, Consumer<String> between) {
    List<Object> answers = null;
    while (answers == null) {
      // A Transaction that does not begin with MULTI watches first.
      Transaction t = new Transaction(own.getConnection(), false);
      t.watch("n");
      String value = own.get("n");
      between.accept(value);
      t.multi();
      t.set("n", String.valueOf(value == null ? 1 : Long.parseLong(value) + 1));
      answers = t.exec();
    }
  }

  private Transactions() {}
}
