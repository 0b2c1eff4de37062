import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { benchFolder, rootFolder } from '../harness/library.mjs';

/**
 * Who takes part. A contestant is a file that exports `open(options)`, and options; what it opens can do some of:
 *
 * @typedef {object} Opened
 * @property {(key: string) => Promise<unknown>} cycle acquires a key that nobody else wants, and releases it
 * @property {(key: string, work: () => Promise<void>) => Promise<unknown>} [turn] waits for the key for as long as it
 *   takes, works, releases
 * @property {(key: string, ttl: number, onLost: () => void) => Promise<Held>} [hold] holds and renews until released
 *
 * @typedef {object} Held
 * @property {() => Promise<unknown>} release
 * @property {number} [remaining] milliseconds in which it may still be used
 *
 * @typedef {object} Contestant
 * @property {string} name
 * @property {'ours' | 'floor' | 'peer'} kind
 * @property {string} file
 * @property {object} options
 * @property {readonly string[]} takesPartIn
 */

const contestant = (kind, file, name, takesPartIn, options = {}) => ({
  name,
  kind,
  file: pathToFileURL(join(benchFolder, 'contestants', file)).href,
  options,
  takesPartIn: takesPartIn.split(' '),
});

/** The floors that others are measured against, by what is measured. */
export const FLOOR = {
  cycle: 'raw SET NX + EVALSHA',
  waiting: 'raw push-woken fenced queue',
};

export const OURS = {
  byHand: 'nestjs-lease, acquire + release',
  run: 'nestjs-lease, run()',
};

const EQUAL_POLL = { poll: 10 };

/** @type {readonly Contestant[]} */
export const contestants = [
  contestant('ours', 'ours.mjs', OURS.byHand, 'cycle waiting holding told', { style: 'by hand' }),
  contestant('ours', 'ours.mjs', OURS.run, 'cycle waiting', { style: 'run' }),

  contestant('floor', 'raw-set-nx.mjs', FLOOR.cycle, 'cycle'),
  contestant('floor', 'raw-fenced.mjs', 'raw fenced', 'cycle'),
  contestant('floor', 'raw-our-scripts.mjs', 'raw, our scripts', 'cycle'),
  contestant('floor', 'raw-push-queue.mjs', FLOOR.waiting, 'waiting'),
  contestant('floor', 'raw-poll.mjs', 'raw 10 ms poll', 'waiting', EQUAL_POLL),

  contestant('peer', 'redlock.mjs', 'redlock', 'cycle waiting holding told'),
  contestant('peer', 'redlock.mjs', 'redlock, 10 ms poll', 'waiting', EQUAL_POLL),
  contestant('peer', 'sesame-redlock.mjs', '@sesamecare-oss/redlock', 'cycle waiting told'),
  contestant(
    'peer',
    'sesame-redlock.mjs',
    '@sesamecare-oss/redlock, 10 ms poll',
    'waiting',
    EQUAL_POLL,
  ),
  contestant('peer', 'redis-semaphore.mjs', 'redis-semaphore', 'cycle waiting holding told'),
  contestant('peer', 'verrou.mjs', '@verrou/core', 'cycle waiting'),
  contestant('peer', 'verrou.mjs', '@verrou/core, 10 ms poll', 'waiting', EQUAL_POLL),
  contestant('peer', 'redlock-universal.mjs', 'redlock-universal', 'cycle waiting told'),
  contestant(
    'peer',
    'redlock-universal.mjs',
    'redlock-universal, 10 ms poll',
    'waiting',
    EQUAL_POLL,
  ),
  contestant('peer', 'node-redisson.mjs', 'node-redisson', 'cycle waiting'),
];

/** A contestant of the reader's own: a file that exports `open`, and may export `kind` and `takesPartIn`. */
export async function fromFile(path) {
  const file = pathToFileURL(resolve(path)).href;
  const { kind = 'peer', takesPartIn = 'cycle waiting' } = await import(file);
  return { name: path, kind, file, options: {}, takesPartIn: takesPartIn.split(' ') };
}

const PEERS = [
  'redlock',
  '@sesamecare-oss/redlock',
  'redis-semaphore',
  '@verrou/core',
  'redlock-universal',
  'node-redisson',
  'ioredis',
  'ioredis5',
];

/** Of everything that takes part, as it is installed. */
export function versions() {
  const load = createRequire(join(benchFolder, 'package.json'));
  const versionAt = (path) => load(path).version.replace(/^v/, '');
  return {
    'nestjs-lease': versionAt(join(rootFolder, 'package.json')),
    ...Object.fromEntries(
      PEERS.map((name) => [
        name,
        versionAt(join(benchFolder, 'node_modules', name, 'package.json')),
      ]),
    ),
  };
}
