// The connection and server commands: what clients and tools ask a server about itself.

import * as check from './check.js';

/** `connect(options)` makes connected clients of the protocol under test. */
export async function run(r, connect, protocol) {
  await connection(r, protocol);
  await ownRecord(r, protocol);
  await otherClients(r, connect);
  await commands(r);
  await configuration(r);
  await information(r);
  await slowLog(r);
}

async function connection(r, protocol) {
  check.equal('PING', await r.ping(), 'PONG');
  check.equal('PING with a text', await r.ping('hi'), 'hi');
  check.equal('ECHO', await r.echo('héllo'), 'héllo');
  const hello = await r.hello(protocol);
  const seen = [hello.proto, hello.server, hello.mode, hello.role];
  check.equal('HELLO', seen, [protocol, 'redis', 'standalone', 'master']);
  check.holds('HELLO has the version', hello.version.startsWith('8.0.'), hello);
  check.equal('HELLO has the id', hello.id, await r.clientId());
  const [seconds, microseconds] = await r.time();
  const clock = Number(seconds) + Number(microseconds) / 1e6;
  check.between('TIME less our own', clock - Date.now() / 1000, -5, 5);
}

async function ownRecord(r, protocol) {
  check.equal('CLIENT GETNAME of none', (await r.clientGetName()) || null, null);
  check.equal('CLIENT SETNAME', await r.clientSetName('subject'), 'OK');
  check.equal('CLIENT GETNAME', await r.clientGetName(), 'subject');
  const before = await r.clientInfo();
  check.holds('the client\'s own SETINFO arrived', before.libName.startsWith('node-redis'), before);
  check.equal('CLIENT SETINFO', await r.sendCommand(['CLIENT', 'SETINFO', 'LIB-VER', '9.9']), 'OK');
  const info = await r.clientInfo();
  const seen = [info.name, info.libVer, info.resp, info.db, info.user];
  check.equal('CLIENT INFO', seen, ['subject', '9.9', protocol, 0, 'default']);
  check.equal('CLIENT INFO has the id', info.id, await r.clientId());
  const addresses = info.addr.includes(':') && info.laddr.includes(':');
  check.holds('CLIENT INFO has the addresses', addresses, info);
  const mine = (await r.clientList()).filter((client) => client.id === info.id);
  check.equal('CLIENT LIST has this client', mine.map((client) => client.name), ['subject']);
  const line = await r.sendCommand(['CLIENT', 'LIST', 'ID', String(info.id)]);
  check.holds('CLIENT LIST ends with the thread and its traffic',
    / io-thread=\d+ tot-net-in=\d+ tot-net-out=\d+ tot-cmds=\d+\s*$/.test(line), line);
  check.equal('CLIENT NO-EVICT', await r.clientNoEvict(false), 'OK');
  check.equal('CLIENT NO-TOUCH', await r.clientNoTouch(false), 'OK');
  check.equal('CLIENT GETREDIR', await r.clientGetRedir(), -1);
}

async function otherClients(r, connect) {
  const other = await connect({ name: 'victim', socket: { reconnectStrategy: false } });
  const id = await other.clientId();
  const listed = await r.clientList({ ID: [String(id)] });
  check.equal('CLIENT LIST ID', listed.map((client) => client.name), ['victim']);
  const normal = (await r.clientList({ TYPE: 'NORMAL' })).map((client) => client.name);
  check.holds('CLIENT LIST TYPE', normal.includes('subject') && normal.includes('victim'), normal);
  check.equal('CLIENT KILL ID', await r.clientKill({ filter: 'ID', id }), 1);
  const gone = async () => !(await r.clientList()).some((client) => client.name === 'victim');
  await check.eventually('the killed client is gone', gone);
  check.equal('CLIENT KILL of nobody', await r.clientKill({ filter: 'ID', id }), 0);
  const nobody = r.sendCommand(['CLIENT', 'KILL', '1.2.3.4:5']);
  await check.error('CLIENT KILL by address', nobody, 'ERR No such client');
  check.equal('CLIENT UNBLOCK of nobody', await r.clientUnblock(id), 0);
  check.equal('CLIENT PAUSE', await r.clientPause(1), 'OK');
  check.equal('CLIENT UNPAUSE', await r.clientUnpause(), 'OK');
  await check.eventually('the killed client noticed', () => !other.isOpen);
}

async function commands(r) {
  const count = await r.commandCount();
  check.holds('COMMAND COUNT', count > 60, count);
  const table = await r.command();
  check.equal('COMMAND lists as many', table.length, count);
  const get = table.find((row) => row.name === 'get');
  const keys = [get.arity, get.firstKeyIndex, get.lastKeyIndex, get.step];
  check.equal("COMMAND has GET's keys", keys, [2, 1, 1, 1]);
  const flags = get.flags.has('readonly') && get.flags.has('fast');
  check.holds("COMMAND has GET's flags", flags, get.flags);
  const [mset, nothing] = await r.commandInfo(['mset', 'nosuch']);
  check.equal('COMMAND INFO', [mset.name, mset.step, nothing], ['mset', 2, null]);
  const docs = await r.sendCommand(['COMMAND', 'DOCS', 'set']);
  const facts = Array.isArray(docs) ? fields(docs[1]) : docs.set;
  check.equal('COMMAND DOCS', [facts.group, facts.since], ['string', '1.0.0']);
  check.holds('COMMAND DOCS has a summary of SET', facts.summary.length > 10, facts);
  const found = await r.commandGetKeys(['MSET', 'a', '1', 'b', '2']);
  check.equal('COMMAND GETKEYS', found, ['a', 'b']);
}

/** RESP2 has a flat list where RESP3 has a map. */
function fields(list) {
  const pairs = list.filter((_, i) => i % 2 === 0).map((name, i) => [name, list[2 * i + 1]]);
  return Object.fromEntries(pairs);
}

async function configuration(r) {
  const effort = async () => ({ ...(await r.configGet('active-expire-effort')) });
  check.equal('CONFIG GET', await effort(), { 'active-expire-effort': '1' });
  check.equal('CONFIG SET', await r.configSet('active-expire-effort', '7'), 'OK');
  check.equal('CONFIG GET after SET', await effort(), { 'active-expire-effort': '7' });
  await r.configSet('active-expire-effort', '1');
  const both = await r.configGet(['port', 'databas*']);
  check.equal('CONFIG GET of two patterns', Object.keys(both).sort(), ['databases', 'port']);
  check.equal('CONFIG GET of nothing', { ...(await r.configGet('no-such-thing')) }, {});
  check.equal('CONFIG RESETSTAT', await r.configResetStat(), 'OK');
}

async function information(r) {
  const field = async (name, section) => {
    const line = (await r.info(section)).split('\r\n').find((l) => l.startsWith(`${name}:`));
    return line?.slice(name.length + 1);
  };
  const version = await field('redis_version');
  check.holds('INFO has the version', version.startsWith('8.0.'), version);
  const numbers = ['process_id', 'tcp_port', 'uptime_in_seconds', 'connected_clients'];
  numbers.push('used_memory', 'total_commands_processed', 'keyspace_hits', 'expired_keys');
  for (const name of numbers) {
    const value = await field(name);
    check.holds(`INFO has ${name} as a number`, /^\d+$/.test(value), value);
  }
  check.equal('INFO has the role', await field('role'), 'master');
  await r.set('k', 'v', { expiration: { type: 'EX', value: 100 } });
  const keyspace = await field('db0', 'keyspace');
  check.holds('INFO keyspace', keyspace.startsWith('keys=1,expires=1,'), keyspace);
  check.equal('INFO of one section only', await field('redis_version', 'keyspace'), undefined);
  const set = await field('cmdstat_set', 'commandstats');
  check.holds('INFO commandstats', /^calls=[1-9]/.test(set), set);
  await r.flushDb();
}

async function slowLog(r) {
  await r.configSet('slowlog-log-slower-than', '0');
  await r.set('slow', 'log');
  await r.configSet('slowlog-log-slower-than', '10000');
  const entries = await r.sendCommand(['SLOWLOG', 'GET', '10']);
  const found = entries.filter((entry) => entry[3].join(' ') === 'SET slow log');
  check.equal('SLOWLOG GET', found.length, 1);
  check.between('SLOWLOG has the start', found[0][1] - Date.now() / 1000, -10, 5);
  check.holds('SLOWLOG LEN', (await r.sendCommand(['SLOWLOG', 'LEN'])) >= 1);
  check.equal('SLOWLOG RESET', await r.sendCommand(['SLOWLOG', 'RESET']), 'OK');
  check.equal('SLOWLOG LEN after it', await r.sendCommand(['SLOWLOG', 'LEN']), 0);
  await r.del('slow');
}
