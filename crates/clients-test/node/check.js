// Checks that print a line each. The first one that fails ends the program.

import { inspect, isDeepStrictEqual } from 'node:util';

/** Checks that the answer is `want`, in value and in type. */
export function equal(name, got, want) {
  if (!isDeepStrictEqual(got, want)) fail(name, `got ${short(got)}, want ${short(want)}`);
  console.log('ok', name);
}

/** Checks a condition about `seen`. */
export function holds(name, condition, seen = '') {
  if (!condition) fail(name, `does not hold for ${short(seen)}`);
  console.log('ok', name);
}

/** Checks that the answer is a number from `low` to `high`, both included. */
export function between(name, got, low, high) {
  holds(`${name} in ${low}..${high}`, typeof got === 'number' && low <= got && got <= high, got);
}

/** Checks that the promise is rejected with exactly this text. */
export async function error(name, promise, text) {
  let answer;
  try {
    answer = await promise;
  } catch (raised) {
    equal(name, raised.message, text);
    return;
  }
  fail(name, `got ${short(answer)}, want the error ${text}`);
}

/** Waits until the call returns a true value. */
export async function eventually(name, call, seconds = 10) {
  const deadline = Date.now() + seconds * 1000;
  while (!(await call())) {
    if (Date.now() > deadline) fail(name, `not within ${seconds} seconds`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  console.log('ok', name);
}

/** Ends the program. */
export function fail(name, reason) {
  console.log(`FAILED ${name}: ${reason}`);
  process.exit(1);
}

function short(value) {
  const text = inspect(value, { breakLength: Infinity });
  return text.length < 500 ? text : `${text.slice(0, 500)}...`;
}
