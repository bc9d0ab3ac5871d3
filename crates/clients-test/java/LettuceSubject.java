// What the cases need, by the methods of Lettuce.

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;

final class LettuceSubject implements Subject {
  private final RedisClient client;
  private final StatefulRedisConnection<String, String> connection;
  private final RedisCommands<String, String> r;

  LettuceSubject(Address address) {
    RedisURI.Builder uri = RedisURI.builder()
        .withHost(address.host())
        .withPort(address.port())
        .withSsl(address.tls() != null);
    if (address.login() != null) {
      uri.withAuthentication(address.login().user(), address.login().password());
    }
    ClientOptions.Builder options = ClientOptions.builder()
        .protocolVersion(address.resp3() ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2);
    if (address.tls() != null) {
      options.sslOptions(SslOptions.builder().trustManager(address.tls().managers()).build());
    }
    client = RedisClient.create(uri.build());
    client.setOptions(options.build());
    connection = client.connect();
    r = connection.sync();
  }

  @Override
  public void close() {
    client.shutdown(Duration.ZERO, Duration.ofSeconds(10));
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
    try (StatefulRedisConnection<byte[], byte[]> own = client.connect(ByteArrayCodec.INSTANCE)) {
      own.sync().set(bytes, bytes);
      return own.sync().get(bytes);
    }
  }

  @Override
  public long incrBy(String key, long amount) {
    return r.incrby(key, amount);
  }

  @Override
  public boolean exists(String key) {
    return r.exists(key) == 1;
  }

  @Override
  public Map<String, String> hGetAll(String key) {
    return r.hgetall(key);
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
        .map(found -> new Scored(found.getValue(), found.getScore()))
        .toList();
  }

  /** Sends what {@code fill} adds in one write. The reply to a failed command is an exception. */
  private List<Object> pipelined(Consumer<List<RedisFuture<?>>> fill) {
    List<RedisFuture<?>> futures = new ArrayList<>();
    connection.setAutoFlushCommands(false);
    fill.accept(futures);
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    List<Object> answers = new ArrayList<>();
    for (RedisFuture<?> future : futures) {
      try {
        answers.add(future.get());
      } catch (ExecutionException failed) {
        answers.add(failed.getCause());
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
    return answers;
  }

  @Override
  public List<String> pipeline(Map<String, String> pairs) {
    RedisAsyncCommands<String, String> async = connection.async();
    return pipelined(futures -> pairs.forEach((key, value) -> {
      async.set(key, value);
      futures.add(async.get(key));
    })).stream().map(String.class::cast).toList();
  }

  @Override
  public List<Object> pipelineOfError(String key) {
    RedisAsyncCommands<String, String> async = connection.async();
    return pipelined(futures -> {
      futures.add(async.set(key, "v"));
      futures.add(async.incr(key));
      futures.add(async.get(key));
    });
  }

  @Override
  public List<Object> transaction() {
    r.multi();
    r.incr("n");
    r.rpush("l", "a", "b");
    r.lrange("l", 0, -1);
    r.get("none");
    return r.exec().stream().toList();
  }

  @Override
  public Long appendWatched(String key, String text, Runnable meanwhile) {
    r.watch(key);
    meanwhile.run();
    r.multi();
    r.append(key, text);
    TransactionResult result = r.exec();
    return result.wasDiscarded() ? null : result.get(0);
  }

  @Override
  public Script script(String source) {
    String sha = r.digest(source);
    return (from, to, amount) -> {
      String[] keys = {from, to};
      String argument = String.valueOf(amount);
      try {
        return r.evalsha(sha, ScriptOutputType.MULTI, keys, argument);
      } catch (RedisNoScriptException flushed) {
        return r.eval(source, ScriptOutputType.MULTI, keys, argument);
      }
    };
  }

  @Override
  public long publish(String channel, String text) {
    return r.publish(channel, text);
  }

  @Override
  public Subscription subscribe(String channel, String pattern, Receiver receiver) {
    StatefulRedisPubSubConnection<String, String> own = client.connectPubSub();
    own.addListener(new RedisPubSubAdapter<>() {
      @Override
      public void message(String from, String text) {
        receiver.message(false, text);
      }

      @Override
      public void message(String matched, String from, String text) {
        receiver.message(true, text);
      }
    });
    own.sync().subscribe(channel);
    own.sync().psubscribe(pattern);
    return new Subscription() {
      @Override
      public void leaveChannel() {
        own.sync().unsubscribe(channel);
      }

      @Override
      public void leavePattern() {
        own.sync().punsubscribe(pattern);
      }

      @Override
      public void close() {
        own.close();
      }
    };
  }

  @Override
  public long publishShard(String channel, String text) {
    return r.spublish(channel, text);
  }

  @Override
  public Cleanup subscribeShard(String channel, Consumer<String> receiver) {
    StatefulRedisPubSubConnection<String, String> own = client.connectPubSub();
    own.addListener(new RedisPubSubAdapter<>() {
      @Override
      public void smessage(String from, String text) {
        receiver.accept(text);
      }
    });
    own.sync().ssubscribe(channel);
    return own::close;
  }

  @Override
  public List<String> blPop(double seconds, String... keys) {
    try (StatefulRedisConnection<String, String> own = client.connect()) {
      KeyValue<String, String> popped = own.sync().blpop(seconds, keys);
      return popped == null ? null : List.of(popped.getKey(), popped.getValue());
    }
  }

  @Override
  public Cached cached() {
    StatefulRedisConnection<String, String> own = client.connect();
    CacheFrontend<String, String> cache = ClientSideCaching.enable(
        CacheAccessor.forMap(new ConcurrentHashMap<>()), own, TrackingArgs.Builder.enabled());
    return new Cached() {
      @Override
      public String get(String key) {
        return cache.get(key);
      }

      @Override
      public void close() {
        own.close();
      }
    };
  }
}
