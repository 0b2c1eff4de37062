import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformFile } from '@swc/core';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

export interface CompiledLib {
  /** Where `index.js` and the rest of the library are. */
  readonly dir: string;
  remove(): Promise<void>;
}

/** The library as plain JavaScript, for processes of their own. */
export async function compileLib(): Promise<CompiledLib> {
  const dir = await mkdtemp(join(tmpdir(), 'nestjs-lease-lib-'));
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'));
  await writeFile(join(dir, 'package.json'), '{ "type": "module" }');
  const files = await readdir(join(root, 'lib'), { recursive: true });
  const sources = files.filter((file) => file.endsWith('.ts'));
  await Promise.all(sources.map((file) => compile(file, join(dir, file.replace(/ts$/, 'js')))));
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

async function compile(file: string, to: string): Promise<void> {
  const { code } = await transformFile(join(root, 'lib', file), {
    swcrc: false,
    module: { type: 'es6' },
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      keepClassNames: true,
    },
  });
  await mkdir(dirname(to), { recursive: true });
  await writeFile(to, code);
}
