// Opens the page of a running server in a headless Chromium: it follows the server's state, reports
// its end, and loads nothing from other hosts.
//
//   node page.js URL
//
// A line on standard output names each step that was seen, a line on standard input starts the next
// one.

import { createInterface } from 'node:readline';
import chromium from '@sparticuz/chromium';
import puppeteer from 'puppeteer-core';

const url = process.argv[2];
const faults = [];
const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  args: chromium.args,
  headless: 'shell',
});
const steps = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function shown(page, what, is) {
  try {
    await page.waitForFunction(is, { timeout: 60_000, polling: 100 });
  } catch {
    const text = await page.evaluate(() => document.body.innerText);
    throw new Error(`not shown: ${what}\n${text}`);
  }
  console.log(what);
  await steps.next();
}

const card = (id) => `document.querySelector('#${id} b').textContent`;

try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) {
      faults.push(`requests ${request.url()}`);
    }
  });
  let isUp = true;
  page.on('console', (message) => isUp && faults.push(message.text()));
  await page.goto(url);
  await shown(page, 'serves', `document.getElementById('state').textContent === 'serves'`);
  await shown(page, 'commands', `document.querySelector('#commands').innerText.includes('set') &&
    parseFloat(${card('commands-card')}) > 0 && ${card('keys-card')} === '3'`);
  await shown(page, 'threads', `document.querySelectorAll('#threads tbody tr').length === 3`);
  // Clients choose the names of error codes and commands: none of them becomes markup.
  await shown(page, 'no markup', `document.querySelector('#facts').innerText.includes('3 keys') &&
    document.querySelectorAll('img, iframe').length === 0`);
  // From here on the browser logs error responses.
  isUp = false;
  await shown(page, 'refused', `document.getElementById('state').className === 'bad' &&
    document.getElementById('state').textContent.startsWith('writes are refused')`);
  await shown(page, 'gone', `document.getElementById('state').textContent.startsWith('no answer')`);
} catch (error) {
  faults.push(String(error));
}
await browser.close();
if (faults.length > 0) {
  console.error(faults.join('\n'));
}
process.exit(faults.length > 0 ? 1 : 0);
