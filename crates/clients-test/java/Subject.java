// What the cases of Clients need of a client library: a library on one kind of connection.

import java.util.List;
import java.util.Map;
import java.util.Set;

interface Subject extends AutoCloseable {
  /** How to connect. */
  record Address(String host, int port, boolean resp3, Trust tls) {}

  /** A member of a sorted set. */
  record Scored(String member, double score) {}

  /** An entry of a stream. */
  record Entry(String id, Map<String, String> fields) {}

  /** Gets the messages of a subscription. */
  interface Receiver {
    void message(boolean byPattern, String text);
  }

  /** A subscription to a channel and to a pattern. */
  interface Subscription extends AutoCloseable {
    void leaveChannel();

    void leavePattern();

    @Override
    void close();
  }

  /** A client that keeps what it reads until the server says that it changed. */
  interface Cached extends AutoCloseable {
    String get(String key);

    @Override
    void close();
  }

  /** A script with two keys and an amount. */
  interface Script {
    List<Long> run(String from, String to, int amount);
  }

  void set(String key, String value);

  String get(String key);

  /** SET and GET of a key that is as its value. */
  byte[] setAndGet(byte[] bytes);

  long incrBy(String key, long amount);

  boolean exists(String key);

  void hSet(String key, Map<String, String> fields);

  Map<String, String> hGetAll(String key);

  void rPush(String key, String... values);

  void lPush(String key, String value);

  List<String> lRange(String key);

  void sAdd(String key, String... members);

  Set<String> sMembers(String key);

  void zAdd(String key, Map<String, Double> scores);

  List<Scored> zRange(String key);

  String xAdd(String key, String field, String value);

  List<Entry> xRange(String key);

  /** GET of each key in one pipeline that sets it first. */
  List<String> pipeline(Map<String, String> pairs);

  /** SET, INCR and GET in one pipeline: an exception is at the place of its command. */
  List<Object> pipelineOfError(String key);

  /** The replies of INCR n, RPUSH l a b, LRANGE l and GET none. */
  List<Object> transaction();

  /** APPEND in a transaction that watches the key; null when it was changed meanwhile. */
  Long appendWatched(String key, String text, Runnable meanwhile);

  Script script(String source);

  long publish(String channel, String text);

  /** Subscribes, and calls {@code receiver} with each message. */
  Subscription subscribe(String channel, String pattern, Receiver receiver);

  /** The key and the value, or null. */
  List<String> blPop(double seconds, String... keys);

  Cached cached();

  @Override
  void close();
}
