// node-redis drives the server; node-redis and ioredis do what each client does.
//
// Usage: node main.js resp2|resp3|auth|node-redis|ioredis, with the addresses in WEFT_* variables.

import { createClient } from 'redis';
import * as admin from './admin.js';
import * as check from './check.js';
import * as clients from './clients.js';
import * as combined from './combined.js';
import * as keys from './keys.js';
import * as load from './load.js';
import * as replies from './replies.js';
import * as strings from './strings.js';

const address = { host: '127.0.0.1', port: Number(process.env.WEFT_PORT) };

/** All commands over one protocol. */
async function commands(protocol) {
  const options = { RESP: protocol, socket: address };
  const connect = (more = {}) => open({ ...options, ...more });
  const r = await connect();
  await strings.run(r);
  await keys.run(r);
  await admin.run(r, connect, protocol);
  await r.flushAll();
  await replies.run(r);
  await combined.run(r, connect, options);
  await load.run(r, connect, options);
  await r.close();
}

/** A server with requirepass. */
async function auth() {
  const password = process.env.WEFT_PASSWORD;
  const wrong = 'WRONGPASS invalid username-password pair or user is disabled.';
  const without = {
    2: 'NOAUTH Authentication required.',
    3: 'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO '
      + '<proto> AUTH <user> <pass> option can be used to authenticate the client and select the '
      + 'RESP protocol version at the same time',
  };
  const socket = { reconnectStrategy: false };
  for (const RESP of [2, 3]) {
    const r = await open({ RESP, password, socket });
    check.equal('SET with the password', [await r.set('k', 'v'), await r.get('k')], ['OK', 'v']);
    await r.close();
    const named = await open({ RESP, username: 'default', password, socket });
    check.equal('with the user default too', await named.get('k'), 'v');
    await named.close();
    const denied = async () => (await open({ RESP, socket })).ping();
    await check.error('without', denied(), without[RESP]);
    await check.error('a wrong password', open({ RESP, password: 'wrong', socket }), wrong);
    await check.error('a wrong user', open({ RESP, username: 'nobody', password, socket }), wrong);
  }
  const r = await open({ password, socket });
  await check.error('AUTH with a wrong one', r.sendCommand(['AUTH', 'wrong']), wrong);
  check.equal('the old login holds', await r.get('k'), 'v');
  check.equal('CONFIG SET requirepass', await r.configSet('requirepass', 'new'), 'OK');
  await check.error('the old one is refused', open({ password, socket }), wrong);
  const renewed = await open({ password: 'new', socket });
  check.equal('the new one is taken', await renewed.ping(), 'PONG');
}

/** A connected client. Errors of the connection come as events too: the caller sees the others. */
async function open({ socket, ...options }) {
  const client = createClient({ ...options, socket: { ...address, ...socket } });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const parts = {
  resp2: () => commands(2),
  resp3: () => commands(3),
  auth,
  'node-redis': () => clients.run('node-redis'),
  ioredis: () => clients.run('ioredis'),
};
await parts[process.argv[2]]();
// Without waiting for connections that a failed login left behind.
process.exit(0);
