import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { until } from '../../support/until.js';

const folder = join(import.meta.dirname, '../../../sample');
const samples = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const running = new Set<ChildProcess>();

function runSample(...args: string[]): { child: ChildProcess; said: () => string } {
  const { REDIS_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, [join(folder, 'run.mjs'), ...args], { env });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  return { child, said: () => output };
}

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

describe('npm run sample', () => {
  it.each(samples)('%s runs without a server until Ctrl-C', async (sample) => {
    const { child, said } = runSample(sample);
    await until(() => said().includes('Ctrl-C ends it.'), { within: 15_000 });

    child.kill('SIGINT');
    const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];

    expect(signal).toBe('SIGINT');
    expect(said()).not.toMatch(/ERROR|Error:/);
  });

  it('names the samples when asked for one that is not there', async () => {
    const { child, said } = runSample('nothing');
    const [code] = (await once(child, 'close')) as [number];

    expect(code).toBe(1);
    expect(samples.every((sample) => said().includes(sample))).toBe(true);
  });
});
