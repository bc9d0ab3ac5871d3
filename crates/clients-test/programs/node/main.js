// Runs one of the programs that people run on Redis, from several processes.
//
// Usage: node main.js bull|bee|limiter|socketio, with the server's port in WEFT_PORT.

import * as bee from './bee.js';
import * as bull from './bull.js';
import * as limiter from './limiter.js';
import * as socketio from './socketio.js';

await { bull, bee, limiter, socketio }[process.argv[2]].run();
process.exit(0);
