// The key commands: life, expiry, names, databases, iteration, inspection.

import * as check from './check.js';

/** The client's database 0 is empty before and after. */
export async function run(r) {
  await life(r);
  await expiry(r);
  await expiryConditions(r);
  await names(r);
  await databases(r);
  await iteration(r);
  await inspection(r);
  await r.flushAll();
}

async function life(r) {
  await r.mSet({ a: '1', b: '2', c: '3' });
  check.equal('EXISTS counts each mention', await r.exists(['a', 'b', 'none', 'a']), 3);
  check.equal('TOUCH', await r.touch(['a', 'none']), 1);
  check.equal('TYPE', [await r.type('a'), await r.type('none')], ['string', 'none']);
  check.equal('DEL', await r.del(['a', 'none']), 1);
  check.equal('UNLINK', await r.unlink(['b', 'c', 'none']), 2);
  check.equal('DBSIZE after that', await r.dbSize(), 0);
  check.equal('RANDOMKEY of nothing', await r.randomKey(), null);
  await r.set('only', '1');
  check.equal('RANDOMKEY', await r.randomKey(), 'only');
  await r.del('only');
}

async function expiry(r) {
  const now = Math.floor(Date.now() / 1000);
  await r.set('k', 'v');
  check.equal('TTL without expiry', [await r.ttl('k'), await r.pTTL('k')], [-1, -1]);
  check.equal('TTL of nothing', [await r.ttl('none'), await r.pTTL('none')], [-2, -2]);
  check.equal('EXPIRETIME without expiry', await r.expireTime('k'), -1);
  check.equal('PEXPIRETIME of nothing', await r.pExpireTime('none'), -2);
  check.equal('EXPIRE of nothing', await r.expire('none', 10), 0);
  check.equal('EXPIRE', await r.expire('k', 100), 1);
  check.between('TTL after EXPIRE', await r.ttl('k'), 90, 100);
  check.equal('PEXPIRE', await r.pExpire('k', 30_000), 1);
  check.between('PTTL after PEXPIRE', await r.pTTL('k'), 25_000, 30_000);
  check.equal('EXPIREAT', await r.expireAt('k', now + 70), 1);
  check.equal('EXPIRETIME', await r.expireTime('k'), now + 70);
  check.equal('PEXPIREAT', await r.pExpireAt('k', now * 1000 + 80_003), 1);
  check.equal('PEXPIRETIME', await r.pExpireTime('k'), now * 1000 + 80_003);
  check.equal('PERSIST', [await r.persist('k'), await r.persist('k')], [1, 0]);
  check.equal('TTL after PERSIST', await r.ttl('k'), -1);
  check.equal('EXPIRE in the past', [await r.expire('k', -1), await r.exists('k')], [1, 0]);
  await r.set('soon', 'v');
  await r.pExpire('soon', 1);
  const gone = async () => (await r.exists('soon')) === 0;
  await check.eventually('a key with PEXPIRE 1 is gone', gone);
}

async function expiryConditions(r) {
  await r.set('k', 'v');
  check.equal('EXPIRE XX without expiry', await r.expire('k', 100, 'XX'), 0);
  check.equal('EXPIRE GT without expiry', await r.expire('k', 100, 'GT'), 0);
  check.equal('EXPIRE NX without expiry', await r.expire('k', 100, 'NX'), 1);
  check.equal('EXPIRE NX with expiry', await r.expire('k', 200, 'NX'), 0);
  check.equal('EXPIRE GT of less', await r.expire('k', 50, 'GT'), 0);
  check.equal('EXPIRE GT of more', await r.expire('k', 200, 'GT'), 1);
  check.equal('EXPIRE LT of more', await r.expire('k', 300, 'LT'), 0);
  check.equal('EXPIRE LT of less', await r.expire('k', 60, 'LT'), 1);
  check.equal('EXPIRE XX with expiry', await r.expire('k', 70, 'XX'), 1);
  check.between('TTL after all', await r.ttl('k'), 60, 70);
  await r.persist('k');
  check.equal('EXPIRE LT without expiry', await r.expire('k', 10, 'LT'), 1);
  await r.del('k');
}

async function names(r) {
  await r.set('a', '1', { expiration: { type: 'EX', value: 100 } });
  check.equal('RENAME', await r.rename('a', 'b'), 'OK');
  check.between('TTL of a renamed key', await r.ttl('b'), 90, 100);
  await check.error('RENAME of nothing', r.rename('none', 'x'), 'ERR no such key');
  await r.set('c', '3');
  check.equal('RENAMENX onto a key', await r.renameNX('b', 'c'), 0);
  check.equal('RENAMENX', await r.renameNX('b', 'd'), 1);
  check.equal('COPY', [await r.copy('d', 'e'), await r.get('e')], [1, '1']);
  check.between('TTL of a copy', await r.ttl('e'), 90, 100);
  check.equal('COPY onto a key', await r.copy('c', 'e'), 0);
  check.equal('COPY REPLACE', await r.copy('c', 'e', { REPLACE: true }), 1);
  check.equal('what COPY REPLACE left', await r.get('e'), '3');
  check.equal('COPY of nothing', await r.copy('none', 'x'), 0);
  check.equal('COPY DB', await r.copy('c', 'c', { DB: 1 }), 1);
  const same = 'ERR source and destination objects are the same';
  await check.error('COPY onto itself', r.copy('c', 'c'), same);
  await r.flushAll();
}

async function databases(r) {
  await r.set('k', 'zero');
  check.equal('MOVE', [await r.move('k', 3), await r.exists('k')], [1, 0]);
  check.equal('MOVE of nothing', await r.move('k', 3), 0);
  await r.select(3);
  check.equal('GET in database 3', await r.get('k'), 'zero');
  await r.select(0);
  await r.set('k', 'other');
  check.equal('MOVE onto a key', await r.move('k', 3), 0);
  check.equal('SWAPDB', await r.swapDb(0, 3), 'OK');
  check.equal('GET after SWAPDB', await r.get('k'), 'zero');
  check.equal('FLUSHDB', [await r.flushDb(), await r.dbSize()], ['OK', 0]);
  await r.select(3);
  check.equal('FLUSHDB left database 3', await r.get('k'), 'other');
  await r.select(0);
  check.equal('FLUSHDB ASYNC', await r.flushDb('ASYNC'), 'OK');
  check.equal('FLUSHALL SYNC', await r.flushAll('SYNC'), 'OK');
  await r.select(3);
  check.equal('FLUSHALL emptied database 3', await r.dbSize(), 0);
  await r.select(0);
  const index = 'ERR DB index is out of range';
  await check.error('SELECT of no database', r.sendCommand(['SELECT', '99']), index);
}

async function iteration(r) {
  const keys = Array.from({ length: 1000 }, (_, i) => `user:${i}`);
  await r.mSet(keys.map((key) => [key, 'x']));
  await r.set('other', 'y');
  const tens = Array.from({ length: 10 }, (_, i) => `user:99${i}`);
  check.equal('KEYS', (await r.keys('user:99?')).sort(), tens);
  check.equal('KEYS of a class', (await r.keys('user:[1-2]')).sort(), ['user:1', 'user:2']);
  check.equal('KEYS of nothing', await r.keys('none*'), []);
  const { cursor, keys: page } = await r.scan('0', { COUNT: 10 });
  const part = cursor !== '0' && page.length >= 1 && page.length < 200;
  check.holds('SCAN COUNT gives a part', part, [cursor, page]);
  check.equal('SCAN sees every key', await scan(r, { COUNT: 100 }), [...keys, 'other'].sort());
  check.equal('SCAN MATCH', await scan(r, { MATCH: 'oth*' }), ['other']);
  const strings = await scan(r, { TYPE: 'string', COUNT: 500 });
  check.equal('SCAN TYPE string', strings.length, 1001);
  check.equal('SCAN TYPE list', await scan(r, { TYPE: 'list', COUNT: 500 }), []);
  check.equal('DBSIZE', await r.dbSize(), 1001);
  await r.flushDb();
}

/** What a whole iteration finds, each key once. */
async function scan(r, options) {
  const found = new Set();
  for await (const page of r.scanIterator(options)) page.forEach((key) => found.add(key));
  return [...found].sort();
}

async function inspection(r) {
  await r.mSet({ int: '12345', embstr: 'short', raw: 'x'.repeat(100) });
  const keys = ['int', 'embstr', 'raw', 'none'];
  const encodings = await Promise.all(keys.map((key) => r.objectEncoding(key)));
  check.equal('OBJECT ENCODING', encodings, ['int', 'embstr', 'raw', null]);
  check.equal('OBJECT REFCOUNT', await r.objectRefCount('raw'), 1);
  check.between('OBJECT IDLETIME', await r.objectIdleTime('raw'), 0, 5);
  check.between('MEMORY USAGE', await r.memoryUsage('raw'), 100, 400);
  check.equal('MEMORY USAGE of nothing', await r.memoryUsage('none'), null);
  await r.flushDb();
}
