import { beforeAll, describe, expect, it } from '@jest/globals';
import { Chance } from '../../simulation/chance.js';
import { Constituency, Task, TTL, type Candidate } from './candidate.js';

const STEPS = 120;

/** A fleet to which anything happens at any time. */
class Turmoil {
  readonly place: Constituency;
  readonly tasks: Task[] = [];
  mostLeaders = 0;
  leadersAtLast = 0;
  /** Work of an earlier term that was not told to stop was seen beside a leader. */
  hasStrayWork = false;
  readonly #chance: Chance;
  readonly #ill = new Set<Candidate>();
  readonly #gone = new Set<Candidate>();

  constructor(seed: number) {
    this.#chance = new Chance(seed);
    this.place = new Constituency(this.#chance.fork().next);
    for (let i = 0; i < 4; i++) this.#join();
  }

  get alive(): Candidate[] {
    return this.place.candidates.filter((candidate) => !this.#gone.has(candidate));
  }

  async step(): Promise<void> {
    const candidate = this.#chance.pick(this.alive);
    const { leadership } = candidate;
    await this.#chance.pick([
      () => void leadership.stepDown(),
      () => candidate.pause(),
      () => candidate.resume(),
      () => (candidate.line = this.#chance.pick(['up', 'up', 'down', 'no-reply'] as const)),
      () => void (this.#ill.delete(candidate) || this.#ill.add(candidate)),
      () => this.place.clock.freeze(this.#chance.between(0, 1.5 * TTL)),
      () => this.#startTask(),
      () => this.#startTask(),
      () => this.tasks.filter(({ isRunning }) => isRunning).forEach((task) => task.end()),
      () => this.#stop(candidate),
      () => this.#crash(candidate),
    ])();
    this.#look();
    for (let left = this.#chance.between(0, TTL); left > 0; left -= 50) {
      await this.place.clock.advance(Math.min(left, 50));
      this.#look();
    }
  }

  /** Everybody is well again, for long enough. */
  async calm(): Promise<void> {
    this.#ill.clear();
    for (const task of this.tasks) if (task.isRunning) task.end();
    for (const candidate of this.alive) {
      candidate.line = 'up';
      await candidate.resume();
    }
    await this.place.clock.advance(5 * TTL);
  }

  async end(): Promise<void> {
    await Promise.all(this.alive.map(({ leadership }) => leadership.stop()));
  }

  #join(): void {
    const candidate = this.place.candidate({ campaignWhen: () => !this.#ill.has(candidate) });
    candidate.leadership.start();
  }

  #startTask(): void {
    const [leader] = this.place.leaders;
    if (leader && !leader.isPaused) {
      this.tasks.push(new Task(leader, { stopsOnAbort: this.#chance.is(0.7) }));
    }
  }

  #stop(candidate: Candidate): void {
    void candidate.leadership.stop();
    this.#replace(candidate);
  }

  #crash(candidate: Candidate): void {
    candidate.crash();
    this.#replace(candidate);
  }

  #replace(candidate: Candidate): void {
    this.#gone.add(candidate);
    if (this.alive.length < 4) this.#join();
  }

  #look(): void {
    // A process that stands still does not look at its clock, and so is not made to.
    const leaders = this.place.candidates.filter(
      ({ isPaused, leadership }) => !isPaused && leadership.isLeader,
    );
    this.mostLeaders = Math.max(this.mostLeaders, leaders.length);
    const fence = leaders[0]?.leadership.lease?.fence ?? 0;
    this.hasStrayWork ||= this.tasks.some(
      (task) => task.isRunning && task.fence! < fence && task.canHear && !task.isAborted,
    );
  }
}

const SEEDS = Array.from({ length: 12 }, (_, i) => i + 1);

describe('over any schedule', () => {
  const runs: Turmoil[] = [];

  beforeAll(async () => {
    for (const seed of SEEDS) {
      const turmoil = new Turmoil(seed);
      runs.push(turmoil);
      for (let i = 0; i < STEPS; i++) await turmoil.step();
      await turmoil.calm();
      turmoil.leadersAtLast = turmoil.place.leaders.length;
      await turmoil.end();
    }
  });

  const ofEach = <T>(look: (turmoil: Turmoil) => T): T[] => runs.map(look);
  const all = <T>(value: T): T[] => SEEDS.map(() => value);

  it('at most one leads at any time (rule 1)', () => {
    expect(ofEach(({ mostLeaders }) => mostLeaders)).toEqual(all(1));
  });

  it('somebody leads again when it is over', () => {
    expect(ofEach(({ leadersAtLast }) => leadersAtLast)).toEqual(all(1));
  });

  it('no two terms have the same fence, and there were many (rule 8)', () => {
    for (const { place } of runs) {
      const terms = place.candidates.flatMap(({ events }) =>
        events.filter(({ type }) => type === 'elected'),
      );
      const inOrder = terms.toSorted((a, b) => a.at.getTime() - b.at.getTime());
      const fences = inOrder.map(({ fence }) => fence);
      expect(fences.length).toBeGreaterThan(10);
      expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b));
    }
  });

  it('everybody hears of rise and fall in turn', () => {
    for (const { events, isLeader$ } of runs.flatMap(({ place }) => place.candidates)) {
      expect(events.map(({ type }) => type)).toEqual(
        events.map((_, i) => (i % 2 === 0 ? 'elected' : 'deposed')),
      );
      expect(isLeader$).toEqual(isLeader$.map((_, i) => i % 2 === 1));
    }
  });

  it('nobody leads beside work of an earlier term that was not told to stop (rule 11)', () => {
    expect(ofEach(({ hasStrayWork }) => hasStrayWork)).toEqual(all(false));
  });

  it('nothing is left of those who stopped', async () => {
    for (const { alive, place } of runs) {
      expect(alive.map(({ engine }) => engine.agenda.size)).toEqual(alive.map(() => 0));
      expect(await place.holder()).toBeUndefined();
    }
  });
});
