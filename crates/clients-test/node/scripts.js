// Scripts and functions: the options `scripts` and `functions` of node-redis, and its methods.

import { RESP_TYPES, defineScript } from 'redis';
import * as check from './check.js';
import * as shared from './shared.js';

const library = shared.text('library.lua');
const two = {
  NUMBER_OF_KEYS: 2,
  parseCommand(parser, from, to, amount) {
    parser.pushKey(from);
    parser.pushKey(to);
    parser.push(String(amount));
  },
  transformReply: undefined,
};
const one = {
  NUMBER_OF_KEYS: 1,
  parseCommand: (parser, key) => parser.pushKey(key),
  transformReply: undefined,
};
const transfer = defineScript({ ...two, SCRIPT: shared.text('transfer.lua') });
const increment = defineScript({ ...one, SCRIPT: "return redis.call('INCR', KEYS[1])" });
const write = defineScript({ ...one, SCRIPT: "return redis.call('SET', KEYS[1], 'w')" });
const more = {
  scripts: { transfer, increment },
  functions: { accounts: { transfer: two, balance: { ...one, IS_READ_ONLY: true } } },
};

async function fallsBack(r, connect) {
  const own = await connect(more);
  await r.mSet({ a: '100', b: '1' });
  check.equal('the first run', await own.transfer('a', 'b', 10), [90, 11]);
  const known = await r.scriptExists([transfer.SHA1, '0'.repeat(40)]);
  check.equal('SCRIPT EXISTS', known, [1, 0]);
  const again = await r.evalSha(transfer.SHA1, { keys: ['a', 'b'], arguments: ['1'] });
  check.equal('EVALSHA', again, [89, 12]);
  check.equal('SCRIPT FLUSH', await r.scriptFlush(), 'OK');
  check.equal('SCRIPT EXISTS after it', await r.scriptExists(transfer.SHA1), [0]);
  check.equal('the run after it', await own.transfer('b', 'a', 2), [10, 91]);
  check.equal('SCRIPT LOAD', await r.scriptLoad(transfer.SCRIPT), transfer.SHA1);
  await own.close();
}

async function types(r) {
  const want = [42, 2, -7, 'text', 'FINE', [1, ['nested', 'k']], null, 1, '{"a":[1,2]}', '2'];
  const given = { keys: ['k'], arguments: ['x', 'y'] };
  check.equal('replies', await r.eval(shared.text('replies.lua'), given), want);
}

async function errors(r, connect) {
  const own = await connect(more);
  await r.mSet({ text: 'abc', a: '3' });
  const where = `script: ${increment.SHA1}, on @user_script:1.`;
  const notInteger = `ERR value is not an integer or out of range ${where}`;
  await check.error('of a command', own.increment('text'), notInteger);
  await check.error('of the script', own.transfer('a', 'b', 4), 'POOR a has 3');
  const missing = 'NOSCRIPT No matching script. Please use EVAL.';
  await check.error('NOSCRIPT', r.evalSha('0'.repeat(40)), missing);
  const raised = await r.eval('return (').catch((error) => error.message);
  const compiling = 'ERR Error compiling script (new function): user_script:1: ';
  check.holds('of the compiler', raised.startsWith(compiling), raised);
  await own.close();
}

async function readOnly(r) {
  await r.set('k', 'v');
  const get = r.evalRo("return redis.call('GET', KEYS[1])", { keys: ['k'] });
  check.equal('EVAL_RO', await get, 'v');
  const text = 'ERR Write commands are not allowed from read-only scripts. '
    + `script: ${write.SHA1}, on @user_script:1.`;
  await check.error('a write', r.evalRo(write.SCRIPT, { keys: ['k'] }), text);
  check.equal('nothing was written', await r.get('k'), 'v');
}

async function inTransaction(r, connect) {
  const own = await connect(more);
  await r.scriptFlush();
  // The first of the two goes as EVAL, the second as EVALSHA.
  const multi = own.multi().set('a', '5').transfer('a', 'b', 2).transfer('a', 'b', 1).get('a');
  check.equal('EXEC', await multi.exec(), ['OK', [3, 2], [2, 3], '2']);
  await own.close();
}

async function seenWhole(r, connect) {
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect(more)));
  await r.mSet({ a: '1000', b: '1000' });
  let working = 4;
  const wrong = [];
  await Promise.all(clients.map(async (own, number) => {
    if (number < 4) {
      const [from, to] = number % 2 === 0 ? ['a', 'b'] : ['b', 'a'];
      for (let i = 0; i < 100; i++) await own.transfer(from, to, number < 2 ? 1 : 2);
      working -= 1;
    }
    while (working > 0) {
      const [a, b] = await own.mGet(['a', 'b']);
      if (Number(a) + Number(b) !== 2000) wrong.push([a, b]);
    }
  }));
  check.equal('wrong sums', wrong, []);
  check.equal('what is left', await r.mGet(['a', 'b']), ['1000', '1000']);
  await Promise.all(clients.map((client) => client.close()));
}

async function loaded(r, connect) {
  const own = await connect(more);
  await r.functionFlush();
  check.equal('FUNCTION LOAD', await r.functionLoad(library), 'accounts');
  const exists = "ERR Library 'accounts' already exists";
  await check.error('FUNCTION LOAD again', r.functionLoad(library), exists);
  const replaced = await r.functionLoad(library, { REPLACE: true });
  check.equal('FUNCTION LOAD REPLACE', replaced, 'accounts');
  const listed = await r.functionList({ LIBRARYNAME: 'acc*' });
  const seen = listed.map((l) => [l.library_name, l.functions.map((f) => f.name).sort()]);
  check.equal('FUNCTION LIST', seen, [['accounts', ['balance', 'transfer']]]);
  await r.set('a', '10');
  check.equal('FCALL', await own.accounts.transfer('a', 'b', 3), 3);
  check.equal('what FCALL left', await r.mGet(['a', 'b']), ['7', '3']);
  check.equal('FUNCTION DELETE', await r.functionDelete('accounts'), 'OK');
  const call = own.accounts.transfer('a', 'b', 3);
  await check.error('FCALL after it', call, 'ERR Function not found');
  const gone = 'ERR Library not found';
  await check.error('FUNCTION DELETE again', r.functionDelete('accounts'), gone);
  await own.close();
}

async function dumped(r) {
  const bytes = r.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  await r.functionLoad(library, { REPLACE: true });
  const dump = await bytes.functionDump();
  check.equal('FUNCTION FLUSH', await r.functionFlush('SYNC'), 'OK');
  check.equal('FUNCTION LIST after it', await r.functionList(), []);
  check.equal('FUNCTION RESTORE', await r.functionRestore(dump), 'OK');
  await r.set('a', '7');
  check.equal('FCALL', await r.fCall('balance', { keys: ['a'] }), '7');
  const exists = 'ERR Library accounts already exists';
  await check.error('FUNCTION RESTORE again', r.functionRestore(dump), exists);
  const other = Buffer.concat([dump.subarray(0, -1), Buffer.from('?')]);
  const wrong = 'ERR DUMP payload version or checksum are wrong';
  const bad = r.functionRestore(other, { mode: 'REPLACE' });
  await check.error('FUNCTION RESTORE of another', bad, wrong);
  await r.functionFlush();
}

async function functionReadOnly(r, connect) {
  const own = await connect(more);
  await r.functionLoad(library, { REPLACE: true });
  await r.set('a', '7');
  // IS_READ_ONLY makes it FCALL_RO.
  check.equal('FCALL_RO', await own.accounts.balance('a'), '7');
  const text = 'ERR Can not execute a script with write flag using *_ro command.';
  const call = r.fCallRo('transfer', { keys: ['a', 'b'], arguments: ['1'] });
  await check.error('FCALL_RO that writes', call, text);
  await r.functionFlush();
  await own.close();
}

export const cases = {
  'script: EVALSHA falls back to EVAL': fallsBack,
  'script: types of replies': types,
  'script: errors': errors,
  'script: read only': readOnly,
  'script: in a transaction': inTransaction,
  'script: seen whole': seenWhole,
  'function: loaded and called': loaded,
  'function: dumped and restored': dumped,
  'function: read only': functionReadOnly,
};
