// BullMQ runs each step of a job as a Lua script over lists, sorted sets, hashes and streams, with
// cjson and cmsgpack. If one were not atomic, a job would run twice, never, or out of order.

import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import * as check from './check.js';
import { connect, start, stop } from './processes.js';

const plain = 200;
const delayed = 30;
const retried = 20;
const total = plain + delayed + retried;

export async function run() {
  const connection = connect();
  await exactlyOnce(connection);
  await inOrder(connection);
  await flows(connection);
  await stalled(connection);
  connection.disconnect();
}

/** Several processes share a queue. */
async function exactlyOnce(connection) {
  const queue = new Queue('shared', { connection });
  const events = new QueueEvents('shared', { connection: connect() });
  await events.waitUntilReady();
  const completed = [];
  events.on('completed', ({ jobId }) => completed.push(jobId));
  const children = start(3, './bull-child.js');
  const jobs = await queue.addBulk(list(plain, 'plain', {}));
  const late = list(delayed, 'delayed', { delay: 300 });
  late.forEach((job) => { job.data.due = Date.now() + 300; });
  jobs.push(...(await queue.addBulk(late)));
  const again = { attempts: 3, backoff: { type: 'fixed', delay: 20 } };
  jobs.push(...(await queue.addBulk(list(retried, 'retried', again))));
  check.equal('each job has an id', new Set(jobs.map((job) => job.id)).size, total);
  await check.eventually('all jobs complete', async () => {
    const { completed: done, failed } = await queue.getJobCounts('completed', 'failed');
    return done + failed === total;
  }, 60);
  check.equal('none failed', await queue.getFailedCount(), 0);
  const left = await queue.getJobCounts('wait', 'active', 'delayed', 'prioritized');
  check.equal('nothing is left', Object.values(left), [0, 0, 0, 0]);
  const runs = await connection.hgetall('runs');
  const due = (name) => (name.startsWith('retried') ? '2' : '1');
  const wrong = Object.entries(runs).filter(([name, count]) => count !== due(name));
  check.equal('each job ran as often as it should', [Object.keys(runs).length, wrong], [total, []]);
  check.equal('no delayed job ran early', await connection.get('early'), null);
  const [first] = await queue.getJobs(['completed'], 0, 0, true);
  check.equal('a job keeps its result', first.returnvalue, first.data.number ** 2);
  await check.eventually('each completion is an event', () => completed.length >= total, 30);
  check.equal('one each', new Set(completed).size, completed.length);
  const workers = new Set((await connection.smembers('workers')));
  check.holds('several processes worked', workers.size > 1, workers);
  await stop(children);
  await events.close();
  await queue.obliterate({ force: true });
  check.equal('obliterate', await connection.keys('bull:shared:*'), []);
  await queue.close();
}

function list(count, name, opts) {
  const make = (_, number) => ({ name: `${name}:${number}`, data: { number }, opts: { ...opts } });
  return Array.from({ length: count }, make);
}

/** One worker takes the waiting jobs in the order of their priorities. */
async function inOrder(connection) {
  const queue = new Queue('ordered', { connection });
  await queue.pause();
  const priorities = [3, 1, 2, 3, 1, 2];
  await queue.addBulk(priorities.map((priority, i) => (
    { name: `${priority}:${i}`, data: {}, opts: { priority } })));
  await queue.add('first', {});
  await Promise.all(Array.from({ length: 8 }, () => queue.add('same', {}, { jobId: 'same' })));
  const waiting = await queue.getJobCountByTypes('wait', 'paused');
  check.equal('an existing id adds nothing', waiting, 2);
  check.equal('they wait by priority', await queue.getJobCountByTypes('prioritized'), 6);
  const order = [];
  const take = async (job) => { order.push(job.name); };
  const worker = new Worker('ordered', take, { connection: connect() });
  await queue.resume();
  await check.eventually('all are taken', () => order.length === 8, 30);
  const want = ['first', 'same', '1:1', '1:4', '2:2', '2:5', '3:0', '3:3'];
  check.equal('the order', order, want);
  await worker.close();
  await queue.close();
}

/** A parent runs after its children, with their results. */
async function flows(connection) {
  const producer = new FlowProducer({ connection });
  const step = async (job) => {
    if (job.name === 'child') return job.data.number;
    return Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0);
  };
  const worker = new Worker('flow', step, { connection: connect(), concurrency: 5 });
  const children = Array.from({ length: 10 }, (_, number) => (
    { name: 'child', queueName: 'flow', data: { number } }));
  const { job } = await producer.add({ name: 'parent', queueName: 'flow', data: {}, children });
  await check.eventually('the parent completes', async () => (await job.isCompleted()), 30);
  const queue = new Queue('flow', { connection });
  check.equal('the sum of its children', (await queue.getJob(job.id)).returnvalue, 45);
  check.equal('all completed', await queue.getCompletedCount(), 11);
  await worker.close();
  await queue.close();
  await producer.close();
}

/** A process dies in the middle of a job: another notices and runs the job again. */
async function stalled(connection) {
  const queue = new Queue('stalled', { connection });
  const job = await queue.add('fatal', {});
  const [child] = start(1, './bull-fatal.js');
  await new Promise((resolve) => { child.once('exit', resolve); });
  check.equal('the job is active without a worker', await job.getState(), 'active');
  const work = async () => 'saved';
  const worker = new Worker('stalled', work, { connection: connect(), stalledInterval: 200 });
  await check.eventually('it runs again', async () => (await job.isCompleted()), 30);
  const saved = await queue.getJob(job.id);
  check.equal('its result', [saved.returnvalue, saved.stalledCounter], ['saved', 1]);
  await worker.close();
  await queue.close();
}
