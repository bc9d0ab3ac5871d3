// The cases of cases/clients.txt.

import static java.util.Map.entry;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.args.ClientType;
import redis.clients.jedis.params.ClientKillParams;

final class Clients {
  private static final String CHANNEL = "news:sport";
  private static final String PATTERN = "news:*";
  private static final String TRANSFER = shared("transfer.lua");

  static final Map<String, Function<Subject.Address, Subject>> LIBRARIES = Map.of(
      "jedis", JedisSubject::new, "lettuce", LettuceSubject::new, "redisson", RedissonSubject::new);

  private interface Case {
    void run(Clients clients) throws Exception;
  }

  private static final Map<String, Case> CASES = Map.ofEntries(
      entry("connect: protocol and user", Clients::connected),
      entry("types: strings", Clients::strings),
      entry("types: collections", Clients::collections),
      entry("types: errors", Clients::errors),
      entry("pipeline: replies in order", Clients::pipeline),
      entry("pipeline: an error inside", Clients::pipelineError),
      entry("transaction: replies in order", Clients::transaction),
      entry("transaction: a watched key", Clients::watched),
      entry("script: before and after SCRIPT FLUSH", Clients::script),
      entry("script: an error", Clients::scriptError),
      entry("pubsub: channel and pattern", Clients::pubsub),
      entry("pubsub: unsubscribed", Clients::unsubscribed),
      entry("pubsub: shard channel", Clients::shardChannel),
      entry("pubsub: after CLIENT KILL", Clients::pubsubKilled),
      entry("blocking: served", Clients::served),
      entry("blocking: timed out", Clients::timedOut),
      entry("reconnection: after CLIENT KILL", Clients::reconnection),
      entry("tracking: cached until invalidated", Clients::cached));

  private final Subject s;
  private final Subject.Address address;
  private final Jedis admin;

  /** {@code admin} observes the server without the library under test. */
  private Clients(Subject s, Subject.Address address, Jedis admin) {
    this.s = s;
    this.address = address;
    this.admin = admin;
  }

  /** Runs the cases with a library on each kind of connection. */
  static void run(String library) throws Exception {
    int port = Integer.parseInt(System.getenv("WEFT_PORT"));
    int tlsPort = Integer.parseInt(System.getenv("WEFT_TLS_PORT"));
    Trust trust = Trust.of(Path.of(System.getenv("WEFT_CA")));
    Subject.Login login =
        new Subject.Login(System.getenv("WEFT_USER"), System.getenv("WEFT_PASSWORD"));
    Map<String, Subject.Address> kinds = new LinkedHashMap<>();
    kinds.put("resp2", new Subject.Address("localhost", port, false, null, login));
    kinds.put("resp3", new Subject.Address("localhost", port, true, null, null));
    kinds.put("tls", new Subject.Address("localhost", tlsPort, true, trust, login));
    List<String> names = shared("clients.txt").lines()
        .filter(line -> !line.isEmpty() && !line.startsWith("#"))
        .toList();
    try (Jedis admin = new Jedis(new HostAndPort("127.0.0.1", port))) {
      for (Map.Entry<String, Subject.Address> kind : kinds.entrySet()) {
        try (Subject subject = LIBRARIES.get(library).apply(kind.getValue())) {
          for (String name : names) {
            boolean watch = library.equals("redisson") && name.equals("transaction: a watched key");
            boolean tracking = kind.getKey().equals("resp2") && name.startsWith("tracking: ");
            if (watch || tracking) {
              continue;
            }
            admin.flushAll();
            CASES.get(name).run(new Clients(subject, kind.getValue(), admin));
            System.out.println("ok case " + kind.getKey() + ": " + name);
          }
        }
      }
    }
  }

  /** The contents of {@code cases/NAME}, which all languages read. */
  private static String shared(String name) {
    try {
      return Files.readString(Path.of(System.getenv("WEFT_CASES"), name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void connected() throws InterruptedException {
    s.get("k");
    String user = address.login() == null ? "default" : address.login().user();
    String protocol = address.resp3() ? "3" : "2";
    Check.eventually("protocol and user", () -> {
      List<String> others = otherClients();
      return !others.isEmpty() && others.stream().map(line -> line + " ").allMatch(
          line -> line.contains(" resp=" + protocol + " ") && line.contains(" user=" + user + " "));
    });
  }

  private void strings() {
    byte[] every = new byte[256];
    for (int i = 0; i < every.length; i++) {
      every[i] = (byte) i;
    }
    s.set("k", "zażółć 🦀");
    Check.equal("GET", s.get("k"), "zażółć 🦀");
    Check.holds("every byte", Arrays.equals(s.setAndGet(every), every), "");
    Check.equal("GET of a missing key", s.get("none"), null);
    Check.equal("INCRBY", s.incrBy("n", 41), 41);
    Check.equal("INCRBY again", s.incrBy("n", 1), 42);
  }

  private void collections() {
    admin.hset("h", Map.of("a", "1", "b", "2"));
    admin.sadd("s", "a", "b");
    admin.zadd("z", Map.of("b", 2.5, "a", 1.0));
    Check.equal("HGETALL", s.hGetAll("h"), Map.of("a", "1", "b", "2"));
    Check.equal("SMEMBERS", s.sMembers("s"), Set.of("a", "b"));
    List<Subject.Scored> scores =
        List.of(new Subject.Scored("a", 1), new Subject.Scored("b", 2.5));
    Check.equal("ZRANGE WITHSCORES", s.zRange("z"), scores);
  }

  /** Checks the start of the error's text: Redisson appends a description to the server's. */
  private static void refused(String name, String text, Runnable call) {
    try {
      call.run();
    } catch (RuntimeException raised) {
      Check.holds(name, raised.getMessage().startsWith(text), raised);
      return;
    }
    Check.fail(name, "no error");
  }

  private void errors() {
    s.set("k", "v");
    String text = "WRONGTYPE Operation against a key holding the wrong kind of value";
    refused("LPUSH to a string", text, () -> s.lPush("k", "x"));
    Check.equal("the connection stays usable", s.get("k"), "v");
  }

  private void pipeline() {
    Map<String, String> pairs = new LinkedHashMap<>();
    IntStream.range(0, 1_000).forEach(i -> pairs.put("p:" + i, String.valueOf(i)));
    Check.equal("replies", s.pipeline(pairs), List.copyOf(pairs.values()));
  }

  private void pipelineError() {
    List<Object> all = s.pipelineOfError("k");
    Check.equal("the reply after it", all.get(2), "v");
    String notInteger = "ERR value is not an integer or out of range";
    boolean right = all.get(1) instanceof Exception e && e.getMessage().startsWith(notInteger);
    Check.holds("the error", right, all.get(1));
  }

  private void transaction() {
    List<Object> want = Arrays.asList(1L, 2L, List.of("a", "b"), null);
    Check.equal("EXEC", s.transaction(), want);
  }

  private void watched() {
    Check.equal("EXEC", s.appendWatched("k", "+mine", () -> admin.set("k", "other")), null);
    Check.equal("nothing ran", s.get("k"), "other");
    Check.equal("retried", s.appendWatched("k", "+mine", () -> {}).longValue(), 10);
    Check.equal("what it left", s.get("k"), "other+mine");
  }

  private void script() {
    Subject.Script run = s.script(TRANSFER);
    admin.mset("a", "100", "b", "1");
    Check.equal("the first run", run.run("a", "b", 10), List.of(90L, 11L));
    Check.equal("SCRIPT FLUSH", admin.scriptFlush(), "OK");
    Check.equal("the run after it", run.run("b", "a", 1), List.of(10L, 91L));
  }

  private void scriptError() {
    Subject.Script run = s.script(TRANSFER);
    refused("of the script", "POOR a has 0", () -> run.run("a", "b", 1));
  }

  /** A subscription to the channel and the pattern, with the messages that arrived. */
  private record Inbox(
      Subject.Subscription subscription, List<String> byName, List<String> byPattern) {
    /** Checks that exactly these messages arrived. */
    void arrived(String name, List<String> names, List<String> patterns)
        throws InterruptedException {
      Check.eventually(name, () -> {
        synchronized (byName) {
          return byName.size() + byPattern.size() >= names.size() + patterns.size();
        }
      });
      synchronized (byName) {
        Check.equal(name + ": the channel's", List.copyOf(byName), names);
        Check.equal(name + ": the pattern's", List.copyOf(byPattern), patterns);
      }
    }
  }

  private Inbox subscribed() throws InterruptedException {
    List<String> byName = new ArrayList<>();
    List<String> byPattern = new ArrayList<>();
    Subject.Subscription subscription = s.subscribe(CHANNEL, PATTERN, (pattern, text) -> {
      synchronized (byName) {
        (pattern ? byPattern : byName).add(text);
      }
    });
    subscribers("both are subscribed", 1, 1);
    return new Inbox(subscription, byName, byPattern);
  }

  /** Waits until the channel and the pattern have as many subscribers. */
  private void subscribers(String name, long channels, long patterns) throws InterruptedException {
    Check.eventually(name, () -> admin.pubsubNumSub(CHANNEL).get(CHANNEL) == channels
        && admin.pubsubNumPat() == patterns);
  }

  private void pubsub() throws InterruptedException {
    Inbox p = subscribed();
    List<String> sent = IntStream.range(0, 100).mapToObj(String::valueOf).toList();
    List<Long> counts = sent.stream().map(text -> s.publish(CHANNEL, text)).distinct().toList();
    Check.equal("PUBLISH counts both", counts, List.of(2L));
    p.arrived("each arrives twice", sent, sent);
    p.subscription().close();
    subscribers("the end", 0, 0);
  }

  private void unsubscribed() throws InterruptedException {
    Inbox p = subscribed();
    p.subscription().leaveChannel();
    subscribers("the channel has no subscriber", 0, 1);
    Check.equal("PUBLISH counts the pattern", s.publish(CHANNEL, "1"), 1);
    p.arrived("the pattern's message", List.of(), List.of("1"));
    p.subscription().leavePattern();
    subscribers("the pattern has no subscriber", 0, 0);
    Check.equal("PUBLISH counts no client", s.publish(CHANNEL, "2"), 0);
    p.subscription().close();
    p.arrived("nothing more came", List.of(), List.of("1"));
  }

  private void pubsubKilled() throws InterruptedException {
    Inbox p = subscribed();
    s.publish(CHANNEL, "before");
    p.arrived("before", List.of("before"), List.of("before"));
    kill();
    // PUBSUB may still count the closed connection.
    Pattern one = Pattern.compile(" p?sub=1(?= )");
    Check.eventually("it subscribes again",
        () -> one.matcher(admin.clientList()).results().count() == 2);
    admin.publish(CHANNEL, "after");
    List<String> both = List.of("before", "after");
    p.arrived("after", both, both);
    p.subscription().close();
    subscribers("the end", 0, 0);
  }

  private void shardChannel() throws InterruptedException {
    List<String> got = Collections.synchronizedList(new ArrayList<>());
    Subject.Cleanup end = s.subscribeShard(CHANNEL, got::add);
    shardSubscribers("it subscribes", 1);
    List<String> sent = IntStream.range(0, 100).mapToObj(String::valueOf).toList();
    List<Long> counts =
        sent.stream().map(text -> s.publishShard(CHANNEL, text)).distinct().toList();
    Check.equal("SPUBLISH counts it", counts, List.of(1L));
    Check.eventually("messages arrive", () -> got.size() >= 100);
    Check.equal("messages", List.copyOf(got), sent);
    end.close();
    shardSubscribers("the end", 0);
  }

  private void shardSubscribers(String name, long count) throws InterruptedException {
    Check.eventually(name, () -> admin.pubsubShardNumSub(CHANNEL).get(CHANNEL) == count);
  }

  private void served() throws Exception {
    CompletableFuture<List<String>> popped =
        CompletableFuture.supplyAsync(() -> s.blPop(30, "q", "other"));
    Check.eventually("BLPOP waits", () -> admin.clientList().lines()
        .anyMatch(line -> line.matches(".* flags=\\w*b\\w* .* cmd=blpop .*")));
    Check.equal("RPUSH", admin.rpush("q", "job"), 1);
    Check.equal("BLPOP", popped.get(), List.of("q", "job"));
    Check.equal("the list is empty", s.exists("q"), false);
  }

  private void timedOut() {
    Check.equal("BLPOP", s.blPop(0.05, "q"), null);
  }

  private void reconnection() throws InterruptedException {
    s.set("k", "v");
    kill();
    Check.eventually("after", () -> {
      try {
        return "v".equals(s.get("k"));
      } catch (RuntimeException lost) {
        return false;
      }
    });
    Check.equal("INCR", s.incrBy("n", 1), 1);
  }

  private void cached() throws InterruptedException {
    try (Subject.Cached own = s.cached()) {
      admin.set("k", "old");
      Check.equal("the first GET", own.get("k"), "old");
      String before = gets();
      for (int i = 0; i < 10; i++) {
        Check.equal("more GETs", own.get("k"), "old");
      }
      Check.equal("the server saw none of them", gets(), before);
      admin.set("k", "new");
      Check.eventually("SET invalidates it", () -> "new".equals(own.get("k")));
      String after = gets();
      Check.equal("it is cached again", own.get("k"), "new");
      Check.equal("the server did not see it", gets(), after);
      if (s instanceof JedisSubject) {
        admin.flushAll();
      } else {
        // Lettuce and Redisson ignore the invalidation message of FLUSHALL.
        admin.del("k");
      }
      Check.eventually("its removal invalidates it", () -> own.get("k") == null);
    }
  }

  /** How often GET ran, as a text of INFO. */
  private String gets() {
    return admin.info("commandstats").lines()
        .filter(line -> line.startsWith("cmdstat_get:"))
        .map(line -> line.substring(0, line.indexOf(',')))
        .findFirst()
        .orElse("");
  }

  /** Kills all connections except the admin's, and waits until they are closed. */
  private void kill() throws InterruptedException {
    Set<String> old = ids();
    Check.holds("there are connections", !old.isEmpty(), old);
    for (ClientType type : List.of(ClientType.NORMAL, ClientType.PUBSUB)) {
      admin.clientKill(new ClientKillParams().type(type));
    }
    Check.eventually("the connections are closed", () -> ids().stream().noneMatch(old::contains));
  }

  private Set<String> ids() {
    return otherClients().stream()
        .map(line -> line.substring(0, line.indexOf(' ')))
        .collect(Collectors.toSet());
  }

  /** The lines of CLIENT LIST except the admin's. */
  private List<String> otherClients() {
    String own = "id=" + admin.clientId() + " ";
    return admin.clientList().lines().filter(line -> !line.startsWith(own)).toList();
  }
}
