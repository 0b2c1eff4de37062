import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from '@jest/globals';
import { Heartbeat } from '../../../lib/lease/thread/heartbeat.js';
import { SharedTime } from '../../../lib/lease/thread/shared-time.js';
import { TrustBoard } from '../../../lib/lease/thread/trust-board.js';
import { compileLib } from '../../support/compiled-lib.js';
import { VirtualClock } from '../../support/virtual-clock.js';

describe('the board that two threads share', () => {
  /** Two views of the same memory. */
  const boards = (): { writer: TrustBoard; reader: TrustBoard } => {
    const writer = new TrustBoard();
    const reader = new TrustBoard();
    reader.addSheet(writer.addSheet());
    return { writer, reader };
  };

  it.each([
    [0, 0, 1],
    [1_000, Date.UTC(2026, 0, 1), 10_000],
    // A year of uptime, and a time after 2106.
    [365 * 86_400_000 + 0.125, 2 ** 42, 86_400_000],
    [4_294_967.296, -1, 50],
  ])('keeps what was published: %d, %d, %d', (mono, wall, ttl) => {
    const { writer, reader } = boards();
    expect(reader.version(7)).toBe(0);
    writer.publish(7, { mono, wall, ttl });
    expect(reader.version(7)).toBe(1);
    expect(reader.read(7)).toEqual({ mono: Math.floor(mono * 1_000) / 1_000, wall, ttl });
  });

  it('never says that a renewal was sent later than it was (rule 3)', () => {
    const { writer, reader } = boards();
    const mono = 123_456.789_999;
    writer.publish(0, { mono, wall: 1_000.9, ttl: 60.5 });
    expect(reader.read(0)).toEqual({ mono: 123_456.789, wall: 1_000, ttl: 60 });
  });

  it('keeps the places of different leases apart, on all of its sheets', () => {
    const { writer, reader } = boards();
    reader.addSheet(writer.addSheet());
    const { places } = writer;
    expect(places).toBe(2_048);
    for (let place = 0; place < places; place++) {
      writer.publish(place, { mono: place, wall: place, ttl: place });
      if (place % 3 === 0) writer.markGone(place);
    }
    for (let place = 0; place < places; place++) {
      expect(reader.read(place).ttl).toBe(place);
      expect(reader.isGone(place)).toBe(place % 3 === 0);
    }
  });

  it('says nothing of the old lease in a place that was cleared', () => {
    const { writer, reader } = boards();
    writer.publish(3, { mono: 1, wall: 1, ttl: 1 });
    writer.markGone(3);
    reader.clear(3);
    expect(writer.version(3)).toBe(0);
    expect(writer.isGone(3)).toBe(false);
  });

  it('never shows half of what is being published', async () => {
    const lib = await compileLib();
    const board = new TrustBoard();
    const sheet = board.addSheet();
    const file = pathToFileURL(`${lib.dir}/lease/thread/trust-board.js`).href;
    const writer = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads');
       import(${JSON.stringify(file)}).then(({ TrustBoard }) => {
         const board = new TrustBoard();
         board.addSheet(workerData);
         parentPort.postMessage('writing');
         for (let i = 1; i <= 300_000; i++) {
           const mono = i * 7_000_000;
           board.publish(0, { mono, wall: mono + 1, ttl: i });
         }
       });`,
      { eval: true, workerData: sheet },
    );
    const over = once(writer, 'exit');
    await once(writer, 'message');
    let last = 0;
    while (last < 300_000) {
      if (board.version(0) === 0) continue;
      const { mono, wall, ttl } = board.read(0);
      if (mono !== ttl * 7_000_000 || wall !== mono + 1 || ttl < last) {
        throw new Error(`torn: ${mono}, ${wall}, ${ttl} after ${last}`);
      }
      last = ttl;
    }
    await over;
    await lib.remove();
    expect(last).toBe(300_000);
  });
});

describe('the heartbeat', () => {
  it('tells how long ago it last beat, also over the end of its count', () => {
    let now = 2 ** 32 - 1_000;
    const main = new Heartbeat(() => now);
    const thread = new Heartbeat(() => now, main.memory);
    main.beat();
    expect(thread.age).toBe(0);
    now += 30_000;
    expect(thread.age).toBe(30_000);
    main.beat();
    expect(thread.age).toBe(0);
  });

  it('is never older than it is because it beats while it is read', () => {
    let now = 1_000;
    const main = new Heartbeat(() => now);
    main.beat();
    const thread = new Heartbeat(() => {
      const read = now;
      now += 5;
      main.beat();
      return read;
    }, main.memory);
    expect(thread.age).toBe(0);
  });
});

describe('shared time', () => {
  it('translates to and fro', () => {
    const clock = new VirtualClock();
    const time = new SharedTime(clock, () => clock.now() + 500);
    expect(time.toShared(2_000)).toBe(2_500);
    expect(time.toOwn(2_500)).toBe(2_000);
  });

  it('takes a time of the other thread for earlier than it was, never later (rule 3)', () => {
    const clock = new VirtualClock();
    // Time passes between the two looks at the clocks.
    const own = { ...clock, now: () => (clock.freeze(1), clock.now()) };
    const time = new SharedTime(own as never, () => (clock.freeze(1), clock.now()));
    expect(time.toOwn(clock.now())).toBeLessThanOrEqual(clock.now());
  });
});
