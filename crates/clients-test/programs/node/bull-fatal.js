// A worker of BullMQ that dies in its first job.

import { Worker } from 'bullmq';
import { connect } from './processes.js';

const die = () => new Promise(() => { process.kill(process.pid, 'SIGKILL'); });
// The interval is that of the other worker too: who looks for stalled jobs keeps others from it
// for as long.
const options = { connection: connect(), stalledInterval: 200, lockDuration: 500 };
new Worker('stalled', die, options);
