// A worker process of Bee-Queue, one of several.

import Queue from 'bee-queue';
import { address, connect } from './processes.js';

const client = connect();
const queue = new Queue('squares', { redis: address, getEvents: false, sendEvents: false });
queue.process(4, async (job) => {
  const { number } = job.data;
  await client.hincrby('runs', number, 1);
  if (number % 10 === 9) throw new Error('every tenth');
  return number * number;
});
