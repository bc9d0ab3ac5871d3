// One of several processes that use one key of rate-limiter-flexible.

import { fileURLToPath } from 'node:url';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { connect } from './processes.js';

export const processes = 4;
export const hits = 200;
/** Not a multiple of `hits`. */
export const points = 333;

if (process.argv[1] === fileURLToPath(import.meta.url)) await child();

async function child() {
  // Separate connections, which belong to different threads of the server.
  const limiters = Array.from({ length: 4 }, () => new RateLimiterRedis({
    storeClient: connect(), keyPrefix: 'shared', points, duration: 60,
  }));
  await Promise.all(limiters.map((limiter) => limiter.client.ping()));
  process.send('ready');
  await new Promise((resolve) => process.once('message', resolve));
  const results = await Promise.all(Array.from({ length: hits }, (_, i) => hit(limiters[i % 4])));
  process.send(results);
}

async function hit(limiter) {
  try {
    return answer(true, await limiter.consume('everyone'));
  } catch (refused) {
    // An error of the connection or the server is not a refusal.
    if (refused instanceof Error) throw refused;
    return answer(false, refused);
  }
}

function answer(allowed, { consumedPoints, msBeforeNext }) {
  return { allowed, consumed: consumedPoints, msBeforeNext };
}
