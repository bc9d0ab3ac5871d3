// What the cases need, by the methods of node-redis.

import { RESP_TYPES, WatchError, createClient, defineScript } from 'redis';

export async function open({ protocol, port, tls, login }) {
  const socket = { host: 'localhost', port, ...(tls && { tls: true, ca: tls.ca }) };
  const options = { RESP: protocol, socket, ...login };
  return new Subject(options, await connect(options));
}

async function connect(options) {
  const client = createClient(options);
  // Without a listener, a connection error ends the process.
  client.on('error', () => {});
  await client.connect();
  return client;
}

class Subject {
  constructor(options, client) {
    this.options = options;
    this.r = client;
  }

  close() { return this.r.close(); }

  set(key, value) { return this.r.set(key, value); }
  get(key) { return this.r.get(key); }
  getBytes(key) { return this.r.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).get(key); }
  incrBy(key, amount) { return this.r.incrBy(key, amount); }
  exists(key) { return this.r.exists(key); }

  async hGetAll(key) { return { ...(await this.r.hGetAll(key)) }; }
  lPush(key, value) { return this.r.lPush(key, value); }
  sMembers(key) { return this.r.sMembers(key); }

  async zRange(key) {
    const all = await this.r.zRangeWithScores(key, 0, -1);
    return all.map(({ value, score }) => [value, score]);
  }


  /** SET and GET of each pair in one pipeline. */
  pipeline(pairs) {
    const pipe = this.r.multi();
    for (const [key, value] of pairs) pipe.set(key, value).get(key);
    return pipe.execAsPipeline();
  }

  /** SET, INCR and GET in one pipeline: node-redis sends what one turn of the event loop asks. */
  async pipelineOfError(key) {
    const all = [this.r.set(key, 'v'), this.r.incr(key), this.r.get(key)];
    return (await Promise.allSettled(all)).map(({ value, reason }) => reason ?? value);
  }

  transaction() {
    return this.r.multi().incr('n').rPush('l', ['a', 'b']).lRange('l', 0, -1).get('none').exec();
  }

  /** APPEND in a transaction that watches the key; null if another client changed the key. */
  async appendWatched(key, text, meanwhile) {
    const own = await connect(this.options);
    try {
      await own.watch(key);
      await meanwhile();
      return await own.multi().append(key, text).exec();
    } catch (raised) {
      if (!(raised instanceof WatchError)) throw raised;
      return null;
    } finally {
      await own.close();
    }
  }

  /** Returns a function that runs the script with two keys and an amount. */
  async script(source) {
    const run = defineScript({
      SCRIPT: source,
      NUMBER_OF_KEYS: 2,
      parseCommand(parser, from, to, amount) {
        parser.pushKeys([from, to]);
        parser.push(amount);
      },
      transformReply: undefined,
    });
    this.scripts = await connect({ ...this.options, scripts: { run } });
    return (...given) => this.scripts.run(...given);
  }

  endScript() { return this.scripts.close(); }

  publish(channel, text) { return this.r.publish(channel, text); }

  /** Calls one of the two functions with each message. */
  async subscribe(channel, pattern, onMessage, onPatternMessage) {
    const own = await connect(this.options);
    await own.subscribe(channel, onMessage);
    await own.pSubscribe(pattern, onPatternMessage);
    return {
      leaveChannel: () => own.unsubscribe(channel),
      leavePattern: () => own.pUnsubscribe(pattern),
      close: () => own.close(),
    };
  }

  publishShard(channel, text) { return this.r.sPublish(channel, text); }

  async subscribeShard(channel, onMessage) {
    const own = await connect(this.options);
    await own.sSubscribe(channel, onMessage);
    return { close: () => own.close() };
  }

  async blPop(keys, seconds) {
    const own = await connect(this.options);
    const popped = await own.blPop(keys, seconds);
    await own.close();
    return popped && [popped.key, popped.element];
  }

  /** A client that caches what it reads until the server invalidates it. */
  async cached() {
    const own = await connect({ ...this.options, clientSideCache: { ttl: 0, maxEntries: 0 } });
    return { get: (key) => own.get(key), close: () => own.close() };
  }
}
