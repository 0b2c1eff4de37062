import { until } from '../pace.js';
import type { Scene } from '../show.js';

const TICKS = 3;

/** A tick is a second here; cron fires just after it, never before. */
const tickOf = (at: Date): string => at.toISOString().slice(11, 19);

export const cronScene: Scene = async ({ stage, fleet, world }) => {
  stage.scene(
    1,
    'A cron job fires on three instances and runs on one',
    '@Cron(EVERY_SECOND) @WithLease("books"): all three fire at every tick; one runs, two skip.',
  );
  const runs = new Map<string, number>();
  const took = new Map<string, number>();
  const tookPart = (instance: string): void =>
    void took.set(instance, (took.get(instance) ?? 0) + 1);

  const closings = world.closings.subscribe(({ instance, at, fence }) => {
    runs.set(tickOf(at), (runs.get(tickOf(at)) ?? 0) + 1);
    tookPart(instance);
    stage.happens(instance, `runs ${tickOf(at)}`);
    stage.happens(instance, `fence ${fence}`);
  });
  const refusals = fleet.events$.subscribe((event) => {
    if (event.type !== 'refused' || event.key !== 'books') return;
    tookPart(event.instance);
    stage.happens(
      event.instance,
      event.reason === 'done' ? 'skips: already done' : 'skips: held elsewhere',
    );
  });

  for (const instance of fleet.alive) instance.startBooks();
  const firings = (): number => [...took.values()].reduce((sum, times) => sum + times, 0);
  await until(() => runs.size >= TICKS && firings() >= TICKS * fleet.alive.length, 8_000);
  await Promise.all(fleet.alive.map((instance) => instance.stopBooks()));
  closings.unsubscribe();
  refusals.unsubscribe();

  const twice = [...runs].filter(([, times]) => times !== 1).map(([tick]) => tick);
  stage.space();
  stage.check(
    runs.size >= TICKS && twice.length === 0,
    `${runs.size} ticks, ${firings()} firings, ${runs.size} runs: once per tick.`,
    twice.length > 0 ? `run more than once: ${twice.join(', ')}` : 'too few ticks',
  );
  stage.check(
    fleet.alive.every(({ name }) => took.has(name)),
    'All three instances fired.',
    `only ${[...took.keys()].join(', ')}`,
  );
};
