import { describe, expect, it } from '@jest/globals';
import { config, firstValueFrom } from 'rxjs';
import { LeaseLostException } from '../../../lib/exceptions/lease-lost.exception.js';
import { NotLeaderException } from '../../../lib/exceptions/not-leader.exception.js';
import { SHUTTING_DOWN } from '../../../lib/lease.messages.js';
import { until } from '../../support/until.js';
import { settle } from '../../support/virtual-clock.js';
import { Constituency, GRACE, Task, TTL } from './candidate.js';

describe('being elected', () => {
  it('runs for leader only once it was started', async () => {
    const place = new Constituency();
    const { leadership } = place.candidate();
    await place.clock.advance(2 * TTL);
    expect(await place.holder()).toBeUndefined();

    leadership.start();
    await settle();
    expect(leadership.isLeader).toBe(true);
  });

  it('makes one of many the leader', async () => {
    const place = new Constituency();
    for (let i = 0; i < 5; i++) place.candidate().leadership.start();
    await place.clock.advance(3 * TTL);
    expect(place.leaders).toHaveLength(1);
  });

  it('stays the leader for as long as it lives', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    place.candidate().leadership.start();
    await place.clock.advance(50 * TTL);
    expect(place.leaders).toEqual([leader]);
    expect(leader.story).toEqual(['elected']);
  });

  it('leads by a lease with a fence and a signal', async () => {
    const place = new Constituency();
    const { leadership, events } = await place.leader();
    expect(leadership.lease).toMatchObject({ key: 'election:group', fence: events[0]!.fence });
    expect(leadership.lease!.signal.aborted).toBe(false);
  });

  it('has no lease when it does not lead', async () => {
    const place = new Constituency();
    await place.leader();
    const { leadership } = await place.leader();
    expect(leadership.lease).toBeUndefined();
  });

  it('gives every successor a higher fence (rule 8)', async () => {
    const place = new Constituency();
    const first = await place.leader();
    const second = await place.leader();
    await first.leadership.stop();
    await settle();
    expect(second.leadership.lease!.fence).toBeGreaterThan(first.events[0]!.fence);
  });

  it('does not announce a term that was over before it began', async () => {
    // Wherever on the way from the grant to the announcement the process is held up.
    for (let turns = 0; turns < 30; turns++) {
      const place = new Constituency();
      const { leadership, engine } = place.candidate();
      let froze = false;
      const announced: boolean[] = [];
      engine.events.all.subscribe(async ({ type }) => {
        if (type === 'elected') announced.push(leadership.isLeader);
        if (type !== 'acquired' || froze) return;
        froze = true;
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        place.clock.freeze(TTL);
      });
      leadership.start();
      await place.clock.advance(2 * TTL);
      expect(announced).not.toEqual([]);
      expect(announced).not.toContain(false);
    }
  });
});

describe('knowing whether it leads', () => {
  it('looks at the clock: after a freeze it does not lead, before any timer ran (rule 4)', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    place.clock.freeze(TTL);
    expect(leadership.isLeader).toBe(false);
    expect(leadership.lease).toBeUndefined();
  });

  it('starts no work after a freeze, before any timer ran (rule 4)', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    place.clock.freeze(TTL);
    let ran = false;
    expect(await leadership.run(() => (ran = true))).toBeUndefined();
    expect(ran).toBe(false);
  });

  it('tells a new subscriber of isLeader$ what is true now, not before the freeze (rule 4)', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    place.clock.freeze(TTL);
    expect(await firstValueFrom(leadership.isLeader$)).toBe(false);
  });

  it('tells isLeader$ what it is, then every change, and nothing twice', async () => {
    const place = new Constituency();
    const { leadership, isLeader$ } = await place.leader();
    await leadership.stepDown();
    await place.clock.advance(2 * TTL);
    await leadership.stop();
    expect(isLeader$).toEqual([false, true, false, true, false]);
  });

  it('completes isLeader$ when it stops, and still tells a late subscriber that it does not lead', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    await leadership.stop();
    const heard: unknown[] = [];
    leadership.isLeader$.subscribe({
      next: (leads) => heard.push(leads),
      complete: () => heard.push('complete'),
    });
    expect(heard).toEqual([false, 'complete']);
  });

  it('is not shaken by a subscriber that throws', async () => {
    const place = new Constituency();
    const { leadership, story } = place.candidate();
    const thrown: unknown[] = [];
    config.onUnhandledError = (error) => thrown.push(error);
    try {
      leadership.isLeader$.subscribe(() => {
        throw new Error('a subscriber of the user');
      });
      leadership.start();
      await place.clock.advance(2 * TTL);
      // rxjs tells of it by a timer of its own: that it does not lead, and that it does.
      await until(() => thrown.length === 2);
    } finally {
      config.onUnhandledError = null;
    }
    expect(leadership.isLeader).toBe(true);
    expect(story).toEqual(['elected']);
  });

  it('tells of its fall after its rise, also when a listener to the rise brought it down', async () => {
    const place = new Constituency();
    const { leadership, engine } = place.candidate();
    let froze = false;
    leadership.isLeader$.subscribe((leads) => {
      if (!leads || froze) return;
      froze = true;
      place.clock.freeze(TTL);
      void leadership.isLeader;
    });
    const heard: unknown[] = [];
    engine.events.all.subscribe(({ type }) => heard.push(type));
    leadership.isLeader$.subscribe((leads) => heard.push(leads));
    leadership.start();
    await settle();
    expect(
      heard.filter((what) => ['elected', 'deposed', true, false].includes(what as string)),
    ).toEqual(expect.arrayContaining([false, true, 'elected', false, 'deposed']));
    expect(heard.indexOf('elected')).toBeLessThan(heard.indexOf('deposed'));
    expect(heard.lastIndexOf(false)).toBeLessThan(heard.indexOf('deposed'));
  });
});

describe('stepping down', () => {
  it('does not lead from the moment it is asked', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    const done = leadership.stepDown();
    expect(leadership.isLeader).toBe(false);
    expect(await leadership.run(() => 'ran')).toBeUndefined();
    await done;
  });

  it('hands over at once when it has nothing to do', async () => {
    const place = new Constituency();
    const first = await place.leader();
    const second = await place.leader();
    await first.leadership.stepDown();
    await settle();
    expect(place.leaders).toEqual([second]);
    expect(first.story).toEqual(['elected', 'stepped-down']);
  });

  it('lets work in flight finish, and renews its lease meanwhile (rule 11)', async () => {
    const place = new Constituency();
    const leader = await place.leader({ grace: 5 * TTL });
    const work = new Task(leader);
    const done = leader.leadership.stepDown();
    await place.clock.advance(4 * TTL);
    expect(work.isAborted).toBe(false);
    expect(await place.holder()).toBe(leader.name);

    work.end();
    await done;
    expect(await work.outcome).toBe('done');
    expect(await place.holder()).toBeUndefined();
  });

  it('aborts work that outlasts the grace, with a reason', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    const work = new Task(leader, { stopsOnAbort: true });
    const done = leader.leadership.stepDown();
    await place.clock.advance(GRACE - 1);
    expect(work.isAborted).toBe(false);
    await place.clock.advance(1);
    expect(work.reason).toBeInstanceOf(NotLeaderException);
    await done;
  });

  it('keeps the leadership from the next until its work has stopped (rule 11)', async () => {
    const place = new Constituency();
    const first = await place.leader();
    const second = await place.leader();
    const work = new Task(first);
    const done = first.leadership.stepDown();
    await place.clock.advance(10 * TTL);
    expect(work.isAborted).toBe(true);
    expect(place.leaders).toEqual([]);
    expect(first.stuck).toBe(1);

    work.end();
    await done;
    await settle();
    expect(place.leaders).toEqual([second]);
  });

  it('aborts the signal of its lease, also when no run() is in flight', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    const { signal } = leadership.lease!;
    await leadership.stepDown();
    expect(signal.reason).toBeInstanceOf(NotLeaderException);
  });

  it('can be asked twice, and both see it end', async () => {
    const place = new Constituency();
    const { leadership, story } = await place.leader();
    await Promise.all([leadership.stepDown(), leadership.stepDown()]);
    await leadership.stepDown();
    expect(story).toEqual(['elected', 'stepped-down']);
  });

  it('is nothing to one that does not lead', async () => {
    const place = new Constituency();
    await place.leader();
    const { leadership, story } = await place.leader();
    await leadership.stepDown();
    expect(story).toEqual([]);
  });

  it('can be asked from inside of its own work without waiting for itself', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    const result = await leadership.run(async () => {
      await leadership.stepDown();
      return 'went on';
    });
    expect(result).toBe('went on');
    await settle();
    expect(await place.holder()).toBeUndefined();
  });

  it('campaigns again after a ttl, not sooner', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    await leadership.stepDown();
    await place.clock.advance(TTL - 1);
    expect(leadership.isLeader).toBe(false);
    await place.clock.advance(1);
    expect(leadership.isLeader).toBe(true);
  });

  it('does not wait for work of an earlier term, whose lease was lost', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    const stale = new Task(leader);
    place.clock.freeze(TTL);
    await place.clock.advance(2 * TTL);
    expect(leader.story).toEqual(['elected', 'expired', 'elected']);

    await leader.leadership.stepDown();
    expect(await place.holder()).toBeUndefined();
    stale.end();
    await stale.outcome;
  });

  it('treats a lease that was released by hand as stepping down', async () => {
    const place = new Constituency();
    const { leadership, story, isLeader$ } = await place.leader();
    await leadership.lease!.release();
    expect(leadership.isLeader).toBe(false);
    await place.clock.advance(TTL / 2);
    expect(story).toEqual(['elected', 'stepped-down']);
    expect(isLeader$).toEqual([false, true, false]);
  });
});

describe('losing', () => {
  it('is told as expired when the store is down, before another can be elected', async () => {
    const place = new Constituency();
    const first = await place.leader();
    const second = await place.leader();
    first.line = 'down';
    for (let ms = 0; ms < 2 * TTL && !second.leadership.isLeader; ms++) {
      await place.clock.advance(1);
      expect(place.leaders.length).toBeLessThanOrEqual(1);
    }
    expect(first.story).toEqual(['elected', 'expired']);
    expect(place.leaders).toEqual([second]);
  });

  it('is told within the trust of the last renewal (rule 3)', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    leader.line = 'no-reply';
    await place.clock.advance(Math.ceil((TTL * 5) / 6));
    expect(leader.story).toEqual(['elected', 'expired']);
    expect(leader.leadership.isLeader).toBe(false);
  });

  it('is over when the store is back', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    leader.line = 'down';
    await place.clock.advance(5 * TTL);
    expect(leader.leadership.isLeader).toBe(false);
    leader.line = 'up';
    await place.clock.advance(2 * TTL);
    expect(leader.story).toEqual(['elected', 'expired', 'elected']);
    expect(leader.errors).toEqual([]);
  });

  it('aborts work in flight, which then rejects as lost', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    const work = new Task(leader, { stopsOnAbort: true });
    leader.line = 'down';
    await place.clock.advance(TTL);
    expect(work.reason).toBeInstanceOf(LeaseLostException);
    expect(await work.outcome).toBeInstanceOf(LeaseLostException);
  });

  it('ends at once when the key was taken away', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    const { hold } = leader.leadership.lease!.holdings[0]!;
    await place.store.release(hold, {});
    await place.clock.advance(TTL / 3);
    expect(leader.story).toEqual(['elected', 'taken', 'elected']);
  });

  it('while stepping down is told once', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    const work = new Task(leader);
    const done = leader.leadership.stepDown();
    leader.line = 'down';
    await place.clock.advance(2 * TTL);
    work.end();
    await place.clock.advance(TTL / 2);
    await done;
    expect(leader.story).toEqual(['elected', 'stepped-down']);
  });

  it('by a crash hands over within the ttl', async () => {
    const place = new Constituency();
    const first = await place.leader();
    const second = await place.leader();
    await place.clock.advance(7.3 * TTL);
    first.crash();
    await place.clock.advance(TTL + 10);
    expect(second.leadership.isLeader).toBe(true);
  });
});

describe('work under a leadership', () => {
  it("gets the leadership's own fence", async () => {
    const place = new Constituency();
    const leader = await place.leader();
    const work = new Task(leader);
    expect(work.fence).toBe(leader.leadership.lease!.fence);
    work.end();
    expect(await work.outcome).toBe('done');
  });

  it('passes its own exception through and does not end the leadership (rule 13)', async () => {
    const place = new Constituency();
    const { leadership } = await place.leader();
    const error = new Error('of the work');
    const failing = leadership.run(() => {
      throw error;
    });
    await expect(failing).rejects.toBe(error);
    expect(leadership.isLeader).toBe(true);
  });

  it('is inside of the lease, and may run more of it', async () => {
    const place = new Constituency();
    const { leadership, engine } = await place.leader();
    const fence = await leadership.run(() => leadership.run(() => engine.scope.current?.fence));
    expect(fence).toBe(leadership.lease!.fence);
  });
});

describe('campaignWhen', () => {
  it('keeps an instance that says no out of the election', async () => {
    const place = new Constituency();
    const abstaining = await place.leader({ campaignWhen: () => false });
    const other = await place.leader();
    await place.clock.advance(5 * TTL);
    expect(abstaining.story).toEqual([]);
    expect(place.leaders).toEqual([other]);
  });

  it('lets it in when it says yes again', async () => {
    const place = new Constituency();
    let isHealthy = false;
    const { leadership } = await place.leader({ campaignWhen: async () => isHealthy });
    await place.clock.advance(TTL);
    isHealthy = true;
    await place.clock.advance(TTL);
    expect(leadership.isLeader).toBe(true);
  });

  it('makes a leader step down, its work stopped before another leads (rule 11)', async () => {
    const place = new Constituency();
    let isHealthy = true;
    const first = await place.leader({ campaignWhen: () => isHealthy });
    const second = await place.leader();
    const work = new Task(first, { stopsOnAbort: true });
    isHealthy = false;
    while (!second.leadership.isLeader) {
      expect(work.isRunning || work.isAborted).toBe(true);
      await place.clock.advance(10);
    }
    expect(work.isRunning).toBe(false);
    expect(first.story).toEqual(['elected', 'unhealthy']);
  });

  it('is asked at least every third of the ttl, so that nobody wins long after it fell ill', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    let isHealthy = true;
    const ill = await place.leader({ campaignWhen: () => isHealthy });
    await place.clock.advance(2.1 * TTL);
    isHealthy = false;
    await place.clock.advance(TTL / 3);
    await leader.leadership.stop();
    await place.clock.advance(5 * TTL);
    expect(ill.story).toEqual([]);
  });

  const troubles: [string, () => boolean | Promise<boolean>][] = [
    [
      'throws',
      () => {
        throw new Error('no idea');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no idea'))],
    ['never answers', () => new Promise(() => {})],
  ];

  it.each(troubles)('that %s is a no, told once', async (_, trouble) => {
    const place = new Constituency();
    const { story, errors } = await place.leader({ campaignWhen: trouble });
    await place.clock.advance(5 * TTL);
    expect(story).toEqual([]);
    expect(errors).toHaveLength(1);
  });

  it.each(troubles)('that %s makes a leader step down', async (_, trouble) => {
    const place = new Constituency();
    let check: () => boolean | Promise<boolean> = () => true;
    const { story } = await place.leader({ campaignWhen: () => check() });
    check = trouble;
    await place.clock.advance(TTL);
    expect(story).toEqual(['elected', 'unhealthy']);
  });

  it.each(troubles)('that %s is asked again', async (_, trouble) => {
    const place = new Constituency();
    let check = trouble;
    const { leadership } = await place.leader({ campaignWhen: () => check() });
    await place.clock.advance(2 * TTL);
    check = () => true;
    await place.clock.advance(TTL);
    expect(leadership.isLeader).toBe(true);
  });

  it('that never answers holds up neither stepDown() nor stop()', async () => {
    const place = new Constituency();
    let check: () => boolean | Promise<boolean> = () => true;
    const { leadership } = await place.leader({ campaignWhen: () => check() });
    check = () => new Promise(() => {});
    await place.clock.advance(TTL / 3 + 1);
    await leadership.stepDown();
    await leadership.stop();
    expect(await place.holder()).toBeUndefined();
  });

  it('answers of another kind than true are a no', async () => {
    const place = new Constituency();
    const { story } = await place.leader({ campaignWhen: () => 'yes' as unknown as boolean });
    await place.clock.advance(2 * TTL);
    expect(story).toEqual([]);
  });
});

describe('stop() leaves no timer and no hold, whatever it interrupts', () => {
  const stages: [
    string,
    (place: Constituency) => Promise<ReturnType<Constituency['candidate']>>,
  ][] = [
    ['before the start', async (place) => place.candidate()],
    [
      'while it asks for its health',
      async (place) => place.leader({ campaignWhen: () => new Promise(() => {}) }),
    ],
    ['while abstaining', async (place) => place.leader({ campaignWhen: () => false })],
    [
      'while another leads',
      async (place) => {
        const other = await place.leader();
        const candidate = await place.leader();
        await place.clock.advance(TTL);
        await other.engine.close(0, 0);
        return candidate;
      },
    ],
    ['while leading', async (place) => place.leader()],
    [
      'while stepping down',
      async (place) => {
        const candidate = await place.leader();
        const work = new Task(candidate, { stopsOnAbort: true });
        void candidate.leadership.stepDown();
        await place.clock.advance(GRACE / 2);
        expect(work.isRunning).toBe(true);
        place.clock.setTimer(() => work.end(), 0);
        return candidate;
      },
    ],
    [
      'while it lets another go first',
      async (place) => {
        const candidate = await place.leader();
        await candidate.leadership.stepDown();
        return candidate;
      },
    ],
    [
      'while the store is down',
      async (place) => {
        const candidate = place.candidate();
        candidate.line = 'down';
        candidate.leadership.start();
        await place.clock.advance(TTL);
        return candidate;
      },
    ],
  ];

  it.each(stages)('%s', async (_, at) => {
    const place = new Constituency();
    const { leadership, engine, story } = await at(place);
    const stopped = leadership.stop();
    await place.clock.advance(0);
    await stopped;
    expect(engine.agenda.size).toBe(0);
    expect(await place.holder()).toBeUndefined();
    leadership.start();
    await place.clock.advance(2 * TTL);
    expect(leadership.isLeader).toBe(false);
    expect(story.filter((event) => event === 'elected').length).toBeLessThanOrEqual(1);
  });

  it('while a claim is in flight, whose grant is given back when it comes (rule 2)', async () => {
    const place = new Constituency();
    const candidate = place.candidate();
    candidate.pause();
    candidate.leadership.start();
    await settle();
    expect(await place.holder()).toBe(candidate.name);

    await candidate.leadership.stop();
    await candidate.resume();
    await settle();
    expect(await place.holder()).toBeUndefined();
    expect(candidate.story).toEqual([]);
    expect(candidate.engine.agenda.size).toBe(0);
  });

  it('lets work in flight finish first, then tells it why (rule 11)', async () => {
    const place = new Constituency();
    const leader = await place.leader();
    const work = new Task(leader, { stopsOnAbort: true });
    const stopped = leader.leadership.stop();
    await place.clock.advance(GRACE);
    await stopped;
    expect((work.reason as Error).message).toBe(SHUTTING_DOWN());
    expect(leader.story).toEqual(['elected', 'shutdown']);
    expect(await work.outcome).toBe('done');
  });

  it('hands over at once', async () => {
    const place = new Constituency();
    const first = await place.leader();
    const second = await place.leader();
    await place.clock.advance(3.7 * TTL);
    await first.leadership.stop();
    await settle();
    expect(place.leaders).toEqual([second]);
  });

  it('twice', async () => {
    const place = new Constituency();
    const { leadership, story } = await place.leader();
    await Promise.all([leadership.stop(), leadership.stop()]);
    await leadership.stop();
    expect(story).toEqual(['elected', 'shutdown']);
  });
});
