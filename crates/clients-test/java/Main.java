// Runs the cases with one library.
//
// Usage: java Main jedis|lettuce|redisson, with the server's addresses in WEFT_* variables.

final class Main {
  public static void main(String[] arguments) {
    try {
      Clients.run(arguments[0]);
    } catch (Exception unexpected) {
      // The library's threads would keep the program alive.
      unexpected.printStackTrace(System.out);
      System.exit(1);
    }
    System.exit(0);
  }

  private Main() {}
}
