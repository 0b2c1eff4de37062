import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from '../../lib/stores/lease-store.js';

export type StoreMethod = 'acquire' | 'renew' | 'release' | 'watch' | 'inspect';

/** What becomes of one call: `pass` lets the store behind do it. */
export type Behaviour = (pass: () => Promise<unknown>) => unknown;

/** The request never arrives, and no answer comes. */
export const hang: Behaviour = () => new Promise(() => {});
/** The store does it; the answer never comes. */
export const loseReply: Behaviour = async (pass) => {
  await pass();
  return new Promise(() => {});
};
export const pass: Behaviour = (call) => call();
/** The request never arrives; the connection says so. */
export const fail =
  (error: unknown): Behaviour =>
  async () => {
    throw error;
  };
/** The store does it; the connection breaks before the answer. */
export const failAfter =
  (error: unknown): Behaviour =>
  async (call) => {
    await call();
    throw error;
  };
/** Not even a promise comes back. */
export const throwNow =
  (error: unknown): Behaviour =>
  () => {
    throw error;
  };
/** The request never arrives; something answers all the same. */
export const answer =
  (value: unknown): Behaviour =>
  async () =>
    value;

/** Holds something back until it is opened. */
export class Gate {
  /** How many calls came to it. */
  reached = 0;
  #open!: () => void;
  readonly #opened = new Promise<void>((resolve) => (this.#open = resolve));

  open(): void {
    this.#open();
  }

  /** The request is on its way until the gate opens. */
  readonly request: Behaviour = async (call) => {
    this.reached++;
    await this.#opened;
    return call();
  };

  /** The store does it at once; its answer is on the way until the gate opens. */
  readonly reply: Behaviour = async (call) => {
    this.reached++;
    const reply = await call();
    await this.#opened;
    return reply;
  };
}

/** A store behind a connection that a test has in its hand, call by call. */
export class ScriptedStore implements LeaseStore {
  readonly name = 'scripted';
  readonly claims: Claim[] = [];
  readonly renewals: (readonly Hold[])[] = [];
  readonly releases: { readonly hold: Hold; readonly how: ReleaseHow }[] = [];
  /** Watches that were begun and not ended. */
  watchers = 0;

  readonly #scripts = new Map<StoreMethod, Behaviour[]>();
  readonly #always = new Map<StoreMethod, Behaviour>();

  constructor(
    readonly inner: LeaseStore,
    private readonly limited: Partial<LeaseStore['limits']> = {},
  ) {}

  get limits(): LeaseStore['limits'] {
    return { ...this.inner.limits, ...this.limited };
  }

  /** The next calls of a method, one behaviour each; then it is as it was. */
  next(method: StoreMethod, ...behaviours: Behaviour[]): void {
    this.#scripts.set(method, [...(this.#scripts.get(method) ?? []), ...behaviours]);
  }

  /** Every call of a method that has no other script, until told otherwise. */
  always(method: StoreMethod, behaviour: Behaviour): void {
    this.#always.set(method, behaviour);
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    this.claims.push(claim);
    return this.#call('acquire', () => this.inner.acquire(claim));
  }

  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    this.renewals.push(holds);
    return this.#call('renew', () => this.inner.renew(holds));
  }

  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    this.releases.push({ hold, how });
    return this.#call('release', () => this.inner.release(hold, how));
  }

  watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    return this.#call('watch', async () => {
      const stop = await this.inner.watch!(key, onFree);
      this.watchers++;
      return async () => {
        this.watchers--;
        await stop();
      };
    });
  }

  inspect(key: string): Promise<LeaseRecord | null> {
    return this.#call('inspect', () => this.inner.inspect(key));
  }

  list(options?: { readonly prefix?: string }): AsyncIterable<LeaseRecord> {
    return this.inner.list(options);
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  #call<T>(method: StoreMethod, call: () => Promise<T>): Promise<T> {
    const behaviour = this.#scripts.get(method)?.shift() ?? this.#always.get(method) ?? pass;
    return behaviour(call) as Promise<T>;
  }
}
