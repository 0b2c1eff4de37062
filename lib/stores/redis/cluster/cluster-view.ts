import { NOT_CONNECTED } from '../../../lease.messages.js';
import { OneServer } from '../one-server.js';
import type { RedisRules } from '../redis-rules.js';
import type { ClusterPlace } from './cluster-connection.js';
import { surveyedBy, type ClusterMap } from './cluster-map.js';

/** How long one look around may take. */
const PATIENCE = 1_000;
/** Others who are well may know better than the first to answer. */
const GRACE = 50;
/** A node that owes an answer for so long may have been replaced by now. */
const SLOW = 400;
/** A node that is about to get its first slot is in no map yet. */
const EXPECTED = 10_000;

interface Member {
  readonly server: OneServer;
  /** Monotonic time until which it is kept although no map names it. */
  expectedUntil: number;
  answers: number;
}

/** The nodes of a cluster and which of them has which slot, as far as it is known. Looks again whenever it was wrong. */
export class ClusterView {
  readonly #members = new Map<string, Member>();
  #map: ClusterMap | undefined;
  #looking: Promise<void> | undefined;
  #watch: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param onChange - some slots have other owners than before */
  constructor(
    private readonly place: ClusterPlace,
    private readonly rules: RedisRules,
    private readonly onChange: () => void,
  ) {}

  /** The address of the node that has a slot, as far as is known. */
  ownerOf(slot: number): string | undefined {
    return this.#map?.owners[slot];
  }

  /** All nodes that have slots. */
  get owners(): string[] {
    return [...new Set(this.#map?.owners)].filter((owner) => owner !== undefined);
  }

  /** The same, of a slot whose owner has to be found out first. */
  async foundOwnerOf(slot: number): Promise<string> {
    this.#assertOpen();
    if (this.ownerOf(slot) === undefined) await this.look();
    const owner = this.ownerOf(slot);
    if (owner === undefined) throw new Error(NOT_CONNECTED());
    return owner;
  }

  /** Where a node is for us that the cluster knows by this address. */
  mapped(address: string): string {
    return this.place.mapped(address);
  }

  server(address: string): OneServer {
    this.#assertOpen();
    return this.#member(address).server;
  }

  /** The server at an address that there is one for already. */
  known(address: string): OneServer | undefined {
    return this.#members.get(address)?.server;
  }

  /** As a node said. The rest is found out. */
  moved(slot: number, address: string): void {
    if (this.#map !== undefined) this.#map.owners[slot] = address;
    this.lookSoon();
  }

  /** A node that may be in no map yet. */
  expect(address: string): OneServer {
    const server = this.server(address);
    this.#member(address).expectedUntil = performance.now() + EXPECTED;
    return server;
  }

  /** In the background. */
  lookSoon(): void {
    if (!this.#isClosed) this.look().catch(() => {});
  }

  /** Asks the nodes that are known. Rejects when none of them could tell. */
  look(): Promise<void> {
    this.#looking ??= this.#lookAround().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async open(): Promise<void> {
    this.#isClosed = false;
    await this.look();
    await Promise.all(this.owners.map((address) => this.server(address).open()));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watch);
    this.#watch = undefined;
    this.#map = undefined;
    const members = [...this.#members.values()];
    this.#members.clear();
    await Promise.all(members.map(({ server }) => server.close()));
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new Error(NOT_CONNECTED());
  }

  #member(address: string): Member {
    let member = this.#members.get(address);
    if (member === undefined) {
      const where = {
        connect: () => this.place.connect(address),
        subscribe: () => this.place.subscribe(address),
        tagOf: this.place.tagOf,
      };
      member = { server: new OneServer(where, this.rules), expectedUntil: 0, answers: 0 };
      this.#members.set(address, member);
      this.#watch ??= setInterval(() => this.#findSlow(), SLOW).unref();
    }
    return member;
  }

  /** Who is silent may have been replaced: its answers will never come, and those who wait for them need not know why. */
  #findSlow(): void {
    let isSlow = false;
    for (const member of this.#members.values()) {
      const { silence } = member.server.link;
      if (silence.isOwed && silence.answers === member.answers) isSlow = true;
      member.answers = silence.answers;
    }
    if (isSlow) this.lookSoon();
  }

  async #lookAround(): Promise<void> {
    const ready = [...this.#members].filter(([, { server }]) => server.link.isReady);
    const addresses = new Set(ready.map(([address]) => address));
    // Nobody to ask, or only one who may be the one that is cut off from the rest.
    if (addresses.size < 2) {
      for (const address of [...this.owners, ...this.place.seeds]) addresses.add(address);
    }
    const maps: ClusterMap[] = [];
    let error: unknown;
    const surveys = [...addresses].map(async (address) => {
      try {
        const { link } = this.#member(address).server;
        await link.ready(PATIENCE);
        maps.push(await surveyedBy(link, address, this.place.mapped));
      } catch (reason) {
        error ??= reason;
      }
    });
    await firstOf(surveys, () => maps.some(({ isWell }) => isWell));
    if (this.#isClosed) throw new Error(NOT_CONNECTED());
    const best = maps.toSorted(
      (a, b) => Number(b.isWell) - Number(a.isWell) || b.epoch - a.epoch,
    )[0];
    if (best === undefined) throw new Error(NOT_CONNECTED(), { cause: error });
    this.#adopt(best);
  }

  #adopt(map: ClusterMap): void {
    const before = this.#map;
    this.#map = map;
    const owners = new Set(map.owners);
    const now = performance.now();
    for (const [address, { server, expectedUntil }] of this.#members) {
      server.link.asking.clear();
      if (owners.has(address) || expectedUntil > now) continue;
      this.#members.delete(address);
      server.close().catch(() => {});
    }
    if (before === undefined || map.owners.some((owner, slot) => owner !== before.owners[slot])) {
      this.onChange();
    }
  }
}

/** Until all have settled, or a moment after there is what was looked for, or it takes too long. */
async function firstOf(tries: readonly Promise<void>[], isFound: () => boolean): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE).unref();
    void Promise.all(tries).then(() => resolve());
    const heard = (): unknown => isFound() && setTimeout(resolve, GRACE).unref();
    for (const one of tries) void one.then(heard);
  });
  clearTimeout(timer);
}
