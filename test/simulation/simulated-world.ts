import { setImmediate } from 'node:timers';
import { LeaseDoneException } from '../../lib/exceptions/lease-done.exception.js';
import { LeaseHeldException } from '../../lib/exceptions/lease-held.exception.js';
import { LeaseLostException } from '../../lib/exceptions/lease-lost.exception.js';
import { LeaseUnavailableException } from '../../lib/exceptions/lease-unavailable.exception.js';
import type { LeaseOptions } from '../../lib/lease.options.js';
import { LeaseEngine } from '../../lib/lease/lease-engine.js';
import type { Lease } from '../../lib/lease/lease.js';
import { Chance } from './chance.js';
import { Witness, type Handle, type Violation } from './invariants.js';
import {
  isDelivered,
  isUntroubled,
  type Deed,
  type Fault,
  type Scenario,
  type ServerFault,
  type Step,
  type Take,
} from './scenario.js';
import { SimulatedProcess } from './simulated-process.js';
import { SimulatedServer, SimulatedStore } from './simulated-store.js';
import { Timeline } from './timeline.js';
import { WaitingWitness, type Seeker } from './waiting-witness.js';

const NAMESPACE = 'sim';
/** More than any honest run needs: something spins. */
const MOST_EVENTS = 50_000;
/** Timers in a row, each late by a little. */
const SLACK = 6;
/** The longest ttl a scenario can come to: 900, renewed for twice that. */
const LONGEST_TTL = 1_800;

/** Nothing is held and every message is delivered: so long for all of them, even by polling. */
const TURNS_TAKE = 1_500;

export interface Report {
  readonly violation: Violation | undefined;
  readonly events: number;
  readonly seen: Witness['seen'];
}

/** One process of the scenario: its clocks, its engine, and what its users are up to. */
interface Site {
  readonly process: SimulatedProcess;
  readonly engine: LeaseEngine;
  readonly store: SimulatedStore;
  /** Who is about to ask its engine for a key. */
  asking: Seeker | undefined;
  readonly handles: Set<Handle>;
  closing: boolean;
  closed: boolean;
}

/** What follows from an event without time passing: all of it, in the order in which Node does it. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const keyName = (index: number): string => `k${index}`;

/** Runs a scenario to its end. The same scenario is always the same run. */
export async function simulate(scenario: Scenario): Promise<Report> {
  const world = new World(scenario);
  await world.run();
  return { violation: world.witness.violation, events: world.events, seen: world.witness.seen };
}

class World {
  readonly timeline = new Timeline();
  readonly witness = new Witness(this.timeline);
  readonly #queues: WaitingWitness;
  readonly #server: SimulatedServer;
  readonly #sites: readonly Site[];
  readonly #chance: Chance;
  readonly #pending = new Map<Promise<unknown>, { what: string; site: Site }>();
  /** Those who hold on to their lease until they are told to stop, or for ever. */
  #letEverybodyGo!: () => void;
  readonly #untilTheEnd = new Promise<void>((resolve) => (this.#letEverybodyGo = resolve));
  events = 0;

  constructor(private readonly scenario: Scenario) {
    this.#chance = new Chance(scenario.seed ^ 0x5eed);
    this.#server = new SimulatedServer(
      this.timeline,
      this.#chance.fork(),
      scenario.serverRate,
      scenario.network,
      this.witness,
      scenario.steps.some(({ what }) => what.do === 'fail-over'),
    );
    this.witness.server = this.#server;
    this.#queues = new WaitingWitness(this.timeline, this.#server, this.witness, {
      untroubled: isUntroubled(scenario),
      delivered: isDelivered(scenario),
      line: scenario.line === true,
      network: scenario.network,
    });
    this.witness.onGrant = (key, token) => this.#queues.granted(key, token);
    this.#server.onTold = (token) => this.#queues.told(token);
    this.#server.onEnqueueSent = (token) => this.#queues.enqueueSent(token);
    this.#server.onReleaseSent = (token) => this.#queues.releaseSent(token);
    this.#sites = scenario.processes.map((_, index) => this.#boot(index));
    for (const step of scenario.steps) this.timeline.after(step.at, () => this.#step(step));
  }

  async run(): Promise<void> {
    const lastStep = this.scenario.steps.at(-1)?.at ?? 0;
    await this.#runUntil(lastStep + 200);
    this.#server.calmDown();
    for (const { process } of this.#sites) process.wake();
    this.#letEverybodyGo();
    // What waited for a process to wake reaches it first.
    await this.#runUntil(this.timeline.now + SLACK);
    await this.#runUntilSettled(10_000, 'does not end');
    await this.#runUntil(this.timeline.now + LONGEST_TTL * 1.05);
    await this.#everybodyOnce();
    for (const site of this.#sites) this.#close(site, this.#chance.pick([0, 50]), 50);
    await this.#runUntilSettled(10_000, 'does not end after the shutdown');
    await this.#runUntil(this.timeline.now + LONGEST_TTL * 1.05);
    this.#checkNothingLeft();
  }

  #boot(index: number): Site {
    const { rate, offset } = this.scenario.processes[index]!;
    const process = new SimulatedProcess(index, this.timeline, this.#chance.fork(), rate, offset);
    const random = this.#chance.fork();
    let tokens = 0;
    const store = new SimulatedStore(this.#server, process, this.scenario, (token) =>
      this.witness.heardGone(token),
    );
    const engine = new LeaseEngine({
      store,
      namespace: NAMESPACE,
      instance: `p${index}`,
      ttl: 300,
      wait: 0,
      clock: process,
      random: random.next,
      token: () => {
        const token = `p${index}.${tokens++}`;
        this.#queues.asks(site.asking, token);
        site.asking = undefined;
        return token;
      },
    });
    const site: Site = {
      process,
      engine,
      store,
      asking: undefined,
      handles: new Set(),
      closing: false,
      closed: false,
    };
    engine.events.lost.subscribe((event) => this.witness.lostEvent(event, NAMESPACE));
    process.onWake = () => {
      // rule 4: before any timer had its turn, somebody asks
      if (this.#chance.is(0.5)) for (const handle of site.handles) this.#ask(handle);
    };
    return site;
  }

  // — time

  async #runUntil(end: number): Promise<void> {
    const { timeline, witness } = this;
    while (witness.violation === undefined) {
      const next = timeline.take(end);
      if (next === undefined) break;
      timeline.now = next.at;
      this.#server.data.sweep();
      witness.look();
      next.run();
      await settle();
      witness.look();
      this.#queues.look();
      if (++this.events > MOST_EVENTS) witness.fail(10, 'something spins');
    }
    if (witness.violation !== undefined) return;
    timeline.now = end;
    this.#server.data.sweep();
    witness.look();
  }

  async #runUntilSettled(most: number, complaint: string): Promise<void> {
    const end = this.timeline.now + most;
    const isBusy = (): boolean =>
      [...this.#pending.values()].some(({ site }) => !site.process.crashed);
    await settle();
    while (isBusy() && this.timeline.now < end && this.witness.violation === undefined) {
      await this.#runUntil(this.timeline.now + 25);
    }
    for (const { what, site } of this.#pending.values()) {
      if (!site.process.crashed) this.witness.fail(10, `${what} ${complaint}`);
    }
  }

  // — steps

  #step(step: Step): void {
    if (step.process === undefined) return this.#breakServer(step.what);
    const site = this.#sites[step.process % this.#sites.length]!;
    const { what } = step;
    if (isTake(what)) return site.process.deliver(() => this.#start(site, what));
    this.#breakProcess(site, what);
  }

  #breakServer(fault: ServerFault): void {
    switch (fault.do) {
      case 'freeze':
        return this.#server.freeze(fault.ms);
      case 'restart':
      case 'restart-empty':
        return this.#server.restart(fault.ms, fault.do === 'restart-empty');
      case 'fail-over':
        return this.#server.failOver(fault.lag);
      case 'clear':
        return this.#server.data.clear(`${NAMESPACE}/${keyName(fault.key)}`);
    }
  }

  #breakProcess(site: Site, fault: Fault): void {
    const { process } = site;
    switch (fault.do) {
      case 'pause':
        return process.pause(fault.ms);
      case 'suspend':
        return process.suspend(fault.ms);
      case 'step-wall':
        return process.stepWall(fault.ms);
      case 'cut-off':
        return this.#server.cutOff(process, fault.ms);
      case 'crash':
        process.crash();
        return this.#server.crashed(process);
      case 'close':
        return process.deliver(() => this.#close(site, fault.grace, fault.stopGrace));
    }
  }

  #close(site: Site, grace: number, stopGrace: number): void {
    const { engine, process } = site;
    if (site.closing || process.crashed) return;
    site.closing = true;
    const close = async (): Promise<void> => {
      const left = await engine.close(grace, stopGrace);
      site.closed = true;
      // Work that did not stop may still renew or release; in the end nothing of it may be left either.
      if (engine.agenda.size > 0 && left.length === 0)
        this.witness.fail(12, 'an appointment outlives the shutdown');
      if (engine.awaited > 0) this.witness.fail(10, 'a wait outlives the shutdown');
    };
    this.#follow(close(), 'close()', site);
  }

  // — users

  #start(site: Site, take: Take): void {
    const what = `${take.do}(${take.keys.map(keyName).join(' + ')}) of p${site.process.index}`;
    this.#follow(
      take.do === 'run' ? this.#runIn(site, take) : this.#takeAndGive(site, take),
      what,
      site,
    );
  }

  /** Everything that is begun ends, and without an exception nobody expects. */
  #follow(begun: Promise<unknown>, what: string, site: Site): void {
    this.#pending.set(begun, { what, site });
    begun.then(
      () => this.#pending.delete(begun),
      (error: unknown) => {
        this.#pending.delete(begun);
        this.witness.fail(12, `${what} failed unexpectedly: ${String(error)}`);
      },
    );
  }

  async #takeAndGive(site: Site, take: Take): Promise<void> {
    const request = this.#request(site, take);
    let lease: Lease | null;
    try {
      lease =
        take.do === 'try'
          ? await site.engine.tryAcquire(request.keys, request.options)
          : await site.engine.acquire(request.keys, request.options);
    } catch (error) {
      request.ended(undefined, error);
      return;
    }
    const handle = request.ended(lease ?? undefined, undefined);
    if (handle === undefined) return;
    await this.#do(site, handle, take, false);
    if (take.ending === 'forget') await this.#untilTheEnd;
    await this.#release(site, handle, take.ending === 'release-twice');
  }

  async #runIn(site: Site, take: Take): Promise<void> {
    const request = this.#request(site, take);
    const own = new Error('thrown by the work');
    let handle: Handle | undefined;
    let heldAtEnd = false;
    const work = async (lease: Lease): Promise<string> => {
      if (!lease.isHeld) this.witness.fail(4, `work began without ${lease.key}`);
      handle = request.ended(lease, undefined)!;
      await this.#do(site, handle, take, true);
      if (take.ending === 'forget') await Promise.race([this.#untilTheEnd, aborted(lease.signal)]);
      if (lease.isReleased) this.witness.fail(11, `${lease.key} was released under its work`);
      if (take.ending === 'throw') throw own;
      heldAtEnd = lease.isHeld;
      return 'result';
    };
    try {
      const result = await site.engine.run(request.keys, work, request.options);
      if (!heldAtEnd || result !== 'result') this.witness.fail(13, 'a result without its lease');
    } catch (error) {
      if (handle === undefined) request.ended(undefined, error);
      else if (take.ending === 'throw' && error !== own)
        this.witness.fail(13, `${String(error)} hides the own error`);
      // That it is not ours any more may be found as late as at the release.
      else if (
        error !== own &&
        (!(error instanceof LeaseLostException) ||
          (heldAtEnd && (await handle.lease.release()) !== 'lost'))
      ) {
        this.witness.fail(13, `${String(error)} instead of the result`);
      }
    }
    if (handle === undefined) return;
    this.#checkSent(site, handle);
    const outcome = await this.#release(site, handle, false);
    if (take.once !== undefined && heldAtEnd && outcome === 'released') {
      this.witness.done(handle, take.once);
    }
  }

  /** Whoever goes on after a run finds that its release has been sent, if not answered. */
  #checkSent({ store }: Site, { lease }: Handle): void {
    if (!lease.isReleased) this.witness.fail(7, `${lease.key} is not given back after its run`);
    for (const { hold, state } of lease.holdings) {
      if (state !== 'lost' && !store.released.has(hold.token)) {
        this.witness.fail(7, `the release of ${hold.token} was not sent when its run was over`);
      }
    }
  }

  /** A request for a lease, and what must be true when it has been answered. */
  #request(site: Site, take: Take) {
    const { process } = site;
    const keys = take.keys.map((index) => keyName(index % this.scenario.keys.length));
    const several = new Set(keys).size > 1;
    const shared = this.scenario.keys[take.keys[0]! % this.scenario.keys.length]!;
    const permits = several || take.alone ? 1 : shared;
    const { ttl, wait, renew, minHold, maxHold, once, remember, awaitRelease } = take;
    const abort = new AbortController();
    const reason = new Error('given up');
    const options: LeaseOptions = { ttl, wait, permits, signal: abort.signal };
    Object.assign(options, definedOnly({ renew, minHold, maxHold, once, remember, awaitRelease }));
    const startedAt = this.timeline.now;
    const begun = process.awakeFor;
    let abortedAt: number | undefined;
    if (take.abortAfter !== undefined) {
      process.setTimer(() => {
        abortedAt = process.awakeFor;
        abort.abort(reason);
      }, take.abortAfter);
    }
    const seeker = this.#queues.seeks(
      process,
      keys.map((key) => `${NAMESPACE}/${key}`),
      { waits: wait > 0, plain: permits === 1 && once === undefined },
    );
    if (!several) site.asking = seeker;
    const ended = (lease: Lease | undefined, error: unknown): Handle | undefined => {
      this.#checkBound(begun, abortedAt, take, several ? keys.length : 1, process);
      this.#queues.ended(seeker, lease !== undefined);
      if (lease === undefined) {
        const mayBeLost = several || maxHold !== undefined;
        this.#checkRefusal(error, abort.signal, keys, startedAt, mayBeLost);
        return undefined;
      }
      if (site.closed) this.witness.fail(11, `${lease.key} was given out after the shutdown`);
      const handle: Handle = {
        process,
        lease,
        acquiredAt: process.now(),
        permits,
        minHold: minHold ?? 0,
        maxHold: maxHold ?? Infinity,
      };
      site.handles.add(handle);
      // The signal is made when it is first asked for: both ways are to be tried.
      if (this.#chance.is(0.5)) void lease.signal;
      this.witness.acquired(handle, once);
      return handle;
    };
    return { keys: keys.length === 1 ? keys[0]! : keys, options, ended };
  }

  #checkBound(
    begun: number,
    abortedAt: number | undefined,
    { ttl, wait }: Take,
    keys: number,
    process: SimulatedProcess,
  ): void {
    const patience = ttl / 3;
    // One after the other, and what was taken already is given back, in two tries, before the answer.
    const several = keys > 1 ? wait + keys * patience + 2 * patience + ttl / 6 : 0;
    // Who does not wait asks again after a release of its own process that was under way, and waits for that as long.
    const atOnce = wait === 0 ? 3 * patience : patience;
    const bound = Math.max(wait, atOnce, several) * 1.011 + SLACK;
    const took = process.awakeFor - begun;
    if (took > bound) {
      this.witness.fail(
        10,
        `a wait of ${wait} ms (patience ${patience}) took ${took.toFixed(1)} ms`,
      );
    }
    if (abortedAt !== undefined && keys === 1) {
      const lingered = process.awakeFor - abortedAt;
      if (lingered > SLACK)
        this.witness.fail(10, `an aborted wait lingered ${lingered.toFixed(1)} ms`);
    }
  }

  #checkRefusal(
    error: unknown,
    signal: AbortSignal,
    keys: readonly string[],
    since: number,
    mayBeLost: boolean,
  ): void {
    const qualified = keys.map((key) => `${NAMESPACE}/${key}`);
    if (error === undefined) return this.witness.refused('none', qualified, since);
    if (error instanceof LeaseHeldException) return this.witness.refused('held', qualified, since);
    if (error instanceof LeaseDoneException) return this.witness.refused('done', qualified, since);
    if (error instanceof LeaseUnavailableException) {
      return this.witness.refused('unavailable', qualified, since);
    }
    // Waiting for one key outlasted another, or the answer took longer than the lease may last.
    if (error instanceof LeaseLostException && mayBeLost) {
      return this.witness.refused('lost while waiting', qualified, since);
    }
    if (signal.aborted && error === signal.reason) {
      return this.witness.refused('aborted', qualified, since);
    }
    this.witness.fail(9, `a request ended with ${String(error)}`);
  }

  /** The user asks, and acts on the answer. */
  #ask(handle: Handle): boolean {
    const isHeld = handle.lease.isHeld;
    if (isHeld) this.witness.claims(handle);
    else if (!handle.lease.isReleased && !handle.lease.signal.aborted) {
      this.witness.fail(5, `${handle.lease.key} is not held and its signal says nothing`);
    }
    return isHeld;
  }

  async #do(site: Site, handle: Handle, take: Take, inScope: boolean): Promise<void> {
    for (const deed of take.deeds) {
      await site.process.sleep(deed.after);
      if (take.ending !== 'ignore-loss' && handle.lease.signal.aborted) return;
      await this.#act(site, handle, deed, take, inScope);
    }
  }

  async #act(
    site: Site,
    handle: Handle,
    { act }: Deed,
    take: Take,
    inScope: boolean,
  ): Promise<void> {
    const { lease } = handle;
    const { fence } = lease;
    try {
      switch (act) {
        case 'look':
          this.#ask(handle);
          break;
        case 'renew':
          await lease.renew();
          break;
        case 'renew-longer':
          await lease.renew(take.ttl * 2);
          break;
        case 'renew-shorter':
          await lease.renew(Math.max(30, take.ttl / 2));
          break;
        case 'enter':
          await this.#enter(site, handle, inScope);
          break;
        case 'enter-more':
          await this.#enter(site, handle, inScope);
          await site.process.sleep(5);
          await Promise.all([
            this.#enter(site, handle, inScope),
            this.#enter(site, handle, inScope),
          ]);
      }
    } catch (error) {
      if (error instanceof LeaseLostException) this.#ask(handle);
      else if (!(error instanceof LeaseUnavailableException)) throw error;
    }
    if (lease.fence !== fence)
      this.witness.fail(8, `the fence of ${lease.key} changed while it was held`);
  }

  /** Enters again what it holds, in the same async context or by the lease at hand. */
  async #enter(site: Site, outer: Handle, inScope: boolean): Promise<void> {
    const { engine, process } = site;
    const permits = Math.max(...outer.lease.holdings.map(({ hold }) => hold.permits));
    const lease = inScope
      ? await engine.acquire(outer.lease.keys, { permits })
      : engine.enter(outer.lease);
    if (lease.fence !== outer.lease.fence) {
      this.witness.fail(8, `${lease.key} was entered again with another fence`);
    }
    const inner: Handle = { ...outer, lease, maxHold: Infinity };
    site.handles.add(inner);
    this.witness.acquired(inner, undefined);
    await process.sleep(5);
    this.#ask(inner);
    await this.#release(site, inner, false);
  }

  async #release(site: Site, handle: Handle, twice: boolean): Promise<string> {
    const { lease } = handle;
    const outcomes = await Promise.all(
      twice ? [lease.release(), lease.release()] : [lease.release()],
    );
    if (new Set(outcomes).size > 1) this.witness.fail(7, 'two releases, two outcomes');
    if (lease.isHeld) this.witness.fail(7, `${lease.key} is held after its release`);
    this.witness.released(handle, outcomes[0]!);
    site.handles.delete(handle);
    return outcomes[0]!;
  }

  // — the end

  /** The troubles are over and every lease is given back: whoever waits for a key gets it. */
  async #everybodyOnce(): Promise<void> {
    if (this.witness.violation !== undefined) return;
    const sites = this.#sites.filter((site) => !site.process.crashed && !site.closing);
    for (const site of sites) {
      const turn = async (): Promise<void> => {
        const lease = await site.engine.acquire(keyName(0), { ttl: 300, wait: TURNS_TAKE });
        await site.process.sleep(2);
        await lease.release();
      };
      this.#follow(turn(), `the turn of p${site.process.index}`, site);
    }
    await this.#runUntilSettled(TURNS_TAKE + 500, 'did not come');
    // What a lost message left in line is passed by whoever has a turn.
    if (isUntroubled(this.scenario)) this.#queues.checkLine();
    else if (sites.length > 0) this.#queues.checkLine(`${NAMESPACE}/${keyName(0)}`);
  }

  #checkNothingLeft(): void {
    const { witness } = this;
    for (const { engine, process } of this.#sites) {
      if (process.crashed) continue;
      const who = `p${process.index}`;
      if (engine.agenda.size > 0) witness.fail(12, `${who} has appointments after its shutdown`);
      if (engine.awaited > 0) witness.fail(10, `${who} has waits after its shutdown`);
      if (engine.leases.size > 0) witness.fail(11, `${who} has leases after its shutdown`);
    }
    if (witness.left.length > 0) witness.fail(11, `the store still has ${witness.left.join(', ')}`);
  }
}

const isTake = (what: Take | Fault): what is Take => 'deeds' in what;

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

const definedOnly = (options: object): object =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
