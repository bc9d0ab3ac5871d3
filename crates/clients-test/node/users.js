// Users: the ACL methods of node-redis, and clients that log in with a name and a password.

import * as check from './check.js';

const rules = ['reset', 'on', '>se cret', '~job:*', '+@read', '+@write', '+@connection'];
rules.push('+@transaction', '+@scripting', '-@dangerous');
const noKey = 'NOPERM No permissions to access a key';
const wrong = 'WRONGPASS invalid username-password pair or user is disabled.';

/** The user worker: all of `job:*`, and nothing dangerous. */
const create = (r) => r.aclSetUser('worker', rules);

/** A connection of the user, which is not opened again when the server closes it. */
function login(connect, password = 'se cret') {
  return connect({ username: 'worker', password, socket: { reconnectStrategy: false } });
}

const noCommand = (name) => `NOPERM User worker has no permissions to run the '${name}' command`;

async function may(r, connect) {
  check.equal('ACL SETUSER', await create(r), 'OK');
  const w = await login(connect);
  check.equal('ACL WHOAMI as admin', await r.aclWhoAmI(), 'default');
  check.equal('SET and GET', [await w.set('job:1', 'v'), await w.get('job:1')], ['OK', 'v']);
  await check.error('another key', w.get('other'), noKey);
  await check.error('a second key', w.mGet(['job:1', 'other']), noKey);
  await check.error('FLUSHALL', w.flushAll(), noCommand('flushall'));
  await check.error('CONFIG GET', w.configGet('port'), noCommand('config|get'));
  await check.error('ACL WHOAMI', w.aclWhoAmI(), noCommand('acl|whoami'));
  check.equal('the connection goes on', await w.get('job:1'), 'v');
  await w.close();
  await r.aclDelUser('worker');
}

async function refused(r, connect) {
  await create(r);
  await check.error('a wrong password', login(connect, 'secret'), wrong);
  await r.aclSetUser('worker', 'off');
  await check.error('a disabled user', login(connect), wrong);
  await r.aclSetUser('worker', 'on');
  const w = await login(connect);
  check.equal('an enabled user', await w.ping(), 'PONG');
  await w.close();
  await r.aclDelUser('worker');
}

async function changed(r, connect) {
  await create(r);
  const w = await login(connect);
  check.equal('before', await w.set('job:1', 'v'), 'OK');
  await r.aclSetUser('worker', '-set');
  await check.error('without SET', w.set('job:1', 'w'), noCommand('set'));
  check.equal('GET still', await w.get('job:1'), 'v');
  await r.aclSetUser('worker', ['+set', '~more:*']);
  const sets = [await w.set('job:1', 'w'), await w.set('more:1', 'w')];
  check.equal('a new pattern', sets, ['OK', 'OK']);
  await w.close();
  await r.aclDelUser('worker');
}

async function deleted(r, connect) {
  await create(r);
  const w = await login(connect);
  const listed = async () => (await r.clientList()).some((client) => client.user === 'worker');
  check.equal('CLIENT LIST has the user', await listed(), true);
  check.equal('ACL DELUSER', await r.aclDelUser(['worker', 'nobody']), 1);
  await check.eventually('the connection is closed', async () => !(await listed()));
  await check.eventually('the client noticed', () => !w.isOpen);
  await check.error('it cannot go on', w.get('job:1'), 'The client is closed');
  await check.error('nor come back', login(connect), wrong);
}

async function combined(r, connect) {
  await create(r);
  const w = await login(connect);
  const multi = w.multi().set('job:1', 'v').set('other', 'v');
  await check.error('a transaction', multi.exec(), noKey);
  check.equal('nothing ran', await r.dbSize(), 0);
  check.equal('EXEC of what is allowed', await w.multi().set('job:1', 'v').exec(), ['OK']);
  const source = "return redis.call('GET', ARGV[1])";
  const reach = (key, other) => w.eval(source, { keys: [key], arguments: [other] });
  check.equal('a script', await reach('job:1', 'job:1'), 'v');
  await check.error("a script's key", reach('other', 'job:1'), noKey);
  const sha = await w.scriptLoad(source);
  const text = 'ERR ACL failure in script: No permissions to access a key '
    + `script: ${sha}, on @user_script:1.`;
  await check.error('what it reaches for', reach('job:1', 'other'), text);
  await w.close();
  await r.aclDelUser('worker');
}

async function inspected(r, connect) {
  await r.aclLogReset();
  await create(r);
  const user = await r.aclGetUser('worker');
  check.holds('ACL GETUSER has flags', user.flags.includes('on'), user);
  check.holds('ACL GETUSER has commands', user.commands.includes('+@scripting'), user);
  check.equal('ACL GETUSER has keys', user.keys, '~job:*');
  check.equal('ACL GETUSER of nobody', await r.aclGetUser('nobody'), null);
  const listed = (await r.aclList()).filter((line) => line.startsWith('user worker on '));
  check.holds('ACL LIST', listed.length === 1 && listed[0].includes(' ~job:* '), listed);
  check.equal('ACL USERS', (await r.aclUsers()).sort(), ['default', 'worker']);
  check.equal('ACL DRYRUN', await r.aclDryRun('worker', ['GET', 'job:1']), 'OK');
  const text = "User worker has no permissions to access the 'other' key";
  check.equal('ACL DRYRUN of another key', await r.aclDryRun('worker', ['GET', 'other']), text);
  const w = await login(connect);
  for (let i = 0; i < 3; i++) await check.error('a denied GET', w.get('other'), noKey);
  const log = await r.aclLog();
  const { reason, context, object, username, count } = log[0];
  const seen = [reason, context, object, username];
  check.equal('ACL LOG', seen, ['key', 'toplevel', 'other', 'worker']);
  check.equal('ACL LOG counts', [count, log.length], [3, 1]);
  await w.close();
  await r.aclDelUser('worker');
}

export const cases = {
  'user: may do what the rules say': may,
  'user: refused': refused,
  'user: rules change': changed,
  'user: deleted': deleted,
  'user: transactions and scripts': combined,
  'user: inspected': inspected,
};
