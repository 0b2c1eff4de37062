import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const script = join(dirname(fileURLToPath(import.meta.url)), 'broken-engines.mjs');

interface Line {
  readonly name: string;
  readonly found?: string;
}

describe('the simulation', () => {
  it('finds every rule that is broken on purpose', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [script]);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    expect(lines.length).toBeGreaterThan(35);
    expect(lines.filter(({ found }) => found === undefined)).toEqual([]);
  }, 600_000);
});
