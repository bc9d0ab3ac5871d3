// Bee-Queue keeps jobs in hashes and lists and moves them by BRPOPLPUSH, MULTI and Lua scripts. Its
// events and its delayed jobs, which use PUBLISH and SUBSCRIBE, are off.

import Queue from 'bee-queue';
import * as check from './check.js';
import { address, connect, start, stop } from './processes.js';

const settings = { redis: address, getEvents: false, sendEvents: false };
const jobs = 200;

export async function run() {
  const client = connect();
  const queue = new Queue('squares', { ...settings, isWorker: false, storeJobs: false });
  await queue.ready();
  const children = start(3, './bee-child.js');
  const added = await Promise.all(Array.from({ length: jobs }, (_, i) => add(queue, i)));
  check.equal('each job has an id', new Set(added.map((job) => job.id)).size, jobs);
  const again = await queue.createJob({ number: 0 }).setId('once').save();
  check.equal('an existing id adds nothing', again.id, null);
  await check.eventually('all jobs are done', async () => {
    const health = await queue.checkHealth();
    return health.succeeded + health.failed === jobs;
  }, 60);
  await stop(children);
  const health = await queue.checkHealth();
  const left = [health.waiting, health.active, health.delayed];
  check.equal('nothing is left', left, [0, 0, 0]);
  check.equal('every tenth fails for good', [health.succeeded, health.failed], [180, 20]);
  // A failed job is retried once.
  const runs = await client.hgetall('runs');
  const wrong = Object.entries(runs).filter(([i, n]) => n !== (Number(i) % 10 === 9 ? '2' : '1'));
  check.equal('each job ran as often as it should', [Object.keys(runs).length, wrong], [jobs, []]);
  const seventh = await queue.getJob(added[7].id);
  check.equal('a job keeps its result', [seventh.status, seventh.data.number], ['succeeded', 7]);
  check.equal('removeJob', (await queue.removeJob(added[7].id)) === queue, true);
  check.equal('getJob after it', await queue.getJob(added[7].id), null);
  await queue.close();
  client.disconnect();
}

function add(queue, number) {
  const job = queue.createJob({ number }).retries(1);
  return (number === 0 ? job.setId('once') : job).save();
}
