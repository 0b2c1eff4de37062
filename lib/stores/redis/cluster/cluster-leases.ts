import { setTimeout } from 'node:timers/promises';
import type {
  Claim,
  Grant,
  HandOver,
  Hold,
  LeaseRecord,
  OnTurn,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../../lease-store.js';
import type { OneServer } from '../one-server.js';
import { redisKeys } from '../redis-keys.js';
import { CONNECT_PATIENCE } from '../redis-link.js';
import type { RedisRules } from '../redis-rules.js';
import type { ClusterPlace } from './cluster-connection.js';
import { redirectionIn } from './cluster-map.js';
import { ClusterView } from './cluster-view.js';

/** Between two tries while a slot is on its way from one node to another. */
const TRY_AGAIN = 10;

/** Somebody who stands in line, and at which nodes: more than one when the slot of its key has moved. */
interface Standing {
  readonly key: string;
  readonly onTurn: OnTurn;
  readonly at: Set<string>;
}

/**
 * The leases of a cluster: each is at the node that has its slot, with that node's clock and that node's line. A node that
 * says where else a command belongs has not executed it, so it is sent there, by the deadline that it had.
 */
export class ClusterLeases {
  readonly #view: ClusterView;
  /** By token: from when it first asked until it is released. */
  readonly #standing = new Map<string, Standing>();

  readonly #slotOf: (key: string) => number;

  constructor(place: ClusterPlace, rules: RedisRules) {
    this.#slotOf = place.slotOf;
    this.#view = new ClusterView(place, rules, () => this.#callMoved());
  }

  open(): Promise<void> {
    return this.#view.open();
  }

  close(): Promise<void> {
    this.#standing.clear();
    return this.#view.close();
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    return this.#claim(claim, (server, now) => server.acquire(now));
  }

  enqueue(claim: Claim, onTurn: OnTurn): Promise<Grant | Refusal> {
    return this.#stand(claim, onTurn, (server, now) => server.enqueue(now, onTurn));
  }

  handOver(hold: Hold, next: Claim, onTurn: OnTurn): Promise<HandOver> {
    this.#leave(hold);
    return this.#stand(next, onTurn, (server, now) => server.handOver(hold, now, onTurn));
  }

  /** Each for itself: what one node does not know is no reason to doubt what another does. */
  async renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    const renewals = await Promise.allSettled(holds.map((hold) => this.#renew(hold)));
    const failed = renewals.filter(({ status }) => status === 'rejected');
    if (failed.length > 0 && failed.length === holds.length) {
      throw (failed[0] as PromiseRejectedResult).reason;
    }
    return renewals.map((one) => (one.status === 'fulfilled' ? one.value : 'unknown'));
  }

  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    this.#leave(hold);
    return this.#at(hold.key, CONNECT_PATIENCE, (server) => server.release(hold, how));
  }

  inspect(key: string): Promise<LeaseRecord | null> {
    return this.#at(key, CONNECT_PATIENCE, (server) => server.inspect(key));
  }

  /** Qualified keys of leases that may be held; some of them more than once. */
  async *keys(prefix: string): AsyncIterable<string> {
    await this.#view.look();
    for (const address of this.#view.owners) yield* this.#view.server(address).keys(prefix);
  }

  async #renew(hold: Hold): Promise<RenewOutcome> {
    const [outcome] = await this.#at(hold.key, CONNECT_PATIENCE, (server) => server.renew([hold]));
    if (outcome === 'gone') this.#leave(hold);
    return outcome!;
  }

  #stand<T>(
    claim: Claim,
    onTurn: OnTurn,
    ask: (server: OneServer, claim: Claim) => Promise<T>,
  ): Promise<T> {
    const { key, token } = claim;
    const at = this.#standing.get(token)?.at ?? new Set<string>();
    this.#standing.set(token, { key, onTurn, at });
    return this.#claim(claim, (server, now, address) => {
      at.add(address);
      return ask(server, now);
    });
  }

  /** What a node grants it from now on, where it stood, is nobody's. */
  #leave({ token, key }: Hold): void {
    const standing = this.#standing.get(token);
    if (standing === undefined) return;
    this.#standing.delete(token);
    const owner = this.#view.ownerOf(this.#slotOf(key));
    // There it is released, which takes it out of the line.
    standing.at.delete(owner ?? '');
    for (const address of standing.at) this.#view.known(address)?.forget(token);
  }

  /** Those who stand in line at a node that has their key no more hear nothing there: they ask, and stand where it is. */
  #callMoved(): void {
    // Who is called may ask at once, and so stand anew.
    const moved = [...this.#standing.values()].filter(({ key, at }) => {
      const owner = this.#view.ownerOf(this.#slotOf(key));
      return owner !== undefined && at.size > 0 && !at.has(owner);
    });
    for (const { onTurn } of moved) onTurn();
  }

  /** A claim has the same deadline wherever it is sent. */
  #claim<T>(
    claim: Claim,
    ask: (server: OneServer, claim: Claim, address: string) => Promise<T>,
  ): Promise<T> {
    const since = performance.now();
    return this.#at(claim.key, claim.patience, (server, address) => {
      const spent = performance.now() - since;
      const waited = (claim.waited ?? 0) + spent;
      return ask(server, { ...claim, patience: claim.patience - spent, waited }, address);
    });
  }

  /** @param patience - after that nobody is redirected any more */
  async #at<T>(
    key: string,
    patience: number,
    ask: (server: OneServer, address: string) => Promise<T>,
  ): Promise<T> {
    const until = performance.now() + patience;
    const slot = this.#slotOf(key);
    let address = this.#view.ownerOf(slot) ?? (await this.#view.foundOwnerOf(slot));
    for (let tries = 1; ; tries++) {
      try {
        return await ask(this.#view.server(address), address);
      } catch (error) {
        const redirection = redirectionIn(error, address);
        if (redirection === undefined) {
          this.#view.lookSoon();
          throw error;
        }
        address = this.#redirected(redirection, slot, key) ?? address;
        // Two nodes that disagree, or a slot that is on its way: not as fast as it goes.
        if (tries > 2 || redirection.how === 'TRYAGAIN') {
          await setTimeout(TRY_AGAIN, undefined, { ref: false });
          if (tries > 2) address = this.#view.ownerOf(slot) ?? address;
        }
        if (performance.now() >= until) throw error;
      }
    }
  }

  #redirected(
    { how, address }: { readonly how: string; readonly address: string | undefined },
    slot: number,
    key: string,
  ): string | undefined {
    if (address === undefined) return undefined;
    const to = this.#view.mapped(address);
    if (how === 'MOVED') this.#view.moved(slot, to);
    const { link } = this.#view.expect(to);
    if (how === 'ASK') link.asking.add(redisKeys(key).lease);
    return to;
  }
}
