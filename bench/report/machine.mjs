import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { versions } from '../contestants/index.mjs';
import { canPin } from '../harness/cores.mjs';
import { rootFolder } from '../harness/library.mjs';

/** Where and when it ran, and who took part. */
export function machine() {
  const redis = execFileSync(process.env.REDIS_SERVER ?? 'redis-server', ['--version'], {
    encoding: 'utf8',
  });
  return {
    date: new Date().toISOString().slice(0, 10),
    cores: cpus().length,
    processor: cpus()[0].model.trim(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
    redis: /v=(\S+)/.exec(redis)?.[1] ?? redis.trim(),
    load: loadavg().map((load) => Number(load.toFixed(2))),
    canPin,
    build: build(),
    versions: versions(),
  };
}

/** Which library was measured: a figure of uncommitted work cannot be had again. */
function build() {
  const git = (...args) =>
    execFileSync('git', args, {
      cwd: rootFolder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  try {
    const isChanged = git('status', '--porcelain', '--', 'lib').trim() !== '';
    const commit = git('rev-parse', '--short', 'HEAD').trim();
    return `commit ${commit}${isChanged ? ' with uncommitted changes' : ''}${process.env.BENCH_DIST ? ', from BENCH_DIST' : ''}`;
  } catch {
    return 'unknown';
  }
}

export function machineSection({ date, cores, processor, memoryGb, system, ...rest }) {
  const { ioredis, ioredis5, ...libraries } = rest.versions;
  const lines = [
    `Measured on ${date}: ${cores} cores of ${processor}, ${memoryGb} GB, ${system}, Node ${rest.node}, Redis ${rest.redis} on the ` +
      `same machine over loopback. Load average when it began: ${rest.load.join(', ')}.`,
    `The library was built from ${rest.build}.`,
    `Libraries: ${Object.entries(libraries)
      .map(([name, version]) => `${name} ${version}`)
      .join(
        ', ',
      )}. ioredis ${ioredis}; ${ioredis5} for redlock and @verrou/core, which are made for it.`,
  ];
  if (rest.load[0] > cores / 4) {
    lines.push(
      '**The machine was busy with something else when this began.** Expect wide spreads; run it again on a quiet one before quoting it.',
    );
  }
  if (!rest.canPin) lines.push('`taskset` was not found: nothing was held to one core.');
  return lines.join('\n\n');
}
