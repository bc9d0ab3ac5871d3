// The string commands, through node-redis's methods for them.

import * as check from './check.js';

/** The client's database is empty before and after. */
export async function run(r) {
  await setAndGet(r);
  await setExpiring(r);
  await getex(r);
  await many(r);
  await counters(r);
  await ranges(r);
  await lcs(r);
  await r.flushDb();
}

async function setAndGet(r) {
  check.equal('GET of nothing', await r.get('none'), null);
  check.equal('SET', await r.set('k', 'v'), 'OK');
  check.equal('GET', await r.get('k'), 'v');
  check.equal('SET NX on a key', await r.set('k', 'w', { condition: 'NX' }), null);
  check.equal('SET NX on nothing', await r.set('n', '1', { condition: 'NX' }), 'OK');
  check.equal('SET XX on nothing', await r.set('none', '1', { condition: 'XX' }), null);
  check.equal('SET XX on a key', await r.set('k', 'x', { condition: 'XX' }), 'OK');
  check.equal('SET GET', await r.set('k', 'y', { GET: true }), 'x');
  check.equal('SET GET on nothing', await r.set('fresh', '1', { GET: true }), null);
  check.equal('SET NX GET', await r.set('k', 'z', { condition: 'NX', GET: true }), 'y');
  check.equal('what SET NX GET left', await r.get('k'), 'y');
  check.equal('GETSET', await r.getSet('k', 'g'), 'y');
  check.equal('GETDEL', await r.getDel('k'), 'g');
  check.equal('GETDEL of nothing', await r.getDel('k'), null);
  check.equal('SETNX', await r.setNX('s', '1'), 1);
  check.equal('SETNX on a key', await r.setNX('s', '2'), 0);
  check.equal('GET of an empty value', [await r.set('e', ''), await r.get('e')], ['OK', '']);
}

async function setExpiring(r) {
  const now = Math.floor(Date.now() / 1000);
  const set = (type, value) => r.set('k', 'v', { expiration: { type, value } });
  check.equal('SET EX', await set('EX', 100), 'OK');
  check.between('TTL after EX', await r.ttl('k'), 90, 100);
  check.equal('SET PX', await set('PX', 50_000), 'OK');
  check.between('PTTL after PX', await r.pTTL('k'), 45_000, 50_000);
  check.equal('SET EXAT', await set('EXAT', now + 200), 'OK');
  check.equal('EXPIRETIME after EXAT', await r.expireTime('k'), now + 200);
  check.equal('SET PXAT', await set('PXAT', now * 1000 + 300_001), 'OK');
  check.equal('PEXPIRETIME after PXAT', await r.pExpireTime('k'), now * 1000 + 300_001);
  check.equal('SET KEEPTTL', await set('KEEPTTL'), 'OK');
  check.equal('PEXPIRETIME after KEEPTTL', await r.pExpireTime('k'), now * 1000 + 300_001);
  check.equal('SET drops the expiry', [await r.set('k', 'w'), await r.ttl('k')], ['OK', -1]);
  check.equal('SETEX', await r.setEx('k', 100, 'v'), 'OK');
  check.between('TTL after SETEX', await r.ttl('k'), 90, 100);
  check.equal('PSETEX', await r.pSetEx('k', 90_000, 'v'), 'OK');
  check.between('PTTL after PSETEX', await r.pTTL('k'), 85_000, 90_000);
  await r.set('gone', 'v', { expiration: { type: 'PX', value: 1 } });
  await check.eventually('a key with PX 1 is gone', async () => (await r.get('gone')) === null);
  check.equal('SET EXAT in the past', await set('EXAT', 1), 'OK');
  check.equal('GET after EXAT in the past', await r.get('k'), null);
}

async function getex(r) {
  const now = Math.floor(Date.now() / 1000);
  await r.set('k', 'v');
  check.equal('GETEX EX', await r.getEx('k', { type: 'EX', value: 100 }), 'v');
  check.between('TTL after GETEX EX', await r.ttl('k'), 90, 100);
  check.equal('GETEX PX', await r.getEx('k', { type: 'PX', value: 70_000 }), 'v');
  check.between('PTTL after GETEX PX', await r.pTTL('k'), 65_000, 70_000);
  await r.getEx('k', { type: 'EXAT', value: now + 50 });
  check.equal('GETEX EXAT', await r.expireTime('k'), now + 50);
  await r.getEx('k', { type: 'PXAT', value: now * 1000 + 60_007 });
  check.equal('GETEX PXAT', await r.pExpireTime('k'), now * 1000 + 60_007);
  check.equal('GETEX PERSIST', await r.getEx('k', { type: 'PERSIST' }), 'v');
  check.equal('TTL after GETEX PERSIST', await r.ttl('k'), -1);
  check.equal('GETEX of nothing', await r.getEx('none', { type: 'EX', value: 5 }), null);
}

async function many(r) {
  check.equal('MSET', await r.mSet({ m1: '1', m2: '2' }), 'OK');
  check.equal('MGET', await r.mGet(['m1', 'none', 'm2']), ['1', null, '2']);
  check.equal('MSETNX with a taken key', await r.mSetNX({ m2: 'x', m3: 'x' }), 0);
  check.equal('what MSETNX left', await r.mGet(['m2', 'm3']), ['2', null]);
  check.equal('MSETNX', await r.mSetNX({ m3: '3', m4: '4' }), 1);
  const pairs = Array.from({ length: 1000 }, (_, i) => [`many:${i}`, String(i)]);
  check.equal('MSET of 1000', await r.mSet(pairs), 'OK');
  const values = await r.mGet(pairs.map(([key]) => key));
  check.equal('MGET of 1000', values, pairs.map(([, value]) => value));
}

async function counters(r) {
  check.equal('INCR', await r.incr('c'), 1);
  check.equal('INCRBY', await r.incrBy('c', 41), 42);
  check.equal('DECR', await r.decr('c'), 41);
  check.equal('DECRBY', await r.decrBy('c', 50), -9);
  await r.set('big', '9223372036854775807');
  const overflow = 'ERR increment or decrement would overflow';
  await check.error('INCR past the largest', r.incr('big'), overflow);
  check.equal('INCRBYFLOAT', await r.incrByFloat('f', 10.5), '10.5');
  check.equal('INCRBYFLOAT of 0.1', await r.incrByFloat('f', 0.1), '10.6');
  await r.set('f', '3.0e3');
  check.equal('INCRBYFLOAT on an exponent', await r.incrByFloat('f', 200), '3200');
}

async function ranges(r) {
  check.equal('APPEND to nothing', await r.append('a', 'Hello'), 5);
  check.equal('APPEND', await r.append('a', ' World'), 11);
  check.equal('STRLEN', [await r.strLen('a'), await r.strLen('none')], [11, 0]);
  check.equal('GETRANGE', await r.getRange('a', 0, 4), 'Hello');
  check.equal('GETRANGE from the end', await r.getRange('a', -5, -1), 'World');
  check.equal('GETRANGE past the end', await r.getRange('a', 6, 100), 'World');
  check.equal('GETRANGE of an empty range', await r.getRange('a', 5, 3), '');
  check.equal('SETRANGE', await r.setRange('a', 6, 'Redis'), 11);
  check.equal('what SETRANGE left', await r.get('a'), 'Hello Redis');
  check.equal('SETRANGE past the end', await r.setRange('p', 3, 'x'), 4);
  check.equal('the zeros before it', await r.get('p'), '\0\0\0x');
}

async function lcs(r) {
  await r.mSet({ l1: 'ohmytext', l2: 'mynewtext' });
  check.equal('LCS', await r.lcs('l1', 'l2'), 'mytext');
  check.equal('LCS LEN', await r.lcsLen('l1', 'l2'), 6);
  const both = [[[4, 7], [5, 8]], [[2, 3], [0, 1]]];
  const indexes = async (options) => ({ ...(await r.lcsIdx('l1', 'l2', options)) });
  check.equal('LCS IDX', await indexes(), { matches: both, len: 6 });
  const long = { matches: [both[0]], len: 6 };
  check.equal('LCS IDX MINMATCHLEN', await indexes({ MINMATCHLEN: 4 }), long);
  const lengths = { ...(await r.lcsIdxWithMatchLen('l1', 'l2', { MINMATCHLEN: 4 })) };
  check.equal('LCS IDX WITHMATCHLEN', lengths, { matches: [[...both[0], 4]], len: 6 });
}
