// The cases that every language has: cases/combined.txt says what they assert.

import * as check from './check.js';
import * as scripts from './scripts.js';
import * as shared from './shared.js';
import * as transactions from './transactions.js';
import * as users from './users.js';

const cases = { ...transactions.cases, ...scripts.cases, ...users.cases };

/** `connect(options)` makes connected clients of the protocol under test, `options` its own. */
export async function run(r, connect, options) {
  const names = shared.names('combined.txt');
  check.equal('the cases of the list', Object.keys(cases).sort(), [...names].sort());
  for (const name of names) {
    await r.flushAll();
    await cases[name](r, connect, options);
    console.log('ok case', name);
  }
  await r.flushAll();
}
