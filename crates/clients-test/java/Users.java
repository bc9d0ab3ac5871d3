// Users: Jedis's ACL methods, and connections that log in with a name and a password.

import static java.util.Map.entry;

import java.util.List;
import java.util.Map;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.resps.AccessControlLogEntry;
import redis.clients.jedis.resps.AccessControlUser;

final class Users {
  static final Map<String, Combined.Case> CASES = Map.ofEntries(
      entry("user: may do what the rules say", Users::may),
      entry("user: refused", Users::refused),
      entry("user: rules change", Users::changed),
      entry("user: deleted", Users::deleted),
      entry("user: transactions and scripts", Users::combined),
      entry("user: inspected", Users::inspected));

  private static final String PASSWORD = "se cret";
  private static final String NO_KEY = "NOPERM No permissions to access a key";
  private static final String WRONG =
      "WRONGPASS invalid username-password pair or user is disabled.";

  /** The user worker: all of {@code job:*}, and nothing dangerous. */
  private static String create(Session s) {
    return s.r().aclSetUser("worker", "reset", "on", ">" + PASSWORD, "~job:*", "+@read", "+@write",
        "+@connection", "+@transaction", "+@scripting", "-@dangerous");
  }

  private static String noCommand(String name) {
    return "NOPERM User worker has no permissions to run the '" + name + "' command";
  }

  private static String ping(Session s, String password) {
    try (Jedis w = s.login(password)) {
      return w.ping();
    }
  }

  private static void may(Session s) {
    Check.equal("ACL SETUSER", create(s), "OK");
    Check.equal("ACL WHOAMI as admin", s.r().aclWhoAmI(), "default");
    try (Jedis w = s.login(PASSWORD)) {
      Check.equal("SET and GET", w.set("job:1", "v") + w.get("job:1"), "OKv");
      Check.error("another key", NO_KEY, () -> w.get("other"));
      Check.error("a second key", NO_KEY, () -> w.mget("job:1", "other"));
      Check.error("FLUSHALL", noCommand("flushall"), w::flushAll);
      Check.error("CONFIG GET", noCommand("config|get"), () -> w.configGet("port"));
      Check.error("ACL WHOAMI", noCommand("acl|whoami"), w::aclWhoAmI);
      Check.equal("the connection goes on", w.get("job:1"), "v");
    }
    s.r().aclDelUser("worker");
  }

  private static void refused(Session s) {
    create(s);
    Check.error("a wrong password", WRONG, () -> ping(s, "secret"));
    s.r().aclSetUser("worker", "off");
    Check.error("a disabled user", WRONG, () -> ping(s, PASSWORD));
    s.r().aclSetUser("worker", "on");
    Check.equal("an enabled user", ping(s, PASSWORD), "PONG");
    s.r().aclDelUser("worker");
  }

  private static void changed(Session s) {
    create(s);
    try (Jedis w = s.login(PASSWORD)) {
      Check.equal("before", w.set("job:1", "v"), "OK");
      s.r().aclSetUser("worker", "-set");
      Check.error("without SET", noCommand("set"), () -> w.set("job:1", "w"));
      Check.equal("GET still", w.get("job:1"), "v");
      s.r().aclSetUser("worker", "+set", "~more:*");
      Check.equal("a new pattern", w.set("job:1", "w") + w.set("more:1", "w"), "OKOK");
    }
    s.r().aclDelUser("worker");
  }

  private static void deleted(Session s) throws InterruptedException {
    create(s);
    Jedis w = s.login(PASSWORD);
    Check.holds("CLIENT LIST has the user", listed(s), s.r().clientList());
    Check.equal("ACL DELUSER", s.r().aclDelUser("worker", "nobody"), 1);
    Check.eventually("the connection is closed", () -> !listed(s));
    try {
      Check.fail("it cannot go on", "GET answered " + w.get("job:1"));
    } catch (JedisConnectionException broken) {
      Check.holds("it cannot go on", w.isBroken(), broken);
    }
    w.close();
    Check.error("nor come back", WRONG, () -> ping(s, PASSWORD));
  }

  private static boolean listed(Session s) {
    return s.r().clientList().contains(" user=worker ");
  }

  private static void combined(Session s) {
    create(s);
    try (Jedis w = s.login(PASSWORD)) {
      Transaction t = w.multi();
      t.set("job:1", "v");
      t.set("other", "v");
      String aborted = "EXECABORT Transaction discarded because of previous errors.";
      Check.error("a transaction", aborted, t::exec);
      Check.equal("nothing ran", s.r().dbSize(), 0);
      Transaction allowed = w.multi();
      allowed.set("job:1", "v");
      Check.equal("EXEC of what is allowed", allowed.exec(), List.of("OK"));
      String reach = w.scriptLoad("return redis.call('GET', ARGV[1])");
      Check.equal("a script", w.evalsha(reach, 1, "job:1", "job:1"), "v");
      Check.error("a script's key", NO_KEY, () -> w.evalsha(reach, 1, "other", "job:1"));
      String text = "ERR ACL failure in script: No permissions to access a key script: " + reach
          + ", on @user_script:1.";
      Check.error("what it reaches for", text, () -> w.evalsha(reach, 1, "job:1", "other"));
    }
    s.r().aclDelUser("worker");
  }

  private static void inspected(Session s) {
    Jedis r = s.r();
    r.aclLogReset();
    create(s);
    AccessControlUser user = r.aclGetUser("worker");
    Check.holds("ACL GETUSER has flags", user.getFlags().contains("on"), user);
    Check.holds("ACL GETUSER has commands", user.getCommands().contains("+@scripting"), user);
    Check.equal("ACL GETUSER has keys", user.getKeys(), "~job:*");
    Check.equal("ACL GETUSER of nobody", r.aclGetUser("nobody"), null);
    List<String> listed =
        r.aclList().stream().filter(line -> line.startsWith("user worker on ")).toList();
    boolean whole = listed.size() == 1 && listed.get(0).contains(" ~job:* ");
    Check.holds("ACL LIST", whole, listed);
    List<String> users = r.aclUsers().stream().sorted().toList();
    Check.equal("ACL USERS", users, List.of("default", "worker"));
    Check.equal("ACL DRYRUN", r.aclDryRun("worker", "GET", "job:1"), "OK");
    String text = "User worker has no permissions to access the 'other' key";
    Check.equal("ACL DRYRUN of another key", r.aclDryRun("worker", "GET", "other"), text);
    try (Jedis w = s.login(PASSWORD)) {
      for (int i = 0; i < 3; i++) {
        Check.error("a denied GET", NO_KEY, () -> w.get("other"));
      }
    }
    List<AccessControlLogEntry> log = r.aclLog();
    AccessControlLogEntry entry = log.get(0);
    Check.equal("ACL LOG has one entry", log.size(), 1);
    Check.equal("ACL LOG counts", entry.getCount(), 3);
    List<String> seen =
        List.of(entry.getReason(), entry.getContext(), entry.getObject(), entry.getUsername());
    Check.equal("ACL LOG", seen, List.of("key", "toplevel", "other", "worker"));
    r.aclDelUser("worker");
  }

  private Users() {}
}
