// A worker process of BullMQ, one of several.

import { Worker } from 'bullmq';
import { connect } from './processes.js';

const client = connect();

async function work(job) {
  await client.hincrby('runs', job.name, 1);
  await client.sadd('workers', process.pid);
  if (Date.now() < job.data.due) await client.set('early', job.name);
  if (job.name.startsWith('retried') && job.attemptsMade === 0) throw new Error('once');
  await job.updateProgress(50);
  await job.log('half way');
  return job.data.number ** 2;
}

new Worker('shared', work, { connection: connect(), concurrency: 4 });
