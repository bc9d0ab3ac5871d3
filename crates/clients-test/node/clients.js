// The cases of cases/clients.txt for node-redis and ioredis. `client-NAME.js` maps what the cases
// need to the methods of a library.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from 'redis';
import * as check from './check.js';

const channel = 'news:sport';
const pattern = 'news:*';
const transfer = shared('transfer.lua');
const notInteger = 'ERR value is not an integer or out of range';
const wrongType = 'WRONGTYPE Operation against a key holding the wrong kind of value';

/** Observes the server without the library under test. */
let admin;

/** The contents of `cases/NAME`. */
function shared(name) {
  return readFileSync(join(process.env.WEFT_CASES, name), 'utf8');
}

async function connected(s, { protocol, login }) {
  await s.get('k');
  const want = `${protocol} ${login?.username ?? 'default'}`;
  await check.eventually('protocol and user', async () => {
    const others = await otherClients();
    return others.length > 0 && others.every(({ resp, user }) => `${resp} ${user}` === want);
  });
}

/** The connections in CLIENT LIST except the admin's. */
async function otherClients() {
  const own = await admin.clientId();
  return (await admin.clientList()).filter(({ id }) => id !== own);
}

async function strings(s) {
  const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  check.equal('SET', await s.set('k', 'zażółć 🦀'), 'OK');
  check.equal('GET', await s.get('k'), 'zażółć 🦀');
  await s.set('bytes', every);
  check.equal('every byte', await s.getBytes('bytes'), every);
  check.equal('GET of a missing key', await s.get('none'), null);
  check.equal('INCRBY', [await s.incrBy('n', 41), await s.incrBy('n', 1)], [41, 42]);
}

async function collections(s) {
  await admin.hSet('h', { a: '1', b: '2' });
  await admin.sAdd('s', ['a', 'b']);
  await admin.zAdd('z', [{ value: 'b', score: 2.5 }, { value: 'a', score: 1 }]);
  check.equal('HGETALL', await s.hGetAll('h'), { a: '1', b: '2' });
  check.equal('SMEMBERS', (await s.sMembers('s')).sort(), ['a', 'b']);
  check.equal('ZRANGE WITHSCORES', await s.zRange('z'), [['a', 1], ['b', 2.5]]);
}

async function errors(s) {
  await s.set('k', 'v');
  await check.error('LPUSH to a string', s.lPush('k', 'x'), wrongType);
  check.equal('the connection stays usable', await s.get('k'), 'v');
}

async function pipeline(s) {
  const pairs = Array.from({ length: 1_000 }, (_, i) => [`p:${i}`, String(i)]);
  check.equal('replies', await s.pipeline(pairs), pairs.flatMap(([, value]) => ['OK', value]));
}

async function pipelineError(s) {
  const [first, error, last] = await s.pipelineOfError('k');
  check.equal('the commands around it', [first, last], ['OK', 'v']);
  check.equal('the error', [error instanceof Error, error.message], [true, notInteger]);
}

async function transaction(s) {
  check.equal('EXEC', await s.transaction(), [1, 2, ['a', 'b'], null]);
}

async function watched(s) {
  const change = () => admin.set('k', 'other');
  check.equal('EXEC', await s.appendWatched('k', '+mine', change), null);
  check.equal('nothing ran', await s.get('k'), 'other');
  check.equal('retried', await s.appendWatched('k', '+mine', () => {}), [10]);
  check.equal('what it left', await s.get('k'), 'other+mine');
}

async function script(s) {
  const run = await s.script(transfer);
  await admin.mSet({ a: '100', b: '1' });
  check.equal('the first run', await run('a', 'b', '10'), [90, 11]);
  check.equal('SCRIPT FLUSH', await admin.scriptFlush(), 'OK');
  check.equal('the run after it', await run('b', 'a', '1'), [10, 91]);
  await s.endScript();
}

async function scriptError(s) {
  const run = await s.script(transfer);
  await check.error('of the script', run('a', 'b', '1'), 'POOR a has 0');
  await s.endScript();
}

/** Subscribes to the channel and the pattern; `got` collects the messages. */
async function subscribed(s) {
  const got = { channel: [], pattern: [] };
  const own = await s.subscribe(channel, pattern,
    (text) => got.channel.push(text), (text) => got.pattern.push(text));
  check.equal('both are subscribed', [await subscribers(), await admin.pubSubNumPat()], [1, 1]);
  return { got, ...own };
}

async function subscribers() {
  return (await admin.pubSubNumSub([channel]))[channel];
}

async function arrived(p, count) {
  const all = () => p.got.channel.length + p.got.pattern.length >= count;
  await check.eventually('messages arrive', all);
  return [p.got.channel, p.got.pattern];
}

async function pubsub(s) {
  const p = await subscribed(s);
  const sent = Array.from({ length: 100 }, (_, i) => String(i));
  const counts = await Promise.all(sent.map((text) => s.publish(channel, text)));
  check.equal('PUBLISH counts both', counts, sent.map(() => 2));
  check.equal('each arrives twice', await arrived(p, 200), [sent, sent]);
  await p.close();
}

async function unsubscribed(s) {
  const p = await subscribed(s);
  await p.leaveChannel();
  check.equal('the channel has no subscriber', await subscribers(), 0);
  check.equal('PUBLISH counts the pattern', await s.publish(channel, '1'), 1);
  check.equal('the pattern\'s message', await arrived(p, 1), [[], ['1']]);
  await p.leavePattern();
  check.equal('PUBLISH counts no client', await s.publish(channel, '2'), 0);
  await p.close();
  check.equal('nothing more came', p.got, { channel: [], pattern: ['1'] });
}

async function pubsubKilled(s) {
  const p = await subscribed(s);
  await s.publish(channel, 'before');
  check.equal('before', await arrived(p, 2), [['before'], ['before']]);
  const old = await kill();
  await check.eventually('it subscribes again', async () => {
    const all = (await admin.clientList()).filter(({ sub, psub }) => sub === 1 && psub === 1);
    return all.length > 0 && all.every(({ id }) => !old.has(id));
  });
  await s.publish(channel, 'after');
  const twice = ['before', 'after'];
  check.equal('after', await arrived(p, 4), [twice, twice]);
  await p.close();
}

async function shardChannel(s) {
  const got = [];
  const own = await s.subscribeShard(channel, (text) => got.push(text));
  check.equal('subscribers', (await admin.pubSubShardNumSub([channel]))[channel], 1);
  const sent = Array.from({ length: 100 }, (_, i) => String(i));
  const counts = await Promise.all(sent.map((text) => s.publishShard(channel, text)));
  check.equal('SPUBLISH counts it', counts, sent.map(() => 1));
  await check.eventually('messages arrive', () => got.length >= 100);
  check.equal('messages', got, sent);
  await own.close();
}

async function served(s) {
  const popped = s.blPop(['q', 'other'], 30);
  const waits = ({ flags, cmd }) => flags.includes('b') && cmd === 'blpop';
  await check.eventually('BLPOP waits', async () => (await admin.clientList()).some(waits));
  check.equal('RPUSH', await admin.rPush('q', 'job'), 1);
  check.equal('BLPOP', await popped, ['q', 'job']);
  check.equal('the list is empty', await s.exists('q'), 0);
}

async function timedOut(s) {
  check.equal('BLPOP', await s.blPop(['q'], 0.05), null);
}

async function reconnection(s) {
  check.equal('before', await s.set('k', 'v'), 'OK');
  check.holds('connections were killed', (await kill()).size >= 1);
  await check.eventually('after', () => s.get('k').then((value) => value === 'v', () => false));
  check.equal('INCR', await s.incrBy('n', 1), 1);
}

async function cached(s) {
  const own = await s.cached();
  const gets = async () => (
    (await admin.info('commandstats')).match(/cmdstat_get:calls=(\d+)/)?.[1] ?? '0');
  await admin.set('k', 'old');
  check.equal('the first GET', await own.get('k'), 'old');
  const before = await gets();
  const more = await Promise.all(Array.from({ length: 10 }, () => own.get('k')));
  check.equal('more GETs', more, Array(10).fill('old'));
  check.equal('the server saw none of them', await gets(), before);
  await admin.set('k', 'new');
  await check.eventually('SET invalidates it', async () => (await own.get('k')) === 'new');
  const after = await gets();
  check.equal('it is cached again', [await own.get('k'), await gets()], ['new', after]);
  await admin.flushAll();
  await check.eventually('FLUSHALL invalidates it', async () => (await own.get('k')) === null);
  await own.close();
}

/** Kills all connections except the admin's, and returns their ids when they are closed. */
async function kill() {
  const ids = async () => (await otherClients()).map(({ id }) => id);
  const old = new Set(await ids());
  for (const type of ['NORMAL', 'PUBSUB']) await admin.clientKill({ filter: 'TYPE', type });
  const closed = async () => (await ids()).every((id) => !old.has(id));
  await check.eventually('the connections are closed', closed);
  return old;
}

const cases = {
  'connect: protocol and user': connected,
  'types: strings': strings,
  'types: collections': collections,
  'types: errors': errors,
  'pipeline: replies in order': pipeline,
  'pipeline: an error inside': pipelineError,
  'transaction: replies in order': transaction,
  'transaction: a watched key': watched,
  'script: before and after SCRIPT FLUSH': script,
  'script: an error': scriptError,
  'pubsub: channel and pattern': pubsub,
  'pubsub: unsubscribed': unsubscribed,
  'pubsub: shard channel': shardChannel,
  'pubsub: after CLIENT KILL': pubsubKilled,
  'blocking: served': served,
  'blocking: timed out': timedOut,
  'reconnection: after CLIENT KILL': reconnection,
  'tracking: cached until invalidated': cached,
};

/** Runs the cases on each kind of connection; `library` is the NAME of a `client-NAME.js`. */
export async function run(library) {
  const { open } = await import(`./client-${library}.js`);
  const {
    WEFT_PORT, WEFT_TLS_PORT, WEFT_CA, WEFT_USER: username, WEFT_PASSWORD: password,
  } = process.env;
  const port = Number(WEFT_PORT);
  admin = createClient({ socket: { host: '127.0.0.1', port } });
  await admin.connect();
  const login = { username, password };
  const tls = { ca: readFileSync(WEFT_CA) };
  const kinds = {
    resp2: { protocol: 2, port, login },
    resp3: { protocol: 3, port },
    tls: { protocol: 3, port: Number(WEFT_TLS_PORT), tls, login },
  };
  const names = shared('clients.txt').split('\n').filter((line) => line && !line.startsWith('#'));
  for (const [kind, options] of Object.entries(kinds)) {
    const subject = await open(options);
    for (const name of names) {
      if (name.startsWith('tracking: ') && (kind === 'resp2' || !subject.cached)) continue;
      await admin.flushAll();
      await cases[name](subject, options);
      console.log(`ok case ${kind}: ${name}`);
    }
    await subject.close();
  }
}
