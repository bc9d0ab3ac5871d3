// What the cases need, by the methods of ioredis.

import { Redis } from 'ioredis';

export async function open({ protocol, port, tls, login }) {
  const r = new Redis({ host: 'localhost', port, protocol, tls, ...login });
  r.on('error', () => {});
  await r.ping();
  return new Subject(r);
}

class Subject {
  constructor(client) {
    this.r = client;
  }

  close() { return this.r.quit(); }

  set(key, value) { return this.r.set(key, value); }
  get(key) { return this.r.get(key); }
  getBytes(key) { return this.r.getBuffer(key); }
  incrBy(key, amount) { return this.r.incrby(key, amount); }
  exists(key) { return this.r.exists(key); }

  async hGetAll(key) { return { ...(await this.r.hgetall(key)) }; }
  lPush(key, value) { return this.r.lpush(key, value); }
  sMembers(key) { return this.r.smembers(key); }

  async zRange(key) {
    const flat = await this.r.zrange(key, 0, -1, 'WITHSCORES');
    return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], +flat[2 * i + 1]]);
  }


  async pipeline(pairs) {
    const pipe = this.r.pipeline();
    for (const [key, value] of pairs) pipe.set(key, value).get(key);
    return answers(await pipe.exec());
  }

  async pipelineOfError(key) {
    return answers(await this.r.pipeline().set(key, 'v').incr(key).get(key).exec());
  }

  async transaction() {
    const multi = this.r.multi().incr('n').rpush('l', 'a', 'b').lrange('l', 0, -1).get('none');
    return answers(await multi.exec());
  }

  async appendWatched(key, text, meanwhile) {
    const own = this.r.duplicate();
    await own.watch(key);
    await meanwhile();
    const all = await own.multi().append(key, text).exec();
    await own.quit();
    return all && answers(all);
  }

  /** A script becomes a method of the client. */
  async script(source) {
    this.r.defineCommand('transfer', { numberOfKeys: 2, lua: source });
    return (...given) => this.r.transfer(...given);
  }

  async endScript() {}

  publish(channel, text) { return this.r.publish(channel, text); }

  async subscribe(channel, pattern, onMessage, onPatternMessage) {
    const own = this.r.duplicate();
    own.on('error', () => {});
    own.on('message', (_, text) => onMessage(text));
    own.on('pmessage', (_pattern, _channel, text) => onPatternMessage(text));
    await own.subscribe(channel);
    await own.psubscribe(pattern);
    return {
      leaveChannel: () => own.unsubscribe(channel),
      leavePattern: () => own.punsubscribe(pattern),
      close: () => own.quit(),
    };
  }

  publishShard(channel, text) { return this.r.spublish(channel, text); }

  async subscribeShard(channel, onMessage) {
    const own = this.r.duplicate();
    own.on('smessage', (_, text) => onMessage(text));
    await own.ssubscribe(channel);
    return { close: () => own.quit() };
  }

  async blPop(keys, seconds) {
    const own = this.r.duplicate();
    const popped = await own.blpop(...keys, seconds);
    await own.quit();
    return popped;
  }
}

/** The replies of a pipeline: each is an error or a value. */
function answers(pairs) {
  return pairs.map(([error, value]) => error ?? value);
}
