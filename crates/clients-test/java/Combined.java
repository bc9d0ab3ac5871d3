// The cases that every language has: cases/combined.txt says what they assert.

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

final class Combined {
  /** One case, by its name in the list. */
  interface Case {
    void run(Session s) throws InterruptedException;
  }

  static void run(Session s) throws InterruptedException {
    Map<String, Case> cases = new TreeMap<>();
    cases.putAll(Transactions.CASES);
    cases.putAll(Scripts.CASES);
    cases.putAll(Users.CASES);
    List<String> names = Session.names("combined.txt");
    List<String> sorted = names.stream().sorted().toList();
    Check.equal("the cases of the list", List.copyOf(cases.keySet()), sorted);
    for (String name : names) {
      s.r().flushAll();
      cases.get(name).run(s);
      System.out.println("ok case " + name);
    }
    s.r().flushAll();
  }

  private Combined() {}
}
