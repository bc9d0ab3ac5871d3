// Transactions: `multi()` of node-redis, and WATCH on a connection of a pool.

import { MultiErrorReply, WatchError, createClientPool } from 'redis';
import * as check from './check.js';

const notInteger = 'ERR value is not an integer or out of range';

async function replies(r) {
  const multi = r.multi().set('n', '41').incr('n').get('n').lPush('l', ['a', 'b']);
  const answers = await multi.lRange('l', 0, -1).get('none').exec();
  check.equal('replies', answers, ['OK', 42, '42', 2, ['b', 'a'], null]);
}

async function errorInside(r) {
  const raised = await thrown(r.multi().set('text', 'abc').incr('text').append('text', 'd').exec());
  check.holds('a MultiErrorReply', raised instanceof MultiErrorReply, raised);
  check.equal('where the error is', raised.errorIndexes, [1]);
  check.equal('the error', raised.replies[1].message, notInteger);
  check.equal('its neighbours', [raised.replies[0], raised.replies[2]], ['OK', 4]);
  check.equal('they ran', await r.get('text'), 'abcd');
}

async function refusedInside(r) {
  await r.set('k', 'old');
  const unknown = "ERR unknown command 'NOSUCH', with args beginning with: 'a' ";
  const multi = r.multi().set('k', 'new').addCommand(['NOSUCH', 'a']);
  await check.error('the refused command', multi.exec(), unknown);
  // The library gives the first error alone; EXEC's own shows past it.
  await r.sendCommand(['MULTI']);
  check.equal('INCR is queued', await r.sendCommand(['INCR', 'k']), 'QUEUED');
  const arity = "ERR wrong number of arguments for 'get' command";
  await check.error('an arity', r.sendCommand(['GET']), arity);
  const aborted = 'EXECABORT Transaction discarded because of previous errors.';
  await check.error('EXEC', r.sendCommand(['EXEC']), aborted);
  check.equal('nothing ran', await r.get('k'), 'old');
}

async function discarded(r) {
  await r.sendCommand(['MULTI']);
  check.equal('INCR is queued', await r.sendCommand(['INCR', 'n']), 'QUEUED');
  check.equal('DISCARD', await r.sendCommand(['DISCARD']), 'OK');
  await check.error('EXEC after it', r.sendCommand(['EXEC']), 'ERR EXEC without MULTI');
  check.equal('nothing ran', await r.exists('n'), 0);
  check.equal('the next one', await r.multi().incr('n').exec(), [1]);
}

async function seenWhole(r, connect) {
  const keys = Array.from({ length: 16 }, (_, i) => `whole:${i}`);
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect()));
  await r.mSet(Object.fromEntries(keys.map((key) => [key, '0'])));
  let writing = 3;
  const torn = [];
  await Promise.all(clients.map(async (own, number) => {
    if (number < 3) {
      for (let i = 0; i < 100; i++) {
        const multi = own.multi();
        for (const key of keys) multi.set(key, `${number}:${i}`);
        await multi.exec();
      }
      writing -= 1;
    }
    while (writing > 0) {
      const seen = await own.mGet(keys);
      if (new Set(seen).size !== 1) torn.push(seen);
    }
  }));
  check.equal('values of two transactions in one MGET', torn, []);
  await Promise.all(clients.map((client) => client.close()));
}

async function changeAborts(r, connect) {
  const own = await connect();
  await own.set('k', '1');
  check.equal('WATCH', await own.watch('k'), 'OK');
  check.equal('GET while watching', await own.get('k'), '1');
  await r.set('k', 'other');
  const raised = await thrown(own.multi().set('k', 'mine').set('k2', 'mine').exec());
  check.holds('EXEC gives a WatchError', raised instanceof WatchError, raised);
  check.equal('nothing ran', await r.mGet(['k', 'k2']), ['other', null]);
  await own.close();
}

async function unwatched(r, connect) {
  const own = await connect();
  await own.watch(['k', 'k2']);
  await r.set('k', 'other');
  check.equal('UNWATCH', await own.unwatch(), 'OK');
  check.equal('EXEC', await own.multi().append('k', '+mine').exec(), [10]);
  await own.close();
}

async function retried(r, connect, options) {
  const pool = createClientPool(options, { minimum: 1, maximum: 5 });
  await pool.connect();
  const seen = [];
  await increment(pool, async (value) => {
    seen.push(value);
    if (seen.length === 1) await r.set('n', '10');
  });
  check.equal('it ran twice', [seen, await r.get('n')], [[null, '10'], '11']);
  await r.set('n', '0');
  await Promise.all(Array.from({ length: 5 }, async () => {
    for (let i = 0; i < 20; i++) await increment(pool, () => {});
  }));
  check.equal('5 clients count to 100', await r.get('n'), '100');
  await pool.close();
}

/** Counts `n` up on one connection of the pool, again after each conflict. */
function increment(pool, between) {
  return pool.execute(async (own) => {
    for (;;) {
      await own.watch('n');
      const value = await own.get('n');
      await between(value);
      try {
        return await own.multi().set('n', String(Number(value) + 1)).exec();
      } catch (raised) {
        if (!(raised instanceof WatchError)) throw raised;
      }
    }
  });
}

/** What the promise is rejected with. */
async function thrown(promise) {
  try {
    return check.fail('an error is due', JSON.stringify(await promise));
  } catch (raised) {
    return raised;
  }
}

export const cases = {
  'transaction: replies in order': replies,
  'transaction: an error inside': errorInside,
  'transaction: a refused command aborts': refusedInside,
  'transaction: discarded': discarded,
  'transaction: seen whole': seenWhole,
  'watch: a change aborts': changeAborts,
  'watch: unwatched': unwatched,
  'watch: retried until it holds': retried,
};
