// A worker of BullMQ that dies in its first job.

import { Worker } from 'bullmq';
import { connect } from './processes.js';

const die = () => new Promise(() => { process.kill(process.pid, 'SIGKILL'); });
// The same interval as the other worker's: a worker that looks for stalled jobs keeps the others
// from it for this long.
const options = { connection: connect(), stalledInterval: 200, lockDuration: 500 };
new Worker('stalled', die, options);
