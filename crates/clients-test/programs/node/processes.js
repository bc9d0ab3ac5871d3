// Child processes, which all use the same server.

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import * as check from './check.js';

export const address = { host: '127.0.0.1', port: Number(process.env.WEFT_PORT) };

// A child ends with its parent.
process.on('disconnect', () => process.exit(1));

/** A connection with the settings that BullMQ requires. */
export function connect() {
  return new Redis({ ...address, maxRetriesPerRequest: null });
}

/** Starts `file` `count` times; each child gets its number as argument. */
export function start(count, file) {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const children = Array.from({ length: count }, (_, i) => fork(path, [String(i)]));
  // A failed check ends this process first.
  process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
  return children;
}

/** The next message of each child. */
export function messages(children) {
  return Promise.all(children.map((child) => new Promise((resolve) => {
    child.once('message', resolve);
    child.once('exit', (code) => check.fail('a child process', `ended with ${code}`));
  })));
}

/** Kills the children, which do not end by themselves. */
export async function stop(children) {
  await Promise.all(children.map((child) => new Promise((resolve) => {
    child.removeAllListeners('exit');
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', resolve);
    child.kill('SIGKILL');
  })));
}
