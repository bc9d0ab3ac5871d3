// Socket.IO with its Redis adapter: a message that one process sends by PUBLISH reaches the clients
// of the other, whose adapter subscribes to channels and to a pattern.

import { io as open } from 'socket.io-client';
import * as check from './check.js';
import { connect, messages, start, stop } from './processes.js';

const count = 200;
const sent = Array.from({ length: count }, (_, i) => `message ${i}`);

export async function run() {
  const redis = connect();
  const children = start(2, './socketio-child.js');
  const ports = await messages(children);
  // A process subscribes to this channel last.
  await check.eventually('both processes subscribe', async () => (
    (await redis.pubsub('NUMSUB', 'socket.io-request#/#'))[1] === 2), 30);
  // Two clients of each process.
  const clients = await Promise.all([0, 0, 1, 1].map((number) => client(ports[number], number)));
  const task = async (number, ...words) => {
    children[number].send(words);
    return (await messages([children[number]]))[0];
  };
  await everybody(task, clients);
  await room(task, clients);
  await questions(task, clients);
  clients.forEach(({ socket }) => socket.close());
  await stop(children);
  redis.disconnect();
}

/** A connected client that records its messages. */
async function client(port, number) {
  const socket = open(`http://127.0.0.1:${port}`, { transports: ['websocket'], forceNew: true });
  const got = { news: [], room: [] };
  socket.on('news', (text) => got.news.push(text));
  socket.on('room', (text) => got.room.push(text));
  socket.on('name', (answer) => answer(`client of ${number}`));
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('connect_error', reject);
  });
  return { socket, got };
}

/** Each process sends to all clients: every client gets each message once, in order. */
async function everybody(task, clients) {
  await task(0, 'emit', null, 'news', sent);
  await arrived('messages of process 0', clients, 'news', sent);
  await task(1, 'emit', null, 'news', sent);
  await arrived('messages of both', clients, 'news', [...sent, ...sent]);
}

async function arrived(name, clients, event, want) {
  for (const { got } of clients) {
    await check.eventually(name, () => got[event].length >= want.length, 30);
    check.equal(name, got[event], want);
  }
}

/** A room with one client of each process: the other two clients get nothing. */
async function room(task, clients) {
  const members = [clients[0], clients[2]];
  for (const { socket } of members) await socket.emitWithAck('join', 'sport');
  await task(1, 'emit', 'sport', 'room', sent);
  await arrived('the room', members, 'room', sent);
  await task(0, 'empty', 'sport');
  const left = async () => (await task(1, 'sockets', 'sport')).length === 0;
  await check.eventually('all have left the room', left, 30);
  await task(0, 'emit', 'sport', 'room', ['late']);
  // This message arrives after the one to the empty room would have.
  await task(0, 'emit', null, 'news', ['last']);
  await arrived('the last message', clients, 'news', [...sent, ...sent, 'last']);
  const all = clients.map(({ got }) => got.room.length);
  check.equal('messages of the room', all, [count, 0, count, 0]);
}

/** Requests between the processes. */
async function questions(task, clients) {
  const answers = await task(0, 'ask', 'name');
  const names = ['client of 0', 'client of 0', 'client of 1', 'client of 1'];
  check.equal('all clients answer', answers.sort(), names);
  const ids = clients.map(({ socket }) => socket.id).sort();
  check.equal('process 1 lists all clients', (await task(1, 'sockets')).sort(), ids);
  check.equal('process 0 asks the other', await task(0, 'others', 4), [41]);
}
