import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { compileLib, type CompiledLib } from '../support/compiled-lib.js';

let lib: CompiledLib;
beforeAll(async () => {
  lib = await compileLib();
});
afterAll(() => lib.remove());

it('The contract suite runs under node:test, and fails there where a store breaks it', async () => {
  const file = join(lib.dir, 'store.test.mjs');
  await writeFile(
    file,
    `import { describe, it } from 'node:test';
    import { describeLeaseStore } from './testing/index.js';
    import { MemoryLeaseStore } from './stores/memory/memory-lease-store.js';
    class Forgetful extends MemoryLeaseStore {
      async renew() { return []; }
    }
    const Store = process.env.FORGETFUL ? Forgetful : MemoryLeaseStore;
    describeLeaseStore('mine', () => new Store(), { describe, it });`,
  );
  const run = (env: NodeJS.ProcessEnv): { status: number | null; stdout: string } => {
    const { NODE_OPTIONS: _, ...clean } = process.env;
    return spawnSync(process.execPath, ['--test', file], {
      env: { ...clean, ...env, NODE_TEST_CONTEXT: undefined },
      encoding: 'utf8',
    });
  };
  const sound = run({});
  expect(sound.stdout).toMatch(/^# fail 0$|^ℹ fail 0$/m);
  expect(sound.status).toBe(0);
  expect(run({ FORGETFUL: '1' }).status).not.toBe(0);
});
