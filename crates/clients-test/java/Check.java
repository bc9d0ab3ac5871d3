// One line for each check, and the end of the program at the first one that does not hold.

import java.util.Objects;
import java.util.function.BooleanSupplier;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;

final class Check {
  /** A call that is to fail. */
  interface Call {
    Object run();
  }

  /** The answer is {@code want}. */
  static void equal(String name, Object got, Object want) {
    if (!Objects.equals(got, want)) {
      fail(name, "got " + cut(got) + ", want " + cut(want));
    }
    System.out.println("ok " + name);
  }

  /** A whole number is {@code want}: Java would box an int and a long apart. */
  static void equal(String name, long got, long want) {
    equal(name, Long.valueOf(got), Long.valueOf(want));
  }

  /** The condition is true; {@code seen} says what was looked at. */
  static void holds(String name, boolean condition, Object seen) {
    if (!condition) {
      fail(name, "does not hold for " + cut(seen));
    }
    System.out.println("ok " + name);
  }

  /** The answer is from {@code low} to {@code high}, both included. */
  static void between(String name, double got, double low, double high) {
    holds(name + " in " + low + ".." + high, low <= got && got <= high, got);
  }

  /** The call throws an exception of the client with exactly this text. */
  static void error(String name, String text, Call call) {
    Object answer;
    try {
      answer = call.run();
    } catch (JedisException raised) {
      equal(name, raised.getMessage(), text);
      return;
    }
    fail(name, "got " + cut(answer) + ", want the error " + text);
  }

  /** The call becomes true within some seconds: for what the server does in its own time. */
  static void eventually(String name, BooleanSupplier call) throws InterruptedException {
    long deadline = System.nanoTime() + 10_000_000_000L;
    while (!call.getAsBoolean()) {
      if (System.nanoTime() > deadline) {
        fail(name, "not within 10 seconds");
      }
      Thread.sleep(5);
    }
    System.out.println("ok " + name);
  }

  /** Ends the program. */
  static void fail(String name, String reason) {
    System.out.println("FAILED " + name + ": " + reason);
    System.exit(1);
  }

  /** The command as it is written, past the methods of the client. */
  static Object raw(Jedis r, String command, String... arguments) {
    ProtocolCommand row = command::getBytes;
    return r.sendCommand(row, arguments);
  }

  private static String cut(Object value) {
    String text = String.valueOf(value);
    return text.length() < 500 ? text : text.substring(0, 500) + "...";
  }

  private Check() {}
}
