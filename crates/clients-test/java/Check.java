// Checks that print a line each. The first one that fails ends the program.

import java.util.Objects;
import java.util.function.BooleanSupplier;

final class Check {
  /** Checks that the answer is {@code want}. */
  static void equal(String name, Object got, Object want) {
    if (!Objects.equals(got, want)) {
      fail(name, "got " + cut(got) + ", want " + cut(want));
    }
    System.out.println("ok " + name);
  }

  /** The same for integers, which Java would box as different types. */
  static void equal(String name, long got, long want) {
    equal(name, Long.valueOf(got), Long.valueOf(want));
  }

  /** Checks a condition about {@code seen}. */
  static void holds(String name, boolean condition, Object seen) {
    if (!condition) {
      fail(name, "does not hold for " + cut(seen));
    }
    System.out.println("ok " + name);
  }

  /** Waits until the call returns true. */
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

  private static String cut(Object value) {
    String text = String.valueOf(value);
    return text.length() < 500 ? text : text.substring(0, 500) + "...";
  }

  private Check() {}
}
