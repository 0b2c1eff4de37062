/** `npm run demo`: needs Node and nothing else. REDIS_URL=redis://… shows the same on Redis. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compile } from './compile.mjs';

const demo = await compile('demo');
await import(pathToFileURL(join(demo, 'main.js')).href);
