// rate-limiter-flexible checks a limit by a Lua script, which counts and sets the expiry. If it
// were not atomic, processes that use one key would count wrong or leave a key without expiry.

import { RateLimiterRedis } from 'rate-limiter-flexible';
import * as check from './check.js';
import { connect, messages, start, stop } from './processes.js';
import { hits, points, processes } from './limiter-child.js';

export async function run() {
  await shared();
  const client = connect();
  await single(client);
  await expiring(client);
  client.disconnect();
}

/** Several processes use one key at the same time: as many hits are allowed as there are points. */
async function shared() {
  const children = start(processes, './limiter-child.js');
  await messages(children);
  for (const child of children) child.send('go');
  const results = (await messages(children)).flat();
  await stop(children);
  check.equal('each hit has an answer', results.length, processes * hits);
  const consumed = results.map((result) => result.consumed).sort((a, b) => a - b);
  const each = Array.from({ length: processes * hits }, (_, i) => i + 1);
  check.equal('each count occurs once', consumed, each);
  const allowed = results.filter((result) => result.allowed);
  check.equal('as many are allowed as there are points', allowed.length, points);
  const last = Math.max(...allowed.map((result) => result.consumed));
  check.equal('these are the first ones', last, points);
  const odd = results.filter(({ msBeforeNext: ms }) => ms <= 0 || ms > 60_000);
  check.equal('all know when the limit ends', odd, []);
}

async function single(client) {
  const limiter = new RateLimiterRedis({
    storeClient: client, keyPrefix: 'single', points: 5, duration: 60, blockDuration: 30,
  });
  check.equal('get of a missing key', await limiter.get('k'), null);
  check.equal('consume', (await limiter.consume('k', 2)).remainingPoints, 3);
  check.equal('penalty', (await limiter.penalty('k', 2)).consumedPoints, 4);
  check.equal('reward', (await limiter.reward('k', 1)).consumedPoints, 3);
  check.equal('consume again', (await limiter.consume('k', 2)).remainingPoints, 0);
  const refused = await limiter.consume('k').catch((result) => result);
  check.equal('one more is refused', [refused.consumedPoints, refused.remainingPoints], [6, 0]);
  check.between('it is blocked', refused.msBeforeNext, 20_000, 30_000);
  check.equal('delete', await limiter.delete('k'), true);
  check.equal('consume after it', (await limiter.consume('k')).consumedPoints, 1);
  await limiter.block('k', 40);
  check.between('block', (await limiter.get('k')).msBeforeNext, 30_000, 40_000);
}

async function expiring(client) {
  const limiter = new RateLimiterRedis({
    storeClient: client, keyPrefix: 'short', points: 2, duration: 1,
  });
  const allowed = () => limiter.consume('k').then(() => true, () => false);
  check.equal('two points', [await allowed(), await allowed()], [true, true]);
  // On a busy machine the duration may end between two hits, but not every time.
  await check.eventually('the points are used up', async () => !(await allowed()));
  await check.eventually('the points come back', allowed);
}
