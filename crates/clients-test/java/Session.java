// What a case works with: a client of the protocol under test, and how to make further ones.

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.ObjIntConsumer;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisProtocol;

record Session(Jedis r, HostAndPort address, RedisProtocol protocol) {
  /** A connection of its own. */
  Jedis another() {
    return new Jedis(address, config().build());
  }

  /** A connection of the user worker. */
  Jedis login(String password) {
    return new Jedis(address, config().user("worker").password(password).build());
  }

  private DefaultJedisClientConfig.Builder config() {
    return DefaultJedisClientConfig.builder().protocol(protocol);
  }

  /** Runs {@code work} in as many threads, each with a connection; throws the first error. */
  void together(int count, ObjIntConsumer<Jedis> work) throws InterruptedException {
    AtomicReference<RuntimeException> failed = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      int own = number;
      threads.add(new Thread(() -> {
        try (Jedis connection = another()) {
          work.accept(connection, own);
        } catch (RuntimeException raised) {
          failed.compareAndSet(null, raised);
        }
      }));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
    if (failed.get() != null) {
      throw failed.get();
    }
  }

  /** The names of cases that {@code cases/NAME} lists. */
  static List<String> names(String name) {
    return shared(name).lines()
        .filter(line -> !line.isEmpty() && !line.startsWith("#"))
        .toList();
  }

  /** The contents of {@code cases/NAME}, which all languages read. */
  static String shared(String name) {
    try {
      return Files.readString(Path.of(System.getenv("WEFT_CASES"), name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
