/** The engine and the simulation as plain JavaScript, with a change on the way if one is asked for. */
import { rmSync } from 'node:fs';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transform } from '@swc/core';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
// Inside node_modules, so that packages are found from there.
const home = join(root, 'node_modules', '.cache', `simulation-${process.pid}`);
process.once('exit', () => rmSync(home, { recursive: true, force: true }));

const compiled = new Map();

/**
 * Loads the simulation around the engine as it is, or changed.
 *
 * @param {string} name
 * @param {readonly { file: string, find: string | RegExp, put: string }[]} changes
 * @returns {Promise<typeof import('./explore.js')>}
 */
export async function loadSimulation(name, changes = []) {
  const out = join(home, name.replaceAll(/\W+/g, '-'));
  await mkdir(out, { recursive: true });
  await writeFile(join(out, 'package.json'), '{ "type": "module" }');
  for (const file of await sources()) {
    let source = await readFile(join(root, file), 'utf8');
    for (const { find, put } of changes.filter((change) => change.file === file)) {
      const changed = source.replace(find, put);
      if (changed === source) throw new Error(`"${name}": nothing to change in ${file}`);
      source = changed;
    }
    const target = join(out, file.replace(/\.ts$/, '.js'));
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, await toJavaScript(source, file));
  }
  return import(pathToFileURL(join(out, 'test/simulation/explore.js')).href);
}

async function sources() {
  const files = ['test/support/real-process.ts'];
  for (const folder of ['lib', 'test/simulation']) {
    for (const entry of await readdir(join(root, folder), { recursive: true })) {
      const file = join(folder, entry).replaceAll('\\', '/');
      if (file.endsWith('.ts') && !file.endsWith('.spec.ts')) files.push(file);
    }
  }
  return files;
}

async function toJavaScript(source, filename) {
  if (!compiled.has(source)) {
    const { code } = await transform(source, {
      filename,
      sourceMaps: 'inline',
      module: { type: 'es6' },
      jsc: {
        target: 'es2022',
        parser: { syntax: 'typescript', decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: true },
      },
    });
    compiled.set(source, code);
  }
  return compiled.get(source);
}
