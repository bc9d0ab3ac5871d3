// What the cases need of a client library on one kind of connection.

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

interface Subject extends AutoCloseable {
  /** How to connect. Without a login the user is the default one. */
  record Address(String host, int port, boolean resp3, Trust tls, Login login) {}

  record Login(String user, String password) {}

  /** A member of a sorted set. */
  record Scored(String member, double score) {}

  /** Gets the messages of a subscription. */
  interface Receiver {
    void message(boolean byPattern, String text);
  }

  /** Closes a client or a subscription. */
  interface Cleanup extends AutoCloseable {
    @Override
    void close();
  }

  /** A subscription to a channel and to a pattern. */
  interface Subscription extends Cleanup {
    void leaveChannel();

    void leavePattern();
  }

  /** A client that caches what it reads until the server invalidates it. */
  interface Cached extends Cleanup {
    String get(String key);
  }

  /** A script with two keys and an amount. */
  interface Script {
    List<Long> run(String from, String to, int amount);
  }

  void set(String key, String value);

  String get(String key);

  /** SET and GET of these bytes as value. */
  byte[] setAndGet(byte[] bytes);

  long incrBy(String key, long amount);

  boolean exists(String key);

  Map<String, String> hGetAll(String key);

  void lPush(String key, String value);

  Set<String> sMembers(String key);

  List<Scored> zRange(String key);

  /** SET and GET of each pair in one pipeline; returns the replies of GET. */
  List<String> pipeline(Map<String, String> pairs);

  /** SET, INCR and GET in one pipeline. The reply to a failed command is an exception. */
  List<Object> pipelineOfError(String key);

  /** The replies of INCR n, RPUSH l a b, LRANGE l and GET none. */
  List<Object> transaction();

  /** APPEND in a transaction that watches the key; null if another client changed the key. */
  Long appendWatched(String key, String text, Runnable meanwhile);

  Script script(String source);

  long publish(String channel, String text);

  /** Subscribes, and calls {@code receiver} with each message. */
  Subscription subscribe(String channel, String pattern, Receiver receiver);

  long publishShard(String channel, String text);

  Cleanup subscribeShard(String channel, Consumer<String> receiver);

  /** The key and the value, or null. */
  List<String> blPop(double seconds, String... keys);

  Cached cached();

  @Override
  void close();
}
