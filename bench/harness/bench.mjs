import { contestants, fromFile } from '../contestants/index.mjs';
import { Fleet } from './fleet.mjs';
import { startEtcd, startPostgres, startRedis } from './servers.mjs';

/** What a scenario is given to run with. Stops what the scenario started. */
export class Bench {
  /** Holds of the same key at the same time. Ours or a floor's fail the run. */
  overlaps = [];

  #all = contestants;
  #started = [];
  #shared;

  /** @param {{ isQuick: boolean, contestant?: string, also?: string }} options */
  constructor(options) {
    this.options = options;
  }

  static async create(options) {
    const bench = new Bench(options);
    if (options.also) bench.#all = [...contestants, await fromFile(options.also)];
    return bench;
  }

  get isQuick() {
    return this.options.isQuick;
  }

  /** The plan of a whole run, or of a quick one. */
  plan(whole, quick) {
    return this.isQuick ? quick : whole;
  }

  /** Until the code of every contestant is compiled as far as it gets, in every process; see jobs/warm-up.mjs. */
  // With half of it, ratios were still seen to fall over the first rounds.
  async warmUp(fleet, entrants, calls = 5_000) {
    await Promise.all(
      entrants.flatMap((entrant) =>
        fleet.of(entrant).map((worker) =>
          worker.do('warmUp', fleet.opened(entrant), {
            key: `${entrant.name}:warm-up:${worker.pid}`,
            calls,
          }),
        ),
      ),
    );
  }

  /** Who takes part, of those asked for; the floor always does. */
  entrants(event, floor) {
    const isWanted = (one) =>
      one.name === floor || this.options.contestant === undefined || this.isAskedFor(one);
    return this.#all.filter((one) => one.takesPartIn.includes(event) && isWanted(one));
  }

  /** Whether the reader named it, and so wants it in a quick run too. */
  isAskedFor({ name }) {
    const { contestant, also } = this.options;
    return name === also || (contestant !== undefined && name.includes(contestant));
  }

  redis() {
    return this.#keep(startRedis());
  }

  postgres() {
    return this.#keep(startPostgres());
  }

  etcd() {
    return this.#keep(startEtcd());
  }

  async #keep(starting) {
    const server = await starting;
    this.#started.push(server);
    return server;
  }

  /** Processes for the contestants, opened with more options. */
  async fleet(entrants, options, size = 1) {
    const opened = (entrant) => ({ ...entrant, options: { ...entrant.options, ...options } });
    const fleet = await Fleet.start(entrants.map(opened), size);
    this.#started.push(fleet);
    return Object.assign(fleet, { opened });
  }

  /**
   * Everybody who acquires and releases, warmed up, with a Redis: for the scenarios that need just that, one after
   * the other. Stopped with the run.
   */
  async cyclists(floor) {
    this.#shared ??= await this.#startCyclists(floor);
    return this.#shared;
  }

  async #startCyclists(floor) {
    const entrants = this.entrants('cycle', floor);
    const redis = await this.redis();
    const fleet = await this.fleet(entrants, { port: redis.port });
    this.#started.splice(-2);
    await this.warmUp(fleet, entrants);
    return { entrants, redis, fleet };
  }

  /** When no scenario after this one needs them. */
  async dismissCyclists() {
    const shared = this.#shared;
    this.#shared = undefined;
    shared?.fleet.stop();
    await shared?.redis.stop();
  }

  /** By contestant, with what the report needs to know of it. */
  rows = (byName) =>
    [...byName].map(([name, figures]) => ({ name, kind: this.#kindOf(name), ...figures }));

  overlapped(report) {
    this.overlaps.push(report);
  }

  async stop() {
    for (const started of this.#started.splice(0)) await started.stop();
  }

  #kindOf(name) {
    return this.#all.find((contestant) => contestant.name === name)?.kind;
  }
}
