// Bytes, bulk and connections: what an application does to a server besides single commands.

import { randomBytes } from 'node:crypto';
import { RESP_TYPES, createClientPool } from 'redis';
import * as check from './check.js';

/** `options` are those of the protocol under test, `connect(more)` makes connected clients. */
export async function run(r, connect, options) {
  const bytes = r.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  await binary(r, bytes);
  await unicode(r);
  await large(bytes);
  await pipelines(r);
  await concurrency(connect);
  await pool(r, options);
  await reconnecting(r, connect);
  await r.flushAll();
}

async function binary(r, bytes) {
  const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  await r.set('bin', every);
  check.equal('a value of every byte', await bytes.get('bin'), every);
  await r.set(every, 'x');
  check.equal('a key of every byte', await r.get(every), 'x');
  const found = (await bytes.keys('*')).sort(Buffer.compare);
  check.equal('KEYS gives it back', found, [every, Buffer.from('bin')]);
  const protocol = '$3\r\nfoo\r\n*1\r\n+OK\r\n\0';
  await r.set('p', protocol);
  check.equal('a value like the protocol', await r.get('p'), protocol);
  check.equal('ECHO of bytes', await bytes.echo(every), every);
  check.equal('an empty key', [await r.set('', 'x'), await r.get('')], ['OK', 'x']);
  await r.flushDb();
}

async function unicode(r) {
  const text = 'Zażółć gęślą jaźń 日本語 🦀 \u0000 \u202e';
  await r.set('ключ🗝', text);
  check.equal('a text in Unicode', await r.get('ключ🗝'), text);
  check.equal('STRLEN counts bytes', await r.strLen('ключ🗝'), Buffer.byteLength(text));
  await r.flushDb();
}

async function large(bytes) {
  const value = randomBytes(10_000_000);
  check.equal('SET of 10 MB', (await bytes.set('large', value)).toString(), 'OK');
  check.equal('STRLEN of 10 MB', await bytes.strLen('large'), value.length);
  check.holds('GET of 10 MB', value.equals(await bytes.get('large')));
  const within = await bytes.getRange('large', 5_000_000, 5_000_099);
  check.equal('GETRANGE within', within, value.subarray(5_000_000, 5_000_100));
  check.equal('APPEND to it', await bytes.append('large', 'end'), value.length + 3);
  check.equal('UNLINK of it', await bytes.unlink('large'), 1);
}

async function pipelines(r) {
  const pipe = r.multi();
  const want = [];
  for (let i = 0; i < 5_000; i++) {
    pipe.set(`p:${i}`, String(i)).get(`p:${i}`);
    want.push('OK', String(i));
  }
  check.equal('a pipeline of 10,000', await pipe.execAsPipeline(), want);
  // Commands issued in one turn of the event loop leave in one write.
  const [ok, error, text] = await Promise.allSettled([
    r.set('text', 'abc'), r.incr('text'), r.get('text'),
  ]);
  check.equal('an error within a pipeline', error.status, 'rejected');
  check.equal('its neighbours', [ok.value, text.value], ['OK', 'abc']);
  check.equal('DBSIZE after it', await r.dbSize(), 5_001);
  await r.flushDb();
}

async function concurrency(connect) {
  const clients = await Promise.all(Array.from({ length: 20 }, () => connect()));
  await Promise.all(clients.map(async (client) => {
    for (let i = 0; i < 250; i++) await client.incr('counter');
  }));
  check.equal('20 connections count to 5,000', await clients[0].get('counter'), '5000');
  await Promise.all(clients.map((client) => client.close()));
}

async function pool(r, options) {
  const shared = createClientPool({ ...options, name: 'pooled' }, { minimum: 1, maximum: 4 });
  await shared.connect();
  const use = async (number) => {
    for (let i = 0; i < 50; i++) {
      await shared.set(`pool:${number}`, String(i));
      if ((await shared.get(`pool:${number}`)) !== String(i)) return false;
    }
    return true;
  };
  const held = await Promise.all(Array.from({ length: 12 }, (_, number) => use(number)));
  check.holds('12 tasks share a pool of 4', held.every((right) => right), held);
  const pooled = (await r.clientList()).filter((client) => client.name === 'pooled');
  check.between('the connections of the pool', pooled.length, 1, 4);
  await shared.close();
}

async function reconnecting(r, connect) {
  const client = await connect({ name: 'again', database: 1 });
  const id = await client.clientId();
  const ready = new Promise((resolve) => client.once('ready', resolve));
  check.equal('CLIENT KILL of an idle one', await r.clientKill({ filter: 'ID', id }), 1);
  await ready;
  check.equal('it reconnects', await client.set('back', 'yes'), 'OK');
  check.equal('and finds its key', await client.get('back'), 'yes');
  const info = await client.clientInfo();
  check.holds('under a new id', info.id > id, info);
  check.equal('with its name and database', [info.name, info.db], ['again', 1]);
  await client.close();
}
