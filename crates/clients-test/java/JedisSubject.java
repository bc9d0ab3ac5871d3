// What the cases need, by the methods of Jedis's client with a pool.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.JedisShardedPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.util.KeyValue;

final class JedisSubject implements Subject {
  private final HostAndPort address;
  private final JedisClientConfig config;
  private final RedisClient r;

  JedisSubject(Address to) {
    address = new HostAndPort(to.host(), to.port());
    DefaultJedisClientConfig.Builder builder = DefaultJedisClientConfig.builder()
        .protocol(to.resp3() ? RedisProtocol.RESP3 : RedisProtocol.RESP2);
    if (to.tls() != null) {
      builder.ssl(true).sslSocketFactory(to.tls().sockets());
    }
    if (to.login() != null) {
      builder.user(to.login().user()).password(to.login().password());
    }
    config = builder.build();
    r = RedisClient.builder().hostAndPort(address).clientConfig(config).build();
  }

  @Override
  public void close() {
    r.close();
  }

  @Override
  public void set(String key, String value) {
    r.set(key, value);
  }

  @Override
  public String get(String key) {
    return r.get(key);
  }

  @Override
  public byte[] setAndGet(byte[] bytes) {
    r.set(bytes, bytes);
    return r.get(bytes);
  }

  @Override
  public long incrBy(String key, long amount) {
    return r.incrBy(key, amount);
  }

  @Override
  public boolean exists(String key) {
    return r.exists(key);
  }

  @Override
  public Map<String, String> hGetAll(String key) {
    return r.hgetAll(key);
  }

  @Override
  public void lPush(String key, String value) {
    r.lpush(key, value);
  }

  @Override
  public Set<String> sMembers(String key) {
    return r.smembers(key);
  }

  @Override
  public List<Scored> zRange(String key) {
    return r.zrangeWithScores(key, 0, -1).stream()
        .map(found -> new Scored(found.getElement(), found.getScore()))
        .toList();
  }

  @Override
  public List<String> pipeline(Map<String, String> pairs) {
    List<Response<String>> answers = new ArrayList<>();
    try (Pipeline pipe = r.pipelined()) {
      pairs.forEach((key, value) -> {
        pipe.set(key, value);
        answers.add(pipe.get(key));
      });
      pipe.sync();
    }
    return answers.stream().map(Response::get).toList();
  }

  @Override
  public List<Object> pipelineOfError(String key) {
    try (Pipeline pipe = r.pipelined()) {
      pipe.set(key, "v");
      pipe.incr(key);
      pipe.get(key);
      return pipe.syncAndReturnAll();
    }
  }

  @Override
  public List<Object> transaction() {
    try (AbstractTransaction t = r.multi()) {
      t.incr("n");
      t.rpush("l", "a", "b");
      t.lrange("l", 0, -1);
      t.get("none");
      return t.exec();
    }
  }

  @Override
  public Long appendWatched(String key, String text, Runnable meanwhile) {
    try (AbstractTransaction t = r.transaction(false)) {
      t.watch(key);
      meanwhile.run();
      t.multi();
      t.append(key, text);
      List<Object> answers = t.exec();
      return answers == null ? null : (Long) answers.get(0);
    }
  }

  @Override
  @SuppressWarnings("unchecked")
  public Script script(String source) {
    String sha = r.scriptLoad(source);
    return (from, to, amount) -> {
      List<String> keys = List.of(from, to);
      List<String> arguments = List.of(String.valueOf(amount));
      try {
        return (List<Long>) r.evalsha(sha, keys, arguments);
      } catch (JedisNoScriptException flushed) {
        return (List<Long>) r.eval(source, keys, arguments);
      }
    };
  }

  @Override
  public long publish(String channel, String text) {
    return r.publish(channel, text);
  }

  @Override
  public Subscription subscribe(String channel, String pattern, Receiver receiver) {
    Listener listener = new Listener(channel, pattern, receiver);
    Thread thread = new Thread(listener);
    thread.setDaemon(true);
    thread.start();
    return listener;
  }

  /** Reads messages in its own thread, and subscribes again after a lost connection. */
  private final class Listener extends JedisPubSub implements Runnable, Subscription {
    private final String channel;
    private final String pattern;
    private final Receiver receiver;
    private volatile boolean closed;
    private int kinds = 2;

    Listener(String channel, String pattern, Receiver receiver) {
      this.channel = channel;
      this.pattern = pattern;
      this.receiver = receiver;
    }

    @Override
    public void run() {
      while (!closed) {
        try {
          r.subscribe(this, channel);
          return;
        } catch (JedisConnectionException lost) {
          Thread.yield();
        }
      }
    }

    @Override
    public void onSubscribe(String subscribed, int count) {
      psubscribe(pattern);
    }

    @Override
    public void onMessage(String from, String text) {
      receiver.message(false, text);
    }

    @Override
    public void onPMessage(String matched, String from, String text) {
      receiver.message(true, text);
    }

    @Override
    public void leaveChannel() {
      kinds--;
      unsubscribe(channel);
    }

    @Override
    public void leavePattern() {
      kinds--;
      punsubscribe(pattern);
    }

    @Override
    public void close() {
      closed = true;
      // After both are left the connection returns to the pool, whose next user would get the
      // replies to these commands.
      if (kinds > 0 && isSubscribed()) {
        unsubscribe();
        punsubscribe();
      }
    }
  }

  @Override
  public long publishShard(String channel, String text) {
    return (Long) r.sendCommand(Protocol.Command.SPUBLISH, channel, text);
  }

  @Override
  public Cleanup subscribeShard(String channel, Consumer<String> receiver) {
    JedisShardedPubSub listener = new JedisShardedPubSub() {
      @Override
      public void onSMessage(String from, String text) {
        receiver.accept(text);
      }
    };
    Thread thread = new Thread(() -> {
      try (Connection own = r.getPool().getResource()) {
        listener.proceed(own, channel);
      }
    });
    thread.setDaemon(true);
    thread.start();
    return listener::sunsubscribe;
  }

  @Override
  public List<String> blPop(double seconds, String... keys) {
    KeyValue<String, String> popped = r.blpop(seconds, keys);
    return popped == null ? null : Arrays.asList(popped.getKey(), popped.getValue());
  }

  @Override
  public Cached cached() {
    RedisClient own = RedisClient.builder()
        .hostAndPort(address)
        .clientConfig(config)
        .cacheConfig(CacheConfig.builder().maxSize(1_000).build())
        .build();
    return new Cached() {
      @Override
      public String get(String key) {
        return own.get(key);
      }

      @Override
      public void close() {
        own.close();
      }
    };
  }
}
