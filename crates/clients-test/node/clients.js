// The cases that every client library has, for node-redis and ioredis: cases/clients.txt says what
// they assert. A file `client-NAME.js` does with the library's own methods what a case needs.

import { readFileSync } from 'node:fs';
import { createClient } from 'redis';
import * as check from './check.js';
import * as shared from './shared.js';

const channel = 'news:sport';
const pattern = 'news:*';
const transfer = shared.text('transfer.lua');
const notInteger = 'ERR value is not an integer or out of range';
const wrongType = 'WRONGTYPE Operation against a key holding the wrong kind of value';

/** Looks on past the library under test. */
let admin;

async function strings(s) {
  const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  check.equal('SET', await s.set('k', 'zażółć 🦀'), 'OK');
  check.equal('GET', await s.get('k'), 'zażółć 🦀');
  await s.set('bytes', every);
  check.equal('every byte', await s.getBytes('bytes'), every);
  check.equal('GET of nothing', await s.get('none'), null);
  check.equal('INCRBY', [await s.incrBy('n', 41), await s.incrBy('n', 1)], [41, 42]);
}

async function collections(s) {
  check.equal('HSET', await s.hSet('h', { a: '1', b: '2' }), 2);
  check.equal('HGETALL', await s.hGetAll('h'), { a: '1', b: '2' });
  check.equal('RPUSH', await s.rPush('l', ['a', 'b', 'c']), 3);
  check.equal('LRANGE', await s.lRange('l'), ['a', 'b', 'c']);
  check.equal('SADD', await s.sAdd('s', ['a', 'b', 'a']), 2);
  check.equal('SMEMBERS', (await s.sMembers('s')).sort(), ['a', 'b']);
  check.equal('ZADD', await s.zAdd('z', { b: 2.5, a: 1 }), 2);
  check.equal('ZRANGE WITHSCORES', await s.zRange('z'), [['a', 1], ['b', 2.5]]);
  const id = await s.xAdd('x', { f: 'v' });
  check.equal('XRANGE', await s.xRange('x'), [[id, { f: 'v' }]]);
}

async function errors(s) {
  await s.set('k', 'v');
  await check.error('LPUSH to a string', s.lPush('k', 'x'), wrongType);
  check.equal('the connection goes on', await s.get('k'), 'v');
}

async function pipeline(s) {
  const pairs = Array.from({ length: 1_000 }, (_, i) => [`p:${i}`, String(i)]);
  check.equal('replies', await s.pipeline(pairs), pairs.flatMap(([, value]) => ['OK', value]));
}

async function pipelineError(s) {
  const [first, error, last] = await s.pipelineOfError('k');
  check.equal('its neighbours', [first, last], ['OK', 'v']);
  check.equal('the error', [error instanceof Error, error.message], [true, notInteger]);
}

async function transaction(s) {
  check.equal('EXEC', await s.transaction(), [1, 2, ['a', 'b'], null]);
}

async function watched(s) {
  const change = () => admin.set('k', 'other');
  check.equal('EXEC', await s.appendWatched('k', '+mine', change), null);
  check.equal('nothing ran', await s.get('k'), 'other');
  check.equal('tried again', await s.appendWatched('k', '+mine', () => {}), [10]);
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

/** A subscription to the channel and the pattern, and what arrived. */
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
  check.equal('the channel is left', await subscribers(), 0);
  check.equal('PUBLISH counts the pattern', await s.publish(channel, '1'), 1);
  check.equal('it comes once', await arrived(p, 1), [[], ['1']]);
  await p.leavePattern();
  check.equal('PUBLISH counts nobody', await s.publish(channel, '2'), 0);
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

async function served(s) {
  const popped = s.blPop(['q', 'other'], 30);
  const waits = ({ flags, cmd }) => flags.includes('b') && cmd === 'blpop';
  await check.eventually('it waits', async () => (await admin.clientList()).some(waits));
  check.equal('RPUSH', await admin.rPush('q', 'job'), 1);
  check.equal('BLPOP', await popped, ['q', 'job']);
  check.equal('it is taken', await s.exists('q'), 0);
}

async function outOfTime(s) {
  check.equal('BLPOP', await s.blPop(['q'], 0.05), null);
}

async function reconnection(s) {
  check.equal('before', await s.set('k', 'v'), 'OK');
  check.holds('all are killed', (await kill()).size >= 1);
  await check.eventually('after', () => s.get('k').then((value) => value === 'v', () => false));
  check.equal('it goes on', await s.incrBy('n', 1), 1);
}

async function cached(s) {
  const own = await s.cached();
  const gets = async () => (
    (await admin.info('commandstats')).match(/cmdstat_get:calls=(\d+)/)?.[1] ?? '0');
  await admin.set('k', 'old');
  check.equal('the first GET', await own.get('k'), 'old');
  const before = await gets();
  const more = await Promise.all(Array.from({ length: 10 }, () => own.get('k')));
  check.equal('more of them', more, Array(10).fill('old'));
  check.equal('they stay in the client', await gets(), before);
  await admin.set('k', 'new');
  await check.eventually('SET invalidates it', async () => (await own.get('k')) === 'new');
  const after = await gets();
  check.equal('it is cached again', [await own.get('k'), await gets()], ['new', after]);
  await admin.flushAll();
  await check.eventually('FLUSHALL does so too', async () => (await own.get('k')) === null);
  await own.close();
}

/** Kills all connections but that of the admin, and gives their ids. */
async function kill() {
  const own = await admin.clientId();
  const ids = async () => (await admin.clientList()).map(({ id }) => id).filter((id) => id !== own);
  const old = new Set(await ids());
  for (const type of ['NORMAL', 'PUBSUB']) await admin.clientKill({ filter: 'TYPE', type });
  await check.eventually('they are gone', async () => (await ids()).every((id) => !old.has(id)));
  return old;
}

const cases = {
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
  'pubsub: after CLIENT KILL': pubsubKilled,
  'blocking: served': served,
  'blocking: out of time': outOfTime,
  'reconnection: after CLIENT KILL': reconnection,
  'caching: until invalidated': cached,
};

/** `library` is the name of a client. */
export async function run(library) {
  const { open } = await import(`./client-${library}.js`);
  const port = Number(process.env.WEFT_PORT);
  admin = createClient({ socket: { host: '127.0.0.1', port } });
  await admin.connect();
  const tls = { ca: readFileSync(process.env.WEFT_CA) };
  const kinds = {
    resp2: { protocol: 2, port },
    resp3: { protocol: 3, port },
    tls: { protocol: 3, port: Number(process.env.WEFT_TLS_PORT), tls },
  };
  for (const [kind, options] of Object.entries(kinds)) {
    const subject = await open(options);
    for (const name of shared.names('clients.txt')) {
      if (name.startsWith('caching: ') && (kind === 'resp2' || !subject.cached)) continue;
      await admin.flushAll();
      await cases[name](subject);
      console.log(`ok case ${kind}: ${name}`);
    }
    await subject.close();
  }
}
