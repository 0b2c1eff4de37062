import { ETCD_OTHER_CLUSTER } from '../../lease.messages.js';
import type { Claim, Grant, Refusal } from '../lease-store.js';
import type { TxnAnswer } from './etcd-answers.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdLease, EtcdLeases } from './etcd-leases.js';
import type { EtcdNames, KeyRange } from './etcd-names.js';
import { inTheWay, placeOf, secondsOf, valueFor, valueOf, type Place } from './etcd-place.js';
import { get, isMissing, isNoneNewer, isUnchanged, put, transact } from './etcd-txn.js';

export interface EtcdParts {
  readonly client: EtcdClient;
  readonly leases: EtcdLeases;
  readonly names: EtcdNames;
}

/** What is known of a key. */
interface Sight {
  readonly cluster: string;
  readonly places: readonly Place[];
  readonly isDone: boolean;
}

/** A lease that has run out is taken away by the server within half a second. */
const SOON = 100;
const LOOKS_AT_VANISHED = 3;

/**
 * One claim: looks, which writes nothing and is the end of it when the key is held; then grants itself an etcd lease and
 * takes a place under it, in a transaction that fails when anybody has taken one since it looked (rule 1).
 *
 * A transaction has no clock, so a server that was frozen can execute it after its time. What makes that harmless
 * is its etcd lease, which is this claim's alone: whenever the claim does not end in a grant the lease is
 * revoked, again and again until that is answered. A transaction after it fails for want of the lease, what one before it
 * put goes with it. If this process is gone too, the lease's own time does it (rule 2).
 */
export class EtcdClaim {
  readonly #until: number;
  readonly #range: KeyRange;
  readonly #own: string;
  readonly #mark: string | undefined;
  #lease: EtcdLease | undefined;

  constructor(
    private readonly parts: EtcdParts,
    private readonly claim: Claim,
  ) {
    const { names } = parts;
    const { key, token, once, patience } = claim;
    this.#until = performance.now() + patience;
    this.#range = names.holders(key);
    this.#own = names.holder(key, token);
    this.#mark = once === undefined ? undefined : names.mark(key, once);
  }

  async answer(): Promise<Grant | Refusal> {
    let answer: Grant | Refusal | undefined;
    try {
      return (answer = await this.#answer());
    } finally {
      if (answer?.granted !== true) this.parts.leases.end(this.#lease);
    }
  }

  async #answer(): Promise<Grant | Refusal> {
    let sight = await this.#look();
    for (let vanished = 0; ;) {
      const mine = sight.places.find((place) => place.name === this.#own);
      // By a request whose answer was lost.
      if (mine !== undefined && mine.lease === this.#lease?.id) return granted(mine.createRevision);
      if (mine === undefined) {
        if (sight.isDone) return { granted: false, reason: 'done' };
        const others = inTheWay(sight.places, this.claim.permits);
        if (others.length > 0) {
          const refusal = await this.#refusal(others);
          if (refusal.retryAfterMs !== 0) return refusal;
          if (vanished++ === LOOKS_AT_VANISHED) return { ...refusal, retryAfterMs: SOON };
          sight = await this.#look();
          continue;
        }
      }
      const outcome = await this.#take(sight, mine);
      if ('granted' in outcome) return outcome;
      sight = outcome;
    }
  }

  /** One request with all the reads: as of one moment. */
  async #look(): Promise<Sight> {
    const { value } = await transact(this.parts.client, { success: this.#reads }, this.#until);
    return this.#sight(value);
  }

  /** Takes a place or, of one that is held already, prolongs it; else tells what stood in the way. */
  async #take(sight: Sight, mine: Place | undefined): Promise<Grant | Sight> {
    const { client, leases } = this.parts;
    // Never shortened (rule 2).
    const seconds = Math.max(secondsOf(this.claim.ttl), mine?.seconds ?? 0);
    if (this.#lease === undefined || this.#lease.seconds < seconds) {
      leases.end(this.#lease);
      this.#lease = undefined;
      this.#lease = await leases.grant(seconds, this.#until);
    }
    const { id } = this.#lease;
    const value = mine === undefined ? valueOf(this.claim, seconds) : valueFor(mine, seconds);
    const compare =
      mine === undefined
        ? [isNoneNewer(this.#range, newestOf(sight.places)), ...this.#marks.map(isMissing)]
        : [isUnchanged(this.#own, mine.modRevision)];
    const txn = { compare, success: [put(this.#own, value, id)], failure: this.#reads };
    const { value: answer } = await transact(client, txn, this.#until);
    if (!answer.succeeded) return this.#sight(answer);
    // What was seen elsewhere says nothing of the places here.
    if (answer.cluster !== sight.cluster) throw new Error(ETCD_OTHER_CLUSTER(this.claim.key));
    if (mine === undefined) return granted(answer.revision);
    leases.end({ id: mine.lease, seconds: mine.seconds });
    return granted(mine.createRevision);
  }

  async #refusal(others: readonly Place[]): Promise<Refusal> {
    const held: Refusal = { granted: false, reason: 'held' };
    const ids = others.map(({ lease }) => lease);
    try {
      const ends = [...(await this.parts.leases.remaining(ids, this.#until))].toSorted(
        (a, b) => a - b,
      );
      const { permits } = this.claim;
      const isAlone = others.some((place) => place.permits === 1);
      return { ...held, retryAfterMs: ends[isAlone ? ends.length - 1 : ends.length - permits]! };
    } catch {
      // That it is held is known; for how long is only a help (rule 9).
      return held;
    }
  }

  get #marks(): readonly string[] {
    return this.#mark === undefined ? [] : [this.#mark];
  }

  get #reads(): readonly object[] {
    return [this.#range, ...this.#marks.map((key) => ({ key }))].map(get);
  }

  #sight({ cluster, found: [places, marks] }: TxnAnswer): Sight {
    return {
      cluster,
      places: places!.map((found) => placeOf(this.claim.key, found)),
      isDone: marks !== undefined && marks.length > 0,
    };
  }
}

/** The revision of the last of them; 0 of none, and then there must be none: whatever the revision was of the look. */
const newestOf = (places: readonly Place[]): number =>
  Math.max(0, ...places.map(({ createRevision }) => createRevision));

const granted = (fence: number): Grant => ({ granted: true, fence });
