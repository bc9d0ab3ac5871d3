// Runs the cases with one library.
//
// Usage: node main.js node-redis|ioredis, with the server's addresses in WEFT_* variables.

import { run } from './clients.js';

await run(process.argv[2]);
process.exit(0);
