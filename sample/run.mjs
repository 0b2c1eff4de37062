/** `npm run sample -- cron`: runs a sample on the memory store, or on Redis when REDIS_URL is set. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compile } from '../demo/compile.mjs';

const samples = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const [name] = process.argv.slice(2);

if (samples.includes(name)) {
  const folder = await compile('sample');
  try {
    await import(pathToFileURL(join(folder, name, 'main.js')).href);
  } catch (error) {
    // Ctrl-C in the middle of its work is one way to get here, a REDIS_URL that does not answer another.
    console.error([error.message, error.cause?.message].filter(Boolean).join(' '));
    process.exitCode = 1;
  }
} else {
  console.error(`Which one? npm run sample -- ${samples.join(' | ')}`);
  process.exitCode = 1;
}
