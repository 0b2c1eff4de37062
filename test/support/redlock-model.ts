import type { Claim, Grant, Hold, Refusal, ReleaseHow } from '../../lib/stores/lease-store.js';
import { UnderWay } from '../../lib/lease/under-way.js';
import { Acquisition } from '../../lib/stores/redlock/acquisition.js';
import { readmit } from '../../lib/stores/redlock/readmission.js';
import type {
  NodeRecord,
  NodeState,
  RenewVote,
  Vote,
  Voter,
  Wanted,
  YesNo,
} from '../../lib/stores/redlock/voter.js';

/** A rule that the nodes of a model do not keep, to see that it is needed. */
export type Broken = 'no write-back' | 'no quarantine' | 'no floor' | 'no majority for the floor';

interface ModelLease extends Omit<NodeRecord, 'leftMs'> {
  readonly round: number;
  readonly expiresAt: number;
}

export const TTL = 10_000;

/** Time that passes for all nodes alike; what they call it is their own business. */
export class ModelWorld {
  now = 1_700_000_000_000;
  readonly nodes: readonly ModelNode[];
  readonly underWay = new UnderWay();

  constructor(
    skews: readonly number[],
    readonly broken?: Broken,
  ) {
    this.nodes = skews.map((skew, i) => new ModelNode(this, i, skew));
  }

  get amnesiacs(): number {
    return this.nodes.filter((node) => !node.admitted).length;
  }

  /** The nodes as one sees them who reaches some of them, whose answers come in some order. */
  view({ claims, settles = claims, releases = claims, hops = [] }: Reach): Voter[] {
    return this.nodes.map((node, i) => {
      const hop = async (mask: number): Promise<void> => {
        for (let n = hops[i] ?? 0; n > 0; n--) await Promise.resolve();
        if (((mask >> i) & 1) === 0) throw new Error(`node ${i} is out of reach`);
      };
      const answer = async <T>(mask: number, ask: () => T): Promise<T> => {
        await hop(mask);
        return ask();
      };
      return {
        name: node.name,
        run: node.run,
        claim: (claim: Claim, wanted: Wanted, round: number) =>
          answer(claims, () => {
            if (!wanted.isWanted()) throw new Error('not wanted');
            return node.claim(claim, round);
          }),
        settle: (hold: Hold, fence: number, round: number) =>
          answer(settles, () => node.settle(hold, fence, round)),
        release: (hold: Hold, how: ReleaseHow, { isWanted }: Wanted, inVain?: number) =>
          answer(releases, () => (isWanted() ? node.release(hold, how, inVain) : 'unknown')).catch(
            // Lost on the way, and left to its ttl.
            (): YesNo => 'unknown',
          ),
        renew: (holds: readonly Hold[]) => answer(claims, () => node.renew(holds)),
        heal: (hold: Hold, record: NodeRecord) => answer(claims, () => node.heal(hold, record)),
        inspect: (key: string) => answer(claims, () => node.inspect(key)),
        look: () => answer(claims, () => node.look()),
        admit: (run: string, floor: number) => answer(claims, () => node.admit(run, floor)),
      };
    });
  }

  acquire(claim: Claim, reach: Reach): Promise<Grant | Refusal> {
    const voters = this.view(reach);
    const { underWay } = this;
    const { random = () => 0 } = reach;
    const parts = { voters, underWay, random, check: () => {} };
    return new Acquisition(claim, parts, () => {}).try(claim);
  }

  /** All whose time is over, as far as they can learn from those in reach. */
  async readmitAll(mask: number): Promise<void> {
    const all = (1 << this.nodes.length) - 1;
    const voters = this.view({ claims: this.broken === 'no majority for the floor' ? all : mask });
    const reached = voters.filter((_, i) => ((mask >> i) & 1) === 1);
    for (const voter of reached) {
      // Broken: content with whoever it reaches.
      const others = this.broken === 'no majority for the floor' ? reached : voters;
      await readmit(voter, others).catch(() => undefined);
    }
  }
}

export interface Reach {
  /** Bit by bit: which nodes get the claim and what follows it. */
  readonly claims: number;
  /** Which of them are told the fence. */
  readonly settles?: number;
  /** Which of them hear that it is given back. */
  readonly releases?: number;
  /** How many turns the way to each of them takes. */
  readonly hops?: readonly number[];
  /** For how long one pauses who got no majority as nobody did, as a part of what it may. */
  readonly random?: () => number;
}

/** What the scripts of lib/stores/redlock/lua do, in memory. */
class ModelNode {
  run = 'run 0';
  admitted = true;
  since = 0;
  high = 0;
  readonly name: string;
  readonly #leases = new Map<string, ModelLease>();
  #runs = 0;

  constructor(
    private readonly world: ModelWorld,
    index: number,
    private readonly skew: number,
  ) {
    this.name = `node ${index}`;
  }

  restartEmpty(): void {
    this.#leases.clear();
    this.run = `run ${++this.#runs}`;
    this.high = 0;
    this.since = this.world.now;
    this.admitted = this.world.broken === 'no quarantine';
  }

  claim({ key, token, ttl, instance }: Claim, round: number): Vote {
    if (!this.admitted) return { kind: 'quarantined', waitMs: this.#waitMs };
    const held = this.#live(key);
    if (held?.token === token) {
      this.#leases.set(key, {
        ...held,
        round: Math.max(held.round, round),
        expiresAt: this.world.now + ttl,
      });
      return { kind: 'granted', fence: held.fence, settled: held.settled };
    }
    if (held) return { kind: 'held', waitMs: held.expiresAt - this.world.now, by: held.token };
    const fence = Math.max(this.high + 1, this.#clock * 1_000);
    const expiresAt = this.world.now + ttl;
    this.#leases.set(key, {
      token,
      fence,
      settled: false,
      round,
      instance,
      since: this.#clock,
      expiresAt,
    });
    return { kind: 'granted', fence, settled: false };
  }

  settle({ key, token }: Hold, fence: number, round: number): YesNo {
    if (!this.admitted) return 'unknown';
    const held = this.#live(key);
    if (held?.token !== token || held.round > round) return 'no';
    if (this.world.broken === 'no write-back') return 'yes';
    this.#leases.set(key, { ...held, fence, settled: true });
    this.high = Math.max(this.high, fence);
    return 'yes';
  }

  release({ key, token }: Hold, _how: ReleaseHow, inVain = Infinity): YesNo {
    const held = this.#live(key);
    const isMine = held?.token === token && held.round <= inVain;
    if (isMine) this.#leases.delete(key);
    if (!this.admitted) return 'unknown';
    return isMine ? 'yes' : 'no';
  }

  renew(holds: readonly Hold[]): RenewVote[] {
    return holds.map(({ key, token, ttl }) => {
      if (!this.admitted) return 'unknown';
      const held = this.#live(key);
      if (held === undefined) return 'absent';
      if (held.token !== token) return 'taken';
      this.#leases.set(key, { ...held, expiresAt: this.world.now + ttl });
      return 'renewed';
    });
  }

  heal({ key, token, ttl }: Hold, record: NodeRecord): YesNo {
    if (!this.admitted) return 'unknown';
    const held = this.#live(key);
    if (held !== undefined) return held.token === token ? 'yes' : 'no';
    this.#leases.set(key, {
      ...record,
      round: Number.MAX_SAFE_INTEGER,
      expiresAt: this.world.now + ttl,
    });
    this.high = Math.max(this.high, record.fence);
    return 'yes';
  }

  inspect(key: string): NodeRecord | undefined {
    if (!this.admitted) throw new Error('does not vote');
    const held = this.#live(key);
    return held && { ...held, leftMs: held.expiresAt - this.world.now };
  }

  look(): NodeState {
    const { run, admitted: votes, high } = this;
    return { run, votes, waitMs: votes ? 0 : this.#waitMs, high, longest: TTL };
  }

  admit(run: string, floor: number): number {
    if (run !== this.run || this.#waitMs > 0) return Math.max(1, this.#waitMs);
    if (this.world.broken !== 'no floor') this.high = Math.max(this.high, floor);
    this.admitted = true;
    return 0;
  }

  get #clock(): number {
    return this.world.now + this.skew;
  }

  get #waitMs(): number {
    return Math.max(0, this.since + TTL - this.world.now);
  }

  #live(key: string): ModelLease | undefined {
    const held = this.#leases.get(key);
    return held && held.expiresAt > this.world.now ? held : undefined;
  }
}
