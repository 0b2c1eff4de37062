import { RedisLeaseStore } from 'nestjs-lease/redis';
import { Fleet } from './fleet.js';
import { seconds } from './pace.js';
import { conflictScene } from './scenes/conflict.scene.js';
import { cronScene } from './scenes/cron.scene.js';
import { leaderScene } from './scenes/leader.scene.js';
import { staleWriteScene } from './scenes/stale-write.scene.js';
import { toldInTimeScene } from './scenes/told-in-time.scene.js';
import { play } from './show.js';
import { World } from './shop/world.js';
import { Stage } from './stage.js';

const NAMES = ['alpha', 'bravo', 'charlie'] as const;
const SCENES = [cronScene, conflictScene, leaderScene, toldInTimeScene, staleWriteScene];

async function main(): Promise<boolean> {
  const beganAt = performance.now();
  const redisUrl = process.env['REDIS_URL'];
  const stage = new Stage({
    lanes: NAMES,
    colours: process.stdout.isTTY && !process.env['NO_COLOR'],
    write: (line) => console.log(line),
  });
  stage.title(
    'nestjs-lease',
    'One owner at a time, a deadline on every claim, a fence on every write.',
    `Three instances of one application in this process, on ${redisUrl ? 'your Redis' : 'the memory store'}.`,
    redisUrl ? '' : 'The same on Redis: REDIS_URL=redis://localhost:6379 npm run demo',
  );
  if (redisUrl && !(await answers(redisUrl))) {
    stage.space();
    stage.check(false, 'The Redis of REDIS_URL answers.', 'no answer. Unset it to use memory');
    return false;
  }
  const world = new World();
  const fleet = await Fleet.start(NAMES, redisUrl, world);
  try {
    const isShown = await play(SCENES, { stage, fleet, world });
    stage.end(SCENES.length, seconds(performance.now() - beganAt));
    return isShown;
  } finally {
    await fleet.close();
  }
}

async function answers(redisUrl: string): Promise<boolean> {
  const store = new RedisLeaseStore(redisUrl);
  try {
    await store.open();
    return true;
  } catch {
    return false;
  } finally {
    await store.close();
  }
}

// Not process.exit(): that it ends by itself is part of what it shows.
process.exitCode = (await main()) ? 0 : 1;
