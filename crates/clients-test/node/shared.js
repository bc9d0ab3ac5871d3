// The files in `cases/`, which all languages read.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The contents of `cases/NAME`. */
export function text(name) {
  return readFileSync(join(process.env.WEFT_CASES, name), 'utf8');
}

/** The names of cases that `cases/NAME` lists. */
export function names(name) {
  return text(name).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}
