// One of several processes that serve Socket.IO. Messages to clients of the other processes go
// through Redis.

import { createServer } from 'node:http';
import { createAdapter } from '@socket.io/redis-adapter';
import { Server } from 'socket.io';
import { connect } from './processes.js';

const http = createServer();
const io = new Server(http, { adapter: createAdapter(connect(), connect()) });
io.on('connection', (socket) => {
  socket.on('join', (room, done) => { socket.join(room); done(); });
});
io.on('question', (number, answer) => answer(number * 10 + Number(process.argv[2])));

/** The parent's requests, by name. */
const tasks = {
  emit: (room, event, list) => list.forEach((text) => (room ? io.to(room) : io).emit(event, text)),
  ask: (event) => io.timeout(30_000).emitWithAck(event),
  sockets: async (room) => (
    (await (room ? io.in(room) : io).fetchSockets()).map((socket) => socket.id)),
  others: (number) => io.serverSideEmitWithAck('question', number),
  empty: (room) => io.in(room).socketsLeave(room),
};

process.on('message', async ([name, ...given]) => {
  process.send(await tasks[name](...given) ?? 'done');
});
http.listen(0, '127.0.0.1', () => process.send(http.address().port));
