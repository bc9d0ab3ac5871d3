// The requests that all clients send alike: cases/replies.txt says their form.

import { readFileSync } from 'node:fs';
import * as check from './check.js';

/** The database is empty before and after. */
export async function run(r) {
  let count = 0;
  for (const line of readFileSync(process.env.WEFT_REPLIES, 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [name, reply, request] = line.split(' | ');
    check.equal(name, await answer(r, request.split(' ')), reply);
    count += 1;
  }
  check.holds('replies that all clients read alike', count > 30, count);
}

/** The reply in the notation of the file. */
async function answer(r, words) {
  try {
    const reply = await r.sendCommand(words);
    if (reply === null) return '_';
    return (typeof reply === 'number' ? ':' : '+') + reply;
  } catch (raised) {
    return `-${raised.message}`;
  }
}
