import type { Claim, Hold, ReleaseHow } from '../lease-store.js';

/** No ttl is longer, and so no quarantine, ms. */
export const LONGEST_TTL = 86_400_000;

/** One node's vote on a claim. */
export type Vote =
  /** `settled` when the node was told this fence before: where a majority says so, it may have been handed out. */
  | { readonly kind: 'granted'; readonly fence: number; readonly settled: boolean }
  /** `by` tells one holder from another, and is no secret. */
  | { readonly kind: 'held'; readonly waitMs: number; readonly by: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'late' }
  | { readonly kind: 'quarantined'; readonly waitMs: number };

/** `absent`: nobody has it there. `taken`: another has it. `unknown`: the node is in no state to say. */
export type RenewVote = 'renewed' | 'absent' | 'taken' | 'unknown';

/** Whether it was done; `unknown` when the node is in quarantine, where nothing that it says counts. */
export type YesNo = 'yes' | 'no' | 'unknown';

/** What a node knows of itself: see lua/parts/node.lua. */
export interface NodeState {
  /** Of the server: two nodes with the same one are the same server. */
  readonly run: string;
  readonly votes: boolean;
  /** Milliseconds that are left of its quarantine. */
  readonly waitMs: number;
  readonly high: number;
  readonly longest: number;
}

/** What a node knows of a lease that is not free. */
export interface NodeRecord {
  /** Empty when the key is only kept taken. */
  readonly token: string;
  readonly fence: number;
  readonly settled: boolean;
  readonly instance: string;
  readonly since: number;
  readonly leftMs: number;
}

/** Which of its token's claims a request belongs to: of two, the later one has the higher number. */
export type RoundNumber = number;

/** Whether a request is still wanted by the time that it can be sent. */
export interface Wanted {
  /** Until when somebody waits for the answer, on our monotonic clock. */
  readonly until: number;
  /** Called right before it is sent; it is not sent when not. */
  readonly isWanted: () => boolean;
}

/** One of the independent nodes, as its voters see it. A method that rejects means that there is no telling. */
export interface Voter {
  /** For people. */
  readonly name: string;
  /** The run of the server that is connected now. */
  readonly run: string | undefined;
  claim(claim: Claim, wanted: Wanted, round: RoundNumber): Promise<Vote>;
  /** Does nothing where the token has claimed again since: it comes from a connection that is no more. */
  settle(hold: Hold, fence: number, round: RoundNumber): Promise<YesNo>;
  renew(holds: readonly Hold[], until: number): Promise<readonly RenewVote[]>;
  heal(hold: Hold, record: NodeRecord, wanted: Wanted): Promise<YesNo>;
  /** @param inVain - gives back what was granted to this round or an earlier one, and to no later one */
  release(hold: Hold, how: ReleaseHow, wanted: Wanted, inVain?: RoundNumber): Promise<YesNo>;
  /** Nothing when the key is free there; rejects when the node does not vote. */
  inspect(key: string): Promise<NodeRecord | undefined>;
  look(): Promise<NodeState>;
  /** Ends its quarantine. Milliseconds that it has to wait all the same; 0 when it votes. */
  admit(run: string, floor: number, longest: number): Promise<number>;
}

/** How many of so many are a majority: any two of them have a node in common. */
export const majorityOf = (count: number): number => Math.floor(count / 2) + 1;
