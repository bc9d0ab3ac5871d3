// Bytes, bulk and connections: what an application does to a server besides single commands.

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.IntConsumer;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.args.ClientType;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.params.ClientKillParams;

final class Load {
  private final Jedis r;
  private final Function<String, Jedis> connect;
  private final HostAndPort address;
  private final JedisClientConfig config;

  /** {@code config} is that of the protocol under test, {@code connect} makes named clients. */
  Load(Jedis r, Function<String, Jedis> connect, HostAndPort address, JedisClientConfig config) {
    this.r = r;
    this.connect = connect;
    this.address = address;
    this.config = config;
  }

  void run() throws InterruptedException {
    binary();
    unicode();
    large();
    pipelines();
    concurrency();
    pool();
    reconnecting();
    r.flushAll();
  }

  private void binary() {
    byte[] every = new byte[256];
    for (int i = 0; i < every.length; i++) {
      every[i] = (byte) i;
    }
    r.set("bin".getBytes(), every);
    Check.holds("a value of every byte", Arrays.equals(r.get("bin".getBytes()), every), "");
    r.set(every, "x".getBytes());
    Check.equal("a key of every byte", new String(r.get(every)), "x");
    boolean listed = r.keys("*".getBytes()).stream().anyMatch(key -> Arrays.equals(key, every));
    Check.holds("KEYS gives it back", listed, "");
    String protocol = "$3\r\nfoo\r\n*1\r\n+OK\r\n\0";
    r.set("p", protocol);
    Check.equal("a value like the protocol", r.get("p"), protocol);
    Check.holds("ECHO of bytes", Arrays.equals(r.echo(every), every), "");
    r.set("", "x");
    Check.equal("an empty key", r.get(""), "x");
    r.flushDB();
  }

  private void unicode() {
    String text = "Zażółć gęślą jaźń 日本語 🦀 \0 \u202e";
    r.set("ключ🗝", text);
    Check.equal("a text in Unicode", r.get("ключ🗝"), text);
    int bytes = text.getBytes(StandardCharsets.UTF_8).length;
    Check.equal("STRLEN counts bytes", r.strlen("ключ🗝"), bytes);
    r.flushDB();
  }

  private void large() {
    byte[] value = new byte[10_000_000];
    new Random(1).nextBytes(value);
    byte[] key = "large".getBytes();
    Check.equal("SET of 10 MB", r.set(key, value), "OK");
    Check.equal("STRLEN of 10 MB", r.strlen(key), value.length);
    Check.holds("GET of 10 MB", Arrays.equals(r.get(key), value), "");
    byte[] within = Arrays.copyOfRange(value, 5_000_000, 5_000_100);
    byte[] found = r.getrange(key, 5_000_000, 5_000_099);
    Check.holds("GETRANGE within", Arrays.equals(found, within), "");
    Check.equal("APPEND to it", r.append(key, "end".getBytes()), value.length + 3);
    Check.equal("UNLINK of it", r.unlink(key), 1);
  }

  private void pipelines() {
    Pipeline pipe = r.pipelined();
    List<Object> want = new ArrayList<>();
    for (int i = 0; i < 5_000; i++) {
      pipe.set("p:" + i, String.valueOf(i));
      pipe.get("p:" + i);
      want.addAll(List.of("OK", String.valueOf(i)));
    }
    Check.equal("a pipeline of 10,000", pipe.syncAndReturnAll(), want);
    Response<String> before = pipe.set("text", "abc");
    Response<Long> wrong = pipe.incr("text");
    Response<String> after = pipe.get("text");
    pipe.sync();
    String notInteger = "ERR value is not an integer or out of range";
    Check.error("an error within a pipeline", notInteger, wrong::get);
    Check.equal("its neighbours", before.get() + after.get(), "OKabc");
    Check.equal("DBSIZE after it", r.dbSize(), 5_001);
    r.flushDB();
  }

  private void concurrency() throws InterruptedException {
    inThreads(20, number -> {
      try (Jedis own = connect.apply("counting")) {
        for (int i = 0; i < 250; i++) {
          own.incr("counter");
        }
      }
    });
    Check.equal("20 connections count to 5,000", r.get("counter"), "5000");
  }

  private void pool() throws InterruptedException {
    AtomicInteger wrong = new AtomicInteger();
    try (RedisClient shared = client(4)) {
      inThreads(12, number -> {
        for (int i = 0; i < 50; i++) {
          shared.set("pool:" + number, String.valueOf(i));
          if (!String.valueOf(i).equals(shared.get("pool:" + number))) {
            wrong.incrementAndGet();
          }
        }
      });
      Check.equal("12 threads share a pool of 4", wrong.get(), 0);
      int connections = shared.getPool().getNumIdle();
      Check.between("the connections of the pool", connections, 1, 4);
    }
  }

  private void reconnecting() throws InterruptedException {
    Jedis single = connect.apply("again");
    ClientKillParams victim = new ClientKillParams().id(String.valueOf(single.clientId()));
    Check.equal("CLIENT KILL of an idle one", r.clientKill(victim), 1);
    Check.eventually("its connection breaks", () -> !answers(single));
    single.close();
    try (RedisClient shared = client(2)) {
      shared.set("back", "pool");
      Check.holds("the pool has connections", named("pooled") >= 1, r.clientList());
      ClientKillParams others = new ClientKillParams().type(ClientType.NORMAL);
      Check.holds("CLIENT KILL TYPE", r.clientKill(others) >= 1, "");
      Check.eventually("a pool replaces killed connections", () -> "pool".equals(get(shared)));
      Check.between("the new ones have their name", named("pooled"), 1, 2);
    }
  }

  private long named(String name) {
    return r.clientList().lines().filter(line -> line.contains(" name=" + name + " ")).count();
  }

  private static boolean answers(Jedis single) {
    try {
      return single.ping().equals("PONG");
    } catch (JedisConnectionException broken) {
      return false;
    }
  }

  private static String get(RedisClient shared) {
    try {
      return shared.get("back");
    } catch (JedisConnectionException broken) {
      return null;
    }
  }

  private RedisClient client(int connections) {
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxTotal(connections);
    pool.setMaxIdle(connections);
    return RedisClient.builder()
        .hostAndPort(address)
        .clientConfig(config)
        .poolConfig(pool)
        .build();
  }

  private static void inThreads(int count, IntConsumer work) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      int own = number;
      threads.add(new Thread(() -> work.accept(own)));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
  }
}
