// What the cases need, by the methods of Redisson, which presents keys as Java objects. It has no
// WATCH: its own transactions take locks.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RBatch;
import org.redisson.api.RClientSideCaching;
import org.redisson.api.RFuture;
import org.redisson.api.RPatternTopic;
import org.redisson.api.RScript;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.api.options.ClientSideCachingOptions;
import org.redisson.client.RedisException;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.ConstantDelay;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

final class RedissonSubject implements Subject {
  private final RedissonClient r;

  RedissonSubject(Address address) {
    Config config = new Config();
    config.setCodec(StringCodec.INSTANCE);
    config.setProtocol(address.resp3() ? Protocol.RESP3 : Protocol.RESP2);
    config.setUseScriptCache(true);
    String scheme = "redis";
    if (address.tls() != null) {
      config.setSslTrustManagerFactory(address.tls().managers());
      scheme = "rediss";
    }
    if (address.login() != null) {
      config.setUsername(address.login().user()).setPassword(address.login().password());
    }
    ConstantDelay soon = new ConstantDelay(Duration.ofMillis(50));
    config.useSingleServer()
        .setAddress(scheme + "://" + address.host() + ":" + address.port())
        .setConnectionMinimumIdleSize(1)
        .setSubscriptionConnectionMinimumIdleSize(1)
        .setRetryDelay(soon)
        .setReconnectionDelay(soon);
    r = Redisson.create(config);
  }

  @Override
  public void close() {
    r.shutdown(0, 10, TimeUnit.SECONDS);
  }

  @Override
  public void set(String key, String value) {
    r.getBucket(key).set(value);
  }

  @Override
  public String get(String key) {
    return r.<String>getBucket(key).get();
  }

  @Override
  public byte[] setAndGet(byte[] bytes) {
    r.getBucket("bytes", ByteArrayCodec.INSTANCE).set(bytes);
    return r.<byte[]>getBucket("bytes", ByteArrayCodec.INSTANCE).get();
  }

  @Override
  public long incrBy(String key, long amount) {
    return r.getAtomicLong(key).addAndGet(amount);
  }

  @Override
  public boolean exists(String key) {
    return r.getBucket(key).isExists();
  }

  @Override
  public Map<String, String> hGetAll(String key) {
    return r.<String, String>getMap(key).readAllMap();
  }

  @Override
  public void lPush(String key, String value) {
    r.<String>getDeque(key).addFirst(value);
  }

  @Override
  public Set<String> sMembers(String key) {
    return r.<String>getSet(key).readAll();
  }

  @Override
  public List<Scored> zRange(String key) {
    return r.<String>getScoredSortedSet(key).entryRange(0, -1).stream()
        .map(found -> new Scored(found.getValue(), found.getScore()))
        .toList();
  }

  @Override
  public List<String> pipeline(Map<String, String> pairs) {
    RBatch batch = r.createBatch();
    List<RFuture<String>> answers = new ArrayList<>();
    pairs.forEach((key, value) -> {
      batch.getBucket(key).setAsync(value);
      answers.add(batch.<String>getBucket(key).getAsync());
    });
    batch.execute();
    return answers.stream().map(answer -> answer.toCompletableFuture().join()).toList();
  }

  @Override
  public List<Object> pipelineOfError(String key) {
    RBatch batch = r.createBatch();
    List<RFuture<?>> answers = List.of(
        batch.getBucket(key).setAsync("v"),
        batch.getAtomicLong(key).incrementAndGetAsync(),
        batch.getBucket(key).getAsync());
    try {
      batch.execute();
    } catch (RedisException expected) {
      // The future of the command has the same exception.
    }
    List<Object> all = new ArrayList<>();
    for (RFuture<?> answer : answers) {
      try {
        all.add(answer.toCompletableFuture().join());
      } catch (CompletionException failed) {
        all.add(failed.getCause());
      }
    }
    return all;
  }

  @Override
  public List<Object> transaction() {
    BatchOptions atomic =
        BatchOptions.defaults().executionMode(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC);
    RBatch batch = r.createBatch(atomic);
    batch.getAtomicLong("n").incrementAndGetAsync();
    RFuture<Integer> length = batch.<String>getDeque("l").addLastAsync("a", "b");
    batch.<String>getList("l").readAllAsync();
    batch.getBucket("none").getAsync();
    List<Object> answers = new ArrayList<>(batch.execute().getResponses());
    answers.set(1, length.toCompletableFuture().join().longValue());
    return answers;
  }

  @Override
  public Long appendWatched(String key, String text, Runnable meanwhile) {
    throw new UnsupportedOperationException("WATCH");
  }

  @Override
  public Script script(String source) {
    return (from, to, amount) -> r.getScript().eval(RScript.Mode.READ_WRITE, source,
        RScript.ReturnType.LIST, List.of(from, to), String.valueOf(amount));
  }

  @Override
  public long publish(String channel, String text) {
    return r.getTopic(channel).publish(text);
  }

  @Override
  public Subscription subscribe(String channel, String pattern, Receiver receiver) {
    RTopic topic = r.getTopic(channel);
    RPatternTopic patternTopic = r.getPatternTopic(pattern);
    topic.addListener(String.class, (from, text) -> receiver.message(false, text));
    patternTopic.addListener(String.class,
        (matched, from, text) -> receiver.message(true, text));
    return new Subscription() {
      @Override
      public void leaveChannel() {
        topic.removeAllListeners();
      }

      @Override
      public void leavePattern() {
        patternTopic.removeAllListeners();
      }

      @Override
      public void close() {
        leaveChannel();
        leavePattern();
      }
    };
  }

  @Override
  public long publishShard(String channel, String text) {
    return r.getShardedTopic(channel).publish(text);
  }

  @Override
  public Cleanup subscribeShard(String channel, Consumer<String> receiver) {
    RTopic topic = r.getShardedTopic(channel);
    topic.addListener(String.class, (from, text) -> receiver.accept(text));
    return topic::removeAllListeners;
  }

  @Override
  public List<String> blPop(double seconds, String... keys) {
    Duration wait = Duration.ofMillis((long) (seconds * 1000));
    try {
      String[] others = Arrays.copyOfRange(keys, 1, keys.length);
      org.redisson.api.Entry<String, String> popped =
          r.<String>getBlockingQueue(keys[0]).pollFromAnyWithName(wait, others);
      return popped == null ? null : List.of(popped.getKey(), popped.getValue());
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public Cached cached() {
    RClientSideCaching own = r.getClientSideCaching(ClientSideCachingOptions.defaults());
    return new Cached() {
      @Override
      public String get(String key) {
        return own.<String>getBucket(key).get();
      }

      @Override
      public void close() {
        own.destroy();
      }
    };
  }
}
