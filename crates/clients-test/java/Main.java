// Jedis drives the server; Jedis, Lettuce and Redisson do what each client does.
//
// Usage: java Main resp2|resp3|auth|jedis|lettuce|redisson, with the addresses in WEFT_* variables.

import java.util.function.Function;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;

final class Main {
  private static final HostAndPort ADDRESS =
      new HostAndPort("127.0.0.1", Integer.parseInt(System.getenv("WEFT_PORT")));

  public static void main(String[] arguments) throws Exception {
    try {
      switch (arguments[0]) {
        case "resp2" -> commands(RedisProtocol.RESP2);
        case "resp3" -> commands(RedisProtocol.RESP3);
        case "auth" -> auth();
        case "jedis", "lettuce", "redisson" -> Clients.run(arguments[0], ADDRESS);
        default -> Check.fail(arguments[0], "no such part");
      }
    } catch (Exception unexpected) {
      // Threads of a library would keep the program alive.
      unexpected.printStackTrace(System.out);
      System.exit(1);
    }
    System.exit(0);
  }

  /** All commands over one protocol. */
  private static void commands(RedisProtocol protocol) throws InterruptedException {
    Function<String, Jedis> connect =
        name -> new Jedis(ADDRESS, config(protocol).clientName(name).build());
    int version = Integer.parseInt(protocol.version());
    try (Jedis r = new Jedis(ADDRESS, config(protocol).build())) {
      new Strings(r).run();
      new Keys(r).run();
      new Admin(r, connect, version).run();
      r.flushAll();
      Replies.run(r);
      Combined.run(new Session(r, ADDRESS, protocol));
      new Load(r, connect, ADDRESS, config(protocol).clientName("pooled").build()).run();
    }
    try (RedisClient unconfigured = RedisClient.create(ADDRESS)) {
      Check.equal("a client without configuration", unconfigured.ping(), "PONG");
    }
  }

  private static DefaultJedisClientConfig.Builder config(RedisProtocol protocol) {
    return DefaultJedisClientConfig.builder().protocol(protocol);
  }

  /** A server with requirepass. */
  private static void auth() {
    String password = System.getenv("WEFT_PASSWORD");
    String wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    for (RedisProtocol protocol : new RedisProtocol[] {RedisProtocol.RESP2, RedisProtocol.RESP3}) {
      try (Jedis r = new Jedis(ADDRESS, config(protocol).password(password).build())) {
        Check.equal("SET with the password", r.set("k", "v") + r.get("k"), "OKv");
      }
      DefaultJedisClientConfig.Builder named = config(protocol).user("default").password(password);
      try (Jedis r = new Jedis(ADDRESS, named.build())) {
        Check.equal("with the user default too", r.get("k"), "v");
      }
      // Jedis negotiates RESP2 with HELLO too.
      String without =
          "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO"
              + " <proto> AUTH <user> <pass> option can be used to authenticate the client and"
              + " select the RESP protocol version at the same time";
      Check.error("without", without, () -> ping(config(protocol)));
      Check.error("a wrong password", wrong, () -> ping(config(protocol).password("wrong")));
      Check.error("a wrong user", wrong,
          () -> ping(config(protocol).user("nobody").password(password)));
    }
    DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().password(password).build();
    try (Jedis r = new Jedis(ADDRESS, config)) {
      Check.error("AUTH with a wrong one", wrong, () -> r.auth("wrong"));
      Check.equal("the old login holds", r.get("k"), "v");
      Check.equal("CONFIG SET requirepass", r.configSet("requirepass", "new"), "OK");
    }
    DefaultJedisClientConfig.Builder old = DefaultJedisClientConfig.builder().password(password);
    Check.error("the old one is refused", wrong, () -> ping(old));
    DefaultJedisClientConfig.Builder renewed = DefaultJedisClientConfig.builder().password("new");
    Check.equal("the new one is taken", ping(renewed), "PONG");
  }

  private static String ping(DefaultJedisClientConfig.Builder config) {
    try (Jedis r = new Jedis(ADDRESS, config.build())) {
      return r.ping();
    }
  }

  private Main() {}
}
